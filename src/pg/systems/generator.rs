//! Id generators: `id_generator`.

use super::reader::Rows;
use crate::model::id_generator::IdGenerator;
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Fields;
use crate::pg::decode::texts::Texts;
use crate::pg::decode::value::int8;
use crate::pg::sql;
use crate::pg::tables::{Columns, Kind, Table, columns, source};
use locktop_tasks::sql::{fill, without_comments};

const COLUMNS: Columns = &[("worker_id", Kind::Int), ("sequence", Kind::Int), ("last_timestamp", Kind::Int)];

impl Rows for IdGenerator {
    const TABLE: &'static str = "id_generator";
    const COLUMNS: usize = COLUMNS.len();
    const MOST: usize = 1024;
    const EACH: usize = 1025;

    fn lacks(table: &Table) -> Option<&'static str> {
        let is_one =
            ["worker_id", "last_timestamp"].iter().all(|column| table.kind(column) == Some(Kind::Int));
        (!is_one).then_some("has no columns worker_id and last_timestamp: it is no table of id generators")
    }

    fn query(table: &Table) -> Result<String, Text> {
        let order = if table.has_index(&["worker_id"]) { "ORDER BY t.worker_id" } else { "" };
        let (columns, source) = (columns(table, COLUMNS), source(table));
        let limit = (Self::MOST + 1).to_string();
        let values =
            [("$columns", columns.as_str()), ("$table", &source), ("$order", order), ("$limit", &limit)];
        Ok(fill(&without_comments(sql::ID_GENERATORS), &values))
    }

    fn copied() -> Columns {
        COLUMNS
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.sort_by_key(|row| row.worker);
        rows
    }

    fn read(fields: &mut Fields<'_>, _: &mut Texts) -> Result<Option<Self>, DecodeError> {
        let Some(worker) = int8(fields.value()?) else { return Ok(None) };
        Ok(Some(Self { worker, sequence: int8(fields.value()?), last_timestamp: int8(fields.value()?) }))
    }
}
