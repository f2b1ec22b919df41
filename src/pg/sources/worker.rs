use super::source::{Reads, Source, filled};
use crate::model::task_worker::TaskWorker;
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::row::Values;
use crate::pg::tables::{ColumnKind, Columns, Table};

const QUERY: &str = include_str!("../../../assets/sql/task_workers.sql");

/// OID of the type `text[]` (`src/include/catalog/pg_type.dat`).
const TEXT_ARRAY: u32 = 1009;
/// Read once in this many polls: workers change rarely, and the sessions show whether they are alive.
const POLLS: u32 = 5;
/// Tables of the config whose schemas are searched for tables without a name in the config.
pub(super) const BESIDE: &[&str] = &["distlock", "task_queue", "rate_limit", "id_generator"];

impl Source for TaskWorker {
    const TABLE: &'static str = "locktop_workers";
    const COLUMNS: Columns = &[
        ("backend_pid", ColumnKind::Int),
        ("backend_start", ColumnKind::Time),
        ("worker_id", ColumnKind::Text),
        ("takes_tasks", ColumnKind::Bool),
        ("takes_items", ColumnKind::Bool),
        ("announced_at", ColumnKind::Time),
    ];
    /// The types: not known from a copy, and a worker that may take anything causes no alarm.
    const EXTRA: usize = 1;
    const MOST: usize = 2000;
    const LACKS: &'static str = "has no columns backend_pid, takes_tasks and types: not a table of workers";
    const BESIDE: &'static [&'static str] = BESIDE;

    fn is_one(table: &Table) -> bool {
        table.is("backend_pid", ColumnKind::Int)
            && table.is("takes_tasks", ColumnKind::Bool)
            && table.column("types").is_some_and(|column| column.kind == TEXT_ARRAY)
    }

    fn query(table: &Table) -> Result<String, Text> {
        Ok(filled::<Self>(QUERY, table, &[]))
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.sort_by_key(|row| row.pid);
        rows
    }

    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let Some(pid) = row.small()? else { return Ok(None) };
        Ok(Some(Self {
            pid,
            start: row.time()?,
            name: row.text()?,
            takes_tasks: row.flag()?.unwrap_or(true),
            takes_items: row.flag()?.unwrap_or(true),
            announced_at: row.time()?,
            types: row.whole_text()?,
        }))
    }

    fn rest(_: &[Self], _: Reads) -> u32 {
        POLLS
    }
}
