use super::object::{Json, exact, object};
use crate::model::id_generator;
use crate::model::rate_limit;
use crate::model::snapshot::Snapshot;
use crate::model::systems::TableRows;
use crate::model::view::View;
use crate::model::work_queue::{Count, Depth};

/// Items by state over all tables; none if a table could not be read. `more` lists the states with more items than were
/// counted.
pub(super) fn depth(snapshot: &Snapshot) -> impl Json {
    let counts = &snapshot.systems.counts;
    let depth = Depth::of(counts.iter().filter(|table| is_read(table)));
    let is_known = snapshot.tables(counts).reason().is_none() && counts.iter().all(is_read);
    let number = move |count: Count| is_known.then_some(count.count);
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
        more[] = states.iter().filter(|(_, count)| count.is_more).map(|(name, _)| *name),
    )
}

fn is_read<T>(table: &TableRows<T>) -> bool {
    table.section.is_known()
}

/// The items in progress or set aside, and the oldest pending ones.
pub(super) fn items(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    view.queue.rows.iter().filter_map(|row| {
        let table = snapshot.systems.items.get(row.table).filter(|table| is_read(table))?;
        let item = row.item(snapshot)?;
        Some(object!(
            item;
            table = table.source.name,
            id,
            id_text = exact(item.id),
            task_name = item.name,
            status,
            worker_id = item.worker,
            created_at,
            started_at,
            completed_at,
            attempt,
            max_attempts,
            heartbeat_at,
            due_at,
            timeout,
            backend_pid,
            error,
            state = row.state.certain(),
        ))
    })
}

pub(super) fn limits(snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let is_old = |source: &str| {
        let mut tables = snapshot.systems.limits.iter();
        tables.any(|table| !is_read(table) && *table.source.name == *source)
    };
    rate_limit::rows(snapshot).filter(move |row| !is_old(row.source)).map(|row| {
        let limit = row.limit;
        object!(
            limit;
            table = row.source,
            key,
            count,
            max_requests,
            window_start,
            expires_at,
            state = row.state,
        )
    })
}

/// The id generators. `ahead` is by how many seconds the last id is ahead of the server's clock; a negative value is normal.
pub(super) fn generators(snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let is_old = |table: u32| {
        let mut tables = snapshot.systems.generators.iter();
        tables.any(|other| !is_read(other) && other.source.table == table)
    };
    id_generator::rows(snapshot).filter(move |row| !is_old(row.id.table)).map(|row| {
        let generator = row.generator;
        object!(
            generator;
            table = row.source,
            worker_id = generator.worker,
            sequence,
            last_timestamp,
            last_at = generator.last_at(),
            ahead = row.ahead,
        )
    })
}

/// Requests that the functions of each schema have refused since counting began.
pub(super) fn refusals(snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let tables = snapshot.systems.refusals.iter().filter(|table| is_read(table));
    tables.flat_map(|table| {
        let rows = table.section.last_rows().iter();
        rows.map(move |row| object!(row; table = table.source.name, rate_limit, transfer, lease, task))
    })
}
