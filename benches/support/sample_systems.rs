//! The lock systems of a sample: tasks, leases, the work queue, rate limits and id generators.

use std::sync::Arc;

use locktop::model::Timestamp;
use locktop::model::backend::State;
use locktop::model::id_generator::IdGenerator;
use locktop::model::lease::Lease;
use locktop::model::lock::{LockMode, LockType};
use locktop::model::rate_limit::RateLimit;
use locktop::model::snapshot::Section;
use locktop::model::source_tables::{Source, SourceTables, TableRows};
use locktop::model::task::{Execution, Schedule, TaskKey, TaskSet, TaskTables};
use locktop::model::work_queue::{Item, StateCount};

use super::{Builder, TASKS, at, jobs, relation};

/// OIDs of the tables of the other lock systems.
const LEASES: u32 = 3010;
const QUEUE: u32 = 3011;
const LIMITS: u32 = 3012;
const GENERATORS: u32 = 3013;
const WORKERS: u32 = 3014;
const CONTENDED: u32 = 3015;

impl Builder {
    /// Locktop's own tables, if the snapshot has tasks.
    pub(super) fn task_sets(&mut self) -> Vec<TaskSet> {
        let tables = TaskTables {
            table: TASKS,
            log: Some(TASKS + 1),
            schedules: "locktop.scheduled_tasks".into(),
            executions: Some("locktop.task_execution_log".into()),
            own_keys: true,
            ..TaskTables::default()
        };
        let (tasks, executions) = (std::mem::take(&mut self.tasks), std::mem::take(&mut self.executions));
        let section = |rows| Section::fresh(rows, at(self.now));
        let set = || {
            TaskSet::new(Arc::new(tables), section(tasks.clone()), Section::fresh(executions, at(self.now)))
        };
        if tasks.is_empty() { Vec::new() } else { vec![set()] }
    }

    /// A task that was due `due` seconds ago; if negative, it is due in the future.
    pub fn task(&mut self, id: i64, name: &str, kind: &str, timeout: f64, due: f64) -> &mut Schedule {
        self.tasks.push(Schedule {
            id,
            name: Some(name.into()),
            kind: Some(kind.into()),
            cron: Some("*/15 * * * *".into()),
            enabled: Some(true),
            last_run_at: Some(at(self.now - 900.0)),
            next_run_at: Some(at(self.now - due)),
            priority: Some(5),
            timeout: Some(timeout),
            max_attempts: Some(3),
            attempts: Some(0),
            ..Schedule::default()
        });
        let last = self.tasks.len() - 1;
        &mut self.tasks[last]
    }

    /// An execution that began `since` seconds ago; while it runs, it belongs to session `pid`.
    pub fn execution(
        &mut self,
        task_id: i64,
        worker: &str,
        status: &str,
        since: f64,
        pid: Option<i32>,
    ) -> &mut Execution {
        let ended = (status != "running").then(|| at(self.now - since + 75.0));
        self.executions.push(Execution {
            id: 900 + i64::try_from(self.executions.len()).unwrap_or_default(),
            task_id,
            worker: Some(worker.into()),
            status: Some(status.into()),
            started_at: Some(at(self.now - since)),
            completed_at: ended,
            lock_id: TaskKey::own(task_id).map(TaskKey::number),
            backend_pid: pid,
            backend_start: Some(at(-3600.0)),
            attempt: Some(1),
            heartbeat_at: Some(at(self.now - since.min(3.0))),
            ..Execution::default()
        });
        let last = self.executions.len() - 1;
        &mut self.executions[last]
    }

    /// A table for each kind that has rows.
    pub(super) fn systems(&mut self) -> SourceTables {
        let now = at(self.now);
        let mut systems = SourceTables {
            leases: table(LEASES, "locktop.distlock", std::mem::take(&mut self.leases), now),
            counts: table(QUEUE, "locktop.task_queue", std::mem::take(&mut self.counts), now),
            items: table(QUEUE, "locktop.task_queue", std::mem::take(&mut self.items), now),
            limits: table(LIMITS, "locktop.rate_limit", std::mem::take(&mut self.limits), now),
            generators: table(GENERATORS, "locktop.id_generator", std::mem::take(&mut self.generators), now),
            workers: table(WORKERS, "locktop.locktop_workers", std::mem::take(&mut self.workers), now),
            contended: table(CONTENDED, "locktop.contended_locks", std::mem::take(&mut self.contended), now),
            ..SourceTables::default()
        };
        for items in &mut systems.items {
            items.source = Arc::new(Source { own_keys: !self.raw_queue, ..(*items.source).clone() });
        }
        systems
    }

    /// Number of items of the work queue per status.
    pub fn count(&mut self, status: &str, count: u64, is_more: bool) -> &mut StateCount {
        self.counts.push(StateCount { status: Some(status.into()), count, is_more, ..StateCount::default() });
        let last = self.counts.len() - 1;
        &mut self.counts[last]
    }

    /// An item of the work queue whose state began `since` seconds ago. Its session does not exist.
    pub fn item(&mut self, id: i64, name: &str, status: &str, since: f64) -> &mut Item {
        let began = Some(at(self.now - since));
        let is_taken = status != "pending";
        self.items.push(Item {
            id,
            name: Some(name.into()),
            status: Some(status.into()),
            worker: is_taken.then(|| format!("worker-{}", id % 10).into()),
            created_at: Some(at(self.now - since - if is_taken { 30.0 } else { 0.0 })),
            started_at: began.filter(|_| is_taken),
            completed_at: began.filter(|_| status == "failed"),
            attempt: Some(i64::from(is_taken)),
            max_attempts: Some(3),
            failures: None,
            backend_pid: is_taken.then_some(99),
            backend_start: is_taken.then(|| at(-3600.0)),
            heartbeat_at: began.filter(|_| is_taken),
            error: None,
            timeout: Some(1800.0),
            due_at: None,
            key: None,
            locker: None,
        });
        let last = self.items.len() - 1;
        &mut self.items[last]
    }

    /// A rate limit whose window of one minute ends in `left` seconds.
    pub fn limit(&mut self, key: &str, count: i64, most: Option<i64>, left: f64) {
        self.limits.push(RateLimit {
            key: key.into(),
            count: Some(count),
            window_start: Some(at(self.now + left - 60.0)),
            max_requests: most,
            expires_at: most.map(|_| at(self.now + left)),
        });
    }

    /// An id generator whose last id is `ahead` seconds in the future.
    pub fn generator(&mut self, worker: i64, ahead: f64) {
        let since = at(self.now + ahead).timestamp_millis() - 1_609_459_200_000;
        self.generators.push(IdGenerator { worker, sequence: Some(17), last_timestamp: Some(since) });
    }

    /// A lease of `term` seconds that was renewed `since` seconds ago.
    pub fn lease(&mut self, id: &str, owner: &str, term: f64, since: f64) -> &mut Lease {
        let renewed = at(self.now - since);
        self.leases.push(Lease {
            id: id.into(),
            owner: Some(owner.into()),
            renewed_at: Some(renewed),
            term: Some(term),
            expires_at: Some(at(self.now - since + term)),
            token: Some(12),
            acquired_at: Some(at(-600.0)),
            ..Lease::default()
        });
        let last = self.leases.len() - 1;
        &mut self.leases[last]
    }
}

fn table<T>(oid: u32, name: &str, rows: Vec<T>, now: Timestamp) -> Vec<TableRows<T>> {
    let source = Arc::new(Source { table: oid, name: name.into(), ..Source::default() });
    let table = |rows| TableRows { source, section: Section::fresh(rows, now) };
    if rows.is_empty() { Vec::new() } else { vec![table(rows)] }
}

/// The jobs, and leases, two of which have expired.
pub fn leases(now: f64) -> Builder {
    let mut b = jobs(now);
    b.lease("1", "node2", 20.0, 8.0);
    b.lease("3", "报表-节点三", 30.0, 27.0).token = Some(4);
    b.lease("4", "node1", 3600.0, 12.0).token = Some(99_120);
    b.lease("7", "node1", 20.0, 61.0 + now).place = Some((0, 7));
    b.lease("8", "\u{1b}[31mnode\n9", 600.0, 8000.0 + now).token = None;
    b.lease("9", "node5", 0.0, 100.0).released_at = Some(at(-100.0));
    b.lease("10", "", 20.0, 300.0).owner = None;
    b.lease("11", "batch", 20.0, 4000.0).expires_at = None;
    let row =
        relation(LEASES).with_locktype(LockType::Tuple).with_relation(LEASES).with_page(0).with_tuple(7);
    b.session(6201, "app@node4", State::Active, 3.0, "UPDATE distlock SET owner = 'node4' WHERE id = 7");
    b.lock(6201, row, LockMode::Exclusive, None);
    b
}

/// A busy work queue with an item in every state, rate limits and id generators, and the leases.
pub fn queue(now: f64) -> Builder {
    let mut b = leases(now);
    b.count("pending", 1204, false).oldest_at = Some(at(-1510.0));
    b.count("processing", 4, false);
    b.count("completed", 10_000, true).last_minute = Some(118);
    b.count("failed", 3, false);
    b.item(41_207, "邮件发送", "processing", 250.0 + now).worker = Some("worker-3".into());
    for (id, pid, since) in [(41_211, 6101, 42.0), (41_212, 6103, 1.5)] {
        let item = b.item(id, "resize \u{1b}[31mimages\nof every tenant", "processing", since + now);
        (item.backend_pid, item.heartbeat_at) = (Some(pid), Some(at(-1.0)));
    }
    b.item(41_213, "index", "processing", 12.0).backend_pid = None;
    let failed = b.item(41_100, "邮件发送", "failed", 4000.0 + now);
    (failed.attempt, failed.error) = (Some(3), Some("smtp: 550 no such user\n\u{1b}[2J".into()));
    b.item(40_002, "import", "failed", 90_000.0 + now).error = None;
    b.item(41_214, "邮件发送", "pending", 1510.0 + now);
    b.item(41_215, "resize images", "pending", 1509.0 + now);
    let resting = b.item(41_190, "邮件发送", "pending", 1800.0 + now);
    (resting.attempt, resting.due_at) = (Some(1), Some(at(9.0)));
    resting.error = Some("smtp: 451 try again later".into());
    b.limit("user:123:api", 100, Some(100), 12.0);
    b.limit("user:77:api", 85, Some(100), 48.0);
    b.limit("登录:10.0.0.1", 3, Some(100), 31.0);
    b.limit("published", 55, None, 20.0);
    b.generator(1, -0.004);
    b.generator(2, -86_400.0);
    b.generator(3, 300.0);
    b
}
