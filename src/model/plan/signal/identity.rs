//! What tells the situation that was seen from every other one.

use super::choose::Pick;
use crate::model::backend::{Backend, State};
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::plan::look::Ground;
use crate::model::plan::{Ask, Change, Seen, SessionTarget, Verb};
use crate::model::wait_graph::Party;

/// The identity of a session and of what it was seen in. In a pool the same session serves somebody else a moment later, so
/// the process alone is none.
pub(super) fn of(
    ground: &Ground<'_>,
    ask: &Ask,
    pick: &Pick,
    backend: &Backend,
    blocks: bool,
) -> Result<SessionTarget, String> {
    let backend_start = backend.backend_start.ok_or("when it began is not known")?;
    if pick.holds.is_some_and(|held| !ground.may_hold(pick.pid, held)) {
        return Err(format!("{}", Change::HoldsNotAnyMore));
    }
    let is_idle = backend.state == Some(State::Idle) && backend.xact_start.is_none();
    // Who holds an advisory lock outside a transaction holds it by its session, over all its transactions: then the lock is
    // the situation, and what its session does at the moment is not.
    let awaited = || if is_idle && blocks { awaited_key(ground, Party::Backend(pick.pid)) } else { None };
    let holds = pick.holds.or_else(awaited);
    let is_advisory = holds.is_some_and(|(tag, _)| tag.locktype == LockType::Advisory);
    let key_stays = is_advisory && (is_idle || pick.key_stays) && ask.verb == Verb::Terminate;
    let xact_start = if key_stays { Seen::Any } else { Seen::Same(backend.xact_start) };
    let waits_only =
        ask.is_of_chains() && !blocks && ground.graph.wait_of(Party::Backend(pick.pid)).is_some();
    let query_start =
        if ask.verb == Verb::Cancel || waits_only { Seen::Same(backend.query_start) } else { Seen::Any };
    if ask.verb == Verb::Cancel && backend.query_start.is_none() {
        return Err("when its query began is not known".to_owned());
    }
    Ok(SessionTarget { pid: pick.pid, backend_start, xact_start, query_start, holds, blocks })
}

/// The advisory lock that a party holds and most wait for.
fn awaited_key(ground: &Ground<'_>, party: Party) -> Option<(LockTag, LockMode)> {
    let queues = ground.graph.queues.iter().filter(|queue| queue.tag.locktype == LockType::Advisory);
    let held = queues.filter_map(|queue| {
        let holder = queue.holders.iter().find(|holder| holder.party == party)?;
        Some((queue.waiters.len(), queue.tag, holder.modes.iter().last()?))
    });
    held.max_by_key(|(waiters, tag, _)| (*waiters, std::cmp::Reverse(*tag))).map(|(_, tag, mode)| (tag, mode))
}

/// How a session is not what was seen any more, by what is shown now; none while it is, and while that cannot be told.
pub(in crate::model::plan) fn changed(
    ground: &Ground<'_>,
    verb: Verb,
    target: &SessionTarget,
) -> Option<Change> {
    if ground.snapshot.backends.error.is_some() {
        return None;
    }
    let Some(backend) = ground.backend(target.pid) else { return Some(Change::Gone) };
    match backend.backend_start {
        None => return Some(Change::Hidden),
        Some(start) if start != target.backend_start => return Some(Change::Gone),
        Some(_) => {}
    }
    if !same(&target.xact_start, &backend.xact_start) {
        return Some(Change::OtherTransaction);
    }
    if !same(&target.query_start, &backend.query_start) {
        return Some(Change::OtherQuery);
    }
    if verb == Verb::Cancel && backend.state != Some(State::Active) {
        return Some(Change::NotActive);
    }
    if !ground.knows_locks() {
        return None;
    }
    if target.holds.is_some_and(|held| !ground.may_hold(target.pid, held)) {
        return Some(Change::HoldsNotAnyMore);
    }
    if target.blocks && ground.graph.blocked_by(Party::Backend(target.pid)).is_empty() {
        return Some(Change::BlocksNobody);
    }
    None
}

fn same<T: PartialEq>(seen: &Seen<T>, now: &T) -> bool {
    match seen {
        Seen::Same(then) => then == now,
        Seen::Any => true,
    }
}
