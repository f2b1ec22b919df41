//! The statements of a text as a session runs them: the transaction of each, how long its locks are held, and the timeouts
//! in effect. Transaction control statements, and settings that limit how long later statements wait.

use std::collections::BTreeMap;

use super::token::{Token, split};
use super::{Act, Statement, StatementLock, StatementPiece, StatementTarget};
use crate::model::lock::LockMode;

words! {
    pub enum End {
        /// COMMIT, or the end of a text that runs as one transaction.
        Commit,
        Rollback,
        /// PREPARE TRANSACTION: the locks are kept.
        Prepared,
        /// The text ends before the transaction.
        Open,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct HeldTake {
    pub take: StatementLock,
    /// Index of the statement that takes it.
    pub from: usize,
    /// Index of the statement that releases it; `None` if the text ends before that.
    pub until: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScriptTransaction {
    /// Index of its first statement, including BEGIN.
    pub first: usize,
    /// Index of its last statement, including COMMIT.
    pub last: usize,
    pub end: End,
    /// Locks in the order of the statements; the same object again only in a stronger mode.
    pub held: Vec<HeldTake>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    InBlock,
    /// An earlier statement failed, and the transaction is not rolled back yet.
    Aborted,
}

/// Timeouts set by the text itself, as written; none for those of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeouts(BTreeMap<&'static str, String>);

const TIMEOUTS: [&str; 3] = ["lock_timeout", "statement_timeout", "transaction_timeout"];

impl Timeouts {
    /// Name and value of each timeout that is set and not 0.
    pub fn set(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0
            .iter()
            .filter(|(_, value)| value.trim_matches(|c: char| !c.is_ascii_digit()) != "0")
            .map(|(name, value)| (*name, &**value))
    }

    fn put(&mut self, name: &str, value: Option<&String>) {
        let Some(known) = TIMEOUTS.into_iter().find(|known| *known == name) else { return };
        match value {
            Some(value) => drop(self.0.insert(known, value.clone())),
            None => drop(self.0.remove(known)),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptStep {
    /// Index in [`Script::transactions`]; `None` if the statement is its own transaction.
    pub transaction: Option<usize>,
    pub timeouts: Timeouts,
    pub problem: Option<Problem>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    pub steps: Vec<ScriptStep>,
    pub transactions: Vec<ScriptTransaction>,
    pub session: Vec<HeldTake>,
}

struct OpenTransaction {
    at: usize,
    aborted: bool,
    /// Names of savepoints, with the number of locks and the timeouts at that moment.
    savepoints: Vec<(String, usize, Timeouts)>,
}

#[derive(Default)]
struct ScriptReader {
    found: Script,
    open: Option<OpenTransaction>,
    /// Timeouts at the last commit, those that a commit keeps, and the current ones.
    committed: Timeouts,
    kept: Timeouts,
    now: Timeouts,
}

/// `single`: all statements run in one transaction, as with `psql -1`.
pub fn script(pieces: &[StatementPiece], single: bool) -> Script {
    let mut reader = ScriptReader::default();
    if single {
        reader.begin(0);
    }
    for (at, piece) in pieces.iter().enumerate() {
        reader.step(at, piece.read.as_ref().ok());
    }
    if reader.open.is_some() {
        reader.end(pieces.len().saturating_sub(1), if single { End::Commit } else { End::Open });
    }
    reader.found
}

impl ScriptReader {
    fn step(&mut self, at: usize, statement: Option<&Statement>) {
        let mut step = ScriptStep {
            transaction: self.open.as_ref().map(|open| open.at),
            timeouts: self.now.clone(),
            problem: None,
        };
        let control = statement.and_then(|statement| statement.control.as_ref());
        match control {
            Some(Control::Begin) => self.begin(at),
            Some(Control::Commit(chain)) => {
                let aborted = self.open.as_ref().is_some_and(|open| open.aborted);
                self.end_and(at, if aborted { End::Rollback } else { End::Commit }, *chain);
            }
            Some(Control::Rollback(chain)) => self.end_and(at, End::Rollback, *chain),
            Some(Control::PrepareTransaction) => self.end_and(at, End::Prepared, false),
            Some(Control::RollbackTo(name)) => self.rollback_to(at, name),
            _ => {
                if let Some(statement) = statement {
                    step.problem = self.run(at, statement);
                }
            }
        }
        // BEGIN belongs to the transaction that it begins.
        step.transaction = step.transaction.or(self.open.as_ref().map(|open| open.at));
        self.found.steps.push(step);
    }

    fn run(&mut self, at: usize, statement: &Statement) -> Option<Problem> {
        if let Some(open) = &mut self.open {
            if open.aborted {
                return Some(Problem::Aborted);
            }
            if statement.is_alone() {
                open.aborted = true;
                return Some(Problem::InBlock);
            }
        }
        match &statement.control {
            Some(Control::Set(name, value, local)) => self.set(name, Some(value), *local),
            Some(Control::Reset(Some(name))) => self.set(name, None, false),
            Some(Control::Reset(None) | Control::Discard) => {
                for name in TIMEOUTS {
                    self.set(name, None, false);
                }
            }
            Some(Control::Savepoint(name)) => {
                if let Some(open) = &mut self.open {
                    let held = self.found.transactions.get(open.at).map_or(0, |of| of.held.len());
                    open.savepoints.push((name.clone(), held, self.now.clone()));
                }
            }
            Some(Control::Release(name)) => {
                if let Some(open) = &mut self.open
                    && let Some(place) = open.savepoints.iter().rposition(|(named, ..)| named == name)
                {
                    open.savepoints.truncate(place);
                }
            }
            _ => {}
        }
        self.unlock(at, statement);
        self.add_held(at, statement);
        None
    }

    fn begin(&mut self, at: usize) {
        if self.open.is_none() {
            let place = self.found.transactions.len();
            self.found.transactions.push(ScriptTransaction {
                first: at,
                last: at,
                end: End::Open,
                held: Vec::new(),
            });
            self.open = Some(OpenTransaction { at: place, aborted: false, savepoints: Vec::new() });
        }
    }

    fn end_and(&mut self, at: usize, end: End, chain: bool) {
        if self.open.is_some() {
            self.end(at, end);
            if chain {
                self.begin(at);
            }
        }
    }

    fn end(&mut self, at: usize, end: End) {
        let Some(open) = self.open.take() else { return };
        if let Some(transaction) = self.found.transactions.get_mut(open.at) {
            (transaction.last, transaction.end) = (at, end);
            let until = matches!(end, End::Commit | End::Rollback).then_some(at);
            for held in &mut transaction.held {
                held.until = held.until.or(until);
            }
        }
        if end == End::Rollback {
            self.kept.clone_from(&self.committed);
        }
        self.committed.clone_from(&self.kept);
        self.now.clone_from(&self.kept);
    }

    fn rollback_to(&mut self, at: usize, name: &str) {
        let Some(open) = &mut self.open else { return };
        let Some(place) = open.savepoints.iter().rposition(|(named, ..)| named == name) else { return };
        open.aborted = false;
        open.savepoints.truncate(place + 1);
        let Some((_, kept, timeouts)) = open.savepoints.get(place) else { return };
        self.now.clone_from(timeouts);
        if let Some(transaction) = self.found.transactions.get_mut(open.at) {
            for held in transaction.held.iter_mut().skip(*kept) {
                held.until = held.until.or(Some(at));
            }
        }
    }

    fn set(&mut self, name: &str, value: Option<&String>, is_local: bool) {
        if is_local && self.open.is_none() {
            return;
        }
        self.now.put(name, value);
        if !is_local {
            self.kept.put(name, value);
            if self.open.is_none() {
                self.committed.put(name, value);
            }
        }
    }

    fn add_held(&mut self, at: usize, statement: &Statement) {
        for take in statement.takes.iter().filter(|take| take.mode != LockMode::SIRead) {
            let is_session = matches!(&take.target, StatementTarget::Advisory(call) if !call.in_transaction);
            let held = HeldTake { take: take.clone(), from: at, until: None };
            if is_session {
                self.found.session.push(held);
                continue;
            }
            let Some(open) = &self.open else { continue };
            let Some(transaction) = self.found.transactions.get_mut(open.at) else { continue };
            let has = |one: &HeldTake| {
                one.until.is_none() && one.take.target == take.target && one.take.mode >= take.mode
            };
            if !transaction.held.iter().any(has) {
                transaction.held.push(held);
            }
        }
    }

    fn unlock(&mut self, at: usize, statement: &Statement) {
        let all = statement.control == Some(Control::Discard);
        for held in &mut self.found.session {
            let StatementTarget::Advisory(lock) = &held.take.target else { continue };
            let is_released = |call: &super::Advisory| match call.act {
                Act::UnlockAll => true,
                Act::Unlock => {
                    call.key == lock.key && call.arguments == lock.arguments && call.mode == lock.mode
                }
                Act::Lock | Act::Try => false,
            };
            if held.until.is_none() && (all || statement.calls.iter().any(is_released)) {
                held.until = Some(at);
            }
        }
    }
}

/// Replaces each EXECUTE by its statement, if an earlier statement of the text has prepared it.
pub fn with_prepared(mut pieces: Vec<StatementPiece>) -> Vec<StatementPiece> {
    let mut prepared: BTreeMap<String, Statement> = BTreeMap::new();
    for piece in &mut pieces {
        let Ok(statement) = &mut piece.read else { continue };
        match statement.control.clone() {
            Some(Control::Prepare(name)) => drop(prepared.insert(name, statement.clone())),
            Some(Control::Execute(name)) => {
                if let Some(known) = prepared.get(&name) {
                    let control = statement.control.take();
                    *statement = Statement {
                        name: format!("EXECUTE {name}: {}", known.name),
                        control,
                        ..known.clone()
                    };
                }
            }
            _ => {}
        }
    }
    pieces
}

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
    use crate::model::statement::statements;
    use crate::model::statement::token::tokens;

    /// Each lock as `target mode from-until`.
    fn held(text: &str, single: bool) -> String {
        let found = script(&statements(text), single);
        let all = found.transactions.iter().flat_map(|of| &of.held).chain(&found.session);
        let one = |held: &HeldTake| {
            let until = held.until.map_or_else(|| "end".to_owned(), |until| (until + 1).to_string());
            format!("{} {} {}-{until}", held.take.target, held.take.mode.short(), held.from + 1)
        };
        all.map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn locks_are_kept_to_the_end_of_their_transaction() {
        for (text, single, expected) in [
            ("LOCK a; LOCK b", false, ""),
            ("BEGIN; LOCK a; SELECT 1; COMMIT; LOCK b", false, "a AccessExclusive 2-4"),
            ("LOCK a; LOCK b", true, "a AccessExclusive 1-2, b AccessExclusive 2-2"),
            (
                "BEGIN; SELECT * FROM a; LOCK a; TABLE a; ROLLBACK",
                false,
                "a AccessShare 2-5, a AccessExclusive 3-5",
            ),
            (
                "BEGIN; LOCK a; SAVEPOINT s; LOCK b; ROLLBACK TO s; LOCK c; COMMIT",
                false,
                "a AccessExclusive 2-7, b AccessExclusive 4-5, c AccessExclusive 6-7",
            ),
            ("BEGIN; SAVEPOINT s; LOCK b; RELEASE s; COMMIT", false, "b AccessExclusive 3-5"),
            ("BEGIN; LOCK a", false, "a AccessExclusive 2-end"),
            ("BEGIN; LOCK a; PREPARE TRANSACTION 'x'", false, "a AccessExclusive 2-end"),
            (
                "BEGIN; LOCK a; COMMIT AND CHAIN; LOCK b; COMMIT",
                false,
                "a AccessExclusive 2-3, b AccessExclusive 4-5",
            ),
            (
                "SELECT pg_advisory_lock(1); SELECT pg_advisory_lock(2); SELECT pg_advisory_unlock(1)",
                false,
                "advisory lock 1 Exclusive 1-3, advisory lock 2 Exclusive 2-end",
            ),
            ("BEGIN; SELECT pg_advisory_xact_lock(1); COMMIT", false, "advisory lock 1 Exclusive 2-3"),
            ("SELECT pg_advisory_lock_shared(1); DISCARD ALL", false, "advisory lock 1 Share 1-2"),
            ("BEGIN; VACUUM a; LOCK b; ROLLBACK; LOCK c", false, ""),
        ] {
            assert_eq!(held(text, single), expected, "{text}");
        }
    }

    #[test]
    fn timeouts_hold_as_long_as_the_server_keeps_them() {
        let at_end = |text: &str| {
            let found = script(&statements(&format!("{text}; SELECT 1")), false);
            let last = found.steps.last().unwrap().timeouts.clone();
            last.set().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
        };
        for (text, expected) in [
            ("SET lock_timeout = '2s'", "lock_timeout 2s"),
            ("SET lock_timeout = '2s'; RESET lock_timeout", ""),
            ("SET lock_timeout = '2s'; RESET ALL", ""),
            ("SET lock_timeout = 0", ""),
            ("SET LOCAL lock_timeout = '2s'", ""),
            ("BEGIN; SET LOCAL lock_timeout = '2s'", "lock_timeout 2s"),
            ("BEGIN; SET LOCAL lock_timeout = '2s'; COMMIT", ""),
            ("BEGIN; SET lock_timeout = '2s'; COMMIT", "lock_timeout 2s"),
            ("BEGIN; SET lock_timeout = '2s'; ROLLBACK", ""),
            ("BEGIN; SAVEPOINT a; SET LOCAL statement_timeout TO 500; ROLLBACK TO a", ""),
            ("SET search_path = x", ""),
            ("SET statement_timeout = '1min'; DISCARD ALL", ""),
        ] {
            assert_eq!(at_end(text), expected, "{text}");
        }
    }

    #[test]
    fn a_statement_that_fails_aborts_the_rest_of_its_transaction() {
        let problems = |text: &str| {
            script(&statements(text), false).steps.iter().map(|step| step.problem).collect::<Vec<_>>()
        };
        let (in_block, aborted) = (Some(Problem::InBlock), Some(Problem::Aborted));
        assert_eq!(problems("VACUUM a"), [None]);
        assert_eq!(
            problems("BEGIN; CREATE INDEX CONCURRENTLY ON a (x); LOCK b; ROLLBACK; LOCK c"),
            [None, in_block, aborted, None, None]
        );
        assert_eq!(
            problems("BEGIN; SAVEPOINT s; VACUUM a; ROLLBACK TO s; LOCK b; COMMIT"),
            [None, None, in_block, None, None, None]
        );
    }

    #[test]
    fn execute_is_read_as_the_prepared_statement() {
        let pieces = with_prepared(statements("PREPARE p AS DELETE FROM a; EXECUTE p; EXECUTE q"));
        let names: Vec<_> = pieces.iter().map(|piece| piece.read.as_ref().unwrap().name.clone()).collect();
        assert_eq!(names, ["DELETE", "EXECUTE p: DELETE", "EXECUTE"]);
    }

    #[test]
    fn transaction_control_statements_are_recognized() {
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
