//! Calls of the advisory lock functions: `pg_advisory_lock` and the twenty others (`src/backend/utils/adt/lockfuncs.c`).

use super::token::{Token, TokenKind, group, split};
use crate::model::lock::LockMode;
use crate::model::lock_key::LockKey;
use crate::model::lock_name::{hashtext, hashtextextended};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Lock,
    /// Acquires the lock if it is free, else returns false.
    Try,
    Unlock,
    UnlockAll,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advisory {
    pub function: String,
    pub act: Act,
    /// `Exclusive`, or `Share` for the functions that end with `_shared`.
    pub mode: LockMode,
    /// Whether the lock is released at the end of the transaction; else the session keeps it.
    pub in_transaction: bool,
    /// `None` if the arguments are not constants.
    pub key: Option<LockKey>,
    pub arguments: String,
    /// Whether it is called for each row of a query.
    pub per_row: bool,
}

/// The call that begins here; `None` if it is another function.
pub(super) fn call(tokens: &[Token<'_>]) -> Option<Advisory> {
    let [first, ..] = tokens else { return None };
    let function = first.name().filter(|name| name.starts_with("pg_"))?;
    let (rest, tries) = match function.strip_prefix("pg_try_advisory_") {
        Some(rest) => (rest, true),
        None => (function.strip_prefix("pg_advisory_")?, false),
    };
    let (rest, in_transaction) = rest.strip_prefix("xact_").map_or((rest, false), |rest| (rest, true));
    let (rest, mode) = match rest.strip_suffix("_shared") {
        Some(rest) => (rest, LockMode::Share),
        None => (rest, LockMode::Exclusive),
    };
    let act = match (rest, tries) {
        ("lock", false) => Act::Lock,
        ("lock", true) => Act::Try,
        ("unlock", false) if !in_transaction => Act::Unlock,
        ("unlock_all", false) if !in_transaction && mode == LockMode::Exclusive => Act::UnlockAll,
        _ => return None,
    };
    let rest = tokens.get(1..)?;
    // An argument list is short. Searching for the end of each parenthesis would take quadratic time.
    let end = group(rest.get(..rest.len().min(200))?)?;
    let inside = rest.get(1..end - 1)?;
    let arguments = inside.iter().map(|token| token.text).collect::<String>();
    let values: Option<Vec<i64>> = split(inside, ',').into_iter().map(constant).collect();
    let key = match values.as_deref() {
        Some([key]) => Some(LockKey::Bigint(*key)),
        Some([first, second]) => {
            i32::try_from(*first).ok().zip(i32::try_from(*second).ok()).map(|(a, b)| LockKey::Pair(a, b))
        }
        _ => None,
    };
    Some(Advisory { function, act, mode, in_transaction, key, arguments, per_row: false })
}

/// The value of a number, a quoted number, or a hash of a string, with sign, casts and parentheses.
fn constant(tokens: &[Token<'_>]) -> Option<i64> {
    let tokens = without_cast(tokens);
    match tokens {
        [sign, rest @ ..] if sign.sign('-') => match rest {
            // The smallest number has no positive counterpart.
            [number] => format!("-{}", digits(number)?).parse().ok(),
            _ => constant(rest)?.checked_neg(),
        },
        [sign, rest @ ..] if sign.sign('+') => constant(rest),
        [number] if number.kind == TokenKind::Number => digits(number)?.parse().ok(),
        [text] => text.string()?.trim().parse().ok(),
        [open, .., close] if open.sign('(') && close.sign(')') => constant(tokens.get(1..tokens.len() - 1)?),
        [called, open, inside @ .., close] if open.sign('(') && close.sign(')') => {
            let mut values = split(inside, ',').into_iter();
            let text = values.next().and_then(|text| match without_cast(text) {
                // The hash of other characters depends on the encoding of the database.
                [text] => text.string().filter(|text| text.is_ascii()),
                _ => None,
            })?;
            match (values.next(), values.next()) {
                (None, _) if called.is("HASHTEXT") => Some(hashtext(text.as_bytes()).into()),
                (Some(seed), None) if called.is("HASHTEXTEXTENDED") => {
                    Some(hashtextextended(text.as_bytes(), constant(seed)?))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Removes a leading `pg_catalog.` and a trailing `::type`.
fn without_cast<'t, 'a>(tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    let tokens = match tokens {
        [schema, dot, rest @ ..] if schema.is("PG_CATALOG") && dot.sign('.') => rest,
        _ => tokens,
    };
    match tokens {
        [rest @ .., first, second, kind]
            if first.sign(':')
                && second.sign(':')
                && kind.is_any(&["BIGINT", "INT", "INT8", "INT4", "INTEGER", "TEXT"]) =>
        {
            without_cast(rest)
        }
        _ => tokens,
    }
}

fn digits(token: &Token<'_>) -> Option<String> {
    (token.kind == TokenKind::Number && !token.text.starts_with('$')).then(|| token.text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::statement::token::tokens;

    #[test]
    fn calls_and_their_keys() {
        for (text, expected) in [
            ("pg_advisory_lock(10001)", "Lock Exclusive session 10001"),
            ("pg_advisory_lock_shared(-1::bigint)", "Lock Share session -1"),
            ("PG_ADVISORY_XACT_LOCK(1, -2)", "Lock Exclusive transaction (1, -2)"),
            ("pg_advisory_xact_lock_shared('7')", "Lock Share transaction 7"),
            ("pg_try_advisory_lock(-9223372036854775808)", "Try Exclusive session -9223372036854775808"),
            ("pg_try_advisory_lock_shared(1_000)", "Try Share session 1000"),
            ("pg_try_advisory_xact_lock((5))", "Try Exclusive transaction 5"),
            ("pg_try_advisory_xact_lock_shared(1, 2)", "Try Share transaction (1, 2)"),
            ("pg_advisory_unlock(1)", "Unlock Exclusive session 1"),
            ("pg_advisory_unlock_shared(1, 2)", "Unlock Share session (1, 2)"),
            ("pg_advisory_unlock_all()", "UnlockAll Exclusive session ?"),
            ("pg_advisory_lock(hashtext('invoice:7'))", "Lock Exclusive session -1888902025"),
            (
                "pg_advisory_lock(12, pg_catalog.hashtext('invoice:7'::text))",
                "Lock Exclusive session (12, -1888902025)",
            ),
            ("pg_advisory_lock(hashtextextended('invoice:7', 0))", "Lock Exclusive session "),
            ("pg_advisory_lock(hashtext('é'))", "Lock Exclusive session ?"),
            ("pg_advisory_lock(id)", "Lock Exclusive session ?"),
            ("pg_advisory_lock($1)", "Lock Exclusive session ?"),
            ("pg_advisory_lock(3000000000, 1)", "Lock Exclusive session ?"),
            ("pg_advisory_unlock_all_shared()", "-"),
            ("pg_advisory_xact_unlock(1)", "-"),
            ("pg_advisory_lock", "-"),
        ] {
            let said = call(&tokens(text)).map_or_else(
                || "-".to_owned(),
                |found| {
                    let scope = if found.in_transaction { "transaction" } else { "session" };
                    let key = found.key.map_or_else(|| "?".to_owned(), |key| key.to_string());
                    format!("{:?} {} {scope} {key}", found.act, found.mode.short())
                },
            );
            assert!(
                said == expected || expected.ends_with(' ') && said.starts_with(expected),
                "{text}: {said}"
            );
        }
    }
}
