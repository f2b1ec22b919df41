//! A small snapshot for the tests: an idle holder of an advisory lock and two waiters, and a prepared transaction that a
//! session waits for.

use std::sync::Arc;

use crate::model::backend::{Backend, State};
use crate::model::finding::{Finding, Severity, Subject};
use crate::model::lock::{Lock, LockMode, LockTag, LockType, Prepared, VirtualTransaction};
use crate::model::snapshot::{Detection, Names, Pooling, Section, Server, Snapshot};
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::view::{ConnectionState, View};
use crate::model::wait_graph::{Input, Party, WaitGraph};
use crate::model::{Text, Timestamp};

pub(super) const XID: u32 = 757;
pub(super) const PREPARED: VirtualTransaction = VirtualTransaction { proc_number: -1, local_xid: XID };

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "every column may be NULL")]
fn text(text: &str) -> Option<Text> {
    Some(text.into())
}

fn backend(pid: i32, state: State, query: &str) -> Backend {
    Backend {
        pid,
        backend_start: Some(at(0)),
        datid: Some(5),
        database: text("app"),
        user: text("app"),
        usesysid: Some(10),
        application: text("web\u{1b}[31m"),
        client: text("[local]"),
        client_port: Some(-1),
        backend_type: text("client backend"),
        state: Some(state),
        wait_event_type: text("Client"),
        wait_event: text("ClientRead"),
        xact_start: Some(at(10)),
        query_start: Some(at(20)),
        state_change: Some(at(30)),
        backend_xid: Some(700),
        query_id: Some(i64::MIN),
        query: Some(query.into()),
        ..Backend::default()
    }
}

fn lock(tag: LockTag, mode: LockMode, pid: Option<i32>, since: Option<i64>) -> Lock {
    Lock {
        tag,
        mode,
        granted: since.is_none(),
        pid,
        virtualtransaction: pid.map_or(PREPARED, |pid| VirtualTransaction { proc_number: pid, local_xid: 1 }),
        wait_start: since.map(at),
    }
}

pub(crate) fn view() -> View {
    let key = LockTag::new(LockType::Advisory)
        .with_database(5)
        .with_classid(0)
        .with_objid(72_707_369)
        .with_objsubid(1);
    let table = LockTag::new(LockType::Relation).with_database(5).with_relation(16_384);
    let xid = LockTag::new(LockType::TransactionId).with_transactionid(XID);
    let quiet = table.with_relation(99);
    let locks = vec![
        lock(quiet, LockMode::AccessShare, Some(1), None),
        lock(key, LockMode::Exclusive, Some(1), None),
        lock(key, LockMode::Exclusive, Some(2), Some(40)),
        lock(key, LockMode::Exclusive, Some(3), Some(50)),
        lock(xid, LockMode::Exclusive, None, None),
        lock(table, LockMode::AccessExclusive, None, None),
        lock(table, LockMode::AccessShare, Some(4), Some(60)),
    ];
    let backends = vec![
        backend(1, State::IdleInTransaction, "SELECT pg_advisory_lock(72707369)"),
        backend(2, State::Active, "SELECT 1\n;"),
        backend(3, State::Active, "SELECT 2"),
        backend(4, State::Active, "TABLE accounts"),
    ];
    let graph =
        WaitGraph::build(Input { locks: &locks, backends: &backends, answers: &[], ..Input::default() });
    let names = Names {
        relations: [((5, 16_384), "accounts".into())].into_iter().collect(),
        databases: [(5, "app".into())].into_iter().collect(),
        ..Names::default()
    };
    let taken_at = at(100);
    let snapshot = Snapshot {
        taken_at,
        server: Section::fresh(vec![server()], taken_at),
        backends: Section::fresh(backends, taken_at),
        locks: Section::fresh(locks, taken_at),
        locks_omitted: 0,
        prepared: Section::fresh(vec![prepared()], taken_at),
        detection: Detection::done(taken_at),
        task_sets: Arc::default(),
        adapters: Arc::default(),
        sources: Arc::default(),
        answers: Vec::new(),
        names: Arc::new(names),
        poll_seconds: 0.01,
    };
    View {
        id: 1,
        link: ConnectionState::Live,
        index: Arc::new(SnapshotIndex::of(&snapshot, &graph)),
        snapshot: Some(Arc::new(snapshot)),
        graph: Arc::new(graph),
        findings: Arc::new(vec![finding()]),
        ..View::default()
    }
}

fn server() -> Server {
    Server {
        host: "db.example.com".into(),
        port: 5432,
        pooling: Pooling::None,
        tls: crate::model::snapshot::Tls::None,
        version_num: 170_002,
        version: "17.2".into(),
        in_recovery: false,
        database: "app".into(),
        datid: 5,
        user: "monitor".into(),
        own_pid: 9,
        connections: 4,
        max_connections: 100,
        max_locks_per_transaction: 64,
        lock_slots: 7_808,
        deadlocks: 3,
        deadlocks_of: [5].into(),
        started_at: None,
        replayed_at: None,
        replay: crate::model::snapshot::WalReplay::default(),
        keepalives: crate::model::snapshot::Keepalives::default(),
        query_size: 1024,
        deadlock_timeout: Some(1.0),
        log_lock_waits: Some(true),
        orphan_grace: None,
        sees_all: true,
    }
}

fn prepared() -> Prepared {
    Prepared {
        transaction: XID,
        gid: "order 7".into(),
        prepared: Some(at(5)),
        owner: text("app"),
        database: text("app"),
    }
}

fn finding() -> Finding {
    Finding {
        check: "prepared",
        severity: Severity::Critical,
        summary: "prepared transaction 'order 7' blocks 1".into(),
        short: "prepared blocks 1".into(),
        subject: Subject::Party(Party::Prepared(PREPARED)),
        blocked: 1,
        since: None,
        row: None,
        began: None,
        ended: None,
        help: None,
        expected: None,
        about: "".into(),
        statement: None,
        details: Vec::new(),
    }
}
