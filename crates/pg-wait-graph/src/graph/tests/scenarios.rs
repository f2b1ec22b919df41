use std::fmt::Write;

use super::script::{Scan, cycles, edges, graph, names, roots, tree, vxid};
use crate::graph::{Party, WaitGraph};

struct Case {
    what: &'static str,
    scan: &'static str,
    edges: &'static str,
    roots: &'static str,
    cycles: &'static str,
    tree: &'static str,
}

const CASES: &[Case] = &[
    Case { what: "nothing", scan: "", edges: "", roots: "", cycles: "", tree: "" },
    Case {
        what: "no session waits",
        scan: "10 holds A X; 11 holds B X",
        edges: "",
        roots: "",
        cycles: "",
        tree: "",
    },
    Case {
        what: "an advisory lock: the second waits for the holder and for the first",
        scan: "10 holds A X; 11 waits A X @1; 12 waits A X @2",
        edges: "11-10 12-10 12~11",
        roots: "10:2/1",
        cycles: "",
        tree: "10(11 12+1)",
    },
    Case {
        what: "sharers are all freed by the exclusive holder",
        scan: "10 holds A X; 11 waits A S @1; 12 waits A S @2; 13 waits A S @3",
        edges: "11-10 12-10 13-10",
        roots: "10:3/3",
        cycles: "",
        tree: "10(11 12 13)",
    },
    Case {
        what: "one of two sharers frees no waiter",
        scan: "10 holds A S; 9 holds A S; 11 waits A X @1",
        edges: "11-10 11-9",
        roots: "9:1/0 10:1/0",
        cycles: "",
        tree: "9(11+1) 10",
    },
    Case {
        what: "a prepared transaction holds",
        scan: "p7 holds rel16 RX; 11 waits rel16 AX @1; p8 holds rel16 AS",
        edges: "11-p7 11-p8",
        roots: "p7:1/0 p8:1/0",
        cycles: "",
        tree: "p7(11+1) p8",
    },
    Case {
        what: "DDL in the queue blocks a reader that the holder does not block",
        scan: "10 holds rel16 AS; 11 waits rel16 AX @1; 12 waits rel16 AS @2; 13 waits rel16 AS @3",
        edges: "11-10 12~11 13~11",
        roots: "10:3/1",
        cycles: "",
        tree: "10(11(12 13))",
    },
    Case {
        what: "an innocent holder of a compatible mode is no blocker",
        scan: "10 holds rel16 RX; 9 holds rel16 AS; 11 waits rel16 S @1",
        edges: "11-10",
        roots: "10:1/1",
        cycles: "",
        tree: "10(11)",
    },
    Case {
        what: "row locks: the first waits for the transaction, the next for the row, locks on other rows do not count",
        scan: "10 holds xid7 X; 11 holds tup1 X; 11 waits xid7 S @1; 12 waits tup1 X @2; 13 holds tup2 X;
               13 holds xid9 X; 14 waits xid9 S @3",
        edges: "11-10 12-11 14-13",
        roots: "10:2/1 13:1/1",
        cycles: "",
        tree: "10(11(12)) 13(14)",
    },
    Case {
        what: "a deadlock not yet resolved, and a waiter behind it",
        scan: "10 holds A X; 11 holds B X; 10 waits B X @2; 11 waits A X @1; 12 waits A X @3",
        edges: "10-11 11-10 12-10 12~11",
        roots: "",
        cycles: "11 10",
        tree: "11+1(10(12+1))",
    },
    Case {
        what: "a parallel query holds: one group",
        scan: "10 holds rel16 AS; 21 holds rel16 AS; 22 holds rel16 AS; 21 under 10; 22 under 10;
               11 waits rel16 AX @1",
        edges: "11-10",
        roots: "10:1/1",
        cycles: "",
        tree: "10(11)",
    },
    Case {
        what: "members of a group do not block each other",
        scan: "10 holds rel16 AX; 21 waits rel16 AX @1; 21 under 10",
        edges: "",
        roots: "",
        cycles: "",
        tree: "10",
    },
    Case {
        what: "the same key in another database is another lock",
        scan: "10 holds rel16/2 AX; 11 waits rel16 AX @1; 9 holds rel16 AS",
        edges: "11-9",
        roots: "9:1/1",
        cycles: "",
        tree: "9(11)",
    },
    Case {
        what: "two sharers that want more wait for each other",
        scan: "10 holds A S; 11 holds A S; 10 waits A X @1; 11 waits A X @2",
        edges: "10-11 10~11 11-10",
        roots: "",
        cycles: "10 11",
        tree: "10+1(11)",
    },
    Case {
        what: "a session that already holds the lock is ahead of those that wait for it",
        scan: "10 holds A S; 9 holds A S; 11 waits A X @1; 12 waits A X @2; 10 waits A X @3",
        edges: "10-9 11-10 11-9 11~10 12-10 12-9 12~10 12~11",
        roots: "9:3/1",
        cycles: "",
        tree: "9(11+1 12+2 10)",
    },
    Case {
        what: "a wait without a start is the newest",
        scan: "10 holds A X; 11 waits A X; 12 waits A X @5",
        edges: "11-10 11~12 12-10",
        roots: "10:2/1",
        cycles: "",
        tree: "10(12 11+1)",
    },
    Case {
        what: "a session that is only in the queue blocks too",
        scan: "9 holds rel16 S; 10 waits rel16 RX @1; 11 waits rel16 AX @2; 12 waits rel16 RS @3",
        edges: "10-9 11-9 11~10 12~11",
        roots: "9:3/1",
        cycles: "",
        tree: "9(10 11+1(12))",
    },
    Case {
        what: "predicate locks never block",
        scan: "10 holds rel16 SI; 11 waits rel16 AX @1; 12 waits rel16 SI",
        edges: "",
        roots: "",
        cycles: "",
        tree: "11",
    },
    Case {
        what: "a chain over three locks",
        scan: "10 holds A X; 11 holds B X; 12 holds C X; 11 waits A X @3; 12 waits B X @2; 13 waits C X @1",
        edges: "11-10 12-11 13-12",
        roots: "10:3/1",
        cycles: "",
        tree: "10(11(12(13)))",
    },
    Case {
        what: "queueing behind one holder on one lock is no cycle",
        scan: "10 holds A X; 10 holds B X; 11 waits A X @1; 12 waits B X @2; 13 waits A X @3",
        edges: "11-10 12-10 13-10 13~11",
        roots: "10:3/2",
        cycles: "",
        tree: "10(11 12 13+1)",
    },
    Case {
        what: "the blocker that waits longest is the parent, and a root waits longest of all",
        scan: "10 holds A X; 11 holds B S; 12 holds B S; 9 holds B S; 11 waits A X @2; 12 waits A X @1;
               13 waits B X @3",
        edges: "11-10 11~12 12-10 13-11 13-12 13-9",
        roots: "10:3/1 9:1/0",
        cycles: "",
        tree: "10(12 11+1) 9(13+2)",
    },
];

#[test]
fn scenarios() {
    let mut wrong = Vec::new();
    for case in CASES {
        let graph = graph(case.scan);
        for (part, is, should) in [
            ("edges", edges(&graph), case.edges),
            ("roots", roots(&graph), case.roots),
            ("cycles", cycles(&graph), case.cycles),
            ("tree", tree(&graph), case.tree),
        ] {
            if is != should {
                wrong.push(format!("{}: {part} are {is:?}, not {should:?}", case.what));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn pids(graph: &WaitGraph, party: i32) -> [String; 3] {
    let party = Party::Backend(party);
    [graph.granted_by(&[party]), graph.blocked_by(party), graph.roots_above(party)].map(|found| names(&found))
}

#[test]
fn the_walk_continues_past_waiters_it_cannot_wake() {
    let graph = graph("9 holds rel16 S; 10 waits rel16 RX @1; 11 waits rel16 AX @2; 12 waits rel16 RS @3");
    assert_eq!(pids(&graph, 11), ["12", "12", "9"], "12 fits 9 and 10");
    assert_eq!(pids(&graph, 10), ["", "11 12", "9"]);
    assert_eq!(pids(&graph, 9), ["10", "10 11 12", ""]);
    assert_eq!(pids(&graph, 99), ["", "", ""], "no such session");
}

#[test]
fn a_waiter_behind_its_own_group_is_not_woken_past_it() {
    let graph = graph(
        "9 holds rel16 AS; 10 holds rel16 AS; 11 waits rel16 AX @1; 21 waits rel16 AS @2; 22 under 11; 21 under 11",
    );
    assert_eq!(edges(&graph), "11-10 11-9");
    assert_eq!(pids(&graph, 9)[0], "", "21 would have to overtake 11, of its own group");
}

#[test]
fn the_end_of_a_prepared_transaction_frees_the_first_waiter() {
    let graph = graph("p7 holds rel16 RX; 11 waits rel16 AX @1; 12 waits rel16 AS @2");
    let prepared = Party::Prepared(vxid(7));
    assert_eq!(names(&graph.granted_by(&[prepared])), "11");
    assert_eq!(names(&graph.blocked_by(prepared)), "11 12");
    assert_eq!(names(&graph.roots_above(Party::Backend(12))), "p7");
    assert_eq!(prepared.pid(), 0);
}

#[test]
fn two_sharers_are_freed_together_but_a_third_party_is_not() {
    let graph = graph(
        "10 holds A X; 10 holds B S; 9 holds B S; 11 waits A S @1; 12 waits A S @2; 13 waits A X @3; 14 waits B X @4",
    );
    assert_eq!(pids(&graph, 10)[0], "11 12");
    assert_eq!(roots(&graph), "10:4/2 9:1/0");
}

#[test]
fn no_party_is_behind_or_above_itself() {
    let graph = graph("10 holds A X; 11 holds B X; 10 waits B X @2; 11 waits A X @1; 12 waits A X @3");
    assert_eq!(pids(&graph, 10), ["11", "11 12", ""]);
    assert_eq!(graph.tree.nodes[0].cycle, Some(0));
    assert_eq!((graph.tree.nodes[0].more_blockers, graph.tree.nodes[0].unseen_blockers()), (1, 0));
    assert_eq!(graph.tree.nodes[2].cycle, None);
    assert_eq!(graph.waiting, 3);
}

#[test]
fn queue_edges_are_shown_up_to_a_limit() {
    let graph = graph("10 holds A X; 11 waits A X @1; 12 waits A X @2; 13 waits A X @3; 14 waits A X @4");
    let (all, none_left) = graph.edges(usize::MAX);
    assert_eq!((all.len(), none_left), (10, 0));
    let (some, left) = graph.edges(4);
    assert_eq!((some.len(), left), (8, 2));
    let (holders, left) = graph.edges(0);
    assert_eq!((holders.len(), left), (4, 6));
    let of = graph.blockers_of(Party::Backend(13));
    assert_eq!(names(&of.iter().map(|edge| edge.blocker).collect::<Vec<_>>()), "10 11 12");
    let (queue, place) = graph.wait_of(Party::Backend(13)).unwrap();
    assert_eq!((queue.waiters.len(), place), (4, 2));
    assert!(graph.wait_of(Party::Backend(10)).is_none());
}

#[test]
fn the_tree_shows_what_each_party_waits_for() {
    let graph = graph("10 holds A X; 10 holds B X; 11 waits B X @3; 12 waits A X @1; 13 waits A X @2");
    let tree = &graph.tree;
    assert_eq!(tree.nodes[0].below, 3);
    assert_eq!(tree.nodes[0].waits, None);
    for node in &tree.nodes[1..] {
        let (queue, position) = node.waits.unwrap();
        assert_eq!(graph.queues[queue].waiters[position].party, node.party);
    }
}

#[test]
fn a_repeated_row_changes_nothing() {
    let text = "10 holds A X; 11 waits A X @1; 12 waits A X @2";
    let mut twice = Scan::read(text);
    twice.locks.extend(Scan::read(text).locks);
    let twice = twice.graph();
    assert_eq!(edges(&twice), "11-10 12-10 12~11");
    assert_eq!(roots(&twice), "10:2/1");
}

#[test]
fn a_parallel_apply_worker_is_no_member_of_its_leaders_lock_group() {
    let mut scan = Scan::read("10 holds A X; 21 waits A S @1; 21 under 10");
    scan.backends[0].backend_type = Some("logical replication parallel worker".into());
    assert_eq!(edges(&scan.graph()), "21-10");
}

#[test]
fn a_long_chain_needs_no_stack() {
    let length = 50_000;
    let mut text = "1 holds rel1 X".to_owned();
    for pid in 2..=length {
        write!(text, "; {pid} holds rel{pid} X; {pid} waits rel{} X @{pid}", pid - 1).unwrap();
    }
    let graph = graph(&text);
    assert_eq!(roots(&graph), format!("1:{}/1", length - 1));
    assert_eq!(graph.tree.nodes.len(), length);
    write!(text, "; 1 waits rel{length} X @1").unwrap();
    let graph = super::script::graph(&text);
    assert_eq!(graph.cycles[0].len(), length);
    assert_eq!(graph.tree.nodes[0].below as usize, length - 1);
}
