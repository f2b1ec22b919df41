//! Which values of a session must be as seen before it is signalled. This is the only place that decides it; the signalling
//! statement compares them on the server, and the dialog closes by them.
//!
//! A backend of a pool serves one client after another, and nothing in PostgreSQL shows where one ends and the next one
//! begins. It only shows when a backend last did something. So the client is identified by what the session was doing:
//!
//! | verb | seen | has to be the same |
//! |---|---|---|
//! | `C` | active | the transaction and the query, and the session must be active |
//! | `K` | in a transaction, active or idle | the transaction: a session that continues in it has the same client |
//! | `K` | in a transaction, waiting in Chains and blocking no session | the transaction and the query: the wait is what was seen |
//! | `K` | in no transaction, whatever it holds | that there is none, the last query, and the start of its state |
//! | `K` | not a client backend | the transaction, or that there is none: such a process serves no other client |
//! | `K` | the holder of a session lock, chosen for it, that has run other statements since ([`keeps`][crate::model::view::SnapshotView::keeps]) | that the session holds the lock |
//!
//! In all cases the process id and its start must match, and, except in the last, the client as far as the server knows it
//! ([`Client`][crate::model::plan::Client]). A lock or key for which a session was chosen is compared in addition. Only in
//! the last row is it enough: there the backend serves one client after another *with* the lock, and the dialog states it.

use crate::model::Timestamp;
use crate::model::backend::{Backend, State};
use crate::model::plan::{Seen, Verb};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) query: bool,
    pub(super) state: bool,
}

/// The rule. `waits_only` is true for a session in Chains that only waits. The transaction is always compared.
pub(super) fn compared(verb: Verb, backend: &Backend, waits_only: bool) -> Compared {
    let is_idle = backend.xact_start.is_none() && serves_clients(backend);
    match verb {
        Verb::Cancel => Compared { query: true, state: false },
        _ if is_idle => Compared { query: true, state: true },
        _ => Compared { query: waits_only, state: false },
    }
}

/// Whether any known value can distinguish the situation from the next one.
pub(super) fn is_known(backend: &Backend) -> bool {
    let is_off = backend.state == Some(State::Disabled);
    let times = [backend.xact_start, backend.query_start, backend.state_change];
    !(is_off && serves_clients(backend) && times.iter().all(Option::is_none))
}

/// Whether the backend serves a client, and later perhaps another one. A backend of unknown type may do so.
fn serves_clients(backend: &Backend) -> bool {
    backend.backend_type.as_deref().is_none_or(|kind| kind == "client backend")
}

pub(super) fn seen(is_compared: bool, time: Option<Timestamp>) -> Seen<Option<Timestamp>> {
    if is_compared { Seen::Same(time) } else { Seen::Any }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Builder, at};

    fn backend(kind: Option<&str>, state: State, has_transaction: bool) -> Backend {
        let mut backend = Builder::default().session(7, "app@web", state, 60.0, "SELECT 1").clone();
        backend.backend_type = kind.map(Into::into);
        backend.xact_start = has_transaction.then(|| at(-60.0));
        backend
    }

    #[test]
    fn the_rule() {
        use State as S;
        use Verb::{Cancel, Terminate};
        let (client, sender, unseen) = (Some("client backend"), Some("walsender"), None);
        for (verb, kind, state, has_transaction, waits_only, query, change) in [
            (Cancel, client, S::Active, true, false, true, false),
            (Cancel, client, S::Active, false, false, true, false),
            (Cancel, client, S::Active, true, true, true, false),
            (Cancel, sender, S::Active, false, false, true, false),
            (Terminate, client, S::Active, true, false, false, false),
            (Terminate, client, S::Active, true, true, true, false),
            (Terminate, client, S::Active, false, false, true, true),
            (Terminate, client, S::FastpathFunctionCall, false, false, true, true),
            (Terminate, client, S::IdleInTransaction, true, false, false, false),
            (Terminate, client, S::IdleInTransactionAborted, true, false, false, false),
            (Terminate, client, S::Idle, false, false, true, true),
            (Terminate, client, S::Starting, false, false, true, true),
            (Terminate, client, S::Other, false, false, true, true),
            (Terminate, unseen, S::Idle, false, false, true, true),
            (Terminate, sender, S::Active, false, false, false, false),
            (Terminate, Some("autovacuum worker"), S::Active, true, false, false, false),
            (Terminate, Some("logical replication worker"), S::Idle, false, false, false, false),
        ] {
            let backend = backend(kind, state, has_transaction);
            let told = (verb, kind, state, has_transaction, waits_only);
            assert_eq!(compared(verb, &backend, waits_only), Compared { query, state: change }, "{told:?}");
        }
    }

    #[test]
    fn without_any_time_nobody_is_known() {
        let mut off = backend(Some("client backend"), State::Disabled, false);
        assert!(is_known(&off), "it was switched off since");
        (off.query_start, off.state_change) = (None, None);
        assert!(!is_known(&off));
        assert!(is_known(&Backend { backend_type: Some("walsender".into()), ..off.clone() }));
        // The session has run nothing yet; once it has, there is a time.
        assert!(is_known(&Backend { state: Some(State::Starting), ..off.clone() }));
        assert!(is_known(&Backend { xact_start: Some(at(0.0)), ..off }));
    }
}
