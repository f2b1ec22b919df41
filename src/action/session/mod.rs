//! Cancelling and ending sessions.
//!
//! The server compares and signals in one statement (`assets/sql/signal.sql`), which is a transaction of its own: the process and when
//! it began, who is behind it, its transaction, its query or that it has done nothing since, the lock that it has to hold, and that somebody
//! has to wait for it. Which of that has to be the same for whom, the rule of the plan says (`model::plan`, the module `signal::rule`).
//!
//! # In a pool
//!
//! A backend of a pool serves one client after the other, maybe with the same name, and the next one takes the same key: neither of the
//! two is anybody. Who was in no transaction must have run nothing since, or it may be somebody else.
//!
//! One exception: a lock of a session that was left behind in a pool in transaction mode. It belongs to the backend, whichever client that serves, and
//! only the end of the backend releases it. There the backend and the lock are compared, and that the lock is not one of the transaction
//! of the moment.
//!
//! # The order of the looks
//!
//! The sessions are read first, then the locks, then the session again, just before the signal. Of one that was in no transaction
//! everything is compared with what was on the screen, so that it has certainly kept its key: nothing was run by which it could have given
//! it up. One that holds a key in a transaction may not have done anything from the first look to the second. What a transaction has locked
//! otherwise, it holds to its end, and that is compared.
//!
//! # The window that remains
//!
//! Between the second look and the signal some time passes, in which the session may go on to something else. No statement of PostgreSQL's
//! can close this, because a signal goes to a process and not to a transaction. It does not grow with the number of locks and waiters: those
//! are read before it. How long it is depends on how soon the server's process is given a processor: where others keep it waiting just then, so
//! much longer. `cargo bench --bench window` counts what falls into it, with sessions that go on as fast as they are asked for.
//!
//! Two things are not told apart. A client that sends `COMMIT; BEGIN; …` as one message gets two transactions with the same
//! `xact_start`: these are taken for one. And a key that is given up by a statement that still runs, in a function for example, is
//! held by the same client a moment later as far as the server shows.
//!
//! That somebody waits is of the moment at which the locks were read: by the signal he may have gone.

mod forbidden;
mod sql;
mod watch;
mod words;

use std::time::Duration;

use serde::Deserialize;
use tokio_postgres::Client;

use super::message::{Access, Unanswered, send};
use crate::clock;
use crate::model::Timestamp;
use crate::model::plan::{Outcome, SessionTarget, Signal};
pub(super) use sql::{Work, short};
pub(super) use watch::{Pending, all as watch, ended};
pub(super) use words::OWN;
use words::Words;

/// How long to try again if a session with a lock of its own is in a transaction each time, and the pause between two tries.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// The server's answer to `assets/sql/signal.sql`: a word, and how the session was just then.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SignalAnswer {
    word: String,
    /// Whether the signal was sent; none where it was not even tried.
    sent: Option<bool>,
    backend_start: Option<Timestamp>,
    xact_start: Option<Timestamp>,
    query_start: Option<Timestamp>,
    state_change: Option<Timestamp>,
    state: Option<String>,
    application: Option<String>,
}

/// What came of asking for a signal.
pub(super) enum Asking<'a> {
    /// The server has sent the signal to the session: now it has to happen.
    Taken(Signal, &'a SessionTarget),
    /// That is all there is to it.
    Over(Outcome, String),
}

/// Sends a signal to a session, if it still works on the row that it was seen to work on. Times in messages are those of a zone.
pub(super) async fn ask<'a>(
    client: &Client,
    signal: Signal,
    session: &'a SessionTarget,
    work: Option<&Work>,
    offset: chrono::FixedOffset,
) -> Asking<'a> {
    let start = clock::monotonic();
    // Its table is locked, so that no other one takes its place.
    let access = if work.is_some() { Access::ReadWrite } else { Access::ReadOnly };
    let answer = loop {
        let rows = match send(client, access, &sql::signal(signal, session, work)).await {
            Ok(rows) => rows,
            Err(error) => return refused(client, session, &error).await,
        };
        let row = rows.last().map_or("", String::as_str);
        let answer: SignalAnswer = match serde_json::from_str(row) {
            Ok(answer) => answer,
            Err(error) => {
                return Asking::Over(Outcome::Uncertain, format!("the answer cannot be read: {error}"));
            }
        };
        // Whatever it runs meanwhile, the session may still work on the same row.
        let is_moment = answer.word == "in_transaction" || (work.is_some() && answer.word == "moved");
        if !is_moment || start.elapsed() > PATIENCE {
            break answer;
        }
        tokio::time::sleep(PAUSE).await;
    };
    match (answer.word.as_str(), answer.sent) {
        ("same", Some(true)) => Asking::Taken(signal, session),
        ("same", _) => Asking::Over(Outcome::Refused, words::unsent(signal)),
        ("hidden", _) => Asking::Over(Outcome::Forbidden, forbidden::hidden(client, session.pid).await),
        ("own", _) => Asking::Over(Outcome::Refused, OWN.to_owned()),
        _ => Asking::Over(Outcome::Changed, Words { offset }.changed(session, &answer)),
    }
}

async fn refused(client: &Client, session: &SessionTarget, error: &Unanswered) -> Asking<'static> {
    match error.code() {
        Some("42501") => {
            Asking::Over(Outcome::Forbidden, forbidden::signal(client, session.pid, error).await)
        }
        // A signal is not taken back when its statement is cancelled after it.
        None | Some("57014") => {
            Asking::Over(Outcome::Uncertain, format!("{error}: not known whether it was requested"))
        }
        Some(_) => Asking::Over(Outcome::Refused, error.to_string()),
    }
}
