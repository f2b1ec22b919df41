//! Which workers take which types of work.
//!
//! That no worker takes a type is known only if all workers have announced their types. A worker that has not, of an older
//! version or of other software, is detected by the name it holds or by what it works on; it may then be the one.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use crate::model::lock_key::LockKey;
use crate::model::namespace;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::source_tables::TableRows;
use crate::model::table_rows::TaskWorker;
use crate::model::view::View;

impl TaskWorker {
    /// Whether its session is connected. If the start of the session is hidden, only the process id is compared.
    pub fn lives(&self, snapshot: &Snapshot, index: &SnapshotIndex) -> bool {
        index
            .backend(snapshot, self.pid)
            .is_some_and(|backend| backend.backend_start.is_none() || backend.backend_start == self.start)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    Tasks,
    Items,
}

/// All workers of a schema that work on its tasks, or on its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerTypes {
    pub workers: usize,
    pub types: BTreeSet<String>,
}

impl WorkerTypes {
    /// The workers of the schema of this table; `None` if there may be others, or if one takes all types.
    pub fn of(snapshot: &Snapshot, index: &SnapshotIndex, table: &str, work: WorkKind) -> Option<Self> {
        let tables: Vec<_> = tables(snapshot).collect();
        let unread = tables.iter().any(|table| !table.section.is_known());
        // A worker that has announced nothing is detected only by what it works on.
        let is_read = snapshot.task_sets.iter().all(|set| set.executions.is_known())
            && snapshot.sources.items.iter().all(|table| table.section.is_known());
        let is_seen = snapshot.backends.is_known() && snapshot.locks.is_known();
        if unread || tables.is_empty() || !is_read || !is_seen {
            return None;
        }
        let all = || tables.iter().flat_map(|table| table.section.last_rows().iter());
        let said: FxHashSet<i32> =
            all().filter(|worker| worker.lives(snapshot, index)).map(|worker| worker.pid).collect();
        if is_one_silent(snapshot, index, &said) {
            return None;
        }
        let here = tables.iter().filter(|of| schema(&of.source.name) == schema(table));
        let works = |worker: &&TaskWorker| match work {
            WorkKind::Tasks => worker.takes_tasks,
            WorkKind::Items => worker.takes_items,
        };
        let living =
            here.flat_map(|table| table.section.last_rows().iter()).filter(|it| said.contains(&it.pid));
        let mut worker_types = Self { workers: 0, types: BTreeSet::new() };
        for worker in living.filter(works).filter(|worker| worker.lives(snapshot, index)) {
            worker_types.workers += 1;
            worker_types.types.extend(worker.types()?);
        }
        (worker_types.workers > 0).then_some(worker_types)
    }

    /// Whether no worker takes work of this type from this table; false if unknown.
    pub fn lacks(
        view: &View,
        snapshot: &Snapshot,
        (table, work): (&str, WorkKind),
        kind: Option<&str>,
    ) -> bool {
        Self::of(snapshot, &view.index, table, work).is_some_and(|worker_types| !worker_types.takes(kind))
    }

    /// Work without a type is taken only by workers that take all types.
    pub fn takes(&self, kind: Option<&str>) -> bool {
        kind.is_some_and(|kind| self.types.contains(kind))
    }
}

/// Worker tables in schemas that have locktop's own tasks or queue: a table of the same name elsewhere means nothing.
pub fn tables(snapshot: &Snapshot) -> impl Iterator<Item = &TableRows<TaskWorker>> {
    let tasks = snapshot.task_sets.iter().filter(|set| set.tables.own_keys);
    let items = snapshot.sources.items.iter().filter(|table| table.source.own_keys);
    let ours: BTreeSet<&str> = tasks
        .map(|set| schema(&set.tables.schedules))
        .chain(items.map(|table| schema(&table.source.name)))
        .collect();
    snapshot.sources.workers.iter().filter(move |table| ours.contains(schema(&table.source.name)))
}

/// `jobs` of `jobs.scheduled_tasks`; empty without a dot.
fn schema(table: &str) -> &str {
    table.rsplit_once('.').map_or("", |(schema, _)| schema)
}

fn is_one_silent(snapshot: &Snapshot, index: &SnapshotIndex, said: &FxHashSet<i32>) -> bool {
    let database = snapshot.server().map(|server| server.datid);
    let is_name = |lock: &&crate::model::lock::Lock| {
        lock.granted
            && lock.tag.database() == database
            && matches!(lock.tag.advisory_key(),
                Some(LockKey::Bigint(number)) if namespace::id_in(namespace::WORKERS, number).is_some())
    };
    let named = snapshot.locks.last_rows().iter().filter(is_name).filter_map(|lock| lock.pid);
    let executions = snapshot.task_sets.iter().filter(|set| set.tables.own_keys);
    let executions = executions.flat_map(|set| set.executions.last_rows().iter());
    let running =
        executions.filter(|execution| execution.is_running()).filter_map(|execution| execution.backend_pid);
    let items = snapshot.sources.items.iter().filter(|table| table.source.own_keys);
    let items = items.flat_map(|table| table.section.last_rows().iter());
    let processing = items.filter(|item| item.is_processing()).filter_map(|item| item.backend_pid);
    let working = running.chain(processing).filter(|pid| index.backend(snapshot, *pid).is_some());
    named.chain(working).any(|pid| !said.contains(&pid))
}
