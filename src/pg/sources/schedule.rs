//! Scheduled tasks: `scheduled_tasks`.

use super::places::Places;
use super::source::{Reads, Source, filled};
use crate::model::task::{KeyRule, Schedule};
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::row::Values;
use crate::pg::tables::{Columns, KEY, Kind, Table, every};

const QUERY: &str = include_str!("../../../assets/sql/tasks.sql");

/// Schedules that a poll may read on average: ten thousand are read in every eleventh.
const EACH: usize = 1000;

impl Source for Schedule {
    const TABLE: &'static str = "scheduled_tasks";
    /// A timeout is read as seconds.
    const COLUMNS: Columns = &[
        ("id", Kind::Int),
        ("task_name", Kind::Text),
        ("task_type", Kind::Text),
        ("schedule_cron", Kind::Text),
        ("is_enabled", Kind::Bool),
        ("last_run_at", Kind::Time),
        ("next_run_at", Kind::Time),
        ("priority", Kind::Int),
        ("timeout", Kind::Interval),
        ("max_attempts", Kind::Int),
        ("attempts", Kind::Int),
        (KEY, Kind::Int),
    ];
    const MOST: usize = 10_000;
    const LACKS: &'static str = "has no columns id and task_name: it is no table of tasks";

    fn is_one(table: &Table) -> bool {
        table.is("id", Kind::Int) && table.kind("task_name").is_some()
    }

    fn own_keys(table: &Table) -> bool {
        table.kind("max_attempts").is_some()
    }

    fn key_rule(places: &Places) -> KeyRule {
        places.key_rule("task_key")
    }

    fn query(table: &Table) -> Result<String, Text> {
        Ok(filled::<Self>(QUERY, table, &[]))
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.sort_by_key(|row| row.id);
        rows
    }

    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let Some(id) = row.int()? else { return Ok(None) };
        Ok(Some(Self {
            id,
            name: row.text()?,
            kind: row.text()?,
            cron: row.text()?,
            enabled: row.flag()?,
            last_run_at: row.time()?,
            next_run_at: row.time()?,
            priority: row.int()?,
            timeout: row.number()?,
            max_attempts: row.int()?,
            attempts: row.int()?,
            key: row.int()?,
        }))
    }

    fn rest(rows: &[Self], _: Reads) -> u32 {
        every(rows.len(), EACH)
    }
}
