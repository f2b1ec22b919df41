//! Lock events from messages of the server.
//!
//! Source: `src/backend/storage/lmgr/proc.c` (`ProcSleep`) and `deadlock.c` (`DeadLockReport`). Waits are reported only
//! in words, and so are recognized only if the server's messages are English; errors have a code.

use super::LogEntry;
use crate::model::lock::{LockTag, LockType};

#[derive(Debug, Clone, PartialEq)]
pub enum LogMessage<'a> {
    Wait(LoggedWait<'a>),
    Deadlock(Deadlock<'a>),
    Ended(StatementEnd),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LoggedWait<'a> {
    pub kind: WaitKind,
    pub mode: &'a str,
    pub on: &'a str,
    /// Seconds since the wait began.
    pub after: f64,
    pub holders: Vec<i32>,
    /// Process IDs of the waiters, in the order of the queue.
    pub queue: Vec<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// The wait continues; also if a deadlock was avoided by another order of the queue.
    Still,
    Acquired,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock<'a> {
    pub waits: Vec<Party<'a>>,
    /// The statements of the waits, in the same order; empty if they cannot be assigned.
    pub statements: Vec<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Party<'a> {
    pub pid: i32,
    pub mode: &'a str,
    pub on: &'a str,
    pub behind: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatementEnd {
    LockTimeout,
    /// A lock was not available at once, and `NOWAIT` was used.
    NoWait,
    StatementTimeout,
    /// Canceled by `pg_cancel_backend()` or the client.
    Cancelled,
    /// Autovacuum was canceled for a session that waited for its lock.
    Autovacuum,
    /// `pg_terminate_backend()`, or a shutdown of the server.
    Terminated,
    IdleInTransaction,
    /// `transaction_timeout` expired (from PostgreSQL 17).
    TransactionTimeout,
    /// A standby could not wait any longer.
    Recovery,
}

impl StatementEnd {
    /// The reason in words, to follow the name of the session.
    pub const fn words(self) -> &'static str {
        match self {
            Self::LockTimeout => "canceled while waiting for a lock (lock_timeout)",
            Self::NoWait => "failed to acquire a lock at once (NOWAIT)",
            Self::StatementTimeout => "was canceled (statement_timeout)",
            Self::Cancelled => "was canceled",
            Self::Autovacuum => "is autovacuum, and was canceled for another session",
            Self::Terminated => "was terminated",
            Self::IdleInTransaction => "was terminated (idle_in_transaction_session_timeout)",
            Self::TransactionTimeout => "was terminated (transaction_timeout)",
            Self::Recovery => "was canceled due to conflict with recovery",
        }
    }
}

/// The lock event of an entry; None for other entries and for output of a function, which any user may have written.
pub fn parse<'a>(entry: &'a LogEntry<'_>) -> Option<LogMessage<'a>> {
    if is_of_function(&entry.context) {
        return None;
    }
    match &*entry.code {
        // jsonlog leaves the code out if there is no error.
        "" | "00000" => wait(entry).map(LogMessage::Wait),
        "40P01" => Some(LogMessage::Deadlock(deadlock(&entry.detail))),
        code => ended(code, &entry.message).map(LogMessage::Ended),
    }
}

/// For `RAISE` and similar commands the context begins with the function; for a message of the server from within a
/// function, it begins with the statement.
fn is_of_function(context: &str) -> bool {
    // A quoted name may contain a line end; a quote in it is doubled.
    let mut is_quoted = false;
    let end = context.find(|character| {
        is_quoted ^= character == '"';
        character == '\n' && !is_quoted
    });
    let first = end.and_then(|end| context.get(..end)).unwrap_or(context);
    first.starts_with("PL/") && (first.ends_with(" at RAISE") || !first.starts_with("PL/pgSQL"))
}

fn wait<'a>(entry: &'a LogEntry<'_>) -> Option<LoggedWait<'a>> {
    const KINDS: [(&str, WaitKind); 5] = [
        ("still waiting for ", WaitKind::Still),
        ("avoided deadlock for ", WaitKind::Still),
        ("acquired ", WaitKind::Acquired),
        ("detected deadlock while waiting for ", WaitKind::Failed),
        ("failed to acquire ", WaitKind::Failed),
    ];
    let (pid, rest) = entry.message.strip_prefix("process ")?.split_once(' ')?;
    // A process logs only its own waits.
    if pid.parse() != Ok(entry.pid) {
        return None;
    }
    let (kind, rest) = KINDS.iter().find_map(|(words, kind)| Some((*kind, rest.strip_prefix(words)?)))?;
    let (rest, after) = rest.strip_suffix(" ms")?.rsplit_once(" after ")?;
    let rest = rest.strip_suffix(" by rearranging queue order").unwrap_or(rest);
    let (mode, on) = rest.split_once(" on ")?;
    let after = after.parse::<f64>().ok().filter(|after| after.is_finite() && *after >= 0.0)? / 1000.0;
    let (holders, queue) = holders(&entry.detail);
    Some(LoggedWait { kind, mode, on, after, holders, queue })
}

/// Parses `Processes holding the lock: 4312, 4313. Wait queue: 4410, 4466.`
fn holders(detail: &str) -> (Vec<i32>, Vec<i32>) {
    const MOST: usize = 100;
    let list = |text: &str| text.split(", ").filter_map(|pid| pid.parse().ok()).take(MOST).collect();
    let rest = ["Process holding the lock: ", "Processes holding the lock: "];
    let rest = rest.iter().find_map(|words| detail.strip_prefix(words)).unwrap_or_default();
    let (holders, queue) = rest.split_once(". Wait queue: ").unwrap_or((rest, ""));
    (list(holders), list(queue.trim_end_matches('.')))
}

/// Parses `Process 4312 waits for ShareLock on transaction 17; blocked by process 4313.` for each wait, and then `Process
/// 4312: UPDATE …`. A statement may contain lines of either form.
fn deadlock(detail: &str) -> Deadlock<'_> {
    /// No reported deadlock has more: the text may come from any user.
    const PARTIES: usize = 100;
    let mut waits = Vec::new();
    let mut rest = detail;
    while let Some((wait, after)) = party(rest).filter(|_| waits.len() < PARTIES) {
        waits.push(wait);
        rest = after;
    }
    let begins: Vec<(usize, String)> = waits
        .iter()
        .flat_map(|Party { pid, .. }| {
            let begin = format!("Process {pid}: ");
            let places: Vec<usize> = rest
                .match_indices(&begin)
                .map(|(at, _)| at)
                .filter(|at| *at == 0 || rest.as_bytes().get(at - 1) == Some(&b'\n'))
                .take(2)
                .collect();
            places.into_iter().map(move |at| (at, begin.clone()))
        })
        .collect();
    // Each must occur once and in order; otherwise a statement contains such a line.
    let is_each =
        |((_, begin), wait): (&(usize, String), &Party<'_>)| *begin == format!("Process {}: ", wait.pid);
    let is_sure = begins.len() == waits.len()
        && begins.is_sorted_by_key(|(at, _)| *at)
        && begins.iter().zip(&waits).all(is_each);
    let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([rest.len()]);
    let statements = begins.iter().zip(ends).filter_map(|((at, begin), end)| rest.get(at + begin.len()..end));
    let statements = if is_sure { statements.map(str::trim_end).collect() } else { Vec::new() };
    Deadlock { waits, statements }
}

/// The wait of one party, and the text after its line.
fn party(text: &str) -> Option<(Party<'_>, &str)> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (pid, wait) = line.strip_prefix("Process ")?.split_once(" waits for ")?;
    let (wait, blocker) = wait.strip_suffix('.')?.rsplit_once("; blocked by process ")?;
    let (mode, on) = wait.split_once(" on ")?;
    Some((Party { pid: pid.parse().ok()?, mode, on, behind: blocker.parse().ok()? }, rest))
}

fn ended(code: &str, message: &str) -> Option<StatementEnd> {
    Some(match code {
        // In every language: the message of NOWAIT names the table in quotes, that of lock_timeout has none.
        "55P03" if message.contains(['"', '«', '»', '“', '„']) => StatementEnd::NoWait,
        "55P03" => StatementEnd::LockTimeout,
        "57014" if message.contains("statement timeout") => StatementEnd::StatementTimeout,
        "57014" if message.contains("lock timeout") => StatementEnd::LockTimeout,
        "57014" if message.contains("autovacuum") => StatementEnd::Autovacuum,
        "57014" => StatementEnd::Cancelled,
        "57P01" => StatementEnd::Terminated,
        "25P03" => StatementEnd::IdleInTransaction,
        "25P04" => StatementEnd::TransactionTimeout,
        "40001" if message.contains("conflict with recovery") => StatementEnd::Recovery,
        _ => return None,
    })
}

// Lock names in a log, as written by `DescribeLockTag()` in `src/backend/storage/lmgr/lmgr.c`.

/// Parses `relation 16398 of database 5`; None for an unknown form.
pub fn lock_tag(text: &str) -> Option<LockTag> {
    let numbers: Vec<u32> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    // The text without the numbers identifies the form.
    let form: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
    let new = LockTag::new;
    let short = |number: u32| u16::try_from(number).ok();
    Some(match (form.as_str(), numbers.as_slice()) {
        ("relation  of database ", [relation, database]) => {
            new(LockType::Relation).with_relation(*relation).with_database(*database)
        }
        ("extension of relation  of database ", [relation, database]) => {
            new(LockType::Extend).with_relation(*relation).with_database(*database)
        }
        ("page  of relation  of database ", [page, relation, database]) => {
            new(LockType::Page).with_page(*page).with_relation(*relation).with_database(*database)
        }
        ("tuple (,) of relation  of database ", [page, tuple, relation, database]) => new(LockType::Tuple)
            .with_page(*page)
            .with_tuple(short(*tuple)?)
            .with_relation(*relation)
            .with_database(*database),
        ("transaction ", [transaction]) => new(LockType::TransactionId).with_transactionid(*transaction),
        ("object  of class  of database ", [object, class, database]) => {
            new(LockType::Object).with_objid(*object).with_classid(*class).with_database(*database)
        }
        ("advisory lock [,,,]", [database, class, object, sub]) => new(LockType::Advisory)
            .with_database(*database)
            .with_classid(*class)
            .with_objid(*object)
            .with_objsubid(short(*sub)?),
        _ => return None,
    })
}
