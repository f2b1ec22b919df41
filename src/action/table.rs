//! Changes a row of a table only if the row is exactly as it was seen.
//!
//! The table is identified by its OID. Its name is looked up first, and the statement that acts compares the OID of the
//! row's table: a table that was dropped and created again under the same name is a different table.

use postgres_protocol::escape::escape_identifier;
use serde::Deserialize;

use super::actor::Actor;
use super::message::{Access, Unanswered, note, packed, send, text};
use super::{ActionContext, ReportedOutcome};
use crate::model::plan::Outcome;
use crate::model::plan::rows::{Condition, Noted, RowAct, RowChange, RowStatement, TableShape};
use crate::pg::trust::TrustedOwners;
use crate::text::list;

#[derive(Debug, Deserialize)]
pub(super) struct ActedTable {
    #[serde(skip)]
    oid: u32,
    /// Whether it is in locktop's own schema.
    #[serde(skip)]
    is_own: bool,
    /// Statements that precede every statement about the table.
    #[serde(skip)]
    pub(super) guard: String,
    /// Its name, quoted for use in a statement.
    name: String,
    is_partitioned: bool,
    has_audit: bool,
    #[serde(flatten)]
    pub(super) found: TableShape,
}

/// The result; if a function made the change, from the word that it returned.
fn result_of(answer: StatementResult, done: String) -> ReportedOutcome {
    if answer.is_busy {
        return (Outcome::Refused, "its advisory key is held: a worker may be working on it".to_owned());
    }
    let detail = answer.detail.unwrap_or_default();
    match answer.outcome.as_deref() {
        None | Some("requeued" | "set_aside") => (Outcome::Done, done),
        Some("gave_up") => (Outcome::Done, format!("set aside as failed after its last attempt: {detail}")),
        Some("not_found" | "wrong_state") => (Outcome::Changed, detail),
        Some(_) => (Outcome::Refused, detail),
    }
}

impl ActionContext<'_> {
    /// The error is a result without a change of the row.
    pub(super) async fn carry_out(self, change: RowChange<'_>) -> Result<ReportedOutcome, ReportedOutcome> {
        let RowChange { table, is_own, statement, .. } = change;
        let table = self.find(table, is_own).await?;
        let statement = statement(&table.found).map_err(|why| (Outcome::Refused, why))?;
        let RowStatement { id, conditions, act, done } = statement;
        let row = ActedRow { table: &table, id, conditions };
        let answer = row.act(self, &row.sql(&act, &self.order.actor)).await?;
        Ok(result_of(answer, done))
    }

    /// Looks up the table by its OID. The error is the result of the command.
    pub(super) async fn find(self, oid: u32, is_own: bool) -> Result<ActedTable, ReportedOutcome> {
        let sql = format!(
            "SELECT {} \
             FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = {oid}",
            packed(
                "json_build_object('schema', n.nspname, 'name', c.relname, 'is_partitioned', c.relkind = 'p', \
                 'has_audit', to_regclass(format('%I.locktop_audit', n.nspname)) IS NOT NULL, \
                 'columns', (SELECT json_object_agg(a.attname, a.atttypid::int8) FROM pg_attribute AS a \
                              WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped))"
            )
        );
        let rows = send(self.client, Access::ReadOnly, &sql).await;
        let rows = rows.map_err(|error| match error.code() {
            Some(_) => (Outcome::Refused, error.to_string()),
            None => (Outcome::Uncertain, format!("nothing was requested yet: {error}")),
        })?;
        let Some(row) = rows.first() else {
            return Err((Outcome::Changed, "its table no longer exists".to_owned()));
        };
        let mut table: ActedTable = serde_json::from_str(row)
            .map_err(|error| (Outcome::Refused, format!("its table cannot be read: {error}")))?;
        let (schema, name) = (text(&table.found.schema), text(&table.name));
        (table.oid, table.is_own) = (oid, is_own);
        (table.name, table.found.schema) =
            (escape_identifier(&table.name), escape_identifier(&table.found.schema));
        table.guard = table.guard_of((&schema, &name), self.owners);
        Ok(table)
    }
}

impl ActedTable {
    /// Locks the table as the change would, so that it cannot be replaced and no trigger can be created on it. It must then
    /// be the table that was found, with a trusted owner. If functions of its schema are called, the whole schema must have
    /// a trusted owner.
    fn guard_of(&self, (schema, name): (&str, &str), owners: &TrustedOwners) -> String {
        let mut sql = format!(
            "LOCK TABLE {} IN ROW EXCLUSIVE MODE; {}; ",
            self.source(),
            owners.table_guard(&self.oid.to_string(), schema, name, true)
        );
        if self.is_own {
            sql.push_str(&owners.schema_guard(schema));
            sql.push_str("; ");
        }
        sql
    }

    /// `ONLY`, because tables that inherit from it may have any owner. The partitions of a partitioned table are included.
    fn source(&self) -> String {
        let only = if self.is_partitioned { "" } else { "ONLY " };
        format!("{only}{}.{}", self.found.schema, self.name)
    }

    fn is_in(&self) -> String {
        if self.is_partitioned {
            format!("{} IN (SELECT a.relid FROM pg_partition_ancestors(t.tableoid) AS a)", self.oid)
        } else {
            format!("t.tableoid = {}", self.oid)
        }
    }

    /// Inserts a row into the audit table of locktop's own schema for each row of `done`; empty if there is no audit table.
    fn audit(&self, actor: &Actor, noted: Noted) -> String {
        if !self.has_audit {
            return String::new();
        }
        let Noted { action, columns, values } = noted;
        format!(
            ", noted AS (INSERT INTO {}.locktop_audit (action, actor, {columns}) SELECT {}, {}, {values} FROM done AS d)",
            self.found.schema,
            text(action),
            note(&actor.to_string()),
        )
    }

    fn grants(&self, role: &str) -> String {
        let (role, schema, table) = (escape_identifier(role), &self.found.schema, &self.name);
        let usage = format!("GRANT USAGE ON SCHEMA {schema} TO {role}");
        let mut text = format!("{usage}; GRANT SELECT, UPDATE ON {schema}.{table} TO {role}");
        if self.is_own && self.has_audit {
            let audit = format!(
                "; GRANT INSERT ON {schema}.locktop_audit TO {role}; \
                 GRANT USAGE ON SEQUENCE {schema}.locktop_audit_id_seq TO {role}"
            );
            text.push_str(&audit);
        }
        text
    }
}

pub(super) struct ActedRow<'a> {
    pub(super) table: &'a ActedTable,
    /// The condition that identifies row `t`: its primary key.
    pub(super) id: String,
    pub(super) conditions: Vec<Condition>,
}

/// Takes a key until the end of the transaction, in SQL. `None` if no worker can be working on the row.
pub(super) fn free(key: Option<i64>) -> String {
    key.map_or_else(|| "true".to_owned(), |key| format!("pg_try_advisory_xact_lock({key}::bigint)"))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatementResult {
    done: u32,
    outcome: Option<String>,
    detail: Option<String>,
    /// Whether another session holds the row's key, so that it may be working on the row.
    pub(super) is_busy: bool,
}

impl ActedRow<'_> {
    fn is_seen(&self) -> String {
        let (source, id) = (self.table.source(), &self.id);
        let conditions = self.conditions.iter().map(|condition| format!(" AND ({})", condition.sql));
        // If the id is not unique, the row cannot be identified.
        format!(
            "{} AND {id}{} AND (SELECT count(*) FROM (SELECT FROM {source} AS t WHERE {id} LIMIT 2) AS o) = 1",
            self.table.is_in(),
            conditions.collect::<String>(),
        )
    }

    fn sql(&self, act: &RowAct, actor: &Actor) -> String {
        match act {
            RowAct::Set { set, returning, noted } => self.update(set, returning, &self.noted(*noted, actor)),
            RowAct::SetWhileFree { set, key } => self.update_while(set, &free(*key)),
            RowAct::Call(function) => self.call(function, actor),
            RowAct::Try { function, arguments, columns, noted } => {
                let call = format!("{}.{function}({arguments})", self.table.found.schema);
                self.attempt(&call, columns, &self.noted(Some(*noted), actor))
            }
        }
    }

    fn noted(&self, noted: Option<Noted>, actor: &Actor) -> String {
        noted.map(|noted| self.table.audit(actor, noted)).unwrap_or_default()
    }

    /// Locks the row before the function reads it, so that it is the row that was seen.
    fn call(&self, function: &str, actor: &Actor) -> String {
        format!(
            "SELECT {} \
             FROM (SELECT t.id FROM {} AS t WHERE {} FOR UPDATE SKIP LOCKED) AS q CROSS JOIN LATERAL {}.{function}(q.id, {}) AS r",
            packed("json_build_object('outcome', r.outcome, 'detail', r.detail)"),
            self.table.source(),
            self.is_seen(),
            self.table.found.schema,
            note(&actor.to_string()),
        )
    }

    /// Locks the row first, so that it cannot change before the call.
    fn attempt(&self, call: &str, columns: &[&str], audit: &str) -> String {
        let kept = columns.iter().map(|column| format!(", t.{column}::text AS {column}"));
        let kept = kept.collect::<String>();
        let named = columns.iter().map(|column| format!("r.{column}")).collect::<Vec<_>>().join(", ");
        format!(
            "WITH tried AS MATERIALIZED (SELECT {call} AS is_done{kept} FROM (SELECT t.* FROM {} AS t WHERE {} FOR UPDATE) AS t), \
             done AS MATERIALIZED (SELECT {named} FROM tried AS r WHERE r.is_done){audit} \
             SELECT json_build_object('done', (SELECT count(*) FROM done))",
            self.table.source(),
            self.is_seen(),
        )
    }

    fn update(&self, set: &str, returning: &str, audit: &str) -> String {
        format!(
            "WITH done AS (UPDATE {} AS t SET {set} WHERE {} RETURNING {returning}){audit} \
             SELECT json_build_object('done', (SELECT count(*) FROM done))",
            self.table.source(),
            self.is_seen(),
        )
    }

    pub(super) fn is_still_seen(&self) -> String {
        format!("EXISTS (SELECT FROM {} AS t WHERE {})", self.table.source(), self.is_seen())
    }

    /// As `update`, but only if the row's advisory key is [`free`]. The order is row, key, change: each step reads the
    /// result of the step before, and both locks are kept until the end of the transaction.
    pub(super) fn update_while(&self, set: &str, free: &str) -> String {
        format!(
            "WITH seen AS MATERIALIZED (SELECT t.id FROM {source} AS t WHERE {} FOR UPDATE SKIP LOCKED), \
             free AS MATERIALIZED (SELECT s.id, {free} AS is_free FROM seen AS s), \
             done AS (UPDATE {source} AS t SET {set} FROM free AS f WHERE f.is_free AND t.id = f.id AND {} RETURNING t.id) \
             SELECT json_build_object('done', (SELECT count(*) FROM done), \
                                      'is_busy', EXISTS (SELECT FROM free AS f WHERE NOT f.is_free))",
            self.is_seen(),
            self.table.is_in(),
            source = self.table.source(),
        )
    }

    /// Runs the statement, and reads what differs if nothing was changed. The error is a result without an answer of the
    /// server.
    pub(super) async fn act(
        &self,
        acting: ActionContext<'_>,
        act: &str,
    ) -> Result<StatementResult, ReportedOutcome> {
        let role = &acting.order.actor.role;
        // Times without a zone have the same meaning as in the poll.
        let guard = &self.table.guard;
        let sql = format!("SET LOCAL TimeZone TO DEFAULT; {guard}{act}; {}", self.differs());
        let rows = send(acting.client, Access::ReadWrite, &sql).await;
        let rows = rows.map_err(|error| {
            let needs = || format!("role {role} needs: {}", self.table.grants(role));
            refused(&error, "its row", needs)
        })?;
        // The last row shows what differs; an answer precedes it if a row was found to act on.
        let (comparison, answer) = match rows.as_slice() {
            [comparison] => (comparison, None),
            [answer, .., comparison] => (comparison, Some(answer)),
            [] => return Err((Outcome::Uncertain, "the server answers nothing".to_owned())),
        };
        let answer = answer.map(|answer| serde_json::from_str::<StatementResult>(answer)).transpose();
        let answer = answer
            .map_err(|error| (Outcome::Uncertain, format!("the answer cannot be read: {error}")))?
            .filter(|answer| answer.done > 0 || answer.outcome.is_some() || answer.is_busy);
        answer.ok_or_else(|| nothing(comparison))
    }

    fn differs(&self) -> String {
        let names = self.conditions.iter().map(|condition| {
            format!("CASE WHEN ({}) IS NOT TRUE THEN {} END", condition.sql, text(condition.name))
        });
        let names: Vec<String> = names.chain(["NULL::text".to_owned()]).collect();
        format!(
            "SELECT json_build_object('rows', count(*), 'differs', json_agg(array_remove(ARRAY[{}], NULL))) \
             FROM {} AS t WHERE {} AND {}",
            names.join(", "),
            self.table.source(),
            self.table.is_in(),
            self.id,
        )
    }
}

/// Why a statement that writes has no answer: `needs` are the privileges that the role lacks.
pub(super) fn refused(error: &Unanswered, locked: &str, needs: impl FnOnce() -> String) -> ReportedOutcome {
    match error.code() {
        Some("42501") => (Outcome::Forbidden, format!("{error}; what {}", needs())),
        Some("55P03") => (Outcome::Refused, format!("{locked} is locked: {error}")),
        Some(_) => (Outcome::Refused, error.to_string()),
        None => (Outcome::Uncertain, format!("{error}: not known whether it was done")),
    }
}

#[derive(Debug, Deserialize)]
struct RowAsItIs {
    rows: u32,
    differs: Option<Vec<Vec<String>>>,
}

fn nothing(comparison: &str) -> ReportedOutcome {
    let Ok(comparison) = serde_json::from_str::<RowAsItIs>(comparison) else {
        return (Outcome::Changed, "it has changed".to_owned());
    };
    let differs: Vec<String> = comparison.differs.into_iter().flatten().flatten().collect();
    match (comparison.rows, differs.is_empty()) {
        (0, _) => (Outcome::Changed, "its row no longer exists".to_owned()),
        (1, false) => (Outcome::Changed, format!("since it was seen, {}", list(&differs))),
        (1, true) => (Outcome::Refused, "its row is locked".to_owned()),
        (rows, _) => (Outcome::Refused, format!("{rows} rows have this id: the row cannot be identified")),
    }
}
