//! The properties of a session that must be unchanged when it is signalled, and the words for a change. The table is the
//! rule, in one place; the signalling statement compares the values on the server, and the dialog closes by them.
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

use super::work;
use super::work::SelectedSession;
use crate::model::Timestamp;
use crate::model::backend::{Backend, State};
use crate::model::lock::{LockMode, LockTag};
use crate::model::plan::{
    Ask, Client, ExpectedTime, PlanIndex, SessionTarget, TargetChange, Verb, WorkAtRisk,
};
use crate::model::wait_graph::Party;

const UNKNOWN: &str = "its activity is not known (track_activities is off for it), so it cannot be distinguished from the next client of a pool";

/// The identity of a session and of the situation in which it was seen. In a pool the same session soon serves another
/// client, so the process alone does not identify it.
pub(super) fn of(
    index: &PlanIndex<'_>,
    ask: &Ask,
    pick: &SelectedSession,
    backend: &Backend,
    blocks: bool,
) -> Result<SessionTarget, String> {
    let backend_start = backend.backend_start.ok_or("its start is not known")?;
    if pick.holds.is_some_and(|held| !index.may_hold(pick.pid, held)) {
        return Err(format!("{}", TargetChange::HoldsNotAnyMore));
    }
    let party = Party::Backend(pick.pid);
    // A session that blocks others without a transaction does so with a session-level lock.
    let awaited = || if blocks && backend.xact_start.is_none() { index.awaited_key(party) } else { None };
    let waits_only = ask.is_of_chains() && !blocks && index.graph.wait_of(party).is_some();
    let (query, state) = compared(ask.verb, backend, waits_only);
    if let Some(key) = kept(index, ask, pick, backend) {
        let target = SessionTarget::by_lock(backend, backend_start, key);
        return Ok(SessionTarget { keeps: true, blocks, ..target });
    }
    if ask.verb == Verb::Cancel && backend.query_start.is_none() {
        return Err("the start of its query is not known".to_owned());
    }
    if !is_known(backend) {
        return Err(UNKNOWN.to_owned());
    }
    Ok(SessionTarget {
        pid: pick.pid,
        backend_start,
        client: Client::of(backend),
        xact_start: ExpectedTime::Same(backend.xact_start),
        query_start: seen(query, backend.query_start),
        state_change: seen(state, backend.state_change),
        holds: pick.holds.or_else(awaited),
        keeps: false,
        blocks,
    })
}

/// The session-level lock for which a backend was chosen, and which it keeps while it runs other statements, perhaps for
/// other clients. The lock belongs to the backend, so backend and lock are the identity.
fn kept(
    index: &PlanIndex<'_>,
    ask: &Ask,
    pick: &SelectedSession,
    backend: &Backend,
) -> Option<(LockTag, LockMode)> {
    let is_root = ask.of_roots || ask.is_of_chains();
    if ask.verb != Verb::Terminate || pick.work.is_some() || pick.lease.is_some() {
        return None;
    }
    match pick.holds {
        Some(key) => Some(key).filter(|key| index.keeps(backend, *key)),
        None if is_root => index.kept_key(Party::Backend(pick.pid)),
        None => None,
    }
}

/// How a session has changed, from current data; `None` if it has not, or if that is unknown.
pub(in crate::model::plan) fn changed(
    index: &PlanIndex<'_>,
    verb: Verb,
    target: &SessionTarget,
) -> Option<TargetChange> {
    if !index.snapshot.backends.is_known() {
        return None;
    }
    let Some(backend) = index.backend(target.pid) else { return Some(TargetChange::Gone) };
    match backend.backend_start {
        None => return Some(TargetChange::Hidden),
        Some(start) if start != target.backend_start => return Some(TargetChange::Gone),
        Some(_) => {}
    }
    if !target.keeps && !target.client.may_be(&Client::of(backend)) {
        return Some(TargetChange::OtherClient);
    }
    if let Some(change) = moved_on(target, backend) {
        return Some(change);
    }
    if verb == Verb::Cancel && backend.state != Some(State::Active) {
        return Some(TargetChange::NotActive);
    }
    if !index.knows_locks() {
        return None;
    }
    if target.holds.is_some_and(|held| !index.may_hold(target.pid, held)) {
        return Some(TargetChange::HoldsNotAnyMore);
    }
    if target.blocks && index.graph.blocked_by(Party::Backend(target.pid)).is_empty() {
        return Some(TargetChange::BlocksNobody);
    }
    None
}

/// The target with current values, if the session has run statements but still does the same work. Not in a transaction,
/// where that is unknown: the session may be about to acquire the key of the next work in it.
pub(super) fn again(
    index: &PlanIndex<'_>,
    verb: Verb,
    target: &SessionTarget,
    work: Option<&WorkAtRisk>,
) -> Option<SessionTarget> {
    let is_on = |work| work::is_on(index, target.pid, work);
    let backend = index.backend(target.pid).filter(|backend| backend.xact_start.is_none())?;
    moved_on(target, backend).filter(|_| verb == Verb::Terminate && work.is_some_and(is_on))?;
    let (query, state) = compared(verb, backend, false);
    let again = SessionTarget {
        xact_start: ExpectedTime::Same(backend.xact_start),
        query_start: seen(query, backend.query_start),
        state_change: seen(state, backend.state_change),
        ..target.clone()
    };
    changed(index, verb, &again).is_none().then_some(again)
}

fn moved_on(target: &SessionTarget, backend: &Backend) -> Option<TargetChange> {
    let was_idle = target.xact_start == ExpectedTime::Same(None);
    let other = |change: TargetChange| Some(if was_idle { TargetChange::RanSomething } else { change });
    if target.xact_start.differs(backend.xact_start) {
        return other(TargetChange::OtherTransaction);
    }
    if target.query_start.differs(backend.query_start) {
        return other(TargetChange::OtherQuery);
    }
    target.state_change.differs(backend.state_change).then_some(TargetChange::RanSomething)
}

/// The rule: whether the start of the query and that of the state are compared; the transaction always is. `waits_only` is
/// true for a session in Chains that only waits.
fn compared(verb: Verb, backend: &Backend, waits_only: bool) -> (bool, bool) {
    let is_idle = backend.xact_start.is_none() && serves_clients(backend);
    match verb {
        Verb::Cancel => (true, false),
        _ if is_idle => (true, true),
        _ => (waits_only, false),
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

pub(super) fn seen(is_compared: bool, time: Option<Timestamp>) -> ExpectedTime {
    if is_compared { ExpectedTime::Same(time) } else { ExpectedTime::Any }
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
            let case = (verb, kind, state, has_transaction, waits_only);
            assert_eq!(compared(verb, &backend, waits_only), (query, change), "{case:?}");
        }
    }

    #[test]
    fn a_client_without_timestamps_cannot_be_identified() {
        let mut off = backend(Some("client backend"), State::Disabled, false);
        assert!(is_known(&off), "track_activities was switched off later");
        (off.query_start, off.state_change) = (None, None);
        assert!(!is_known(&off));
        assert!(is_known(&Backend { backend_type: Some("walsender".into()), ..off.clone() }));
        // The session has run nothing yet; once it has, there is a time.
        assert!(is_known(&Backend { state: Some(State::Starting), ..off.clone() }));
        assert!(is_known(&Backend { xact_start: Some(at(0.0)), ..off }));
    }
}
