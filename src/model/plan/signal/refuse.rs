//! What cannot be signalled, or to no use.

use super::selected::SelectedSession;
use crate::model::backend::{Backend, State};
use crate::model::lock::VirtualTransaction;
use crate::model::plan::Verb;
use crate::model::plan::context::PlanIndex;
use crate::text;

/// The session, if it can be signalled; else why not.
pub(super) fn check<'a>(
    index: &PlanIndex<'a>,
    verb: Verb,
    pick: &SelectedSession,
) -> Result<&'a Backend, String> {
    if index.is_own(pick.pid) {
        return Err("this is locktop's own session".to_owned());
    }
    let Some(backend) = index.backend(pick.pid) else { return Err("is gone".to_owned()) };
    if pick.start.is_some() && backend.backend_start.is_some() && backend.backend_start != pick.start {
        return Err("has ended; another session has its process id by now".to_owned());
    }
    if let Some(why) = backend.backend_type.as_deref().and_then(of_the_server) {
        return Err(why.to_owned());
    }
    let (user, kind) = (backend.user.as_deref(), backend.backend_type.as_deref());
    if let Some(lack) = index.context.rights.and_then(|rights| rights.lacks(verb, user, kind)) {
        return Err(lack.to_string());
    }
    if backend.backend_start.is_none() {
        let role = index.snapshot.server().map(|server| text::identifier(&server.user)).unwrap_or_default();
        return Err(format!(
            "when it began is hidden from this role, so it cannot be told from the next session with its process id: \
             GRANT pg_read_all_stats TO {role}"
        ));
    }
    if verb == Verb::Cancel { has_query(backend).map(|()| backend) } else { Ok(backend) }
}

/// Processes of the server itself. `pg_signal_backend` in `src/backend/storage/ipc/signalfuncs.c` does not even find most of
/// them; the launchers it would signal, to no use.
fn of_the_server(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "startup" => {
            "the startup process replays the primary's log and cannot be ended; the cause is on the primary"
        }
        "walreceiver" => "receives the primary's log and cannot be ended from here",
        "slotsync worker" => {
            "keeps the slots of a standby in step with the primary's; the server starts it again"
        }
        "autovacuum launcher" | "logical replication launcher" => {
            "is the server's own; the server starts it again at once"
        }
        "checkpointer" | "background writer" | "walwriter" | "archiver" | "logger" | "io worker"
        | "walsummarizer" | "standalone backend" | "not initialized" => {
            "is a process of the server itself, and no session: it cannot be ended"
        }
        _ => return None,
    })
}

/// Cancelling a session without a query is answered with true, and does nothing.
pub(super) fn has_query(backend: &Backend) -> Result<(), String> {
    let why = match backend.state {
        Some(State::Active) => return Ok(()),
        Some(State::IdleInTransaction) => {
            "idle in transaction: there is no query to cancel; K ends the session"
        }
        Some(State::IdleInTransactionAborted) => {
            "idle in a transaction that has failed already: there is no query to cancel; K ends the session"
        }
        Some(State::Idle) => "idle: there is no query to cancel; K ends the session",
        Some(State::FastpathFunctionCall) => {
            "calls a function by the fast path, of which nothing is known; K ends the session"
        }
        Some(State::Starting) => "is just connecting: there is no query to cancel yet",
        Some(State::Disabled) => {
            "what it does is not known (track_activities is off there): K ends the session"
        }
        Some(State::Other) | None => "whether it runs a query is not known: K ends the session",
    };
    Err(why.to_owned())
}

/// What ends a prepared transaction, which has no process: a statement to be run by its owner in its database.
pub(super) fn prepared(index: &PlanIndex<'_>, xact: VirtualTransaction) -> String {
    let Some(row) = index.prepared(xact) else {
        return "is a prepared transaction and has no process; ROLLBACK PREPARED ends it, by its name in \
                pg_prepared_xacts"
            .to_owned();
    };
    let harmless = |name: &str| text::one_line(name).into_owned();
    let database = row.database.as_deref().map_or_else(String::new, |name| format!(" in {}", harmless(name)));
    let owner = row
        .owner
        .as_deref()
        .map_or_else(String::new, |name| format!(" as {} or a superuser", harmless(name)));
    let gid = text::literal(&row.gid);
    format!("has no process to end. Run{database}{owner}: ROLLBACK PREPARED {gid}")
}
