//! Copies what is new in each table, under free ids.

use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use super::super::error::{SchemaError, words};
use super::super::place::Schema;
use super::column::{ColumnKind, left_out};
use super::notes::{self, Copied, Verdict};
use super::source::{Source, Table};
use super::tables::{LOG, Published, QUEUE, TASKS};
use super::{Adopt, Taken};
use crate::sql::{fill, without_comments};

const TASKS_SQL: &str = include_str!("../../../assets/sql/adopt/tasks.sql");
const EXECUTIONS_SQL: &str = include_str!("../../../assets/sql/adopt/executions.sql");
const ITEMS_SQL: &str = include_str!("../../../assets/sql/adopt/items.sql");
const JUDGED: &str = include_str!("../../../assets/sql/adopt/judged.sql");
const RESERVE: &str = include_str!("../../../assets/sql/adopt/reserve.sql");
const INSERT: &str = include_str!("../../../assets/sql/adopt/insert.sql");
const ENABLE: &str = include_str!("../../../assets/sql/adopt/enable.sql");

type Parameters<'a> = [(&'a (dyn ToSql + Sync), Type)];

pub(super) struct Copy<'a> {
    pub(super) transaction: &'a Transaction<'a>,
    pub(super) place: &'a Schema,
    pub(super) source: &'a Source,
    pub(super) asked: &'a Adopt,
}

impl Copy<'_> {
    /// Copies the tasks; also returns how many are enabled there and not here.
    pub(super) async fn tasks(&self, table: &Table) -> Result<(Taken, i64), SchemaError> {
        let bad = self.misunderstood(table).await?;
        let schedules: Vec<&str> = bad.iter().map(|(schedule, _)| schedule.as_str()).collect();
        let parameters: &Parameters<'_> = &[(&schedules, Type::TEXT_ARRAY)];
        let enabled = if has(table, "is_enabled", ColumnKind::Boolean) {
            column(table, "t", "is_enabled")
        } else {
            "true".to_owned()
        };
        let mut values = values(table, "t", &TASKS);
        values.push(("$is_enabled".to_owned(), enabled));
        values.push(("$tasks".to_owned(), self.source.name(table)));
        let found = self.filled(TASKS_SQL, &values);
        let enabled = if self.asked.enable {
            let sql = found.clone() + &self.filled(ENABLE, &[]);
            i64::try_from(self.transaction.execute_typed(&sql, parameters).await?).unwrap_or(i64::MAX)
        } else {
            0
        };
        let (verdicts, copied) = self.copy(&found, parameters, &TASKS).await?;
        let disabled = if self.asked.enable { 0 } else { self.disabled(&found, parameters).await? };
        let notes = notes::tasks(&verdicts, &copied, &bad, self.asked.enable);
        let taken = Taken {
            table: TASKS.name,
            rows: copied.rows,
            enabled,
            skipped: skipped(&verdicts),
            notes: with_columns(notes, table, &TASKS),
        };
        Ok((taken, disabled))
    }

    /// Copies the executions of the tasks that are here.
    pub(super) async fn executions(&self, tasks: &Table, log: &Table) -> Result<Taken, SchemaError> {
        let mut values = values(log, "e", &LOG);
        values.push(("$tasks".to_owned(), self.source.name(tasks)));
        values.push(("$log".to_owned(), self.source.name(log)));
        values.push(("$task_created_at".to_owned(), column(tasks, "t", "created_at")));
        let (verdicts, copied) = self.copy(&self.filled(EXECUTIONS_SQL, &values), &[], &LOG).await?;
        let notes = with_columns(notes::executions(&verdicts, &copied), log, &LOG);
        Ok(Taken { table: LOG.name, rows: copied.rows, enabled: 0, skipped: skipped(&verdicts), notes })
    }

    /// Copies the items of the queue; also returns how many were left there.
    pub(super) async fn items(&self, queue: &Table) -> Result<(Taken, i64), SchemaError> {
        let mut values = values(queue, "q", &QUEUE);
        values.push(("$queue".to_owned(), self.source.name(queue)));
        let (verdicts, copied) = self.copy(&self.filled(ITEMS_SQL, &values), &[], &QUEUE).await?;
        let open = verdicts.iter().filter(|verdict| verdict.name == "open").map(|verdict| verdict.rows).sum();
        let notes = with_columns(notes::items(&verdicts, &copied), queue, &QUEUE);
        Ok((Taken { table: QUEUE.name, rows: copied.rows, enabled: 0, skipped: 0, notes }, open))
    }

    /// Copies new rows by a query that classifies all rows.
    async fn copy(
        &self,
        found: &str,
        parameters: &Parameters<'_>,
        published: &Published,
    ) -> Result<(Vec<Verdict>, Copied), SchemaError> {
        let sql = found.to_owned() + &without_comments(JUDGED);
        let rows = self.transaction.query_typed(&sql, parameters).await?;
        let mut verdicts = Vec::with_capacity(rows.len());
        for row in rows {
            let (name, rows, first) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            verdicts.push(Verdict { name, rows, first });
        }
        if !verdicts.iter().any(|verdict| verdict.name == "fresh") {
            return Ok((verdicts, Copied::default()));
        }
        let base = self.reserve(found, parameters, published).await?;
        let into = self.ours(published.name);
        let insert = self.filled(
            INSERT,
            &[
                ("$into".to_owned(), into),
                ("$columns".to_owned(), published.written.to_owned()),
                ("$base".to_owned(), base.to_string()),
            ],
        );
        let sql = found.to_owned() + &insert;
        let rows = self.transaction.query_typed(&sql, parameters).await.map_err(taken_meanwhile)?;
        let copied = match rows.first() {
            Some(row) => Copied {
                rows: row.try_get(0)?,
                active: row.try_get(1)?,
                odd: row.try_get(2)?,
                renumbered: row.try_get(3)?,
                first: row.try_get::<_, Option<_>>(4)?.unwrap_or_default(),
            },
            None => Copied::default(),
        };
        Ok((verdicts, copied))
    }

    /// Advances the sequence of a table of locktop's past all ids that will be in it, before they are: a session that adds a
    /// row meanwhile gets none of them. A sequence does not follow a rollback, so this is not done in a dry run. The new ids
    /// begin above the returned number.
    async fn reserve(
        &self,
        found: &str,
        parameters: &Parameters<'_>,
        published: &Published,
    ) -> Result<i64, SchemaError> {
        let sequence = format!("{}_id_seq", published.name);
        let (into, of) = (self.ours(published.name), self.ours(&sequence));
        let values = [("$into".to_owned(), into), ("$sequence".to_owned(), of.clone())];
        let sql = found.to_owned() + &self.filled(RESERVE, &values);
        let rows = self.transaction.query_typed(&sql, parameters).await?;
        let Some(row) = rows.first() else { return Ok(0) };
        let (base, clashing): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if !self.asked.dry_run {
            // In one statement: never back behind values that others have drawn since. A new sequence begins with its last value.
            let sql = format!(
                "SELECT pg_catalog.setval({}::pg_catalog.regclass, $1) FROM {of} AS q \
                 WHERE q.last_value < $1 OR q.last_value = $1 AND NOT q.is_called",
                self.place.name.literal_of(&sequence)
            );
            self.transaction.query_typed(&sql, &[(&base.saturating_add(clashing), Type::INT8)]).await?;
        }
        Ok(base)
    }

    /// Schedules that locktop cannot parse, each with the error. One that remains in the text would make the whole statement
    /// fail.
    async fn misunderstood(&self, table: &Table) -> Result<Vec<(String, String)>, SchemaError> {
        let sql = format!(
            "SELECT DISTINCT s.schedule FROM (SELECT nullif(pg_catalog.btrim({}), '') AS schedule FROM ONLY {} AS t) AS s \
             WHERE s.schedule IS NOT NULL ORDER BY s.schedule",
            column(table, "t", "schedule_cron"),
            self.source.name(table)
        );
        let next = format!("SELECT {}.cron_next($1, pg_catalog.clock_timestamp())", self.place.quoted());
        let mut bad = Vec::new();
        for row in self.transaction.query_typed(&sql, &[]).await? {
            let schedule: String = row.try_get(0)?;
            self.transaction.batch_execute("SAVEPOINT schedule").await?;
            let Err(error) = self.transaction.query_typed(&next, &[(&schedule, Type::TEXT)]).await else {
                self.transaction.batch_execute("RELEASE SAVEPOINT schedule").await?;
                continue;
            };
            // Class 22: an invalid value.
            match error.as_db_error().filter(|db| db.code().code().starts_with("22")) {
                Some(db) => bad.push((schedule, db.message().to_owned())),
                None => return Err(error.into()),
            }
            self.transaction
                .batch_execute("ROLLBACK TO SAVEPOINT schedule; RELEASE SAVEPOINT schedule")
                .await?;
        }
        Ok(bad)
    }

    /// How many of the tasks that were taken, now or before, are enabled there and not here.
    async fn disabled(&self, found: &str, parameters: &Parameters<'_>) -> Result<i64, SchemaError> {
        let sql = format!(
            "{found}SELECT pg_catalog.count(*) FROM source AS s JOIN {} AS o \
             ON o.task_name = s.task_name AND o.created_at IS NOT DISTINCT FROM s.created_at \
             WHERE s.was_enabled AND o.is_enabled IS NOT TRUE",
            self.ours(TASKS.name)
        );
        let rows = self.transaction.query_typed(&sql, parameters).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.try_get(0))?)
    }

    /// A statement, with these values and the general ones. Of several values with one name, the later one counts.
    fn filled(&self, sql: &str, values: &[(String, String)]) -> String {
        let general = [
            ("$schema", self.place.quoted()),
            ("$source_name", self.source.schema.quoted_literal()),
            ("$enable", self.asked.enable.to_string()),
        ];
        let own = values.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let all: Vec<(&str, String)> = own.chain(general).collect();
        fill(&(without_comments(sql) + "\n"), &all)
    }

    fn ours(&self, name: &str) -> String {
        format!("{}.{name}", self.place.quoted())
    }
}

/// Rows that are not here, and were not left there for a later time.
fn skipped(verdicts: &[Verdict]) -> i64 {
    let kept = |verdict: &&Verdict| !matches!(verdict.name.as_str(), "fresh" | "here" | "open");
    verdicts.iter().filter(kept).map(|verdict| verdict.rows).sum()
}

/// The expression for each column of a table.
fn values(table: &Table, alias: &str, published: &Published) -> Vec<(String, String)> {
    let columns = published.read();
    columns.into_iter().map(|(name, kind)| (format!("${name}"), table.column(alias, name, kind))).collect()
}

fn has(table: &Table, name: &str, kind: ColumnKind) -> bool {
    super::column::has(&table.columns, name, kind)
}

fn column(table: &Table, alias: &str, name: &str) -> String {
    let kind = TASKS.read().into_iter().find_map(|(known, kind)| (known == name).then_some(kind));
    table.column(alias, name, kind.unwrap_or(ColumnKind::Text))
}

/// The same notes, and one about the columns that are not copied.
fn with_columns(mut notes: Vec<String>, table: &Table, published: &Published) -> Vec<String> {
    let left = left_out(&table.columns, &published.read());
    if !left.is_empty() {
        let columns = if left.len() == 1 { "column" } else { "columns" };
        notes.push(format!("{columns} not copied: {}", left.join(", ")));
    }
    notes
}

/// Another session has added a row with an id or name that was free a moment ago.
fn taken_meanwhile(error: tokio_postgres::Error) -> SchemaError {
    match error.as_db_error() {
        Some(db) if *db.code() == SqlState::UNIQUE_VIOLATION => SchemaError::Server(format!(
            "{}; if another session has just added that row here, run this again",
            words(db)
        )),
        _ => error.into(),
    }
}
