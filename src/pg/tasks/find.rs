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

/// What stands for configured tables that could not even be looked for.
pub(super) fn refused(places: &Places, reason: &str) -> Pair {
    let name = places.schedules.as_deref().or(places.executions.as_deref()).unwrap_or_default();
    failed(name, &format!("[tables] in the config: {reason}"))
}

fn failed(name: &str, reason: &str) -> Pair {
    Pair {
        tables: TaskTables { schedules: name.into(), ..TaskTables::default() },
        schedules: Err(reason.into()),
        executions: None,
        running: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(oid: u32, schema: &str, name: &str, is_visible: bool) -> Table {
        let columns = "id int\ntask_name text\ntask_id int\nstatus text\nstarted_at time";
        let column = |line: &str| {
            let (name, kind) = line.split_once(' ').unwrap();
            (name.to_owned(), Kind::of(kind).unwrap())
        };
        Table {
            oid,
            schema: schema.to_owned(),
            name: name.to_owned(),
            is_visible,
            columns: columns.lines().map(column).collect(),
            indexes: vec!["id".to_owned(), "status started_at".to_owned(), "task_id started_at".to_owned()],
            ..Table::default()
        }
    }

    fn names(tables: &[Table], places: &Places) -> Vec<(String, Option<String>)> {
        let pairs = paired(tables, places);
        let name = |pair: &Pair| {
            (pair.tables.schedules.to_string(), pair.tables.executions.as_ref().map(ToString::to_string))
        };
        pairs.iter().map(name).collect()
    }

    #[test]
    fn tables_of_one_schema_belong_together() {
        let (tasks, log) = ("scheduled_tasks", "task_execution_log");
        let tables = [
            table(1, "public", tasks, true),
            table(2, "locktop", tasks, false),
            table(3, "locktop", log, false),
            table(4, "public", log, true),
            table(5, "jobs", log, false),
        ];
        let pair = |schema: &str| (format!("{schema}.{tasks}"), Some(format!("{schema}.{log}")));
        assert_eq!(names(&tables, &Places::default()), [pair("public"), pair("locktop")]);
        assert_eq!(
            names(&tables[1..3], &Places::default()),
            [pair("locktop")],
            "neither is on the search path"
        );
        assert_eq!(names(&tables[2..], &Places::default()), [], "a log alone is of no use");
        let alone = [table(1, "public", tasks, true), table(4, "other", log, true)];
        let both = (format!("public.{tasks}"), Some(format!("other.{log}")));
        assert_eq!(names(&alone, &Places::default()), [both], "both on the search path");
        let on_path = [table(2, "locktop", tasks, true), table(3, "locktop", log, true)];
        assert_eq!(names(&on_path, &Places::default()), [pair("locktop")], "once, however it is found");
    }

    #[test]
    fn what_the_config_names_comes_in_place_of_what_is_on_the_search_path() {
        let tables = [
            table(1, "public", "scheduled_tasks", true),
            Table { is_schedules: true, ..table(2, "jobs", "things", false) },
            table(3, "jobs", "task_execution_log", false),
        ];
        let places = Places { schedules: Some("jobs.things".into()), executions: None };
        let found = ("jobs.things".to_owned(), Some("jobs.task_execution_log".to_owned()));
        assert_eq!(names(&tables, &places), [found]);
        let missing = Places { schedules: Some("nowhere".into()), executions: None };
        let pairs = paired(&tables[..1], &missing);
        assert!(pairs[0].schedules.as_ref().unwrap_err().contains("there is no table nowhere"));
    }

    #[test]
    fn names_are_quoted_and_what_is_absent_is_null() {
        let odd = Table { schema: "a\"b".to_owned(), ..table(1, "", "scheduled_tasks", true) };
        let text = paired(&[odd], &Places::default())[0].schedules.clone().unwrap();
        assert!(text.contains("ONLY \"a\"\"b\".\"scheduled_tasks\""), "{text}");
        assert!(text.contains("NULL::pg_catalog.float8 AS c8"), "{text}");
    }
}
