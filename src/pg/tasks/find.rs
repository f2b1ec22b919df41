//! Which of the tables found belong together.

use tokio_postgres::Row;

use super::Places;
use super::statements::{self, Pair};
use crate::model::task::TaskTables;
use crate::pg::tables::{Kind, Table, given};

/// Place of the table of schedules in what the config says.
const SCHEDULES: usize = 0;
/// Place of the log there.
const LOG: usize = 1;

/// Whether it can be what its name says: a stranger's table may bear the same.
fn is_tasks(table: &Table) -> bool {
    table.kind("id") == Some(Kind::Int) && table.kind("task_name").is_some()
}

fn is_executions(table: &Table) -> bool {
    table.kind("id") == Some(Kind::Int)
        && table.kind("task_id") == Some(Kind::Int)
        && table.kind("status") == Some(Kind::Text)
}

/// The pairs: what the config names, else what is on the search path, and what is in schema `locktop`.
pub(super) fn pairs(rows: &[Row], places: &Places) -> Vec<Pair> {
    paired(&Table::all(rows, &places.key_rule), places)
}

pub(super) fn paired(tables: &[Table], places: &Places) -> Vec<Pair> {
    let schedules = |table: &&Table| table.name == "scheduled_tasks" && is_tasks(table);
    let mut pairs: Vec<Pair> = Vec::new();
    if places.is_named() {
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
    let mut logs = tables.iter().filter(|table| table.name == "task_execution_log" && is_executions(table));
    let beside = logs.clone().find(|table| table.schema == schedules.schema);
    beside.or_else(|| logs.find(|table| table.is_visible && schedules.is_visible))
}

/// The pair that the config names. What it does not name is beside what it names, by its usual name.
fn configured(tables: &[Table], places: &Places) -> Pair {
    let beside = |table: &Table, name: &str| {
        tables.iter().find(|other| other.name == name && other.schema == table.schema)
    };
    let named_log = given(tables, LOG);
    let schedules = match &places.schedules {
        Some(_) => given(tables, SCHEDULES),
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
    if !is_tasks(schedules) {
        return failed(&name, &format!("{name} has no columns id and task_name: it is no table of tasks"));
    }
    let mut pair = statements::pair(schedules, log.filter(|log| is_executions(log)));
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
    use crate::pg::tables::Plan;
    use crate::pg::tables::{Column, Index};

    fn table(oid: u32, schema: &str, name: &str, is_visible: bool) -> Table {
        let columns = [("id", 23), ("task_name", 25), ("task_id", 23), ("status", 25), ("started_at", 1184)];
        let column =
            |(name, kind): (&str, u32)| Column { name: name.to_owned(), kind, generated: String::new() };
        let index = |columns: &str| {
            let columns: Vec<&str> = columns.split(' ').collect();
            let json = serde_json::json!({"is_unique": false, "is_partial": false, "only": null, "columns": columns});
            serde_json::from_value::<Index>(json).unwrap()
        };
        Table {
            oid,
            schema: schema.to_owned(),
            name: name.to_owned(),
            is_visible,
            columns: columns.into_iter().map(column).collect(),
            indexes: ["id", "status started_at", "task_id started_at"].into_iter().map(index).collect(),
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
            Table { given: vec![1], ..table(2, "jobs", "things", false) },
            table(3, "jobs", "task_execution_log", false),
        ];
        let places = Places { schedules: Some("jobs.things".into()), ..Places::default() };
        let found = ("jobs.things".to_owned(), Some("jobs.task_execution_log".to_owned()));
        assert_eq!(names(&tables, &places), [found]);
        let missing = Places { schedules: Some("nowhere".into()), ..Places::default() };
        let pairs = paired(&tables[..1], &missing);
        assert!(pairs[0].schedules.as_ref().unwrap_err().contains("there is no table nowhere"));
    }

    #[test]
    fn names_are_quoted_and_what_is_absent_is_null() {
        let odd = Table { schema: "a\"b".to_owned(), ..table(1, "", "scheduled_tasks", true) };
        let Plan::Statement(text) = paired(&[odd], &Places::default())[0].schedules.clone().unwrap() else {
            panic!("its owner is trusted")
        };
        assert!(text.contains("ONLY \"a\"\"b\".\"scheduled_tasks\""), "{text}");
        assert!(text.contains("NULL::pg_catalog.float8 AS c8"), "{text}");
    }
}
