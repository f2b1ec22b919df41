//! Workers and the types of work that they take: `locktop_workers`.

use super::reader::Rows;
use crate::model::task_worker::TaskWorker;
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Fields;
use crate::pg::decode::texts::Texts;
use crate::pg::decode::value::{boolean, int8, timestamp};
use crate::pg::sql;
use crate::pg::tables::{Columns, Kind, Table, columns, source};
use locktop_tasks::sql::{fill, without_comments};

const COLUMNS: Columns = &[
    ("backend_pid", Kind::Int),
    ("backend_start", Kind::Time),
    ("worker_id", Kind::Text),
    ("takes_tasks", Kind::Bool),
    ("takes_items", Kind::Bool),
    ("announced_at", Kind::Time),
];
/// OID of the type `text[]` (`src/include/catalog/pg_type.dat`).
const TEXT_ARRAY: u32 = 1009;
/// It is read once in so many polls: workers come and go seldom, and whether they live the sessions tell.
const POLLS: usize = 5;

impl Rows for TaskWorker {
    const TABLE: &'static str = "locktop_workers";
    const COLUMNS: usize = COLUMNS.len() + Self::EXTRA;
    const MOST: usize = 2000;
    const EACH: usize = 2001;
    /// The types: of a copy they are not known, and who may take anything is no reason for alarm.
    const EXTRA: usize = 1;

    fn lacks(table: &Table) -> Option<&'static str> {
        let is_one = table.kind("backend_pid") == Some(Kind::Int)
            && table.kind("takes_tasks") == Some(Kind::Bool)
            && table.column("types").is_some_and(|column| column.kind == TEXT_ARRAY);
        (!is_one).then_some("has no columns backend_pid, takes_tasks and types: it is no table of workers")
    }

    fn query(table: &Table) -> Result<String, Text> {
        let limit = (Self::MOST + 1).to_string();
        let values = [("$columns", columns(table, COLUMNS)), ("$table", source(table)), ("$limit", limit)];
        Ok(fill(&without_comments(sql::TASK_WORKERS), &values))
    }

    fn copied() -> Columns {
        COLUMNS
    }

    fn read(fields: &mut Fields<'_>, texts: &mut Texts) -> Result<Option<Self>, DecodeError> {
        let Some(pid) = int8(fields.value()?).and_then(|pid| i32::try_from(pid).ok()) else {
            return Ok(None);
        };
        Ok(Some(Self {
            pid,
            start: timestamp(fields.value()?),
            name: texts.get(fields.value()?),
            takes_tasks: boolean(fields.value()?).unwrap_or(true),
            takes_items: boolean(fields.value()?).unwrap_or(true),
            announced_at: timestamp(fields.value()?),
            types: texts.get(fields.value()?),
        }))
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.sort_by_key(|row| row.pid);
        rows
    }

    fn cost(_: &[Self]) -> usize {
        POLLS * Self::EACH
    }
}
