use super::places::Places;
use super::source::{Reads, Source, fields, filled};
use crate::model::task::{KeyRule, Schedule};
use crate::model::{Text, Timestamp};
use crate::pg::tables::{ColumnKind, KEY, Table, every};

const QUERY: &str = include_str!("../../../assets/sql/tasks.sql");

/// Schedules that a poll may read on average: ten thousand are read in every eleventh poll.
const EACH: usize = 1000;

impl Source for Schedule {
    const TABLE: &'static str = "scheduled_tasks";
    // A timeout is read as seconds.
    fields! {
        id: int = "id";
        name: text = "task_name",
        kind: text = "task_type",
        cron: text = "schedule_cron",
        enabled: flag = "is_enabled",
        last_run_at: time = "last_run_at",
        next_run_at: time = "next_run_at",
        priority: int = "priority",
        timeout: number = "timeout",
        max_attempts: int = "max_attempts",
        attempts: int = "attempts",
        key: int = KEY,
    }
    const MOST: usize = 10_000;
    const LACKS: &'static str = "has no columns id and task_name: not a table of tasks";

    fn is_one(table: &Table) -> bool {
        table.is("id", ColumnKind::Int) && table.kind("task_name").is_some()
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

    fn rest(rows: &[Self], _: Reads) -> u32 {
        every(rows.len(), EACH)
    }
}
