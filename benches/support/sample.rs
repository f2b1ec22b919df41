//! Views made by hand, for the benches and for the tests of the screens.

use std::sync::Arc;

use locktop::model::backend::{Backend, State};
use locktop::model::finding::{self, Finding};
use locktop::model::held::{self, HeldSince};
use locktop::model::id_generator::IdGenerator;
use locktop::model::lease::{self, Lease};
use locktop::model::lock::{Lock, LockMode, LockTag, LockType, Prepared, VirtualTransaction};
use locktop::model::lock_name::LockNames;
use locktop::model::lock_waits::WaitCounter;
use locktop::model::rate_limit::RateLimit;
use locktop::model::snapshot::{Detection, Names, Section, Server, Snapshot};
use locktop::model::snapshot_index::SnapshotIndex;
use locktop::model::source_tables::CountedWaits;
use locktop::model::table_rows::TaskWorker;
use locktop::model::task::{Execution, Schedule, TaskBoard, TaskKey, TaskWatch};
use locktop::model::thresholds::Thresholds;
use locktop::model::view::{ConnectionState, Sample, Series, View};
use locktop::model::wait_graph::{Input, WaitGraph};
use locktop::model::work_queue::{self, Item, StateCount};
use locktop::model::{Text, Timestamp, adapter};

#[path = "sample_systems.rs"]
pub mod systems;

/// OID of the database of all samples.
const DATABASE: u32 = 16384;

/// OID of the table of tasks.
const TASKS: u32 = 3001;

/// The server's clock in a sample, `seconds` after the start.
pub fn at(seconds: f64) -> Timestamp {
    let start = "2026-11-20T14:02:31Z".parse::<Timestamp>().unwrap_or_default();
    start + chrono::TimeDelta::milliseconds((seconds * 1000.0) as i64)
}

/// A snapshot under construction.
#[derive(Default)]
pub struct Builder {
    pub backends: Vec<Backend>,
    pub locks: Vec<Lock>,
    pub prepared: Vec<Prepared>,
    pub relations: Vec<(u32, &'static str)>,
    pub tasks: Vec<Schedule>,
    pub executions: Vec<Execution>,
    pub leases: Vec<Lease>,
    pub counts: Vec<StateCount>,
    pub items: Vec<Item>,
    pub limits: Vec<RateLimit>,
    pub generators: Vec<IdGenerator>,
    pub workers: Vec<TaskWorker>,
    pub contended: Vec<CountedWaits>,
    /// The work queue is the published one, whose lock keys are the raw ids.
    pub raw_queue: bool,
    pub now: f64,
}

impl Builder {
    /// A client session. `since` is how many seconds ago its state began.
    pub fn session(&mut self, pid: i32, who: &str, state: State, since: f64, query: &str) -> &mut Backend {
        let (user, application) = who.split_once('@').unwrap_or((who, ""));
        let began = Some(at(self.now - since));
        self.backends.push(Backend {
            pid,
            backend_start: Some(at(-3600.0)),
            datid: Some(DATABASE),
            database: Some("app".into()),
            user: Some(user.into()),
            usesysid: Some(10),
            application: Some(application.into()),
            client: Some("10.0.3.17".into()),
            client_port: Some(40_000 + pid),
            backend_type: Some("client backend".into()),
            state: Some(state),
            xact_start: (state != State::Idle).then_some(began).flatten(),
            query_start: began,
            state_change: began,
            query: Some(query.into()),
            ..Backend::default()
        });
        let last = self.backends.len() - 1;
        &mut self.backends[last]
    }

    /// A lock row; `waits` is how many seconds ago it began to wait.
    pub fn lock(&mut self, pid: i32, tag: LockTag, mode: LockMode, waits: Option<f64>) {
        let wait_start = waits.map(|waits| at(self.now - waits));
        if waits.is_some()
            && let Some(backend) = self.backends.iter_mut().find(|backend| backend.pid == pid)
        {
            backend.wait_event_type = Some("Lock".into());
            backend.wait_event = Some(tag.locktype().as_str().into());
        }
        self.locks.push(Lock {
            tag,
            mode,
            granted: waits.is_none(),
            pid: Some(pid),
            virtualtransaction: VirtualTransaction { proc_number: pid, local_xid: 1 },
            wait_start,
        });
    }

    /// A prepared transaction that holds a lock.
    pub fn prepare(&mut self, xid: u32, gid: &str, tag: LockTag, mode: LockMode) {
        let xact = VirtualTransaction { proc_number: -1, local_xid: xid };
        let own = LockTag::new(LockType::TransactionId).with_transactionid(xid);
        for (tag, mode) in [(own, LockMode::Exclusive), (tag, mode)] {
            self.locks.push(Lock {
                tag,
                mode,
                granted: true,
                pid: None,
                virtualtransaction: xact,
                wait_start: None,
            });
        }
        self.prepared.push(Prepared {
            transaction: xid,
            gid: gid.into(),
            prepared: Some(at(self.now - 11_000.0)),
            owner: Some("billing".into()),
            database: Some("app".into()),
        });
    }

    pub fn snapshot(mut self) -> Snapshot {
        let taken_at = at(self.now);
        let task_sets = self.task_sets();
        let systems = self.systems();
        let relations =
            self.relations.iter().map(|(oid, name)| ((DATABASE, *oid), Text::from(*name))).collect();
        let databases = [(DATABASE, Text::from("app"))].into_iter().collect();
        Snapshot {
            taken_at,
            server: Section::fresh(vec![server(self.backends.len())], taken_at),
            backends: Section::fresh(self.backends, taken_at),
            locks: Section::fresh(self.locks, taken_at),
            locks_omitted: 0,
            prepared: Section::fresh(self.prepared, taken_at),
            detection: Detection::done(taken_at),
            task_sets: Arc::new(task_sets),
            adapters: Arc::default(),
            sources: Arc::new(systems),
            answers: Vec::new(),
            names: Arc::new(Names { relations, databases, ..Names::default() }),
            poll_seconds: 0.004,
        }
    }

    pub fn view(self) -> View {
        view(self.snapshot(), 1)
    }
}

fn server(connections: usize) -> Server {
    Server {
        host: "db.example.com".into(),
        port: 5432,
        pooling: locktop::model::snapshot::Pooling::None,
        tls: locktop::model::snapshot::Tls::None,
        version_num: 170_002,
        version: "17.2".into(),
        in_recovery: false,
        database: "app".into(),
        datid: DATABASE,
        user: "locktop".into(),
        own_pid: 1,
        connections: u32::try_from(connections).unwrap_or(u32::MAX),
        max_connections: 500,
        max_locks_per_transaction: 64,
        lock_slots: 64 * 530,
        deadlocks: 3,
        deadlocks_of: [5].into(),
        started_at: Some(at(-1_036_800.0)),
        replayed_at: None,
        replay: locktop::model::snapshot::WalReplay::default(),
        keepalives: locktop::model::snapshot::Keepalives::default(),
        query_size: 1024,
        deadlock_timeout: Some(1.0),
        log_lock_waits: Some(true),
        orphan_grace: None,
        sees_all: true,
    }
}

/// The view of a snapshot, as the feed would build it.
pub fn view(snapshot: Snapshot, id: u64) -> View {
    let graph = WaitGraph::build(Input {
        locks: snapshot.locks.last_rows(),
        backends: snapshot.backends.last_rows(),
        answers: &snapshot.answers,
        ..Default::default()
    });
    let index = SnapshotIndex::of(&snapshot, &graph);
    let tasks = board(&snapshot);
    let taken = snapshot.taken_at;
    let samples = (0..60u32)
        .map(|back| Sample {
            at: taken - chrono::TimeDelta::seconds(i64::from(59 - back)),
            waiting: graph.waiting * back / 59,
        })
        .collect();
    let held_since = snapshot
        .locks
        .last_rows()
        .iter()
        .filter(|lock| lock.granted && lock.tag.locktype() == LockType::Advisory)
        .filter_map(|lock| Some(((lock.pid?, lock.tag), HeldSince { proved: at(-41.0), seen: at(-30.0) })))
        .collect();
    let runs_since = held::runs(&tasks, &snapshot);
    let lock_waits = WaitCounter::default().observe(&snapshot, &graph, &index, &LockNames::default());
    let waiting_since = (graph.waiting > 0).then(|| at(-171.0));
    let thresholds = Thresholds::default();
    let mut view = View {
        id,
        link: ConnectionState::Live,
        tasks: Arc::new(tasks),
        leases: Arc::new(lease::LeaseBoard::of(&snapshot)),
        adapters: Arc::new(adapter::AdapterWatch::default().evaluate(&snapshot, &thresholds)),
        queue: Arc::new(work_queue::QueueBoard::of(&snapshot, &thresholds)),
        snapshot: Some(Arc::new(snapshot)),
        graph: Arc::new(graph),
        index: Arc::new(index),
        series: Arc::new(Series { samples, waiting_since, ..Series::default() }),
        held_since: Arc::new(held_since),
        runs_since: Arc::new(runs_since),
        lock_waits,
        ..View::default()
    };
    view.findings = Arc::new(findings(&view, &thresholds));
    view
}

/// The tasks as evaluated by two snapshots a minute apart.
fn board(snapshot: &Snapshot) -> TaskBoard {
    let (mut watch, limits) = (TaskWatch::default(), Thresholds::default());
    let earlier =
        Snapshot { taken_at: snapshot.taken_at - chrono::TimeDelta::seconds(60), ..snapshot.clone() };
    let _ = watch.evaluate(&earlier, &limits);
    watch.evaluate(snapshot, &limits)
}

fn findings(view: &View, thresholds: &Thresholds) -> Vec<Finding> {
    let (deadlocks, new_roots) = (finding::Deadlocks::default(), finding::NewRoots::default());
    let view = view.with_snapshot().unwrap();
    finding::find(&finding::CheckInput { view, deadlocks: &deadlocks, new_roots: &new_roots, thresholds })
}

pub fn relation(oid: u32) -> LockTag {
    LockTag::new(LockType::Relation).with_database(DATABASE).with_relation(oid)
}

pub fn advisory(key: i64) -> LockTag {
    let key = key.cast_unsigned();
    LockTag::new(LockType::Advisory)
        .with_database(DATABASE)
        .with_classid((key >> 32) as u32)
        .with_objid(key as u32)
        .with_objsubid(1)
}

/// An incident: an idle transaction, a migration that waits for it, and all others that wait for the migration; an
/// advisory lock held by an idle session; a prepared transaction that blocks; and names that a screen must tolerate.
pub fn incident(now: f64) -> Builder {
    let mut b =
        Builder { now, relations: vec![(2001, "accounts"), (2002, "报表生成")], ..Builder::default() };
    let accounts = relation(2001);
    b.session(
        4312,
        "app@web-3",
        State::IdleInTransaction,
        192.0 + now,
        "SELECT * FROM accounts WHERE id = 7 FOR UPDATE",
    )
    .backend_xid = Some(771);
    b.lock(4312, accounts, LockMode::RowExclusive, None);
    b.session(4410, "deploy@ci", State::Active, 171.0 + now, "ALTER TABLE accounts ADD note text");
    b.lock(4410, accounts, LockMode::AccessExclusive, Some(171.0 + now));
    for at in 0..16 {
        let pid = 4466 + at;
        let since = 168.0 - f64::from(at) + now;
        b.session(
            pid,
            &format!("app@web-{}", at % 4),
            State::Active,
            since,
            "SELECT balance FROM accounts WHERE id = $1",
        );
        b.lock(pid, accounts, LockMode::AccessShare, Some(since));
    }
    let migrate = advisory(72_707_369);
    b.session(4977, "deploy@prisma", State::Idle, 41.0 + now, "SELECT pg_advisory_lock(72707369)");
    b.lock(4977, migrate, LockMode::Exclusive, None);
    for pid in [4980, 4981] {
        b.session(pid, "deploy@prisma", State::Active, 30.0 + now, "SELECT pg_advisory_lock(72707369)");
        b.lock(pid, migrate, LockMode::Exclusive, Some(30.0 + now));
    }
    b.prepare(900, "order-17", relation(2002), LockMode::AccessExclusive);
    b.session(
        5001,
        "报表@报表生成任务\u{1b}[31m",
        State::Active,
        12.0 + now,
        "SELECT '宽字符',\n\t1\u{202e}",
    );
    b.lock(5001, relation(2002), LockMode::AccessShare, Some(12.0 + now));
    b.session(5100, "app@idle", State::Idle, 600.0 + now, "COMMIT");
    b
}

/// `waiters` sessions wait for one advisory lock; `locks` more are held.
pub fn crowd(waiters: u32, locks: u32, now: f64) -> Builder {
    let mut b = Builder { now, ..Builder::default() };
    b.session(100, "app@holder", State::Idle, 90.0 + now, "SELECT pg_advisory_lock(1)");
    b.lock(100, advisory(1), LockMode::Exclusive, None);
    for at in 0..locks {
        b.lock(100, advisory(1_000_000 + i64::from(at)), LockMode::Exclusive, None);
    }
    for at in 0..waiters {
        let pid = 1000 + at.cast_signed();
        let since = 60.0 - f64::from(at) * 0.01 + now;
        b.session(pid, "app@worker", State::Active, since, "SELECT pg_advisory_lock(1)");
        b.lock(pid, advisory(1), LockMode::Exclusive, Some(since));
    }
    b
}

/// Three transactions read a table that a migration waits for, and two sessions wait behind it.
pub fn shared(now: f64) -> Builder {
    let mut b = Builder { now, ..Builder::default() };
    for (pid, since) in [(30, 40.0), (31, 39.0), (32, 38.0)] {
        b.session(pid, "app@report", State::IdleInTransaction, since + now, "SELECT count(*) FROM accounts");
        b.lock(pid, relation(2001), LockMode::AccessShare, None);
    }
    b.session(40, "deploy@ci", State::Active, 20.0 + now, "ALTER TABLE accounts ADD COLUMN note text");
    b.lock(40, relation(2001), LockMode::AccessExclusive, Some(20.0 + now));
    for pid in [41, 42] {
        b.session(pid, "app@web", State::Active, 10.0 + now, "SELECT 1 FROM accounts");
        b.lock(pid, relation(2001), LockMode::AccessShare, Some(10.0 + now));
    }
    b
}

/// The incident, and task tables with a task in every state.
pub fn jobs(now: f64) -> Builder {
    let mut b = incident(now);
    b.task(1, "数据同步任务", "data_sync", 600.0, 130.0 + now);
    b.task(3, "数据清理任务", "cleanup", 600.0, 725.0 + now);
    b.task(4, "billing close", "sql", 300.0, 720.0 + now);
    b.task(5, "refresh the materialized views of every tenant", "sql", 300.0, 185.0 + now);
    b.task(6, "send digests", "sql", 300.0, -240.0);
    b.task(7, "报表生成任务", "report_gen", 1800.0, 2462.0 + now);
    b.task(8, "rotate partitions", "sql", 120.0, -250.0);
    b.task(9, "old export", "sql", 120.0, 9000.0).enabled = Some(false);
    b.task(10, "warm cache", "sql", 120.0, 4.0);
    b.execution(7, "worker-2", "failed", 6000.0, Some(6099)).error =
        Some("could not serialize access\ndue to concurrent update \u{1b}[31m".into());
    let orphan = b.execution(7, "worker-7", "running", 2462.0 + now, Some(6107));
    orphan.heartbeat_at = Some(at(-2460.0));
    orphan.attempt = Some(2);
    for (task, worker, pid, since) in [(1, "worker-1", 6101, 130.0), (3, "worker-3", 6103, 725.0)] {
        b.execution(task, worker, "running", since + now, Some(pid));
        b.session(pid, &format!("jobs@{worker}"), State::Idle, 3.0, "UPDATE task_execution_log");
        b.lock(pid, advisory(TaskKey::Own(task).number()), LockMode::Exclusive, None);
    }
    b.execution(8, "worker-1", "completed", 1150.0, Some(6101));
    b.session(6106, "jobs@worker-6", State::Idle, 30.0 + now, "SELECT pg_advisory_lock($1)");
    b.lock(6106, advisory(TaskKey::Own(6).number()), LockMode::Exclusive, None);
    b
}

/// Sessions that wait for a lock of a root: the root, the table, the pids of the waiters, the first and the last
/// second.
struct Chain {
    root: (i32, &'static str, &'static str),
    table: u32,
    waiters: std::ops::Range<i32>,
    from: i32,
    until: i32,
}

/// Three minutes: a forgotten transaction twice, the second until the end; an ALTER TABLE; and two short waits for a
/// lock of a worker.
fn chains() -> Vec<Chain> {
    const UPDATE: &str =
        "UPDATE accounts SET balance = balance - 100 WHERE id = 42 /*controller='pay',action='book'*/";
    const ALTER: &str = "ALTER TABLE orders ADD COLUMN note text DEFAULT '\u{1b}[31m'";
    let chain = |root, table, waiters, from, until| Chain { root, table, waiters, from, until };
    vec![
        chain((4288, "app@billing", UPDATE), 1, 100..111, 5, 40),
        chain((4312, "app@billing", UPDATE), 1, 200..217, 90, 180),
        chain((4290, "deploy@migrate", ALTER), 2, 300..309, 60, 120),
        chain((4295, "app@web", "SELECT id FROM jobs WHERE id IN (1, 2) FOR UPDATE"), 3, 400..401, 20, 22),
        chain((4296, "app@web", "SELECT id FROM jobs WHERE id IN (3) FOR UPDATE"), 3, 401..403, 130, 131),
    ]
}

/// A second of three minutes in which the [`chains`] made sessions wait.
pub fn blame(second: i32) -> Builder {
    let now = f64::from(second);
    let mut builder = Builder { now, ..Builder::default() };
    builder.relations = vec![(1, "accounts"), (2, "orders"), (3, "jobs")];
    for Chain { root: (pid, who, query), table, waiters, from, until } in chains() {
        if !(from - 3..until).contains(&second) {
            continue;
        }
        let since = now - f64::from(from - 3);
        let state = if pid == 4290 { State::Active } else { State::IdleInTransaction };
        let root = builder.session(pid, who, state, since, query);
        if second < from {
            root.query = Some("SELECT balance FROM accounts WHERE id = 42".into());
        } else {
            root.query_start = Some(at(f64::from(from) - 1.0));
        }
        builder.lock(pid, relation(table), LockMode::AccessExclusive, None);
        for (place, waiter) in waiters.enumerate() {
            let waited = now - f64::from(from) - 0.5 * f64::from(u32::try_from(place).unwrap());
            if waited >= 0.0 {
                builder.session(waiter, "app@web", State::Active, waited, "SELECT 1");
                builder.lock(waiter, relation(table), LockMode::RowExclusive, Some(waited));
            }
        }
    }
    builder
}
