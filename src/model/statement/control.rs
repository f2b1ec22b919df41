//! Transaction control statements, and settings that limit how long later statements wait.

use super::name::split;
use super::token::Token;

/// The effect of a statement on the session or its transaction, apart from its locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    Begin,
    /// COMMIT or END; the flag is AND CHAIN.
    Commit(bool),
    /// ROLLBACK or ABORT; the flag is AND CHAIN.
    Rollback(bool),
    /// PREPARE TRANSACTION: the locks outlive the session.
    PrepareTransaction,
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    /// SET: name, value, and whether it is LOCAL.
    Set(String, String, bool),
    /// RESET; `None` for ALL.
    Reset(Option<String>),
    Discard,
    /// PREPARE: name of the statement.
    Prepare(String),
    Execute(String),
}

/// `None` if the tokens are not such a statement.
pub(super) fn control(tokens: &[Token<'_>]) -> Option<Control> {
    let [first, rest @ ..] = tokens else { return None };
    let rest = match rest {
        [word, rest @ ..] if word.is_any(&["WORK", "TRANSACTION"]) && !first.is("PREPARE") => rest,
        _ => rest,
    };
    let name = |at: usize| rest.get(at).and_then(Token::name);
    let is = |at: usize, word: &str| rest.get(at).is_some_and(|token| token.is(word));
    let chains = is(0, "AND") && is(1, "CHAIN");
    // SAVEPOINT is a noise word after RELEASE and TO.
    let point = |at: usize| name(at + usize::from(is(at, "SAVEPOINT") && rest.len() > at + 1));
    Some(match () {
        () if first.is_any(&["BEGIN", "START"]) => Control::Begin,
        () if first.is_any(&["COMMIT", "ROLLBACK"]) && is(0, "PREPARED") => return None,
        () if first.is_any(&["COMMIT", "END"]) => Control::Commit(chains),
        () if first.is("ROLLBACK") && is(0, "TO") => Control::RollbackTo(point(1)?),
        () if first.is_any(&["ROLLBACK", "ABORT"]) => Control::Rollback(chains),
        () if first.is("SAVEPOINT") => Control::Savepoint(name(0)?),
        () if first.is("RELEASE") => Control::Release(point(0)?),
        () if first.is("PREPARE") && is(0, "TRANSACTION") => Control::PrepareTransaction,
        () if first.is("PREPARE") => Control::Prepare(name(0)?),
        () if first.is("EXECUTE") => Control::Execute(name(0)?),
        () if first.is("DISCARD") && is(0, "ALL") => Control::Discard,
        () if first.is("RESET") => Control::Reset(name(0).filter(|name| name != "all")),
        () if first.is("SET") => return set(rest),
        () => return None,
    })
}

/// `[SESSION | LOCAL] name { = | TO } value`
fn set(tokens: &[Token<'_>]) -> Option<Control> {
    let is_local = tokens.first()?.is("LOCAL");
    let skipped = usize::from(is_local || tokens.first()?.is("SESSION"));
    let rest = tokens.get(skipped..)?;
    let name = rest.first()?.name()?;
    if !rest.get(1)?.sign('=') && !rest.get(1)?.is("TO") {
        return None;
    }
    let [value, ..] = split(rest.get(2..)?, ',')[..] else { return None };
    if value.first()?.is("DEFAULT") {
        return Some(Control::Reset(Some(name)));
    }
    let text = |token: &Token<'_>| token.string().unwrap_or_else(|| token.text.to_owned());
    Some(Control::Set(name, value.iter().map(text).collect(), is_local))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::statement::token::tokens;

    #[test]
    fn what_ends_a_transaction_and_what_does_not() {
        let name = || "a".to_owned();
        for (text, expected) in [
            ("BEGIN ISOLATION LEVEL SERIALIZABLE", Some(Control::Begin)),
            ("START TRANSACTION READ ONLY", Some(Control::Begin)),
            ("COMMIT WORK", Some(Control::Commit(false))),
            ("END TRANSACTION AND CHAIN", Some(Control::Commit(true))),
            ("COMMIT PREPARED 'x'", None),
            ("ROLLBACK", Some(Control::Rollback(false))),
            ("ROLLBACK TRANSACTION TO SAVEPOINT a", Some(Control::RollbackTo(name()))),
            ("ROLLBACK TO a", Some(Control::RollbackTo(name()))),
            ("SAVEPOINT a", Some(Control::Savepoint(name()))),
            ("RELEASE SAVEPOINT a", Some(Control::Release(name()))),
            ("PREPARE TRANSACTION 'a'", Some(Control::PrepareTransaction)),
            ("PREPARE a (int) AS SELECT 1", Some(Control::Prepare(name()))),
            ("SET lock_timeout = '2s'", Some(Control::Set("lock_timeout".into(), "2s".into(), false))),
            ("SET LOCAL Lock_Timeout TO 500", Some(Control::Set("lock_timeout".into(), "500".into(), true))),
            ("SET SESSION a = DEFAULT", Some(Control::Reset(Some(name())))),
            ("RESET ALL", Some(Control::Reset(None))),
            ("SET CONSTRAINTS ALL DEFERRED", None),
            ("SELECT 1", None),
        ] {
            assert_eq!(control(&tokens(text)), expected, "{text}");
        }
    }
}
