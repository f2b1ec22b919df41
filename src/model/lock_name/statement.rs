//! Keys that are computed in the requesting statement: `pg_advisory_lock(hashtext('invoice:7'))`.

use super::LockName;
use super::hash::{hashtext, hashtextextended};
use crate::model::lock_key::LockKey;
use crate::model::statement::{beginning, tags::calls};
use locktop_locks::advisory::{Key, NAMED};

/// Bytes of a statement that are read.
const LONGEST: usize = 8 * 1024;

/// The literal from which a statement computes this key. A literal whose hash is the key is certain; an md5 is accepted if
/// the statement has no other.
pub(super) fn resolve(key: LockKey, statement: &str) -> Option<LockName> {
    let statement = beginning(statement, LONGEST);
    if let Some(name) = tagged(key, statement) {
        return Some(named(name, false, "name in the statement, of locktop's library"));
    }
    for (literal, rest) in literals(statement, "hashtextextended") {
        let seed: i64 = rest.strip_prefix(',')?.split([')', ':']).next()?.trim().parse().unwrap_or_default();
        if is_hash(key, hashtextextended(literal.as_bytes(), seed)) {
            if let Some(queue) = queue_of_lease(&literal) {
                return Some(named(queue, false, "the queue for a lease, of locktop's library"));
            }
            return Some(named(literal, false, "hashtextextended of a literal in the statement"));
        }
    }
    for (literal, _) in literals(statement, "hashtext") {
        if is_hash(key, hashtext(literal.as_bytes()).into()) {
            return Some(named(literal, false, "hashtext of a literal in the statement"));
        }
    }
    let mut md5 = literals(statement, "md5");
    match (md5.next(), md5.next()) {
        (Some((literal, _)), None) if statement.contains("advisory") => {
            Some(named(literal, true, "md5 of a literal in the statement"))
        }
        _ => None,
    }
}

/// The names in the tags of a statement, as they are written.
fn names(statement: &str) -> impl Iterator<Item = &str> {
    calls(statement).filter_map(|(call, _)| {
        call.split_once(' ').filter(|(word, _)| ["lock", "lead"].contains(word)).map(|(_, name)| name)
    })
}

/// The name whose hash the key is. The first that stands for several permits, `exports #1-3`, is one of them: `exports #2 of 3`.
fn tagged(key: LockKey, statement: &str) -> Option<String> {
    let permit = || {
        let (name, count) = names(statement).find_map(|name| name.rsplit_once(" #1-"))?;
        let count = count.parse().ok().filter(|count| (1..=NAMED).contains(count))?;
        let one = (1..=count).find(|at| Key::named(&format!("{name} #{at}")).number() == key)?;
        Some(format!("{name} #{one} of {count}"))
    };
    let exact = || names(statement).find(|name| Key::named(name).number() == key).map(str::to_owned);
    permit().or_else(exact)
}

/// `locktop lease "locktop" 'report'` ([`locktop_locks::lease`]) as `queue of lease report`.
fn queue_of_lease(literal: &str) -> Option<String> {
    let (schema, lease) = literal.strip_prefix("locktop lease \"")?.split_once("\" ")?;
    let name = lease.strip_prefix('\'').and_then(|name| name.strip_suffix('\''));
    let name = name.map_or_else(|| lease.to_owned(), |name| name.replace("''", "'"));
    let place = if schema == "locktop" { String::new() } else { format!(" in {schema}") };
    Some(format!("queue of lease {name}{place}"))
}

fn named(literal: String, uncertain: bool, origin: &str) -> LockName {
    LockName::new(literal, uncertain, origin)
}

/// Whether a key, or one half of it, is the hash, possibly without its sign.
fn is_hash(key: LockKey, hash: i64) -> bool {
    let is = |number: i64| {
        number == hash || number.checked_abs() == hash.checked_abs() || number == hash & 0xffff_ffff
    };
    match key {
        LockKey::Bigint(number) => is(number),
        LockKey::Pair(high, low) => is(high.into()) || is(low.into()),
    }
}

fn literals<'a>(statement: &'a str, function: &'a str) -> impl Iterator<Item = (String, &'a str)> {
    let calls = statement.match_indices(function);
    calls.filter_map(move |(at, _)| {
        let before = statement.get(..at)?.chars().next_back();
        if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
            return None;
        }
        let rest = statement.get(at + function.len()..)?.trim_start().strip_prefix('(')?.trim_start();
        literal(rest.strip_prefix('\'')?)
    })
}

/// A literal after its opening quote, and the text that follows. None if it is not terminated, or is concatenated.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('\'')?;
        value.push_str(part);
        let Some(quoted) = after.strip_prefix('\'') else {
            let after = after.strip_prefix("::text").unwrap_or(after).trim_start();
            return (!after.starts_with("||")).then_some((value, after));
        };
        value.push('\'');
        rest = quoted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literal_of_a_key_is_its_name() {
        let hash = i64::from(hashtext(b"invoice:7"));
        let extended = hashtextextended(b"invoice:7", 0);
        for (key, statement, name) in [
            (LockKey::Bigint(hash), "SELECT pg_advisory_lock(hashtext('invoice:7'))", Some("invoice:7")),
            (
                LockKey::Bigint(hash),
                "select pg_advisory_xact_lock(hashtext ( 'invoice:7'::text ))",
                Some("invoice:7"),
            ),
            (
                LockKey::Bigint(-hash),
                "SELECT pg_advisory_lock(abs(hashtext('invoice:7')))",
                Some("invoice:7"),
            ),
            (
                LockKey::Pair(12, -1_888_902_025),
                "SELECT pg_advisory_lock(12, hashtext('invoice:7'))",
                Some("invoice:7"),
            ),
            (
                LockKey::Bigint(extended),
                "SELECT pg_advisory_lock(hashtextextended('invoice:7', 0))",
                Some("invoice:7"),
            ),
            (
                LockKey::Bigint(hashtextextended(b"locktop lease \"my\" 'it''s'", 0)),
                "SELECT key FROM hashtextextended('locktop lease \"my\" ''it''''s''', 0) k (key)",
                Some("queue of lease it's in my"),
            ),
            (
                LockKey::Bigint(hashtextextended(b"locktop lease \"locktop\" 7", 0)),
                "SELECT key FROM hashtextextended('locktop lease \"locktop\" 7', 0) k (key)",
                Some("queue of lease 7"),
            ),
            (LockKey::Bigint(5), "SELECT pg_advisory_lock(hashtext('invoice:7'))", None),
            (Key::named("b").number(), "/* lock a */ /* lock b */ SELECT 1", Some("b")),
            (Key::named("b").number(), "/* lock bb */ SELECT 'lock b'", None),
            (Key::named("b").number(), "/* lock b", None),
            (Key::named("a/b #2").number(), "/* lock a/b #1-3 */ SELECT 1", Some("a/b #2 of 3")),
            (Key::named("a/b #4").number(), "/* lock a/b #1-3 */ SELECT 1", None),
            (Key::named("a").number(), "/* lead a */ SELECT 1", Some("a")),
            (Key::named("a #1").number(), "/* lock a #1-4000000000 */ SELECT 1", None),
            (Key::named("a #1-b #3").number(), "/* lock a #1-b #1-3 */ SELECT 1", Some("a #1-b #3 of 3")),
            (Key::named("a #3").number(), "/* lock a #1-3 */ /* lock a #3 */ SELECT 1", Some("a #3 of 3")),
            (Key::named("a #300").number(), "/* lock a #300 */ SELECT 1", Some("a #300")),
            (LockKey::Bigint(hash), "SELECT pg_advisory_lock(hashtext('invoice:' || 7))", None),
            (LockKey::Bigint(hash), "SELECT my_hashtext('invoice:7')", None),
            (LockKey::Bigint(hash), "SELECT pg_advisory_lock(hashtext($1))", None),
            (LockKey::Bigint(hash), "SELECT hashtext('unfinished", None),
            (
                LockKey::Bigint(hashtext(b"it's").into()),
                "SELECT pg_advisory_lock(hashtext('it''s'))",
                Some("it's"),
            ),
            (
                LockKey::Bigint(7),
                "SELECT pg_advisory_lock(('x' || substr(md5('nightly'), 1, 16))::bit(64)::bigint)",
                Some("nightly?"),
            ),
        ] {
            let found = resolve(key, statement).map(|name| name.to_string());
            assert_eq!(found.as_deref(), name, "{statement}");
        }
    }
}
