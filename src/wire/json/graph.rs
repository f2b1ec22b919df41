//! The wait graph, by process id. A prepared transaction has the id 0 and a gid.

use serde::Serialize;

use super::locks::Locks;
use crate::model::Timestamp;
use crate::model::wait_graph::{EdgeKind, WaitGraph};
use crate::wire::gids::Gids;

#[derive(Debug, Serialize)]
pub(super) struct Queue {
    lock: Option<usize>,
    holders: Vec<i32>,
    waiters: Vec<i32>,
}

pub(super) fn queues(graph: &WaitGraph, locks: &Locks<'_>) -> Vec<Queue> {
    graph
        .queues
        .iter()
        .map(|queue| Queue {
            lock: queue.waiters.first().and_then(|waiter| locks.place(waiter.lock)),
            holders: queue.holders.iter().map(|holder| holder.party.pid()).collect(),
            waiters: queue.waiters.iter().map(|waiter| waiter.party.pid()).collect(),
        })
        .collect()
}

#[derive(Debug, Serialize)]
pub(super) struct Edge<'a> {
    waiter: i32,
    blocker: i32,
    gid: Option<&'a str>,
    kind: &'static str,
    lock: Option<usize>,
    inferred: bool,
}

pub(super) fn edges<'a>(
    graph: &WaitGraph,
    locks: &Locks<'_>,
    gids: &Gids<'a>,
    limit: usize,
) -> (Vec<Edge<'a>>, u64) {
    let (edges, omitted) = graph.edges(limit);
    let shape = |edge: &crate::model::wait_graph::Edge| Edge {
        waiter: edge.waiter.pid(),
        blocker: edge.blocker.pid(),
        gid: gids.gid(edge.blocker),
        kind: match edge.kind {
            EdgeKind::Holder => "holder",
            EdgeKind::Queue => "queue",
        },
        lock: locks.place(edge.lock),
        inferred: edge.inferred,
    };
    (edges.iter().map(shape).collect(), omitted)
}

#[derive(Debug, Serialize)]
pub(super) struct Root<'a> {
    pid: i32,
    gid: Option<&'a str>,
    blocked: u32,
    frees: u32,
    in_turn: u32,
    still_blocked: u32,
    may_stay_blocked: u32,
    others_must_end: Option<u32>,
    longest_wait: Option<f64>,
}

pub(super) fn roots<'a>(graph: &WaitGraph, gids: &Gids<'a>, now: Timestamp) -> Vec<Root<'a>> {
    graph
        .roots
        .iter()
        .map(|root| Root {
            pid: root.party.pid(),
            gid: gids.gid(root.party),
            blocked: root.blocked,
            frees: root.frees,
            in_turn: root.in_turn,
            still_blocked: root.still_blocked,
            may_stay_blocked: root.may_stay_blocked,
            others_must_end: root.others_must_end,
            longest_wait: root.longest_wait.map(|since| (now - since).as_seconds_f64().max(0.0)),
        })
        .collect()
}
