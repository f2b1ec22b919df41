//! A small language for scans, and graphs as text.
//!
//! Sentences end at `;`. `10 holds A X`, `11 waits A S @3` (since second 3; without `@` the start is NULL),
//! `12 under 10` (a parallel worker), `p7` for a prepared transaction in place of a pid.

use std::fmt::Write;

use crate::backend::Backend;
use crate::graph::{Answer, EdgeKind, Input, Party, WaitGraph};
use crate::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};
use locktop_base::Timestamp;

#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) locks: Vec<Lock>,
    pub(super) backends: Vec<Backend>,
    pub(super) answers: Vec<Answer>,
}

impl Scan {
    pub(super) fn read(text: &str) -> Self {
        let mut scan = Self::default();
        for sentence in text.split([';', '\n']).map(str::trim).filter(|sentence| !sentence.is_empty()) {
            let words: Vec<&str> = sentence.split_whitespace().collect();
            match words.as_slice() {
                [who, "holds", what, mode] => scan.locks.push(lock(who, what, mode, true, None)),
                [who, "waits", what, mode] => scan.locks.push(lock(who, what, mode, false, None)),
                [who, "waits", what, mode, since] => {
                    scan.locks.push(lock(who, what, mode, false, Some(second(since))));
                }
                [who, "under", leader] => {
                    scan.backends.push(backend(who.parse().unwrap(), leader.parse().ok(), true));
                }
                [who, "hidden"] => scan.backends.push(backend(who.parse().unwrap(), None, false)),
                [who, since, "says", blockers @ ..] => scan.answers.push(Answer {
                    waiter: who.parse().unwrap(),
                    wait_start: Some(second(since)),
                    blockers: blockers.iter().map(|pid| pid.parse().unwrap()).collect(),
                }),
                _ => panic!("{sentence}"),
            }
        }
        scan
    }

    pub(super) fn graph(&self) -> WaitGraph {
        WaitGraph::build(Input {
            locks: &self.locks,
            backends: &self.backends,
            answers: &self.answers,
            ..Input::default()
        })
    }
}

pub(super) fn graph(text: &str) -> WaitGraph {
    Scan::read(text).graph()
}

fn second(text: &str) -> Timestamp {
    Timestamp::from_timestamp(text.strip_prefix('@').unwrap().parse().unwrap(), 0).unwrap()
}

pub(super) fn backend(pid: i32, leader_pid: Option<i32>, shown: bool) -> Backend {
    Backend { pid, leader_pid, backend_type: shown.then(|| "parallel worker".into()), ..Backend::default() }
}

fn lock(who: &str, what: &str, mode: &str, granted: bool, wait_start: Option<Timestamp>) -> Lock {
    let prepared = who.strip_prefix('p').map(|number| number.parse().unwrap());
    Lock {
        tag: tag(what),
        mode: mode_of(mode),
        granted,
        pid: if prepared.is_some() { None } else { Some(who.parse().unwrap()) },
        virtualtransaction: prepared.map_or(VirtualTransaction { proc_number: 1, local_xid: 1 }, vxid),
        wait_start,
    }
}

pub(super) fn vxid(number: u32) -> VirtualTransaction {
    VirtualTransaction { proc_number: -1, local_xid: number }
}

/// `A` is an advisory lock, `rel16` a table of database 1 and `rel16/2` of database 2, `tup3` a row, `xid7` a
/// transaction, `vx3` a virtual one, `notify` the lock of commits with NOTIFY.
fn tag(what: &str) -> LockTag {
    let number = |text: &str| text.parse::<u32>().unwrap();
    if let Some(relation) = what.strip_prefix("rel") {
        let (relation, database) = relation.split_once('/').unwrap_or((relation, "1"));
        LockTag::new(LockType::Relation).with_database(number(database)).with_relation(number(relation))
    } else if let Some(tuple) = what.strip_prefix("tup") {
        LockTag::new(LockType::Tuple)
            .with_database(1)
            .with_relation(16)
            .with_page(0)
            .with_tuple(tuple.parse().ok())
    } else if let Some(xid) = what.strip_prefix("xid") {
        LockTag::new(LockType::TransactionId).with_transactionid(number(xid))
    } else if let Some(vx) = what.strip_prefix("vx") {
        LockTag::new(LockType::VirtualXid)
            .with_virtualxid(VirtualTransaction { proc_number: 1, local_xid: number(vx) })
    } else if what == "notify" {
        LockTag::new(LockType::Object).with_database(0).with_classid(1262).with_objid(0).with_objsubid(0)
    } else {
        let key = what.bytes().next().map(u32::from);
        LockTag::new(LockType::Advisory).with_database(1).with_classid(0).with_objid(key).with_objsubid(1)
    }
}

fn mode_of(text: &str) -> LockMode {
    match text {
        "AS" => LockMode::AccessShare,
        "RS" => LockMode::RowShare,
        "RX" => LockMode::RowExclusive,
        "SUX" => LockMode::ShareUpdateExclusive,
        "S" => LockMode::Share,
        "SRX" => LockMode::ShareRowExclusive,
        "X" => LockMode::Exclusive,
        "AX" => LockMode::AccessExclusive,
        "SI" => LockMode::SIRead,
        _ => panic!("{text}"),
    }
}

pub(super) fn name(party: Party) -> String {
    match party {
        Party::Backend(pid) => pid.to_string(),
        Party::Prepared(vxid) => format!("p{}", vxid.local_xid),
    }
}

pub(super) fn names(parties: &[Party]) -> String {
    parties.iter().map(|party| name(*party)).collect::<Vec<_>>().join(" ")
}

/// `11-10` for a holder edge, `12~11` for an inferred queue edge and `12=11` for a confirmed one.
pub(super) fn edges(graph: &WaitGraph) -> String {
    let mut texts: Vec<String> = graph
        .edges(usize::MAX)
        .0
        .iter()
        .map(|edge| {
            let sign = match (edge.kind, edge.inferred) {
                (EdgeKind::Holder, false) => '-',
                (EdgeKind::Queue, true) => '~',
                (EdgeKind::Queue, false) => '=',
                (EdgeKind::Holder, true) => panic!("an inferred holder"),
            };
            format!("{}{sign}{}", name(edge.waiter), name(edge.blocker))
        })
        .collect();
    texts.sort();
    texts.dedup();
    texts.join(" ")
}

/// `10:3/1` for a root that blocks three and frees one.
pub(super) fn roots(graph: &WaitGraph) -> String {
    let root = |root: &crate::graph::Root| format!("{}:{}/{}", name(root.party), root.blocked, root.frees);
    graph.roots.iter().map(root).collect::<Vec<_>>().join(" ")
}

pub(super) fn cycles(graph: &WaitGraph) -> String {
    graph.cycles.iter().map(|cycle| names(cycle)).collect::<Vec<_>>().join(" | ")
}

/// `10(11 12(13+1))`: 13 has one more blocker.
pub(super) fn tree(graph: &WaitGraph) -> String {
    fn node(graph: &WaitGraph, at: usize) -> String {
        let node_ = &graph.tree.nodes[at];
        let mut text = name(node_.party);
        if node_.more_blockers > 0 {
            write!(text, "+{}", node_.more_blockers).unwrap();
        }
        if !node_.children.is_empty() {
            let children: Vec<String> = node_.children.iter().map(|child| node(graph, *child)).collect();
            write!(text, "({})", children.join(" ")).unwrap();
        }
        text
    }
    graph.tree.tops.iter().map(|top| node(graph, *top)).collect::<Vec<_>>().join(" ")
}
