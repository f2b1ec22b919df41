//! The wait graph, by process id. A prepared transaction has the id 0 and a gid.

use super::locks::Locks;
use super::object::{Json, object};
use crate::model::Timestamp;
use crate::model::wait_graph::{Edge, EdgeKind, WaitGraph};
use crate::wire::gids::Gids;

pub(super) fn queues(graph: &WaitGraph, locks: &Locks<'_>) -> impl Iterator<Item = impl Json> {
    graph.queues.iter().map(move |queue| {
        object!(
            lock = queue.waiters.first().and_then(|waiter| locks.place(waiter.lock)),
            holders[] = queue.holders.iter().map(|holder| holder.party.pid()),
            waiters[] = queue.waiters.iter().map(|waiter| waiter.party.pid()),
        )
    })
}

pub(super) fn edge(edge: &Edge, locks: &Locks<'_>, gids: &Gids<'_>) -> impl Json {
    object!(
        edge;
        waiter = edge.waiter.pid(),
        blocker = edge.blocker.pid(),
        gid = gids.gid(edge.blocker),
        kind = match edge.kind {
            EdgeKind::Holder => "holder",
            EdgeKind::Queue => "queue",
        },
        lock = locks.place(edge.lock),
        inferred,
    )
}

pub(super) fn roots(graph: &WaitGraph, gids: &Gids<'_>, now: Timestamp) -> impl Iterator<Item = impl Json> {
    graph.roots.iter().map(move |root| {
        object!(
            root;
            pid = root.party.pid(),
            gid = gids.gid(root.party),
            blocked,
            frees,
            in_turn,
            still_blocked,
            may_stay_blocked,
            others_must_end,
            longest_wait = root.longest_wait.map(|since| (now - since).as_seconds_f64().max(0.0)),
        )
    })
}
