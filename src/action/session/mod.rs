//! Cancels queries and terminates sessions.
//!
//! One statement (`assets/sql/signal.sql`) compares and signals, in a transaction of its own. It compares the process
//! and its start, the client, the transaction, the query or that nothing was run since, the lock that must be held, and
//! that a session waits for it. The rule in `model::plan`, module `signal::identity`, defines which of these must match for
//! which target.
//!
//! # Pools
//!
//! A backend of a pool serves one client after another, possibly with the same name, and the next client may take the
//! same key. A session that was outside a transaction must have run nothing since.
//!
//! One exception: a session-level lock that was left behind in a pool in transaction mode. It belongs to the backend,
//! whichever client that serves, and only the end of the backend releases it. For it the backend and the lock are
//! compared, and that the lock is not one of the current transaction.
//!
//! # Order of reads
//!
//! The sessions are read first, then the locks, then the target session again just before the signal. For a session
//! outside a transaction everything is compared with what was on the screen, so it has run nothing that could release
//! its key. A session that holds a key in a transaction must not have run anything between the two reads. All other
//! locks of a transaction are held until its end, and the transaction is compared.
//!
//! # Remaining race
//!
//! Between the second read and the signal the session may continue with something else. No statement of PostgreSQL can
//! prevent this, because a signal goes to a process and not to a transaction. The time does not grow with the number of
//! locks and waiters, which are read before; it grows if the server process has to wait for a CPU. `cargo bench --bench
//! window` counts how often it happens with sessions that continue as fast as possible.
//!
//! Two cases are not distinguished. A client that sends `COMMIT; BEGIN; …` as one message gets two transactions with
//! the same `xact_start`. A key that is released by a statement that still runs, for example in a function, still
//! appears as held by the same client.
//!
//! That a session waits is true for the time when the locks were read: the waiter may have left before the signal.

mod sql;
mod words;

use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio_postgres::Client;

use super::message::{Access, Unanswered, send};
use super::{ActionContext, ActionRecord, ActionRecorder, ActionRequest, ReportedOutcome};
use crate::clock;
use crate::model::Timestamp;
use crate::model::plan::{Outcome, SessionTarget, Signal};
use crate::text::duration;
pub(super) use sql::{SignalGuards, short};
pub(super) use words::OWN;

/// How long to retry while a session with a session-level lock is in a transaction at each attempt, and the pause
/// between attempts.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// The answer of `assets/sql/signal.sql`: a word, and the state of the session at that time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SignalAnswer {
    word: String,
    /// Whether the signal was sent; `None` if it was not tried.
    sent: Option<bool>,
    backend_start: Option<Timestamp>,
    xact_start: Option<Timestamp>,
    query_start: Option<Timestamp>,
    state_change: Option<Timestamp>,
    state: Option<String>,
    application: Option<String>,
}

impl ActionContext<'_> {
    /// Signals a session; with `work`, only if it still works on that row.
    pub(super) async fn signal_session(
        self,
        signal: Signal,
        session: &SessionTarget,
        work: Option<&SignalGuards>,
    ) -> Result<(), ReportedOutcome> {
        let Self { client, offset, .. } = self;
        let start = clock::monotonic();
        // The table is locked, so that it cannot be replaced.
        let access = if work.is_some() { Access::ReadWrite } else { Access::ReadOnly };
        let answer = loop {
            let rows = match send(client, access, &sql::signal(signal, session, work)).await {
                Ok(rows) => rows,
                Err(error) => return Err(refused(client, session, &error).await),
            };
            let row = rows.last().map_or("", String::as_str);
            let answer: SignalAnswer = serde_json::from_str(row)
                .map_err(|error| (Outcome::Uncertain, format!("the answer cannot be read: {error}")))?;
            // The session may run another statement and still work on the same row.
            let is_moment = answer.word == "in_transaction" || (work.is_some() && answer.word == "moved");
            if !is_moment || start.elapsed() > PATIENCE {
                break answer;
            }
            tokio::time::sleep(PAUSE).await;
        };
        Err(match (answer.word.as_str(), answer.sent) {
            ("same", Some(true)) => return Ok(()),
            ("same", _) => (Outcome::Refused, words::unsent(signal)),
            ("hidden", _) => (Outcome::Forbidden, words::hidden(client, session.pid).await),
            ("own", _) => (Outcome::Refused, OWN.to_owned()),
            _ => (Outcome::Changed, words::changed(offset, session, &answer)),
        })
    }
}

async fn refused(client: &Client, session: &SessionTarget, error: &Unanswered) -> ReportedOutcome {
    match error.code() {
        Some("42501") => (Outcome::Forbidden, words::signal(client, session.pid, error).await),
        // If the statement is canceled after the signal was sent, the signal still takes effect.
        None | Some("57014") => (Outcome::Uncertain, format!("{error}: not known whether it was requested")),
        Some(_) => (Outcome::Refused, error.to_string()),
    }
}

const WATCH_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct SentSignal<'a, E> {
    pub(super) asked: (usize, ActionRequest<'a>),
    pub(super) entry: Option<E>,
    pub(super) signal: Signal,
    pub(super) session: &'a SessionTarget,
}

#[derive(Debug, Deserialize)]
struct SessionRow {
    pid: i32,
    backend_start: Option<Timestamp>,
    query_start: Option<Timestamp>,
    state: Option<String>,
}

impl SessionRow {
    fn is(&self, session: &SessionTarget) -> bool {
        self.pid == session.pid && self.backend_start == Some(session.backend_start)
    }
}

impl<E> SentSignal<'_, E> {
    fn done(&self, rows: &[SessionRow]) -> Option<&'static str> {
        let Some(row) = rows.iter().find(|row| row.is(self.session)) else {
            return Some(match self.signal {
                Signal::Terminate => "its session ended",
                Signal::Cancel => "its query was canceled, and its session ended",
            });
        };
        let is_other = self.session.query_start.differs(row.query_start);
        let is_over = is_other || row.state.as_deref() != Some("active");
        (self.signal == Signal::Cancel && is_over).then_some("its query has ended")
    }
}

/// Polls all sessions, each time in one transaction, until every signal has taken effect or the wait is over.
pub(super) async fn watch<R: ActionRecord>(
    recorder: &mut ActionRecorder<'_, R>,
    mut pending: Vec<SentSignal<'_, R::Entry>>,
    wait: Duration,
) {
    let start = clock::monotonic();
    let wait = wait.min(Duration::from_secs(3600));
    while !pending.is_empty()
        && let Some(client) = recorder.client
    {
        let pids: Vec<i32> = pending.iter().map(|one| one.session.pid).collect();
        let rows = read_sessions(client, &pids).await;
        let is_late = left(start, wait).is_zero();
        let mut remain = Vec::new();
        for one in pending {
            let result = match rows.as_ref().map(|rows| one.done(rows)) {
                Ok(Some(done)) => (Outcome::Done, done.to_owned()),
                Ok(None) if is_late => {
                    let waited = duration(wait.as_secs_f64());
                    (Outcome::StillThere, format!("not confirmed after {waited}"))
                }
                Ok(None) => {
                    remain.push(one);
                    continue;
                }
                Err(why) => (Outcome::Uncertain, format!("the server accepted the request; then {why}")),
            };
            recorder.finish(one.asked, one.entry, result).await;
        }
        pending = remain;
        if !pending.is_empty() {
            tokio::time::sleep(WATCH_PAUSE.min(left(start, wait))).await;
        }
    }
}

/// Whether the session has ended. Returns as soon as it has; false if it still exists after the wait.
pub(super) async fn ended(client: &Client, session: &SessionTarget, wait: Duration) -> Result<bool, String> {
    let start = clock::monotonic();
    loop {
        let rows = read_sessions(client, &[session.pid]).await?;
        if !rows.iter().any(|row| row.is(session)) {
            return Ok(true);
        }
        let left = left(start, wait);
        if left.is_zero() {
            return Ok(false);
        }
        tokio::time::sleep(WATCH_PAUSE.min(left)).await;
    }
}

fn left(start: Instant, wait: Duration) -> Duration {
    wait.saturating_sub(start.elapsed())
}

async fn read_sessions(client: &Client, pids: &[i32]) -> Result<Vec<SessionRow>, String> {
    let rows = send(client, Access::ReadOnly, &sql::watch(pids)).await.map_err(|error| error.to_string())?;
    let rows = rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>();
    rows.map_err(|error| format!("the answer cannot be read: {error}"))
}
