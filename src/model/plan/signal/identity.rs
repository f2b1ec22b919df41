//! What distinguishes the situation that was seen from any other.

use super::selected::SelectedSession;
use super::{rule, work};
use crate::model::Timestamp;
use crate::model::backend::{Backend, State};
use crate::model::lock::{LockMode, LockTag};
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{Ask, Change, Client, Seen, SessionTarget, Stake, Verb};
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
        return Err(format!("{}", Change::HoldsNotAnyMore));
    }
    let party = Party::Backend(pick.pid);
    // A session that blocks others without a transaction does so with a session-level lock.
    let awaited =
        || if blocks && backend.xact_start.is_none() { index.look().awaited_key(party) } else { None };
    let waits_only = ask.is_of_chains() && !blocks && index.graph.wait_of(party).is_some();
    let compared = rule::compared(ask.verb, backend, waits_only);
    if let Some(key) = kept(index, ask, pick, backend) {
        let target = SessionTarget::by_lock(backend, backend_start, key);
        return Ok(SessionTarget { keeps: true, blocks, ..target });
    }
    if ask.verb == Verb::Cancel && backend.query_start.is_none() {
        return Err("the start of its query is not known".to_owned());
    }
    if !rule::is_known(backend) {
        return Err(UNKNOWN.to_owned());
    }
    Ok(SessionTarget {
        pid: pick.pid,
        backend_start,
        client: Client::of(backend),
        xact_start: Seen::Same(backend.xact_start),
        query_start: rule::seen(compared.query, backend.query_start),
        state_change: rule::seen(compared.state, backend.state_change),
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
        Some(key) => Some(key).filter(|key| index.look().keeps(backend, *key)),
        None if is_root => index.look().kept_key(Party::Backend(pick.pid)),
        None => None,
    }
}

/// How a session has changed, from current data; `None` if it has not, or if that is unknown.
pub(in crate::model::plan) fn changed(
    index: &PlanIndex<'_>,
    verb: Verb,
    target: &SessionTarget,
) -> Option<Change> {
    if !index.snapshot.backends.is_known() {
        return None;
    }
    let Some(backend) = index.backend(target.pid) else { return Some(Change::Gone) };
    match backend.backend_start {
        None => return Some(Change::Hidden),
        Some(start) if start != target.backend_start => return Some(Change::Gone),
        Some(_) => {}
    }
    if !target.keeps && !target.client.may_be(&Client::of(backend)) {
        return Some(Change::OtherClient);
    }
    if let Some(change) = moved_on(target, backend) {
        return Some(change);
    }
    if verb == Verb::Cancel && backend.state != Some(State::Active) {
        return Some(Change::NotActive);
    }
    if !index.knows_locks() {
        return None;
    }
    if target.holds.is_some_and(|held| !index.may_hold(target.pid, held)) {
        return Some(Change::HoldsNotAnyMore);
    }
    if target.blocks && index.graph.blocked_by(Party::Backend(target.pid)).is_empty() {
        return Some(Change::BlocksNobody);
    }
    None
}

/// The target with current values, if the session has run statements but still does the same work. Not in a transaction,
/// where that is unknown: the session may be about to acquire the key of the next work in it.
pub(super) fn again(
    index: &PlanIndex<'_>,
    verb: Verb,
    target: &SessionTarget,
    work: Option<&Stake>,
) -> Option<SessionTarget> {
    let is_on = |work| work::is_on(index, target.pid, work);
    let backend = index.backend(target.pid).filter(|backend| backend.xact_start.is_none())?;
    moved_on(target, backend).filter(|_| verb == Verb::Terminate && work.is_some_and(is_on))?;
    let compared = rule::compared(verb, backend, false);
    let again = SessionTarget {
        xact_start: Seen::Same(backend.xact_start),
        query_start: rule::seen(compared.query, backend.query_start),
        state_change: rule::seen(compared.state, backend.state_change),
        ..target.clone()
    };
    changed(index, verb, &again).is_none().then_some(again)
}

fn moved_on(target: &SessionTarget, backend: &Backend) -> Option<Change> {
    let was_idle = target.xact_start == Seen::Same(None);
    let other = |change: Change| Some(if was_idle { Change::RanSomething } else { change });
    if !same(target.xact_start, backend.xact_start) {
        return other(Change::OtherTransaction);
    }
    if !same(target.query_start, backend.query_start) {
        return other(Change::OtherQuery);
    }
    if same(target.state_change, backend.state_change) { None } else { Some(Change::RanSomething) }
}

fn same(seen: Seen<Option<Timestamp>>, now: Option<Timestamp>) -> bool {
    match seen {
        Seen::Same(then) => then == now,
        Seen::Any => true,
    }
}
