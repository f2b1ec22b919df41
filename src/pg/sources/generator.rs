use super::source::{Source, fields, filled};
use crate::model::id_generator::IdGenerator;
use crate::model::{Text, Timestamp};
use crate::pg::tables::{ColumnKind, Table};

const QUERY: &str = include_str!("../../../assets/sql/id_generators.sql");

impl Source for IdGenerator {
    const TABLE: &'static str = "id_generator";
    fields! {
        worker: int = "worker_id";
        sequence: int = "sequence",
        last_timestamp: int = "last_timestamp",
    }
    const MOST: usize = 1024;
    const LACKS: &'static str = "has no columns worker_id and last_timestamp: not a table of id generators";

    fn is_one(table: &Table) -> bool {
        table.is("worker_id", ColumnKind::Int) && table.is("last_timestamp", ColumnKind::Int)
    }

    fn query(table: &Table) -> Result<String, Text> {
        let order = if table.has_index(&["worker_id"]) { "ORDER BY t.worker_id" } else { "" };
        Ok(filled::<Self>(QUERY, table, &[("$order", order)]))
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.sort_by_key(|row| row.worker);
        rows
    }
}
