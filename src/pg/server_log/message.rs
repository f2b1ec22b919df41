//! What messages of the server say of locks.
//!
//! Source: `src/backend/storage/lmgr/proc.c` (`ProcSleep`) and `deadlock.c` (`DeadLockReport`). Waits are told in words alone, so that only
//! a server whose messages are English tells them; errors have a code.

use super::Entry;

/// What an entry of the log is about, of what matters for locks.
#[derive(Debug, Clone, PartialEq)]
pub enum Said<'a> {
    /// Somebody waits, or does no more.
    Wait(Wait<'a>),
    /// The server found a deadlock and ended one of its transactions.
    Deadlock(Deadlock<'a>),
    /// A statement or a session was ended, or gave up.
    Ended(Ended),
}

/// A wait for a lock that the server logs (`log_lock_waits`, after `deadlock_timeout`).
#[derive(Debug, Clone, PartialEq)]
pub struct Wait<'a> {
    /// Whether the wait goes on, or how it ended.
    pub kind: WaitKind,
    /// The mode that is asked for, such as `ShareLock`.
    pub mode: &'a str,
    /// What is locked, such as `relation 16398 of database 5`.
    pub on: &'a str,
    /// Seconds since the wait began.
    pub after: f64,
    /// Process ids of those who hold the lock.
    pub holders: Vec<i32>,
    /// Process ids of those who wait for it, in the order of the queue.
    pub queue: Vec<i32>,
}

/// What is said of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// It goes on; also where a deadlock was prevented by another order of the queue.
    Still,
    /// It has got the lock.
    Acquired,
    /// It does not get the lock.
    Failed,
}

/// A deadlock that the server broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock<'a> {
    /// Who waited for what, and behind whom.
    pub waits: Vec<Party<'a>>,
    /// The statement of each of them, in that order; none where it cannot be told which is whose.
    pub statements: Vec<&'a str>,
}

/// One wait of a deadlock: a session, and the one that blocked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Party<'a> {
    /// The process id of a session that waited.
    pub pid: i32,
    /// The mode that it asked for, such as `ShareLock`.
    pub mode: &'a str,
    /// What was locked, such as `transaction 771`.
    pub on: &'a str,
    /// The process id of the one that blocked it.
    pub behind: i32,
}

/// Why a statement or a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ended {
    /// `lock_timeout` ran out while it waited for a lock.
    LockTimeout,
    /// A lock was not to be had at once, and `NOWAIT` was asked for.
    NoWait,
    /// `statement_timeout` ran out, and the statement was cancelled.
    StatementTimeout,
    /// `pg_cancel_backend()`, or the client.
    Cancelled,
    /// Autovacuum gave way to a session that waited for its lock.
    Autovacuum,
    /// `pg_terminate_backend()`, or the server was stopped.
    Terminated,
    /// `idle_in_transaction_session_timeout` ran out, and the session was ended.
    IdleInTransaction,
    /// `transaction_timeout` ran out, and the session was ended (from PostgreSQL 17).
    TransactionTimeout,
    /// A standby that could not wait any longer.
    Recovery,
}

impl Ended {
    /// In words, after who it is.
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

/// What an entry says of locks; none for all others, and for what a function says that anybody may have written.
pub fn said<'a>(entry: &'a Entry<'_>) -> Option<Said<'a>> {
    if is_of_function(&entry.context) {
        return None;
    }
    match &*entry.code {
        // jsonlog leaves it out where all is well.
        "" | "00000" => wait(entry).map(Said::Wait),
        "40P01" => Some(Said::Deadlock(deadlock(&entry.detail))),
        code => ended(code, &entry.message).map(Said::Ended),
    }
}

/// `RAISE` and its like name the function first; what the server says within one has the statement first.
fn is_of_function(context: &str) -> bool {
    // A name in quotes may have the end of a line in it; a quote in it is doubled.
    let mut is_quoted = false;
    let end = context.find(|character| {
        is_quoted ^= character == '"';
        character == '\n' && !is_quoted
    });
    let first = end.and_then(|end| context.get(..end)).unwrap_or(context);
    first.starts_with("PL/") && (first.ends_with(" at RAISE") || !first.starts_with("PL/pgSQL"))
}

fn wait<'a>(entry: &'a Entry<'_>) -> Option<Wait<'a>> {
    const KINDS: [(&str, WaitKind); 5] = [
        ("still waiting for ", WaitKind::Still),
        ("avoided deadlock for ", WaitKind::Still),
        ("acquired ", WaitKind::Acquired),
        ("detected deadlock while waiting for ", WaitKind::Failed),
        ("failed to acquire ", WaitKind::Failed),
    ];
    let (pid, rest) = entry.message.strip_prefix("process ")?.split_once(' ')?;
    // A process speaks of itself alone.
    if pid.parse() != Ok(entry.pid) {
        return None;
    }
    let (kind, rest) = KINDS.iter().find_map(|(words, kind)| Some((*kind, rest.strip_prefix(words)?)))?;
    let (rest, after) = rest.strip_suffix(" ms")?.rsplit_once(" after ")?;
    let rest = rest.strip_suffix(" by rearranging queue order").unwrap_or(rest);
    let (mode, on) = rest.split_once(" on ")?;
    let after = after.parse::<f64>().ok().filter(|after| after.is_finite() && *after >= 0.0)? / 1000.0;
    let (holders, queue) = holders(&entry.detail);
    Some(Wait { kind, mode, on, after, holders, queue })
}

/// `Processes holding the lock: 4312, 4313. Wait queue: 4410, 4466.`
fn holders(detail: &str) -> (Vec<i32>, Vec<i32>) {
    const MOST: usize = 100;
    let list = |text: &str| text.split(", ").filter_map(|pid| pid.parse().ok()).take(MOST).collect();
    let rest = ["Process holding the lock: ", "Processes holding the lock: "];
    let rest = rest.iter().find_map(|words| detail.strip_prefix(words)).unwrap_or_default();
    let (holders, queue) = rest.split_once(". Wait queue: ").unwrap_or((rest, ""));
    (list(holders), list(queue.trim_end_matches('.')))
}

/// `Process 4312 waits for ShareLock on transaction 17; blocked by process 4313.` for each, and then `Process 4312: UPDATE …`. A statement
/// may have lines that look like either.
fn deadlock(detail: &str) -> Deadlock<'_> {
    /// More are in no deadlock that is told: the text may be anybody's.
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
    // Each once and in order, or somebody's statement has such a line.
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

/// The wait of one party, and what comes after its line.
fn party(text: &str) -> Option<(Party<'_>, &str)> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (pid, wait) = line.strip_prefix("Process ")?.split_once(" waits for ")?;
    let (wait, blocker) = wait.strip_suffix('.')?.rsplit_once("; blocked by process ")?;
    let (mode, on) = wait.split_once(" on ")?;
    Some((Party { pid: pid.parse().ok()?, mode, on, behind: blocker.parse().ok()? }, rest))
}

fn ended(code: &str, message: &str) -> Option<Ended> {
    Some(match code {
        // In every language: the message of NOWAIT names the table in quotes, that of lock_timeout has none.
        "55P03" if message.contains(['"', '«', '»', '“', '„']) => Ended::NoWait,
        "55P03" => Ended::LockTimeout,
        "57014" if message.contains("statement timeout") => Ended::StatementTimeout,
        "57014" if message.contains("lock timeout") => Ended::LockTimeout,
        "57014" if message.contains("autovacuum") => Ended::Autovacuum,
        "57014" => Ended::Cancelled,
        "57P01" => Ended::Terminated,
        "25P03" => Ended::IdleInTransaction,
        "25P04" => Ended::TransactionTimeout,
        "40001" if message.contains("conflict with recovery") => Ended::Recovery,
        _ => return None,
    })
}
