//! Cancelling and ending sessions.
//!
//! The server compares and signals in one statement (`assets/sql/signal.sql`), which is a transaction of its own: its process and when
//! it began, its transaction, for a cancellation its query, the lock that it has to hold, and that somebody has to wait for it.
//!
//! # The window that remains
//!
//! Between the moment at which the statement reads the session's row of `pg_stat_activity` and the signal, a few microseconds pass: in
//! those the session may commit and begin its next transaction, and that would be ended. No statement of PostgreSQL's can close this,
//! because a signal goes to a process and not to a transaction. The locks are read a moment earlier; what a transaction holds, it
//! holds to its end, so that only a session lock may be given up in between. A client that sends `COMMIT; BEGIN; …` as
//! one message gets two transactions with the same `xact_start`: these are taken for one.

mod forbidden;
mod sql;
mod watch;
mod words;

use serde::Deserialize;
use tokio_postgres::Client;

use super::message::{Access, Unanswered, send};
use super::record::{Clerk, Record};
use crate::model::Timestamp;
use crate::model::plan::{Fate, SessionTarget, Target, TargetResult, Verb, What};
use sql::Signal;
use watch::Pending;
use words::Words;

/// The server's answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Answer {
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

/// What came of asking.
enum Asking {
    /// The server took the order: now it has to happen.
    Taken,
    /// That is all there is to it.
    Over(Fate, String),
}

/// Why nothing is tried any more.
pub(super) const IN_DOUBT: &str = "not tried: what came of another one is not known";

/// Asks for each in order, each alone, then waits for all of them together.
pub(super) async fn carry_out<R: Record>(
    client: &Client,
    clerk: &mut Clerk<'_, R>,
    offset: chrono::FixedOffset,
    own: &[i32],
) -> Vec<TargetResult> {
    let deed = clerk.deed;
    let words = Words { offset };
    let mut results: Vec<Option<TargetResult>> = vec![None; deed.targets.len()];
    let mut pending = Vec::new();
    let mut in_doubt = false;
    for ((place, target), result) in deed.targets.iter().enumerate().zip(&mut results) {
        let Some((signal, session)) = order(deed.verb, target) else {
            let refused = (Fate::Refused, "that is no session".to_owned());
            *result = Some(clerk.told(Some(client), target, deed.verb.as_str(), refused).await);
            continue;
        };
        let short = sql::short(signal, session);
        let asking = if in_doubt {
            Asking::Over(Fate::NotTried, IN_DOUBT.to_owned())
        } else if own.contains(&session.pid) {
            Asking::Over(Fate::Refused, words::OWN.to_owned())
        } else {
            match clerk.asked(Some(client), target, &short).await {
                Ok(()) => ask(client, signal, session, &words).await,
                Err(why) => Asking::Over(Fate::Refused, why),
            }
        };
        match asking {
            Asking::Taken => pending.push(Pending { place, target, signal, session, short }),
            Asking::Over(fate, detail) => {
                in_doubt |= fate == Fate::Uncertain;
                *result = Some(clerk.told(Some(client), target, &short, (fate, detail)).await);
            }
        }
    }
    watch::all(client, clerk, pending, &mut results).await;
    results.into_iter().flatten().collect()
}

fn order(verb: Verb, target: &Target) -> Option<(Signal, &SessionTarget)> {
    match &target.what {
        What::Session(session) => Some((Signal::of(verb)?, session)),
        _ => None,
    }
}

async fn ask(client: &Client, signal: Signal, session: &SessionTarget, words: &Words) -> Asking {
    let rows = match send(client, Access::ReadOnly, &sql::signal(signal, session)).await {
        Ok(rows) => rows,
        Err(error) => return refused(client, session, &error).await,
    };
    let row = rows.first().map_or("", String::as_str);
    let answer: Answer = match serde_json::from_str(row) {
        Ok(answer) => answer,
        Err(error) => return Asking::Over(Fate::Uncertain, format!("the answer cannot be read: {error}")),
    };
    match (answer.word.as_str(), answer.sent) {
        ("same", Some(true)) => Asking::Taken,
        ("same", _) => Asking::Over(Fate::Refused, words::unsent(signal)),
        ("hidden", _) => Asking::Over(Fate::Forbidden, forbidden::hidden(client, session.pid).await),
        ("own", _) => Asking::Over(Fate::Refused, words::OWN.to_owned()),
        _ => Asking::Over(Fate::Changed, words.changed(session, &answer)),
    }
}

async fn refused(client: &Client, session: &SessionTarget, error: &Unanswered) -> Asking {
    match error.code() {
        Some("42501") => Asking::Over(Fate::Forbidden, forbidden::signal(client, session.pid, error).await),
        // A signal is not taken back when its statement is cancelled after it.
        None | Some("57014") => {
            Asking::Over(Fate::Uncertain, format!("{error}: whether it was asked is not known"))
        }
        Some(_) => Asking::Over(Fate::Refused, error.to_string()),
    }
}
