use rustc_hash::FxHashMap;

use super::object::{self, Json, exact, object};
use super::readable;
use crate::model::adapter::Count;
use crate::model::lease::LeaseState;
use crate::model::lock_key::LockKey;
use crate::model::plan::{AlsoEnded, Planned, RecoveryPlan, RecoveryResult, Step};
use crate::model::snapshot::Snapshot;
use crate::model::source_tables::TableRows;
use crate::model::task::{TaskId, TaskKey, TaskRow, evidence};
use crate::model::view::View;
use crate::model::work_queue::QueueDepth;
use crate::model::{id_generator, rate_limit};

pub(super) fn tasks(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let mut states: FxHashMap<TaskId, (&'static str, u32)> = FxHashMap::default();
    for row in &view.tasks.rows {
        // The task of an open transaction is neither due nor overdue.
        if let Some(state) =
            row.schedule_state.map(|state| if row.state.is_uncommitted() { row.state } else { state })
        {
            states.insert(row.task, (state.certain(), row.streak.length));
        }
    }
    let rows =
        snapshot.task_sets.iter().flat_map(|set| readable(&set.tasks).iter().map(move |task| (set, task)));
    rows.map(move |(set, task)| {
        // Consecutive failures of the last executions, as far as they were read.
        let (state, failures) = states.get(&set.task_id(task.id)).copied().unwrap_or(("idle", 0));
        object!(
            task;
            table = set.tables.schedules,
            id, name,
            type = task.kind,
            enabled, last_run_at, next_run_at, cron, priority, timeout, max_attempts, attempts,
            retry_delay, time_zone,
            failed_in_a_row = failures,
            state = state,
        )
    })
}

pub(super) fn executions(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let running: FxHashMap<(usize, usize), &TaskRow> =
        view.tasks.rows.iter().filter_map(|row| Some(((row.set, row.execution?), row))).collect();
    let sets = snapshot.task_sets.iter().enumerate();
    let rows = sets.flat_map(|(set_at, set)| {
        let rows = readable(&set.executions).iter().enumerate();
        rows.map(move |(at, execution)| (set, (set_at, at), execution))
    });
    rows.map(move |(set, place, execution)| {
        let row = running.get(&place).copied();
        // `maybe` is the most likely state if `state` is unknown, `orphan_in` the seconds until it is an orphan if it
        // gives no sign of life. `evidence` is the holder of its key, and what that proves, while it runs by the log.
        object!(
            execution;
            table = set.tables.executions,
            id, task_id,
            task_name = set.task(execution.task_id).and_then(|task| task.name.as_ref()),
            worker_id = execution.worker,
            status, started_at, completed_at, error, attempt, heartbeat_at, backend_pid,
            recovered_by,
            lock_key = set.key(execution).map(TaskKey::lock_key),
            holder_pid = row.and_then(|row| row.holder),
            state = row.map_or(execution.status.as_deref().unwrap_or("unknown"), |row| row.state.certain()),
            maybe = row.and_then(|row| row.state.guess()),
            orphan_in = row.and_then(|row| row.orphan_in),
            evidence = row.map(|row| evidence(row, snapshot)),
        )
    })
}

/// Items by state over all tables; none if a table could not be read. `more` lists the states with more items than were
/// counted.
pub(super) fn depth(snapshot: &Snapshot) -> impl Json {
    let counts = &snapshot.sources.counts;
    let depth = QueueDepth::of(counts.iter().filter(|table| is_read(table)));
    let is_known = snapshot.tables(counts).reason().is_none() && counts.iter().all(is_read);
    let number = move |count: Count| is_known.then_some(count.number);
    let states = [
        ("pending", depth.pending),
        ("processing", depth.processing),
        ("completed", depth.completed),
        ("failed", depth.failed),
    ];
    object!(
        pending = number(depth.pending),
        processing = number(depth.processing),
        completed = number(depth.completed),
        failed = number(depth.failed),
        oldest_pending_at = depth.oldest_pending_at.filter(|_| is_known),
        completed_per_minute = depth.per_minute.filter(|_| is_known),
        more[] = states.iter().filter(|(_, count)| count.is_least).map(|(name, _)| *name),
    )
}

fn is_read<T>(table: &TableRows<T>) -> bool {
    table.section.is_known()
}

/// Whether the rows of the table with this name are those of an earlier snapshot.
fn is_old<T>(tables: &[TableRows<T>], name: &str) -> bool {
    tables.iter().any(|table| !is_read(table) && *table.source.name == *name)
}

/// The items in progress or set aside, and the oldest pending ones.
pub(super) fn items(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    view.queue.rows.iter().filter_map(|row| {
        let table = snapshot.sources.items.get(row.table).filter(|table| is_read(table))?;
        let item = row.item(snapshot)?;
        Some(object!(
            item;
            table = table.source.name,
            id,
            id_text = exact(item.id),
            task_name = item.name,
            status,
            worker_id = item.worker,
            created_at, started_at, completed_at, attempt, max_attempts, failures, heartbeat_at, due_at,
            timeout, backend_pid, error,
            state = row.state.certain(),
        ))
    })
}

pub(super) fn limits(snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let rows = rate_limit::rows(snapshot).filter(|row| !is_old(&snapshot.sources.limits, row.source));
    rows.map(|row| {
        let limit = row.limit;
        object!(
            limit;
            table = row.source,
            key, count, max_requests, window_start, expires_at,
            state = row.state,
        )
    })
}

/// The id generators. `ahead` is by how many seconds the last id is ahead of the server's clock; a negative value is normal.
pub(super) fn generators(snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let rows = id_generator::rows(snapshot).filter(|row| !is_old(&snapshot.sources.generators, row.source));
    rows.map(|row| {
        let generator = row.generator;
        object!(
            generator;
            table = row.source,
            worker_id = generator.worker,
            sequence, last_timestamp,
            last_at = generator.last_at(),
            ahead = row.ahead,
        )
    })
}

/// Requests that the functions of each schema have refused since counting began.
pub(super) fn refusals(snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let tables = snapshot.sources.refusals.iter().filter(|table| is_read(table));
    tables.flat_map(|table| {
        let rows = table.section.last_rows().iter();
        rows.map(move |row| object!(row; table = table.source.name, rate_limit, transfer, lease, task))
    })
}

pub(super) fn leases(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let rows = view.leases.rows.iter().filter(|row| !is_old(&snapshot.sources.leases, &row.source));
    // The id is text even if the table has a number, because not every source has one.
    rows.map(|row| {
        object!(
            row;
            source,
            id = row.key,
            name = (row.name != row.key).then_some(&*row.name),
            owner, acquired_at, expires_at,
            expired = row.state == LeaseState::Expired,
            token,
            token_text = row.token.map(exact),
            state, renewed_at, term, waiting, owner_pid, owner_alive, set,
        )
    })
}

/// A plan and its results as one line of JSON that is safe to show on a terminal.
pub fn recovery(
    plan: &RecoveryPlan,
    results: &[RecoveryResult],
    dry_run: bool,
) -> Result<String, serde_json::Error> {
    object::text(&object!(
        plan;
        format = 1,
        schema, taken_at,
        orphan_grace = plan.grace,
        dry_run = dry_run,
        plan[] = plan.rows.iter().map(|row| planned(row, plan.grace)),
        results[] = results.iter().map(|result| done(result, plan.row(result.execution_id))),
    ))
}

fn planned(row: &Planned, grace: f64) -> impl Json {
    let seen = &row.seen;
    let is_own = row.foreign_effect.is_none();
    let (step, reason) = match row.step {
        Step::Recover => ("recover", None),
        Step::Terminate { .. } => ("terminate", None),
        Step::Leave(reason) => ("leave", Some(reason)),
    };
    object!(
        seen;
        id = seen.execution_id,
        task_id, task_name, worker_id,
        state = seen.state.as_str(),
        started_at, heartbeat_at,
        run = seen.run_seconds,
        timeout = seen.timeout_seconds,
        attempt = is_own.then_some(seen.attempt),
        max_attempts = is_own.then_some(seen.max_attempts),
        lock_key = seen.lock_id.map(LockKey::Bigint),
        holder_pid, backend_pid, backend_start,
        step = step,
        reason = reason,
        effect = row.effect(grace),
        also_ended[] = row.also_ended.iter().map(also),
    )
}

fn done(result: &RecoveryResult, row: Option<&Planned>) -> impl Json {
    object!(
        result;
        id = result.execution_id,
        task_id = row.map(|row| row.seen.task_id),
        task_name = row.map(|row| &row.seen.task_name),
        outcome = result.outcome.as_str(),
        detail, holder_pid, ended_pid, audit_id, next_run_at,
        also_ended[] = result.also_ended.iter().map(also),
    )
}

/// An execution that ends with the session that is terminated for another one.
fn also(also: &AlsoEnded) -> impl Json {
    object!(also; id = also.execution_id, task_name, effect)
}
