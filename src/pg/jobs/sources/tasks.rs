//! Tables of tasks: schedules and the log of their executions, which belong together.

use std::sync::Arc;

use futures_util::future::{OptionFuture, join, join_all};
use tokio_postgres::Client;

use super::reader::{ChosenTable, PollDecoding, SourceAnswer, SourceReader, TableSource};
use super::search::{FoundTables, hidden, missing};
use crate::model::Text;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::task::{Execution, Schedule, TaskSet, TaskTables};
use crate::pg::jobs::tables::{Table, meant};
use crate::pg::{Scope, SectionError};

#[derive(Debug)]
pub(super) struct Pair {
    tables: Arc<TaskTables>,
    schedules: SourceReader<Schedule>,
    log: Option<SourceReader<Execution>>,
}

/// Answers for the schedules and for their log; None if there is no log.
pub(super) type PairAnswer = (SourceAnswer, Option<SourceAnswer>);

pub(super) async fn prepared(
    client: &Client,
    scope: Scope,
    found: &FoundTables,
) -> Result<Vec<Pair>, SectionError> {
    let mut pairs = Vec::new();
    let all = chosen(found);
    let hidden = hidden(all.iter().map(|(schedules, _)| schedules));
    for ((schedules, log), hides) in all.into_iter().zip(hidden) {
        let table = if let ChosenTable::Table(table) = schedules { Some(table) } else { None };
        let schedules = found.reader(client, scope, (schedules, hides), None).await?;
        let log = match log {
            Some(log) => Some(found.reader(client, scope, (log, None), table).await?),
            None => None,
        };
        pairs.push(Pair::new(schedules, log));
    }
    Ok(pairs)
}

/// The pairs that the config names, else those on the search path; in addition those in schema `locktop`.
fn chosen<'a>(found: &'a FoundTables) -> Vec<(ChosenTable<'a>, Option<ChosenTable<'a>>)> {
    let names = [Schedule::TABLE, Execution::TABLE];
    // One invalid name makes both unusable.
    if let Some((_, reason)) = found.bad.iter().find(|(name, _)| names.contains(name)) {
        let name = names.into_iter().find_map(|name| found.places.of(name)).unwrap_or_default();
        return vec![(ChosenTable::Refused(name.into(), reason.clone()), None)];
    }
    let mut log_place = found.configured::<Execution>();
    let mut in_config = found.configured::<Schedule>();
    // A table that the config does not name is searched by its usual name in the schema of the one that it names.
    if in_config.is_empty() && !log_place.is_empty() {
        let refused = |reason| ChosenTable::Refused(Schedule::TABLE.into(), reason);
        let beside_log = |log: &Table| {
            found.tables.iter().find(|table| table.name == Schedule::TABLE && table.schema == log.schema)
        };
        let beside: Vec<_> = found.given(Execution::TABLE).into_iter().filter_map(beside_log).collect();
        in_config.extend(
            beside.iter().filter(|table| Schedule::is_one(table)).map(|table| ChosenTable::Table(table)),
        );
        if in_config.is_empty() {
            in_config.push(refused(match beside.first() {
                None => missing(Schedule::TABLE),
                Some(_) => format!("{} {}", Schedule::TABLE, Schedule::LACKS).into(),
            }));
        }
    }
    let all = found.chosen::<Schedule>(in_config);
    // The log in the config belongs to the first trusted table of schedules.
    let is_trusted =
        |one: &ChosenTable<'_>| matches!(one, ChosenTable::Table(table) if table.stranger.is_none());
    let first = all.iter().position(is_trusted).unwrap_or_default();
    let with_log = |(place, schedules): (usize, ChosenTable<'a>)| {
        let log = if place == first { log_place.pop() } else { None };
        let log = match &schedules {
            ChosenTable::Table(table) => log.or_else(|| log_next_to(found, table)),
            ChosenTable::Refused(..) => None,
        };
        (schedules, log)
    };
    all.into_iter().enumerate().map(with_log).collect()
}

/// The log of a table of schedules: in the same schema, else on the search path. For schedules of an untrusted owner the
/// log must have the same owner.
fn log_next_to<'a>(found: &'a FoundTables, schedules: &Table) -> Option<ChosenTable<'a>> {
    let logs =
        || found.tables.iter().filter(|table| table.name == Execution::TABLE && Execution::is_one(table));
    let beside = logs().find(|table| table.schema == schedules.schema);
    let on_path = || {
        schedules.path?;
        let goes_with = |log: &&Table| schedules.stranger.is_none() || schedules.stranger == log.stranger;
        // The trusted log is the last.
        meant(logs()).into_iter().rfind(goes_with)
    };
    beside.or_else(on_path).map(ChosenTable::Table)
}

impl Pair {
    fn new(schedules: SourceReader<Schedule>, log: Option<SourceReader<Execution>>) -> Self {
        let of = &schedules.source;
        let of_log = log.as_ref().map(|log| &log.source);
        let tables = TaskTables {
            table: of.table,
            log: of_log.map(|log| log.table).filter(|oid| *oid != 0),
            schedules: of.name.clone(),
            executions: of_log.map(|log| log.name.clone()),
            own_keys: of.own_keys && of_log.is_some_and(|log| log.own_keys),
            key_rule: of.key_rule.clone(),
            has_function: of.has_function || of_log.is_some_and(|log| log.has_function),
            owner: of.owner.clone(),
            growth: of_log.map(|log| log.growth).unwrap_or_default(),
        };
        Self { tables: Arc::new(tables), schedules, log }
    }

    fn same<'a>(&self, before: Option<&'a Snapshot>) -> Option<&'a TaskSet> {
        before?.task_sets.iter().find(|set| set.tables == self.tables)
    }

    async fn read(&self, client: &Client, before: Option<&Snapshot>) -> PairAnswer {
        let (has_old, locks) = (self.same(before).is_some(), before.map(|before| &before.locks));
        let log = self.log.as_ref().map(|log| log.read(client, has_old, locks));
        join(self.schedules.read(client, has_old, locks), OptionFuture::from(log)).await
    }

    fn set(
        &mut self,
        decoding: &mut PollDecoding<'_>,
        (schedules, log): PairAnswer,
        before: Option<&Snapshot>,
    ) -> TaskSet {
        let old = self.same(before);
        let tasks = decoding.section(&mut self.schedules, schedules, old.map(|old| &old.tasks));
        let executions = match self.log.as_mut().zip(log) {
            Some((reader, log)) => decoding.section(reader, log, old.map(|old| &old.executions)),
            None => Section::default(),
        };
        TaskSet::new(Arc::clone(&self.tables), tasks, executions)
    }
}

pub(super) async fn read(client: &Client, pairs: &[Pair], before: Option<&Snapshot>) -> Vec<PairAnswer> {
    join_all(pairs.iter().map(|pair| pair.read(client, before))).await
}

pub(super) fn sets(
    pairs: &mut [Pair],
    decoding: &mut PollDecoding<'_>,
    answers: Vec<PairAnswer>,
    before: Option<&Snapshot>,
) -> Vec<TaskSet> {
    pairs.iter_mut().zip(answers).map(|(pair, answers)| pair.set(decoding, answers, before)).collect()
}

/// A set of an earlier snapshot, if it is not known whether its tables still exist.
pub(super) fn aged(set: &TaskSet, reason: &Text) -> TaskSet {
    let executions = match set.tables.executions {
        Some(_) => set.executions.stale(reason.clone()),
        None => set.executions.clone(),
    };
    TaskSet::new(Arc::clone(&set.tables), set.tasks.stale(reason.clone()), executions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pg::jobs::sources::reader::TableLocations;
    use crate::pg::jobs::sources::reader::statement;
    use crate::pg::jobs::tables::{Index, TableColumn, TableReading};

    fn table(oid: u32, schema: &str, name: &str, is_visible: bool) -> Table {
        let columns = [("id", 23), ("task_name", 25), ("task_id", 23), ("status", 25), ("started_at", 1184)];
        let column =
            |(name, kind): (&str, u32)| TableColumn { name: name.to_owned(), kind, generated: String::new() };
        let index = |columns: &str| {
            let columns: Vec<&str> = columns.split(' ').collect();
            let json = serde_json::json!({"is_unique": false, "is_partial": false, "only": null, "columns": columns});
            serde_json::from_value::<Index>(json).unwrap()
        };
        Table {
            oid,
            schema: schema.to_owned(),
            name: name.to_owned(),
            path: is_visible.then_some(1),
            columns: columns.into_iter().map(column).collect(),
            indexes: ["id", "status started_at", "task_id started_at"].into_iter().map(index).collect(),
            ..Table::default()
        }
    }

    fn found(tables: &[Table], places: TableLocations) -> FoundTables {
        let names = [Schedule::TABLE, Execution::TABLE].into();
        FoundTables { tables: tables.to_vec(), names, places, bad: Vec::new() }
    }

    fn names(tables: &[Table], places: TableLocations) -> Vec<(String, Option<String>)> {
        let name = |chosen: &ChosenTable<'_>| match chosen {
            ChosenTable::Table(table) => table.label(),
            ChosenTable::Refused(_, reason) => reason.to_string(),
        };
        let found = found(tables, places);
        chosen(&found).iter().map(|(one, log)| (name(one), log.as_ref().map(name))).collect()
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
        assert_eq!(names(&tables, TableLocations::default()), [pair("public"), pair("locktop")]);
        assert_eq!(
            names(&tables[1..3], TableLocations::default()),
            [pair("locktop")],
            "neither is on the search path"
        );
        assert_eq!(names(&tables[2..], TableLocations::default()), [], "a log alone is of no use");
        let alone = [table(1, "public", tasks, true), table(4, "other", log, true)];
        let both = (format!("public.{tasks}"), Some(format!("other.{log}")));
        assert_eq!(names(&alone, TableLocations::default()), [both], "both on the search path");
        let on_path = [table(2, "locktop", tasks, true), table(3, "locktop", log, true)];
        assert_eq!(
            names(&on_path, TableLocations::default()),
            [pair("locktop")],
            "once, however it is found"
        );
    }

    #[test]
    fn a_configured_table_replaces_the_one_on_the_search_path() {
        let tables = [
            table(1, "public", "scheduled_tasks", true),
            Table { given: vec![1], ..table(2, "jobs", "things", false) },
            table(3, "jobs", "task_execution_log", false),
        ];
        let places = TableLocations::default().with("scheduled_tasks", "jobs.things");
        let pair = ("jobs.things".to_owned(), Some("jobs.task_execution_log".to_owned()));
        assert_eq!(names(&tables, places), [pair]);
        let missing = TableLocations::default().with("scheduled_tasks", "nowhere");
        assert!(names(&tables[..1], missing)[0].0.contains("the table nowhere of"));
    }

    #[test]
    fn names_are_quoted_and_absent_columns_are_null() {
        let odd = Table { schema: "a\"b".to_owned(), ..table(1, "", "scheduled_tasks", true) };
        let Ok(TableReading::Statement(text, _)) = statement::<Schedule>(&odd, None, Scope::Own) else {
            panic!("its owner is trusted")
        };
        assert!(text.contains("ONLY \"a\"\"b\".\"scheduled_tasks\""), "{text}");
        assert!(text.contains("NULL::pg_catalog.float8 AS c8"), "{text}");
    }
}
