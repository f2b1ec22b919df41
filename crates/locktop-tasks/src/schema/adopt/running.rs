//! Work in progress is not adopted: it would run twice, or be marked as failed while it runs.

use tokio_postgres::Transaction;

use super::super::error::SchemaError;
use super::super::place::Schema;
use super::column::ColumnKind;
use super::source::{Source, Table};
use crate::sql::{fill, without_comments};

const RUNNING: &str = include_str!("../../../assets/sql/adopt/running.sql");
/// Most names in an error.
const NAMED: usize = 10;

/// An error if a key of anything that is running by the tables is held, or has been free for less than the grace. If
/// tasks are to be enabled here, a held key of any task or pending item counts: its worker may hold it and wait for
/// locktop's table locks to record that.
pub(super) async fn refuse(
    transaction: &Transaction<'_>,
    place: &Schema,
    source: &Source,
    enable: bool,
) -> Result<(), SchemaError> {
    let claimed = claimed(source, enable);
    if claimed.is_empty() {
        return Ok(());
    }
    let sql = fill(
        &without_comments(RUNNING),
        &[("$claimed", claimed.join("\nUNION ALL\n")), ("$schema", place.quoted())],
    );
    let rows = transaction.query_typed(&sql, &[]).await?;
    let more = rows.len().saturating_sub(NAMED);
    let named: Result<Vec<String>, _> = rows.iter().take(NAMED).map(|row| row.try_get(0)).collect();
    let mut what = named?;
    if what.is_empty() {
        return Ok(());
    }
    if more > 0 {
        what.push(format!("and {more} more"));
    }
    Err(SchemaError::Busy { source_schema: source.schema.clone(), what })
}

/// Queries for what is, or may be, running, each with the candidates for its key.
fn claimed(source: &Source, enable: bool) -> Vec<String> {
    let mut parts = Vec::new();
    if let (Some(tasks), Some(log)) = (&source.tasks, &source.log) {
        parts.push(format!(
            "SELECT 'task' AS kind, e.task_id::pg_catalog.int8 AS id, k.place, k.key, true AS runs, {} AS started_at \
             FROM ONLY {} AS e LEFT JOIN ONLY {} AS t ON t.id = e.task_id \
             CROSS JOIN LATERAL (VALUES (1, {}), (2, e.task_id::pg_catalog.int8), {}) AS k (place, key) \
             WHERE e.status = 'running' AND k.key IS NOT NULL",
            log.column("e", "started_at", ColumnKind::Time),
            source.name(log),
            source.name(tasks),
            log.column("e", "lock_id", ColumnKind::Integer),
            computed(tasks),
        ));
    }
    if let (Some(tasks), true) = (&source.tasks, enable) {
        parts.push(format!(
            "SELECT 'task' AS kind, t.id::pg_catalog.int8 AS id, k.place, k.key, false AS runs, NULL::pg_catalog.timestamptz AS started_at \
             FROM ONLY {} AS t CROSS JOIN LATERAL (VALUES (2, t.id::pg_catalog.int8), {}) AS k (place, key) WHERE k.key IS NOT NULL",
            source.name(tasks),
            computed(tasks),
        ));
    }
    if let Some(queue) = &source.queue {
        let pending = if enable { ", 'pending'" } else { "" };
        parts.push(format!(
            "SELECT 'item' AS kind, q.id::pg_catalog.int8 AS id, 1 AS place, q.id::pg_catalog.int8 AS key, q.status = 'processing' AS runs, \
             {} AS started_at FROM ONLY {} AS q WHERE q.status IN ('processing'{pending})",
            queue.column("q", "started_at", ColumnKind::Time),
            source.name(queue),
        ));
    }
    parts
}

/// The key that the published `get_task_lock_id` computes from a name, and the one that the published example locks for a
/// type.
fn computed(tasks: &Table) -> String {
    let (name, of) =
        (tasks.column("t", "task_name", ColumnKind::Text), tasks.column("t", "task_type", ColumnKind::Text));
    format!(
        "(3, ('x' || pg_catalog.substr(pg_catalog.md5({name}), 1, 16))::pg_catalog.bit(64)::pg_catalog.int8), \
         (4, pg_catalog.hashtext('task:' || {of})::pg_catalog.int8)"
    )
}
