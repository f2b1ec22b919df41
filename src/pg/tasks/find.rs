//! Which of the tables found belong together.

use tokio_postgres::Row;

use super::Places;
use super::statements::{self, Kind};
use crate::model::Text;
use crate::model::task::TaskTables;
use crate::pg::decode::value::{boolean, oid, text};
use crate::pg::poll::raw;

/// A table that may be one of ours: a row of `assets/sql/tasks_find.sql`.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own")]
pub(super) struct Table {
    pub(super) oid: u32,
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) is_visible: bool,
    /// The config names it as the table of schedules.
    pub(super) is_schedules: bool,
    /// The config names it as the log.
    pub(super) is_log: bool,
    /// Why it is not read.
    pub(super) refused: Option<String>,
    pub(super) is_partitioned: bool,
    /// Names and kinds.
    pub(super) columns: Vec<(String, Kind)>,
    /// Their columns in order; `unique where ` or `where ` before those of a partial one.
    pub(super) indexes: Vec<String>,
}

/// Two tables that belong together, and the statements that read them or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    pub(super) tables: TaskTables,
    pub(super) schedules: Result<String, Text>,
    pub(super) executions: Option<Result<String, Text>>,
    /// The running executions alone; none where the log has no index for that.
    pub(super) running: Option<String>,
}

impl Table {
    fn of(row: &Row) -> Option<Self> {
        let words = |column| text(raw(row, column)).map(std::borrow::Cow::into_owned);
        let flag = |column| boolean(raw(row, column)).unwrap_or_default();
        let lines = |column| words(column).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
        let column = |line: &String| {
            let (name, kind) = line.rsplit_once(' ')?;
            Some((name.to_owned(), Kind::of(kind)?))
        };
        Some(Self {
            oid: oid(raw(row, 0))?,
            schema: words(1)?,
            name: words(2)?,
            is_visible: flag(3),
            is_schedules: flag(4),
            is_log: flag(5),
            refused: words(6),
            is_partitioned: flag(7),
            columns: lines(8).iter().filter_map(column).collect(),
            indexes: lines(9),
        })
    }

    /// `schema.table` for people.
    pub(super) fn label(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    pub(super) fn kind(&self, column: &str) -> Option<Kind> {
        self.columns.iter().find(|(name, _)| name == column).map(|(_, kind)| *kind)
    }

    /// Whether it can be what its name says: a stranger's table may bear the same.
    fn is_tasks(&self) -> bool {
        self.kind("id") == Some(Kind::Int) && self.kind("task_name").is_some()
    }

    fn is_executions(&self) -> bool {
        self.kind("id") == Some(Kind::Int)
            && self.kind("task_id") == Some(Kind::Int)
            && self.kind("status") == Some(Kind::Text)
    }
}

/// The pairs: what the config names, else what is on the search path, and what is in schema `locktop`.
pub(super) fn pairs(rows: &[Row], places: &Places) -> Vec<Pair> {
    let tables: Vec<Table> = rows.iter().filter_map(Table::of).collect();
    paired(&tables, places)
}

pub(super) fn paired(tables: &[Table], places: &Places) -> Vec<Pair> {
    let schedules = |table: &&Table| table.name == "scheduled_tasks" && table.is_tasks();
    let mut pairs: Vec<Pair> = Vec::new();
    if places != &Places::default() {
        pairs.push(configured(tables, places));
    } else if let Some(table) = tables.iter().filter(schedules).find(|table| table.is_visible) {
        pairs.push(statements::pair(table, log_beside(tables, table)));
    }
    if let Some(table) = tables.iter().filter(schedules).find(|table| table.schema == "locktop")
        && pairs.iter().all(|pair| pair.tables.table != table.oid)
    {
        pairs.push(statements::pair(table, log_beside(tables, table)));
    }
    pairs
}

/// The log of a table of schedules: in the same schema, else on the search path.
fn log_beside<'a>(tables: &'a [Table], schedules: &Table) -> Option<&'a Table> {
    let mut logs = tables.iter().filter(|table| table.name == "task_execution_log" && table.is_executions());
    let beside = logs.clone().find(|table| table.schema == schedules.schema);
    beside.or_else(|| logs.find(|table| table.is_visible && schedules.is_visible))
}

/// The pair that the config names. What it does not name is beside what it names, by its usual name.
fn configured(tables: &[Table], places: &Places) -> Pair {
    let beside = |table: &Table, name: &str| {
        tables.iter().find(|other| other.name == name && other.schema == table.schema)
    };
    let named_log = tables.iter().find(|table| table.is_log);
    let schedules = match &places.schedules {
        Some(_) => tables.iter().find(|table| table.is_schedules),
        None => named_log.and_then(|log| beside(log, "scheduled_tasks")),
    };
    let log = match &places.executions {
        Some(_) => named_log,
        None => schedules.and_then(|table| log_beside(tables, table)),
    };
    let name = places.schedules.clone().unwrap_or_else(|| "scheduled_tasks".to_owned());
    let Some(schedules) = schedules else {
        return failed(&name, &format!("there is no table {name}, where [tables] in the config has it"));
    };
    if !schedules.is_tasks() {
        return failed(&name, &format!("{name} has no columns id and task_name: it is no table of tasks"));
    }
    let mut pair = statements::pair(schedules, log.filter(|log| log.is_executions()));
    if let Some(place) = &places.executions
        && pair.executions.is_none()
    {
        let reason = match log {
            Some(_) => format!("{place} has no columns id, task_id and status: it is no log of executions"),
            None => format!("there is no table {place}, where [tables] in the config has it"),
        };
        pair.tables.executions = Some(place.as_str().into());
        pair.executions = Some(Err(reason.into()));
    }
    pair
}

fn failed(name: &str, reason: &str) -> Pair {
    Pair {
        tables: TaskTables { schedules: name.into(), ..TaskTables::default() },
        schedules: Err(reason.into()),
        executions: None,
        running: None,
    }
}
