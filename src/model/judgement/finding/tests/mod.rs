mod adapters;
mod alerts;
mod blocking;
mod expected;
mod leases;
mod queue;
mod redis;
mod row;
mod server;
mod tasks;
mod unserved;

use std::sync::Arc;

use super::*;
use crate::model::backend::{Backend, State};
use crate::model::lock::{Lock, LockMode, LockModes, LockType, VirtualTransaction};
use crate::model::lock_name::LockNames;
use crate::model::snapshot::{Detection, Names, Pooling, Section, Server, Snapshot};
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::task::TaskBoard;
use crate::model::thresholds::Thresholds;
use crate::model::view::View;
use crate::model::wait_graph::{Holder, Queue, Root, TreeNode, WaitGraph, Waiter};

fn now() -> Timestamp {
    Timestamp::from_timestamp(1_700_000_000, 0).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "every time in a row may be missing")]
fn ago(seconds: i64) -> Option<Timestamp> {
    Some(now() - chrono::TimeDelta::seconds(seconds))
}

struct Stage {
    snapshot: Snapshot,
    graph: WaitGraph,
    tasks: TaskBoard,
    leases: crate::model::lease::LeaseBoard,
    queue: crate::model::work_queue::QueueBoard,
    previous: Vec<(Snapshot, WaitGraph)>,
    lock_names: LockNames,
    thresholds: Thresholds,
}

impl Stage {
    fn new() -> Self {
        let mut names = Names::default();
        names.relations.insert((5, 16_384), "accounts".into());
        names.databases.insert(5, "app".into());
        let server = Server {
            host: "db.example.com".into(),
            port: 5432,
            pooling: Pooling::None,
            tls: crate::model::snapshot::Tls::None,
            version_num: 170_002,
            version: "17.2".into(),
            in_recovery: false,
            database: "app".into(),
            datid: 5,
            user: "watcher".into(),
            own_pid: 1,
            connections: 20,
            max_connections: 100,
            max_locks_per_transaction: 64,
            lock_slots: 100,
            deadlocks: 3,
            deadlocks_of: [5].into(),
            started_at: ago(86_400),
            replayed_at: None,
            replay: crate::model::snapshot::WalReplay::default(),
            keepalives: crate::model::snapshot::Keepalives::default(),
            query_size: 1024,
            deadlock_timeout: Some(1.0),
            log_lock_waits: Some(true),
            orphan_grace: None,
            sees_all: true,
        };
        let snapshot = Snapshot {
            taken_at: now(),
            server: Section::fresh(vec![server], now()),
            backends: Section::fresh(Vec::new(), now()),
            locks: Section::fresh(Vec::new(), now()),
            locks_omitted: 0,
            prepared: Section::fresh(Vec::new(), now()),
            detection: Detection::done(now()),
            task_sets: Arc::default(),
            adapters: Arc::default(),
            sources: Arc::default(),
            answers: Vec::new(),
            names: Arc::new(names),
            poll_seconds: 0.0,
        };
        Self {
            snapshot,
            graph: WaitGraph::default(),
            tasks: TaskBoard::default(),
            leases: crate::model::lease::LeaseBoard::default(),
            queue: crate::model::work_queue::QueueBoard::default(),
            previous: Vec::new(),
            lock_names: LockNames::default(),
            thresholds: Thresholds::default(),
        }
    }

    fn backends(mut self, rows: Vec<Backend>) -> Self {
        self.snapshot.backends = Section::fresh(rows, now());
        self
    }

    fn locks(mut self, rows: Vec<Lock>) -> Self {
        self.snapshot.locks = Section::fresh(rows, now());
        self
    }

    fn root(mut self, party: Party, blocked: u32, frees: u32, longest_wait: Option<Timestamp>) -> Self {
        self.graph.roots.push(Root {
            party,
            blocked,
            frees,
            in_turn: blocked - frees,
            still_blocked: 0,
            may_stay_blocked: 0,
            others_must_end: Some(0),
            longest_wait,
        });
        self
    }

    fn queue(mut self, tag: LockTag, holders: &[(i32, LockMode)], waiters: Vec<Waiter>) -> Self {
        let holder = |(pid, mode): &(i32, LockMode)| Holder {
            party: Party::Backend(*pid),
            modes: LockModes::of(*mode),
        };
        self.graph.queues.push(Queue { tag, holders: holders.iter().map(holder).collect(), waiters });
        self
    }

    fn server(mut self, change: impl FnOnce(&mut Server)) -> Self {
        let mut server = self.snapshot.server().unwrap().clone();
        change(&mut server);
        self.snapshot.server = Section::fresh(vec![server], now());
        self
    }

    fn find(&self) -> Vec<Finding> {
        let mut deadlocks = Deadlocks::default();
        for (snapshot, graph) in &self.previous {
            deadlocks.observe(snapshot, graph, &SnapshotIndex::of(snapshot, graph));
        }
        let index = SnapshotIndex::of(&self.snapshot, &self.graph);
        deadlocks.observe(&self.snapshot, &self.graph, &index);
        let view = View {
            snapshot: Some(Arc::new(self.snapshot.clone())),
            graph: Arc::new(self.graph.clone()),
            index: Arc::new(index),
            tasks: Arc::new(self.tasks.clone()),
            leases: Arc::new(self.leases.clone()),
            queue: Arc::new(self.queue.clone()),
            lock_names: Arc::new(self.lock_names.clone()),
            expected: self.thresholds.expected.as_slice().into(),
            ..View::default()
        };
        let new_roots = NewRoots::default();
        let (view, thresholds) = (view.with_snapshot().unwrap(), &self.thresholds);
        find(&CheckInput { view, deadlocks: &deadlocks, new_roots: &new_roots, thresholds })
    }

    fn only(&self) -> Finding {
        let findings = self.find();
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.into_iter().next().unwrap()
    }
}

fn backend(pid: i32, state: State) -> Backend {
    Backend {
        pid,
        backend_start: ago(1000),
        datid: Some(5),
        database: Some("app".into()),
        user: Some("app".into()),
        backend_type: Some("client backend".into()),
        state: Some(state),
        wait_event_type: Some("Client".into()),
        wait_event: Some("ClientRead".into()),
        ..Backend::default()
    }
}

fn waiter(pid: i32, mode: LockMode, wait_start: Option<Timestamp>) -> Waiter {
    Waiter { party: Party::Backend(pid), pid, mode, wait_start, lock: 0, exact: None }
}

fn accounts() -> LockTag {
    LockTag::new(LockType::Relation).with_database(5).with_relation(16_384)
}

fn advisory(key: u32) -> LockTag {
    LockTag::new(LockType::Advisory).with_database(5).with_classid(0).with_objid(key).with_objsubid(1)
}

fn lock(tag: LockTag, pid: Option<i32>, vxid: (i32, u32)) -> Lock {
    Lock {
        tag,
        mode: LockMode::Exclusive,
        granted: true,
        pid,
        virtualtransaction: VirtualTransaction { proc_number: vxid.0, local_xid: vxid.1 },
        wait_start: None,
    }
}

#[test]
fn nothing_is_wrong_with_a_quiet_server() {
    assert_eq!(Stage::new().backends(vec![backend(4, State::Active)]).find(), []);
}

#[test]
fn findings_are_sorted_worst_first() {
    let stage = Stage::new()
        .backends(vec![
            Backend { state_change: ago(5), ..backend(10, State::IdleInTransaction) },
            backend(11, State::Active),
            Backend { state_change: ago(61), ..backend(12, State::IdleInTransaction) },
        ])
        .root(Party::Backend(10), 9, 1, ago(4))
        .root(Party::Backend(11), 2, 2, ago(5))
        .root(Party::Backend(12), 2, 2, ago(6))
        .root(Party::Backend(13), 2, 2, ago(7))
        .root(Party::Backend(14), 2, 2, None);
    let findings = stage.find();
    let found: Vec<_> = findings.iter().map(|finding| (finding.severity, &*finding.summary)).collect();
    assert_eq!(
        found,
        [
            (Severity::Critical, "12 idle in transaction 1m01s, blocks 2: 2 continue now"),
            (Severity::Warning, "10 idle in transaction 5.0s, blocks 9: 1 continues now, 8 in turn"),
            (Severity::Warning, "11 active (Client ClientRead), blocks 2: 2 continue now"),
            (Severity::Info, "13, blocks 2: 2 continue now"),
            (Severity::Info, "14, blocks 2: 2 continue now"),
        ]
    );
}

/// A root that waits for a standby, a page or its client may never continue: it is a warning at once.
#[test]
fn a_root_that_does_nothing_is_a_warning() {
    for (event, severity) in [
        (Some("SyncRep"), Severity::Warning),
        (Some("BufferPin"), Severity::Warning),
        (Some("ProcSignalBarrier"), Severity::Warning),
        (Some("ClientWrite"), Severity::Warning),
        (Some("DataFileRead"), Severity::Info),
        (None, Severity::Info),
    ] {
        let root = Backend { wait_event: event.map(Into::into), ..backend(11, State::Active) };
        let found = Stage::new().backends(vec![root]).root(Party::Backend(11), 2, 2, ago(5)).find();
        let severities: Vec<_> =
            found.iter().filter(|it| it.check == "root_blocker").map(|it| it.severity).collect();
        assert_eq!(severities, [severity], "{event:?}");
    }
}

/// The startup process has no statement: how long it has waited is not known.
#[test]
fn a_conflict_of_recovery_has_the_age_of_the_last_replayed_transaction() {
    for (replayed, severity, end) in [
        (None, Severity::Info, "(RecoveryConflictTablespace)"),
        (ago(5), Severity::Info, "; the last transaction was replayed 5.0s ago"),
        (ago(61), Severity::Warning, "; the last transaction was replayed 1m01s ago"),
    ] {
        let startup = Backend {
            backend_type: Some("startup".into()),
            backend_start: ago(9000),
            query_start: None,
            state_change: None,
            wait_event: Some("RecoveryConflictTablespace".into()),
            ..backend(11, State::Active)
        };
        let found =
            Stage::new().backends(vec![startup]).server(|server| server.replayed_at = replayed).find();
        let found = found.iter().find(|finding| finding.check == "wait_event").unwrap();
        assert!(found.severity == severity && found.summary.ends_with(end), "{found:?}");
    }
}

#[test]
fn a_check_lists_a_hundred_and_counts_the_rest() {
    let mut stage = Stage::new();
    for pid in 0..1_234 {
        stage = stage.root(Party::Backend(pid), 1, 1, ago(1));
    }
    let findings = stage.find();
    assert_eq!(findings.len(), LIMIT + 1);
    assert_eq!(&*findings.last().unwrap().summary, "1,134 more findings of root_blocker are not listed");
}

#[test]
fn a_summary_holds_no_control_character() {
    let hostile = "x\x1b[2J\n\u{202e}y";
    let mut stage = Stage::new()
        .backends(vec![Backend {
            backend_type: Some(hostile.into()),
            wait_event: Some(hostile.into()),
            ..backend(7, State::Active)
        }])
        .root(Party::Backend(7), 1, 1, None)
        .queue(advisory(815), &[(7, LockMode::Exclusive)], vec![waiter(8, LockMode::Exclusive, ago(99))]);
    stage.lock_names = LockNames::new([(crate::model::lock_key::LockKey::Bigint(815), hostile.into())]);
    stage.snapshot.prepared = stage.snapshot.prepared.stale(hostile.into());
    let findings = stage.find();
    assert_eq!(findings.len(), 3);
    for finding in findings {
        for text in [&finding.summary, &finding.short] {
            assert_eq!(crate::text::one_line(text), **text);
        }
        assert!(finding.summary.contains("x␛[2J <U+202E>y"), "{}", finding.summary);
    }
}
