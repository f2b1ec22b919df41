//! The work queue: each item goes to one worker at a time.

#[cfg(test)]
mod tests;

pub use crate::model::job_state::JobState;

pub use crate::model::table_rows::{Item, StateCount};

use crate::model::adapter::{Count, Evidence, Job};
use crate::model::judge::{Facts, Holder, KeyProof, Sign, judge_run};
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::LockName;
use crate::model::snapshot::{Snapshot, WorkLocks};
use crate::model::source_tables::{Source, TableRows};
use crate::model::task::{KeyRule, TaskKey, names_worker};
use crate::model::thresholds::Thresholds;
use crate::model::{Text, Timestamp, namespace};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId {
    pub table: u32,
    pub id: i64,
}

impl Item {
    pub fn is_processing(&self) -> bool {
        self.status.as_deref() == Some("processing")
    }

    pub fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed"))
    }
}

/// The name of the item behind a bigint key of the database that the tables were read from: `queue item 7`. A key of the
/// namespace is certain if exactly one item has its id; a raw number may belong to any program, so its name is always a
/// guess.
pub fn name_of(tables: &[TableRows<Item>], number: i64) -> Option<LockName> {
    let own = namespace::id_in(namespace::QUEUE, number);
    let id = own.unwrap_or(number);
    let mut owners = tables.iter().filter(|table| {
        let fits = table.source.own_keys == own.is_some();
        fits && table
            .section
            .last_rows()
            .iter()
            .any(|item| item.id == id && (own.is_some() || !item.is_over()))
    });
    let table = owners.next()?;
    let origin = match own {
        Some(id) => format!("the key of item {id} in {}", table.source.name),
        None => format!("the same number as an item that is not done in {}", table.source.name),
    };
    let uncertain = own.is_none() || owners.next().is_some();
    Some(LockName { name: format!("queue item {id}").into(), uncertain, origin: origin.into() })
}

#[derive(Debug, Clone, PartialEq)]
pub struct ItemRow {
    pub id: ItemId,
    /// Index of its table in `Snapshot::systems.items`.
    pub table: usize,
    /// Index among the rows of that table.
    pub at: usize,
    pub state: JobState,
    pub pid: Option<i32>,
    /// None if its key is not known.
    pub tag: Option<LockTag>,
    /// The lock that shows that an open transaction of that process has locked the row.
    pub row_lock: Option<LockTag>,
    /// Longest allowed processing time, in seconds.
    pub limit: f64,
}

impl ItemRow {
    /// None in another snapshot that lacks it.
    pub fn item<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Item> {
        snapshot.sources.items.get(self.table)?.section.last_rows().get(self.at)
    }

    /// Its table as `schema.table`; None in another snapshot that lacks it.
    pub fn source<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Text> {
        snapshot.sources.items.get(self.table).map(|table| &table.source.name)
    }

    /// `item 7 (send mail)`: raw server text, not yet fit for a screen.
    pub fn name(&self, snapshot: &Snapshot) -> String {
        match self.item(snapshot).and_then(|item| item.name.as_ref()) {
            Some(name) => format!("item {} ({name})", self.id.id),
            None => format!("item {}", self.id.id),
        }
    }

    /// Processing time so far, in seconds.
    pub fn run(&self, snapshot: &Snapshot) -> Option<f64> {
        let started = self.item(snapshot).filter(|item| item.is_processing())?.started_at?;
        Some((snapshot.taken_at - started).as_seconds_f64().max(0.0))
    }

    /// Seconds until a worker may take it; None unless it is resting.
    pub fn due_in(&self, snapshot: &Snapshot) -> Option<f64> {
        let due = self.item(snapshot).filter(|_| self.state == JobState::Resting)?.due_at?;
        Some((due - snapshot.taken_at).as_seconds_f64())
    }

    /// Sort key: the most urgent state first; within a state the earliest start first, among finished items the newest.
    pub fn urgency(&self, snapshot: &Snapshot) -> (JobState, bool, i64, ItemId) {
        let item = self.item(snapshot);
        let micros = |at: Option<Timestamp>| at.map_or(i64::MAX, |at| at.timestamp_micros());
        let since = match self.state {
            JobState::Pending | JobState::Resting => {
                micros(item.and_then(|item| item.due_at.or(item.created_at)))
            }
            JobState::Failed => {
                let ended = item.and_then(|item| item.completed_at.or(item.started_at));
                ended.map_or(i64::MAX, |at| at.timestamp_micros().saturating_neg())
            }
            _ => micros(item.and_then(|item| item.started_at)),
        };
        (self.state, item.is_none(), since, self.id)
    }
}

/// Numbers of items in all tables, as far as they were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepth {
    pub pending: Count,
    pub processing: Count,
    pub completed: Count,
    /// Status `failed`: set aside after the last attempt.
    pub failed: Count,
    pub other: Count,
    /// When the oldest pending item was added or became due.
    pub oldest_pending_at: Option<Timestamp>,
    /// Items completed within the last minute; None if not known.
    pub per_minute: Option<u64>,
}

impl QueueDepth {
    pub fn of<'a>(tables: impl Iterator<Item = &'a TableRows<StateCount>>) -> Self {
        let mut depth = Self::default();
        let mut rates = Some(0);
        for table in tables {
            let mut rate = Some(0);
            for row in table.section.last_rows().iter() {
                depth.add(row, table.section.taken_at);
                if row.status.as_deref() == Some("completed") {
                    rate = row.last_minute;
                }
            }
            rates = rates.zip(rate).map(|(all, one)| all + one);
        }
        depth.per_minute = rates;
        depth
    }

    /// Counts pending items that sessions work on in open transactions as in progress.
    fn without_uncommitted(&mut self, snapshot: &Snapshot, rows: &[ItemRow]) {
        let since = |row: &ItemRow| row.item(snapshot).and_then(|item| item.due_at.or(item.created_at));
        let taken = || rows.iter().filter(|row| row.state.is_uncommitted());
        let count = taken().count() as u64;
        self.pending.number = self.pending.number.saturating_sub(count);
        self.processing.number = self.processing.number.saturating_add(count);
        if taken().any(|row| self.oldest_pending_at.is_some() && since(row) == self.oldest_pending_at) {
            let waits = rows.iter().filter(|row| row.state == JobState::Pending);
            self.oldest_pending_at = waits.filter_map(since).min();
        }
    }

    fn add(&mut self, row: &StateCount, read_at: Option<Timestamp>) {
        let count = match row.status.as_deref() {
            Some("pending") => {
                // An item that is not yet due does not wait.
                let waits = row.oldest_at.filter(|since| read_at.is_none_or(|at| *since <= at));
                let oldest = self.oldest_pending_at.into_iter().chain(waits).min();
                self.oldest_pending_at = oldest;
                &mut self.pending
            }
            Some("processing") => &mut self.processing,
            Some("completed") => &mut self.completed,
            Some("failed") => &mut self.failed,
            _ => &mut self.other,
        };
        count.number = count.number.saturating_add(row.count);
        count.is_least |= row.is_more;
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueBoard {
    /// Items that were read, table by table.
    pub rows: Vec<ItemRow>,
    pub depth: QueueDepth,
}

impl QueueBoard {
    pub fn of(snapshot: &Snapshot, thresholds: &Thresholds) -> Self {
        let mut depth = QueueDepth::of(snapshot.sources.counts.iter());
        if snapshot.sources.items.is_empty() {
            return Self { rows: Vec::new(), depth };
        }
        let builder = QueueBoardBuilder {
            snapshot,
            thresholds,
            locks: WorkLocks::of(snapshot),
            up_since: snapshot.up_since(),
        };
        let tables = snapshot.sources.items.iter().enumerate();
        let rows = tables.flat_map(|(place, table)| {
            let items = table.section.last_rows().iter().enumerate();
            items.filter_map(|(at, item)| builder.row(place, table, at, item)).collect::<Vec<_>>()
        });
        let rows: Vec<ItemRow> = rows.collect();
        depth.without_uncommitted(snapshot, &rows);
        Self { rows, depth }
    }

    pub fn of_state(&self, state: JobState) -> impl Iterator<Item = &ItemRow> {
        self.rows.iter().filter(move |row| row.state == state)
    }
}

struct QueueBoardBuilder<'a> {
    snapshot: &'a Snapshot,
    thresholds: &'a Thresholds,
    locks: WorkLocks,
    up_since: Option<Timestamp>,
}

impl QueueBoardBuilder<'_> {
    fn row(&self, place: usize, table: &TableRows<Item>, at: usize, item: &Item) -> Option<ItemRow> {
        let own = table.source.own_keys;
        let key = match table.source.key_rule {
            _ if own => namespace::number_of(namespace::QUEUE, item.id),
            KeyRule::LockId | KeyRule::Expression(_) => item.key,
            KeyRule::Id | KeyRule::Unsaid => Some(item.id),
        };
        let (state, pid) = match item.status.as_deref() {
            Some("processing") => self.processing(table, item, key),
            Some("failed") => (JobState::Failed, None),
            Some("pending") if item.due_at.is_some_and(|due| due > self.snapshot.taken_at) => {
                (JobState::Resting, None)
            }
            Some("pending") => {
                self.uncommitted(&table.source, item, key).unwrap_or((JobState::Pending, None))
            }
            _ => return None,
        };
        let key = key.filter(|_| item.is_processing() || pid.is_some());
        let tag = key.map(|key| TaskKey::Raw(key).tag(self.locks.datid));
        let id = ItemId { table: table.source.table, id: item.id };
        let locker = self.locks.locker(id.table, item).filter(|(locker, _)| Some(*locker) == pid);
        let row_lock =
            locker.and(item.locker).map(|xid| LockTag::new(LockType::TransactionId).with_transactionid(xid));
        Some(ItemRow { id, table: place, at, state, pid, tag, row_lock, limit: self.limit(item) })
    }

    /// For an item that is pending to other sessions: the session that works on it in an open transaction, which has locked
    /// its row or holds its key. locktop's own functions take the key when they commit.
    fn uncommitted(&self, source: &Source, item: &Item, key: Option<i64>) -> Option<(JobState, Option<i32>)> {
        let holder = self.locks.holders.get(&LockKey::Bigint(key?)).copied().flatten();
        let holder = holder.filter(|pid| self.locks.is_in_transaction(self.snapshot, *pid));
        let locker = self.locks.locker(source.table, item);
        let (pid, is_certain) = match (holder, locker) {
            (Some(holder), Some((pid, _))) if pid == holder => (pid, true),
            (None, Some((pid, works)))
                if source.own_keys && self.locks.is_in_transaction(self.snapshot, pid) =>
            {
                (pid, works)
            }
            // Without a lock on its row, the number may belong to another program.
            (Some(pid), _) => (pid, source.own_keys || source.key_rule != KeyRule::Unsaid),
            (None, _) => return None,
        };
        let state = if is_certain { JobState::Uncommitted } else { JobState::MaybeUncommitted };
        Some((state, Some(pid)))
    }

    fn limit(&self, item: &Item) -> f64 {
        item.timeout.unwrap_or(self.thresholds.task_timeout)
    }

    fn processing(&self, table: &TableRows<Item>, item: &Item, key: Option<i64>) -> (JobState, Option<i32>) {
        let own = table.source.own_keys;
        let evidence = Evidence { has_key: true, has_session: true, ..Evidence::default() };
        let job = Job { started_at: item.started_at, limit: Some(self.limit(item)), ..Job::default() };
        let facts = Facts { grace: self.snapshot.grace(own, self.thresholds), ..Facts::of(self.snapshot) };
        let facts = match key.filter(|_| self.locks.is_known) {
            _ if table.section.error.is_some() => facts,
            _ if own => Facts { session: self.session(item), ..facts },
            // A worker may have taken it again after the locks were read, without a new start.
            Some(key) => Facts {
                key: self.key(&table.source, item, key),
                grace: facts.grace.max(facts.young.unwrap_or_default()),
                ..facts
            },
            None => facts,
        };
        let judged = judge_run(&evidence, &job, &facts);
        let state = match judged.shown(JobState::Stopping) {
            JobState::Orphan => JobState::Lost,
            JobState::MaybeOrphan => JobState::MaybeLost,
            state => state,
        };
        (state, judged.pid)
    }

    /// The holder of its number. If it is free, its worker does not hold it; if it is held, any session may hold it.
    fn key(&self, source: &Source, item: &Item, key: i64) -> Sign {
        if let Some(pid) = self.locks.holders.get(&LockKey::Bigint(key)).copied() {
            let backend = pid.and_then(|pid| self.snapshot.backend(pid));
            let tied = backend.zip(item.worker.as_deref());
            let tied = tied.is_some_and(|(backend, worker)| names_worker(backend, worker));
            return Sign::Held(pid, if tied { Holder::Worker } else { Holder::Unlinked });
        }
        let is_certain = source.key_rule != KeyRule::Unsaid || source.has_function;
        Sign::Free {
            since: item.started_at.and_then(|at| Some(at).max(item.heartbeat_at).max(self.up_since)),
            proof: item.started_at.filter(|_| is_certain).map(|_| KeyProof::Config),
        }
    }

    /// The session that the row names. If it has ended, its worker may not have stopped before the grace period.
    fn session(&self, item: &Item) -> Sign {
        let session = item.backend_pid.zip(item.backend_start);
        match session.and_then(|(pid, start)| self.snapshot.has_session(pid, start)) {
            Some(true) => Sign::Held(item.backend_pid, Holder::Worker),
            Some(false) => Sign::Free {
                since: item.started_at.max(item.heartbeat_at).max(self.up_since),
                proof: Some(KeyProof::Config),
            },
            None => Sign::Unseen,
        }
    }
}
