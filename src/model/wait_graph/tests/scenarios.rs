//! Small scans and what must follow from them.

use super::script::{Scan, cycles, edges, graph, names, roots, tree, vxid};
use crate::model::wait_graph::{Party, WaitGraph};

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
        what: "nobody waits",
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
        what: "one of two sharers frees nobody",
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
        what: "DDL in the queue blocks a reader, whom the holder does not",
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
        what: "row locks: the first waits for the transaction, the next for the row, locks on other rows are nothing",
        scan: "10 holds xid7 X; 11 holds tup1 X; 11 waits xid7 S @1; 12 waits tup1 X @2; 13 holds tup2 X;
               13 holds xid9 X; 14 waits xid9 S @3",
        edges: "11-10 12-11 14-13",
        roots: "10:2/1 13:1/1",
        cycles: "",
        tree: "10(11(12)) 13(14)",
    },
    Case {
        what: "a deadlock not yet resolved, and somebody behind it",
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
        what: "two sharers who want more wait for each other",
        scan: "10 holds A S; 11 holds A S; 10 waits A X @1; 11 waits A X @2",
        edges: "10-11 10~11 11-10",
        roots: "",
        cycles: "10 11",
        tree: "10(11)",
    },
    Case {
        what: "who already holds the lock goes before those that wait for it",
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
        what: "a later waiter that fits is granted past one that does not",
        scan: "10 holds rel16 AX; 9 holds rel16 AS; 11 waits rel16 AX @1; 12 waits rel16 RS @2",
        edges: "11-10 11-9 12-10 12~11",
        roots: "10:2/0 9:2/0",
        cycles: "",
        tree: "10(11+1 12+1) 9",
    },
    Case {
        what: "the walk goes on past those it cannot wake",
        scan: "10 holds rel16 SRX; 9 holds rel16 RS; 11 waits rel16 X @1; 12 waits rel16 RX @2; 13 waits rel16 AS @3",
        edges: "11-10 11-9 12-10 12~11",
        roots: "10:2/0 9:2/0",
        cycles: "",
        tree: "10(11+1 12+1) 9 13",
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
    for case in CASES {
        let graph = graph(case.scan);
        assert_eq!(edges(&graph), case.edges, "edges: {}", case.what);
        assert_eq!(roots(&graph), case.roots, "roots: {}", case.what);
        assert_eq!(cycles(&graph), case.cycles, "cycles: {}", case.what);
        assert_eq!(tree(&graph), case.tree, "tree: {}", case.what);
    }
}
