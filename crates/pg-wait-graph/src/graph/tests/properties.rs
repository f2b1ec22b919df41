use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::reference::{Edges, Keeps, Reference, Wait, behind, conflict};
use super::script::{Scan, backend, vxid};
use crate::graph::{Answer, EdgeKind, End, Input, Party, WaitGraph, Waiter};
use crate::lock::{Lock, LockMode, LockModes, LockTag, LockType, VirtualTransaction};
use locktop_base::Timestamp;

fn at(second: i64) -> Timestamp {
    Timestamp::from_timestamp(second, 0).unwrap()
}

fn tag(number: u32) -> LockTag {
    let locktype = if number.is_multiple_of(2) { LockType::Advisory } else { LockType::Relation };
    LockTag::new(locktype).with_objid(number).with_database(1)
}

/// Any row: holders may conflict, and a process may wait twice.
fn row(tags: u32) -> impl Strategy<Value = Lock> {
    let mode = prop::sample::select(LockMode::ALL.to_vec());
    let start = prop::option::weighted(0.8, 0..6_i64);
    (0..tags, mode, any::<bool>(), 1..11_i32, start).prop_map(|(number, mode, granted, pid, start)| Lock {
        tag: tag(number),
        mode,
        granted,
        pid: (pid > 2).then_some(pid),
        virtualtransaction: if pid > 2 {
            VirtualTransaction { proc_number: pid, local_xid: 1 }
        } else {
            vxid(pid.unsigned_abs())
        },
        wait_start: start.filter(|_| !granted).map(at),
    })
}

fn scan(tags: u32) -> impl Strategy<Value = Scan> {
    (vec(row(tags), 0..24), vec((7..11_i32, 3..7_i32), 0..3)).prop_map(|(locks, led)| Scan {
        locks,
        backends: led.into_iter().map(|(pid, leader)| backend(pid, Some(leader), true)).collect(),
        answers: Vec::new(),
    })
}

fn edges(graph: &WaitGraph) -> Edges {
    let (edges, left) = graph.edges(usize::MAX);
    assert_eq!(left, 0);
    let set: Edges = edges.iter().map(|edge| (edge.waiter, edge.blocker, edge.kind, edge.lock)).collect();
    assert_eq!(set.len(), edges.len(), "edges are unique");
    set
}

fn set(parties: Vec<Party>) -> BTreeSet<Party> {
    let number = parties.len();
    let set: BTreeSet<Party> = parties.into_iter().collect();
    assert_eq!(set.len(), number, "each once");
    set
}

fn parties(scan: &Scan) -> BTreeSet<Party> {
    let slow = Reference::new(scan);
    let waiting = slow.queues.values().flatten().map(|wait| wait.party);
    waiting.chain(slow.holds.values().flatten().map(|(party, _)| *party)).collect()
}

fn waiting(slow: &Reference) -> BTreeSet<Party> {
    slow.queues.values().flatten().map(|wait| wait.party).collect()
}

#[test]
fn the_conflict_table_is_symmetric_and_as_documented() {
    for one in LockMode::ALL {
        for other in LockMode::ALL {
            let conflicts = one.conflicts_with(LockModes::of(other));
            assert_eq!(conflicts, other.conflicts_with(LockModes::of(one)), "{one:?} {other:?}");
            assert_eq!(conflicts, conflict(one, other), "{one:?} {other:?}");
        }
    }
}

/// How parties may end, and the locks that certainly stay.
const ENDS: [(End, Keeps); 3] =
    [(End::Session, Keeps::Nothing), (End::Transaction, Keeps::Advisory), (End::Statement, Keeps::All)];

fn released(graph: &WaitGraph, slow: &Reference, ended: &BTreeSet<Party>, end: End, keeps: Keeps) {
    let parties: Vec<Party> = ended.iter().copied().collect();
    let release = graph.release(&parties, end);
    let edges = slow.edges();
    let behind: BTreeSet<Party> = parties.iter().flat_map(|party| behind(&edges, *party)).collect();
    let behind = &behind - ended;
    let sure = slow.released(ended, keeps);
    let hope = slow.released(ended, Keeps::Nothing);
    let now: BTreeSet<Party> = &(&slow.clone().go(ended, keeps) & &sure) & &behind;
    let what = format!("{ended:?} {end:?}");
    assert_eq!(set(release.now.clone()), now, "{what}: now");
    assert_eq!(set(release.in_turn.clone()), &(&behind & &sure) - &now, "{what}: in turn");
    assert_eq!(set(release.unsure.clone()), &(&behind & &hope) - &sure, "{what}: unsure");
    assert_eq!(set(release.still.clone()), &behind - &hope, "{what}: still");
    if release.others.is_empty() {
        return;
    }
    // If all of them end too, no party stays blocked, except in a deadlock.
    let all: BTreeSet<Party> = ended.iter().chain(&release.others).copied().collect();
    let rest = &set(release.still) - &slow.released(&all, Keeps::Nothing);
    let is_cyclic = |party: &Party| {
        let behind = self::behind(&edges, *party);
        edges.iter().any(|edge| edge.0 == *party && behind.contains(&edge.1))
    };
    let cyclic = |party: &Party| is_cyclic(party) || self::above(&edges, *party).iter().any(is_cyclic);
    assert!(rest.iter().all(cyclic), "{what}: {rest:?} stay without {all:?}");
    assert!(
        release.others.iter().all(|other| !edges.iter().any(|edge| edge.0 == *other)),
        "{what}: they wait for no party"
    );
}

fn above(edges: &Edges, party: Party) -> BTreeSet<Party> {
    let turned: Edges = edges.iter().map(|edge| (edge.1, edge.0, edge.2, edge.3)).collect();
    behind(&turned, party)
}

/// Checks everything but the tree against `slow`.
fn check(graph: &WaitGraph, slow: &Reference, everybody: &BTreeSet<Party>) {
    let edges = edges(graph);
    assert_eq!(edges, slow.edges());
    assert_eq!(graph.waiting as usize, waiting(slow).len());
    let blocked: BTreeSet<Party> = edges.iter().map(|edge| edge.0).collect();
    let in_cycles: BTreeSet<Party> = graph.cycles.iter().flatten().copied().collect();
    let closure: BTreeMap<Party, BTreeSet<Party>> =
        everybody.iter().map(|party| (*party, behind(&edges, *party))).collect();
    for party in everybody {
        assert_eq!(set(graph.blocked_by(*party)), closure[party]);
        assert_eq!(graph.blocks(*party) as usize, closure[party].len());
        assert_eq!(set(graph.granted_by(&[*party])), slow.freed(*party));
        for (end, keeps) in ENDS {
            released(graph, slow, &BTreeSet::from([*party]), end, keeps);
        }
        let of: BTreeSet<Party> = graph.blockers_of(*party).iter().map(|edge| edge.blocker).collect();
        let should: BTreeSet<Party> =
            edges.iter().filter(|edge| edge.0 == *party).map(|edge| edge.1).collect();
        assert_eq!(of, should);
        let behind = edges.iter().filter(|edge| edge.1 == *party).map(|edge| edge.0).collect();
        assert_eq!(set(graph.directly_behind(*party)), behind);
        let above = set(graph.roots_above(*party));
        let roots = graph.roots.iter().map(|root| root.party);
        assert_eq!(above, roots.filter(|root| closure[root].contains(party)).collect());
        let mutual =
            everybody.iter().any(|other| closure[other].contains(party) && closure[party].contains(other));
        assert_eq!(in_cycles.contains(party), mutual, "{party:?}");
        if blocked.contains(party) {
            let reaches_cycle = in_cycles.iter().any(|member| closure[member].contains(party));
            assert!(!above.is_empty() || mutual || reaches_cycle, "{party:?} is below no root or cycle");
        }
    }
    for cycle in &graph.cycles {
        assert!(cycle.len() > 1);
        assert!(cycle.iter().all(|one| cycle.iter().all(|two| one == two || closure[one].contains(two))));
    }
    let roots: BTreeSet<Party> = closure
        .iter()
        .filter(|(party, behind)| !behind.is_empty() && !blocked.contains(party))
        .map(|(party, _)| *party)
        .collect();
    assert_eq!(set(graph.roots.iter().map(|root| root.party).collect()), roots);
    let members: Vec<Party> = graph.in_cycles.iter().map(|member| member.party).collect();
    assert_eq!(members, graph.cycles.concat());
    for root in graph.roots.iter().chain(&graph.in_cycles) {
        assert_eq!(root.blocked as usize, closure[&root.party].len());
        let release = graph.release(&[root.party], End::Session);
        assert_eq!(root.frees as usize, release.now.len());
        assert_eq!(
            (root.in_turn as usize, root.still_blocked as usize),
            (release.in_turn.len(), release.still.len())
        );
        assert_eq!(root.others_must_end, release.others_must_end());
    }
    assert!(graph.roots.is_sorted_by_key(|root| {
        (std::cmp::Reverse(root.blocked), root.longest_wait.is_none(), root.longest_wait, root.party)
    }));
}

/// Every waiter appears once, below a top, along an edge.
fn check_tree(graph: &WaitGraph, slow: &Reference) {
    let tree = &graph.tree;
    let edges = edges(graph);
    let in_tree = set(tree.nodes.iter().map(|node| node.party).collect());
    let roots = graph.roots.iter().map(|root| root.party);
    assert_eq!(in_tree, waiting(slow).into_iter().chain(roots).collect());
    let mut below = vec![0; tree.nodes.len()];
    for (place, node) in tree.nodes.iter().enumerate() {
        let blockers: BTreeSet<Party> =
            edges.iter().filter(|edge| edge.0 == node.party).map(|edge| edge.1).collect();
        let waits = node.waits.map(|(queue, waiter)| &graph.queues[queue].waiters[waiter]);
        assert_eq!(waits.is_some(), waiting(slow).contains(&node.party));
        assert!(waits.is_none_or(|waiter| waiter.party == node.party));
        let shown = usize::from(node.parent.is_some());
        assert_eq!(node.more_blockers as usize + shown, blockers.len());
        match node.parent {
            None => assert!(tree.tops.contains(&place) && node.edge.is_none()),
            Some(parent) => {
                assert!(parent < place, "parents come first, so all lead to a top");
                assert!(tree.nodes[parent].children.contains(&place));
                let edge = (node.party, tree.nodes[parent].party, node.edge.unwrap(), waits.unwrap().lock);
                assert!(edges.contains(&edge));
            }
        }
        let mut above = node.parent;
        while let Some(parent) = above {
            below[parent] += 1;
            above = tree.nodes[parent].parent;
        }
        assert_eq!(node.cycle, graph.cycles.iter().position(|cycle| cycle.contains(&node.party)));
        assert!(node.parent.is_some() || blockers.is_empty() || node.cycle.is_some());
        let has_holder = edges.iter().any(|edge| edge.0 == node.party && edge.2 == EdgeKind::Holder);
        assert!(node.cycle.is_some() || !has_holder || node.edge == Some(EdgeKind::Holder));
    }
    assert_eq!(below, tree.nodes.iter().map(|node| node.below).collect::<Vec<_>>());
    let tops = tree.tops.iter().map(|top| tree.nodes[*top].party);
    let should = graph.cycles.iter().map(|cycle| cycle[0]).chain(graph.roots.iter().map(|root| root.party));
    assert_eq!(
        tops.take(graph.cycles.len() + graph.roots.len()).collect::<Vec<_>>(),
        should.collect::<Vec<_>>()
    );
}

/// The result of `pg_blocking_pids` for each waiting process, if the queues were as in `slow`.
fn answers(scan: &Scan, slow: &Reference) -> Vec<Answer> {
    let mut answers = Vec::new();
    let edges = slow.edges();
    for wait in slow.queues.values().flatten() {
        let lock = &scan.locks[wait.row];
        let Some(pid) = lock.pid else { continue };
        let of = edges.iter().filter(|edge| edge.0 == wait.party).map(|edge| edge.1.pid());
        answers.push(Answer { waiter: pid, wait_start: lock.wait_start, blockers: of.collect() });
    }
    answers
}

/// The reference, in the order that the graph has determined.
fn as_ordered(graph: &WaitGraph) -> (Reference, BTreeSet<Party>) {
    let mut slow = Reference::default();
    let mut everybody = BTreeSet::new();
    for queue in &graph.queues {
        let wait = |waiter: &Waiter| Wait { party: waiter.party, mode: waiter.mode, row: waiter.lock };
        slow.queues.insert(queue.tag, queue.waiters.iter().map(wait).collect());
        let holds =
            queue.holders.iter().flat_map(|holder| holder.modes.iter().map(|mode| (holder.party, mode)));
        slow.holds.insert(queue.tag, holds.collect());
        everybody.extend(queue.holders.iter().map(|holder| holder.party));
        everybody.extend(queue.waiters.iter().map(|waiter| waiter.party));
    }
    (slow, everybody)
}

fn cases() -> u32 {
    if std::env::var_os("LOCKTOP_LONG").is_some() { 3_000 } else { 600 }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_graph_of_one_lock_matches_the_reference(scan in scan(1)) {
        let slow = Reference::new(&scan);
        check(&scan.graph(), &slow, &parties(&scan));
        check_tree(&scan.graph(), &slow);
    }

    #[test]
    fn a_graph_of_several_locks_matches_the_reference(scan in scan(5)) {
        let slow = Reference::new(&scan);
        check(&scan.graph(), &slow, &parties(&scan));
        check_tree(&scan.graph(), &slow);
    }

    #[test]
    fn the_release_of_several_parties_matches_the_reference(scan in scan(4), picks in vec(any::<prop::sample::Index>(), 0..5)) {
        let (graph, slow) = (scan.graph(), Reference::new(&scan));
        let everybody: Vec<Party> = parties(&scan).into_iter().collect();
        prop_assume!(!everybody.is_empty());
        let ended: Vec<Party> = picks.iter().map(|pick| *pick.get(&everybody)).collect();
        let all: BTreeSet<Party> = ended.iter().copied().collect();
        prop_assert_eq!(set(graph.granted_by(&ended)), slow.clone().go(&all, Keeps::Nothing));
        for (end, keeps) in ENDS {
            released(&graph, &slow, &all, end, keeps);
        }
        let edges = slow.edges();
        let behind: BTreeSet<Party> = all.iter().flat_map(|party| behind(&edges, *party)).collect();
        prop_assert_eq!(set(graph.blocked_by_all(&ended)), &behind - &all);
        for party in &everybody {
            prop_assert_eq!(graph.granted_by(&[*party, *party]), graph.granted_by(&[*party]));
        }
    }

    /// The groups of a front are behind each of its roots, each by a lock that the root holds or is about to get.
    #[test]
    fn fronts_are_the_roots_with_those_behind_them(scan in scan(4)) {
        let graph = scan.graph();
        let fronts = graph.fronts();
        let mut roots: Vec<Party> = fronts.iter().flat_map(|front| front.roots.clone()).collect();
        roots.sort_unstable();
        let mut expected: Vec<Party> = graph.roots.iter().map(|root| root.party).collect();
        expected.sort_unstable();
        prop_assert_eq!(roots, expected);
        for front in &fronts {
            let behind: BTreeSet<Party> = front.behind.iter().map(|(party, _)| *party).collect();
            prop_assert_eq!(behind.len(), front.behind.len());
            for root in &front.roots {
                prop_assert_eq!(&set(graph.blocked_by(*root)), &behind);
                for (_, queue) in &front.behind {
                    let queue = &graph.queues[*queue];
                    let holds = queue.holders.iter().any(|holder| holder.party == *root);
                    prop_assert!(holds || queue.waiters.iter().any(|waiter| waiter.party == *root));
                }
            }
        }
    }

    #[test]
    fn the_order_in_which_several_go_does_not_matter(scan in scan(4), who in vec(any::<prop::sample::Index>(), 0..5)) {
        let (graph, slow) = (scan.graph(), Reference::new(&scan));
        let everybody: Vec<Party> = parties(&scan).into_iter().collect();
        prop_assume!(!everybody.is_empty());
        let gone: Vec<Party> = who.iter().map(|who| *who.get(&everybody)).collect();
        let (mut after, mut freed) = (slow, BTreeSet::new());
        for party in &gone {
            freed.extend(after.go(&BTreeSet::from([*party]), Keeps::Nothing));
        }
        freed.retain(|party| !gone.contains(party));
        prop_assert_eq!(set(graph.granted_by(&gone)), freed);
    }

    #[test]
    fn answers_about_everybody_restore_any_order(scan in scan(4), seed in vec(any::<u16>(), 24)) {
        let mut scan = scan;
        let mut slow = Reference::new(&scan);
        let mut waits: BTreeMap<Party, usize> = BTreeMap::new();
        for wait in slow.queues.values().flatten() {
            *waits.entry(wait.party).or_default() += 1;
        }
        // Only processes with a pid and a start can be asked about, and the answer for a group that waits once is about one
        // queue.
        let is_told = |wait: &Wait| waits[&wait.party] == 1 && scan.locks[wait.row].pid.is_some();
        let told: BTreeSet<usize> =
            slow.queues.values().flatten().filter(|wait| is_told(wait)).map(|wait| wait.row).collect();
        let mut row = 0;
        scan.locks.retain(|lock| { row += 1; lock.granted || told.contains(&(row - 1)) });
        for lock in scan.locks.iter_mut().filter(|lock| !lock.granted) {
            lock.wait_start = lock.wait_start.or(Some(at(9)));
        }
        scan.locks.retain(|lock| lock.granted || lock.mode != LockMode::SIRead);
        let fresh = Reference::new(&scan);
        slow.queues = fresh.queues;
        slow.holds = fresh.holds;
        for queue in slow.queues.values_mut() {
            queue.sort_by_key(|wait| seed[wait.row % seed.len()]);
        }
        let mut again: BTreeMap<Party, usize> = BTreeMap::new();
        for wait in slow.queues.values().flatten() {
            *again.entry(wait.party).or_default() += 1;
        }
        prop_assume!(again.values().all(|number| *number == 1));
        scan.answers = answers(&scan, &slow);
        let graph = scan.graph();
        // If two hold what the other requests, the answers do not show which is ahead; it makes no difference.
        let pairs = |edges: Edges| edges.into_iter().map(|edge| (edge.0, edge.1)).collect::<BTreeSet<_>>();
        prop_assert_eq!(pairs(edges(&graph)), pairs(slow.edges()));
        let (ordered, everybody) = as_ordered(&graph);
        check(&graph, &ordered, &everybody);
        check_tree(&graph, &ordered);
        for waiter in graph.queues.iter().flat_map(|queue| &queue.waiters) {
            let exact = set(waiter.exact.clone().unwrap());
            let of: BTreeSet<Party> = graph.blockers_of(waiter.party).iter().map(|edge| edge.blocker).collect();
            prop_assert_eq!(exact, of);
        }
    }

    #[test]
    fn any_answer_leaves_a_graph_of_the_scan(
        scan in scan(3),
        hidden in vec(3..11_i32, 0..4),
        said in vec((3..12_i32, 0..6_i64, vec(0..12_i32, 0..6)), 0..6),
    ) {
        let mut scan = scan;
        scan.backends.extend(hidden.into_iter().map(|pid| backend(pid, None, false)));
        scan.answers = said
            .into_iter()
            .map(|(waiter, start, blockers)| Answer { waiter, wait_start: Some(at(start)), blockers })
            .collect();
        let graph = scan.graph();
        let (slow, everybody) = as_ordered(&graph);
        check(&graph, &slow, &everybody);
        check_tree(&graph, &slow);
        for waiter in graph.queues.iter().flat_map(|queue| &queue.waiters) {
            let of: BTreeSet<Party> = graph.blockers_of(waiter.party).iter().map(|edge| edge.blocker).collect();
            prop_assert!(waiter.exact.clone().is_none_or(|exact| set(exact) == of));
        }
    }

    #[test]
    fn the_order_of_the_rows_does_not_matter(scan in scan(4), seed in vec(any::<u16>(), 24)) {
        let mut locks: Vec<(u16, Lock)> = scan.locks.iter().enumerate().map(|(row, lock)| (seed[row], *lock)).collect();
        locks.sort_by_key(|(key, _)| *key);
        let locks: Vec<Lock> = locks.into_iter().map(|(_, lock)| lock).collect();
        let mut waiting = BTreeSet::new();
        // A process that waits twice for a lock keeps its first row, which depends on the order.
        prop_assume!(locks.iter().filter(|lock| !lock.granted).all(|lock| waiting.insert((lock.tag, lock.pid, lock.virtualtransaction))));
        let shuffled = WaitGraph::build(Input { locks: &locks, backends: &scan.backends, answers: &[], ..Input::default() });
        let graph = scan.graph();
        prop_assert_eq!(&graph.roots, &shuffled.roots);
        prop_assert_eq!(&graph.cycles, &shuffled.cycles);
        let shape = |graph: &WaitGraph| {
            graph.tree.nodes.iter().map(|node| (node.party, node.parent, node.edge)).collect::<Vec<_>>()
        };
        prop_assert_eq!(shape(&graph), shape(&shuffled));
    }
}
