//! A row of a table, and changing it only if it is exactly as it was seen.
//!
//! The table is known by its OID. Its name is looked up first, and the statement that acts compares the OID of the table that the row
//! is in: a table that was dropped and made again under the same name is another one.

use std::collections::BTreeMap;

use serde::Deserialize;
use tokio_postgres::Client;

use super::actor::Actor;
use super::message::{Access, Unanswered, note, packed, send, text};
use super::words;
use crate::model::plan::Outcome;
use crate::pg::trust::TrustedOwners;

/// A table as it is called now.
#[derive(Debug, Deserialize)]
pub(super) struct Table {
    #[serde(skip)]
    oid: u32,
    /// What goes before everything that is done to it.
    #[serde(skip)]
    guard: String,
    schema: String,
    name: String,
    is_partitioned: bool,
    has_audit: bool,
    /// OIDs of their types.
    columns: BTreeMap<String, u32>,
}

/// What a type of a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Zoned,
    Time,
    Interval,
    Number,
    Other,
}

impl Table {
    /// Looks it up.
    pub(super) async fn find(
        client: &Client,
        oid: u32,
        is_own: bool,
        owners: &TrustedOwners,
    ) -> Result<Self, (Outcome, String)> {
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
        let rows = send(client, Access::ReadOnly, &sql).await;
        let rows = rows.map_err(|error| match error.code() {
            Some(_) => (Outcome::Refused, error.to_string()),
            None => (Outcome::Uncertain, format!("nothing was asked yet: {error}")),
        })?;
        let Some(row) = rows.first() else {
            return Err((Outcome::Changed, "its table is gone".to_owned()));
        };
        let table: Self = serde_json::from_str(row)
            .map_err(|error| (Outcome::Refused, format!("its table cannot be read: {error}")))?;
        let guard = table.guard(oid, is_own, owners);
        Ok(Self { oid, guard, ..table })
    }

    /// The table is locked as its change would lock it, so that nobody can put another one in its place or make a trigger on it. Then it has to be the one that was found, of an owner
    /// who is trusted; and where functions beside it are called, so has all of their schema.
    fn guard(&self, oid: u32, is_own: bool, owners: &TrustedOwners) -> String {
        let (schema, name) = (text(&self.schema), text(&self.name));
        let mut sql = format!(
            "LOCK TABLE {} IN ROW EXCLUSIVE MODE; {}; ",
            self.source(),
            owners.table_guard(&oid.to_string(), &schema, &name, true)
        );
        if is_own {
            sql.push_str(&owners.schema_guard(&schema));
            sql.push_str("; ");
        }
        sql
    }

    /// `ONLY`, since those that inherit from it may be anybody's; not so the parts of a partitioned one.
    pub(super) fn source(&self) -> String {
        let only = if self.is_partitioned { "" } else { "ONLY " };
        format!("{only}{}.{}", quoted(&self.schema), quoted(&self.name))
    }

    /// A function or table beside it.
    pub(super) fn beside(&self, name: &str) -> String {
        format!("{}.{name}", quoted(&self.schema))
    }

    /// That the row `t` is in this table.
    pub(super) fn is_in(&self) -> String {
        if self.is_partitioned {
            format!("{} IN (SELECT a.relid FROM pg_partition_ancestors(t.tableoid) AS a)", self.oid)
        } else {
            format!("t.tableoid = {}", self.oid)
        }
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    pub(super) fn kind(&self, column: &str) -> Option<Kind> {
        self.columns.get(column).map(|oid| match oid {
            1184 => Kind::Zoned,
            1114 | 1082 => Kind::Time,
            1186 => Kind::Interval,
            20 | 21 | 23 | 700 | 701 | 1700 => Kind::Number,
            _ => Kind::Other,
        })
    }

    /// What writes a row to the audit of locktop's own schema, for each row of `done`; nothing where there is none.
    pub(super) fn audit(&self, actor: &Actor, action: &str, columns: &str, values: &str) -> String {
        if !self.has_audit {
            return String::new();
        }
        format!(
            ", noted AS (INSERT INTO {}.locktop_audit (action, actor, {columns}) SELECT {}, {}, {values} FROM done AS d)",
            quoted(&self.schema),
            text(action),
            note(&actor.to_string()),
        )
    }

    /// What a role needs to change rows of it.
    fn grants(&self, role: &str, is_own: bool) -> String {
        let (role, schema) = (quoted(role), quoted(&self.schema));
        let table = quoted(&self.name);
        let usage = format!("GRANT USAGE ON SCHEMA {schema} TO {role}");
        let mut text = format!("{usage}; GRANT SELECT, UPDATE ON {schema}.{table} TO {role}");
        if is_own && self.has_audit {
            let audit = format!(
                "; GRANT INSERT ON {schema}.locktop_audit TO {role}; \
                 GRANT USAGE ON SEQUENCE {schema}.locktop_audit_id_seq TO {role}"
            );
            text.push_str(&audit);
        }
        text
    }
}

fn quoted(name: &str) -> String {
    postgres_protocol::escape::escape_identifier(name)
}

/// What has to be as it was seen: what it is called, and what is true of the row `t` then.
pub(super) struct Condition {
    pub(super) name: &'static str,
    pub(super) sql: String,
}

impl Condition {
    pub(super) fn new(name: &'static str, sql: impl Into<String>) -> Self {
        Self { name, sql: sql.into() }
    }

    /// A column that has to have this value, NULL being one.
    pub(super) fn same(name: &'static str, column: &str, value: &str) -> Self {
        Self::new(name, format!("{column} IS NOT DISTINCT FROM {value}"))
    }
}

/// A row, and what has to be true of it.
pub(super) struct Row<'a> {
    pub(super) table: &'a Table,
    /// Which row `t`.
    pub(super) id: String,
    pub(super) conditions: Vec<Condition>,
}

/// What the server answers: whether it was done, then how the row is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    /// Rows to which it was done.
    done: u32,
    /// A word of a function that does it.
    pub(super) outcome: Option<String>,
    pub(super) detail: Option<String>,
    /// Somebody works on it.
    pub(super) is_busy: bool,
}

/// What came of it.
pub(super) enum Told {
    /// The server did something, or says why not.
    Answer(Answer),
    /// It did nothing.
    Nothing(Outcome, String),
}

impl Row<'_> {
    /// What is true of the row `t` if it is the one that was seen.
    pub(super) fn is_seen(&self) -> String {
        let (source, id) = (self.table.source(), &self.id);
        let conditions = self.conditions.iter().map(|condition| format!(" AND ({})", condition.sql));
        // Where an id is not unique, nobody can tell which row was meant.
        format!(
            "{} AND {id}{} AND (SELECT count(*) FROM (SELECT FROM {source} AS t WHERE {id} LIMIT 2) AS o) = 1",
            self.table.is_in(),
            conditions.collect::<String>(),
        )
    }

    /// Changes the row if it is the one that was seen. `audit` is what is noted of `done`.
    pub(super) fn update(&self, set: &str, returning: &str, audit: &str) -> String {
        format!(
            "WITH done AS (UPDATE {} AS t SET {set} WHERE {} RETURNING {returning}){audit} \
             SELECT json_build_object('done', (SELECT count(*) FROM done))",
            self.table.source(),
            self.is_seen(),
        )
    }

    /// The same, only if nobody holds an advisory key; none is asked for where no worker may be at it. The row first, then the key, then the
    /// change: each reads what the one before found, and both are kept to the end of the transaction.
    pub(super) fn update_while_free(&self, set: &str, key: Option<i64>) -> String {
        let free =
            key.map_or_else(|| "true".to_owned(), |key| format!("pg_try_advisory_xact_lock({key}::bigint)"));
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

    /// Has the server act, and looks what differs where it did nothing.
    pub(super) async fn act(&self, client: &Client, act: &str, role: &str, is_own: bool) -> Told {
        // Times without a zone mean what they mean to the poll.
        let guard = &self.table.guard;
        let sql = format!("SET LOCAL TimeZone TO DEFAULT; {guard}{act}; {}", self.differs());
        let rows = match send(client, Access::ReadWrite, &sql).await {
            Ok(rows) => rows,
            Err(error) => {
                let (outcome, detail) = self.refused(&error, role, is_own);
                return Told::Nothing(outcome, detail);
            }
        };
        // The last row is of the look; nothing before it where no row was found to act on.
        let (look, answer) = match rows.as_slice() {
            [look] => (look, None),
            [answer, .., look] => (look, Some(answer)),
            [] => return Told::Nothing(Outcome::Uncertain, "the server answers nothing".to_owned()),
        };
        if let Some(answer) = answer {
            match serde_json::from_str::<Answer>(answer) {
                Ok(answer) if answer.done > 0 || answer.outcome.is_some() || answer.is_busy => {
                    return Told::Answer(answer);
                }
                Ok(_) => {}
                Err(error) => {
                    return Told::Nothing(Outcome::Uncertain, format!("the answer cannot be read: {error}"));
                }
            }
        }
        let (outcome, detail) = nothing(look);
        Told::Nothing(outcome, detail)
    }

    /// What is not as it was seen.
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

    fn refused(&self, error: &Unanswered, role: &str, is_own: bool) -> (Outcome, String) {
        match error.code() {
            Some("42501") => {
                let grants = self.table.grants(role, is_own);
                (Outcome::Forbidden, format!("{error}; what role {role} needs: {grants}"))
            }
            Some("55P03") => (Outcome::Refused, format!("its row is locked: {error}")),
            Some(_) => (Outcome::Refused, error.to_string()),
            None => (Outcome::Uncertain, format!("{error}: whether it was done is not known")),
        }
    }
}

/// How a row is that nothing was done to.
#[derive(Debug, Deserialize)]
struct Look {
    rows: u32,
    differs: Option<Vec<Vec<String>>>,
}

fn nothing(look: &str) -> (Outcome, String) {
    let Ok(look) = serde_json::from_str::<Look>(look) else {
        return (Outcome::Changed, "it is not as it was seen".to_owned());
    };
    let differs: Vec<String> = look.differs.into_iter().flatten().flatten().collect();
    match (look.rows, differs.is_empty()) {
        (0, _) => (Outcome::Changed, "its row is gone".to_owned()),
        (1, false) => (Outcome::Changed, format!("since it was seen, {}", words::list(&differs))),
        (1, true) => (Outcome::Refused, "its row is locked".to_owned()),
        (rows, _) => {
            (Outcome::Refused, format!("there are {rows} rows of this id: which one is meant cannot be told"))
        }
    }
}
