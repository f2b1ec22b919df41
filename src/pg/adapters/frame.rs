//! The messages that are sent: each is a transaction of its own.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use locktop_tasks::sql::{fill, without_comments};
use postgres_protocol::escape::{escape_identifier, escape_literal};

use super::act::literal;
use super::find::{Found, FoundTable};
use crate::model::adapter::{COUNTED, Column, Piece, ROWS, Template, Values};
use crate::pg::sql;
use crate::pg::trust::MARK;

/// The cursor of each message.
const CURSOR: &str = "locktop_adapter";

/// A query of an installation, filled in.
#[derive(Debug, Clone)]
pub(super) struct Framed {
    /// Before it: the settings, the locks and the guards.
    before: String,
    /// The query.
    query: String,
    /// OIDs of the tables that it names, with commas between them.
    oids: String,
    tables: Vec<u32>,
}

impl Framed {
    /// None where a table is missing that it names. What guards tables has to be prepared where it is sent ([`sql::prepare_guard`]).
    pub(super) fn new(found: &Found, template: &Template) -> Option<Self> {
        let mut tables = Vec::new();
        for key in template.tables() {
            tables.push(found.tables.get(key)?);
        }
        let query = filled(found, template, None)?;
        let mut before = without_comments(sql::ADAPTERS_FRAME);
        for table in &tables {
            let _ = write!(before, "\nLOCK TABLE {} IN ACCESS SHARE MODE;", source(table));
        }
        // Locked first, so that it is the one that was looked at when it is planned. Planning the guard takes ten times as long as running it.
        for table in &tables {
            let (schema, name) = (escape_literal(&table.schema), escape_literal(&table.name));
            let _ = write!(before, "\nEXECUTE {}({}, {schema}, {name});", sql::guard(), table.oid);
        }
        let oids: Vec<String> = tables.iter().map(|table| table.oid.to_string()).collect();
        let tables = tables
            .iter()
            .flat_map(|table| [table.oid].into_iter().chain(table.parts.iter().copied()))
            .collect();
        Some(Self { before, query, oids: oids.join(", "), tables })
    }

    /// The tables that it names with their parts, by OID.
    pub(super) fn tables(&self) -> Vec<u32> {
        self.tables.clone()
    }

    /// A message that only has it understood, looks at what it has named, and then asks for its columns, but for no row.
    pub(super) fn understood(&self, name: &str) -> String {
        let Self { before, query, oids, .. } = self;
        let named =
            fill(&without_comments(sql::ADAPTERS_NAMED), &[("$oids", oids.as_str()), ("$mark", MARK)]);
        format!(
            "{before}\nPREPARE {name} AS\n{query};\n{named};\nDEALLOCATE {name};\n\
             DECLARE {CURSOR} NO SCROLL CURSOR FOR\n{query};\nFETCH FORWARD 0 FROM {CURSOR};\nCLOSE {CURSOR}"
        )
    }

    /// A message that has it planned: the sizes of its tables come first, in a column `sizes`.
    pub(super) fn planned(&self, rows: &str) -> String {
        let Self { before, oids, .. } = self;
        let sizes = fill(&without_comments(sql::ADAPTERS_SIZES), &[("$oids", oids.as_str())]);
        format!(
            "{before}\n{sizes};\nEXPLAIN (FORMAT JSON, VERBOSE) DECLARE {CURSOR} NO SCROLL CURSOR FOR\n{rows}"
        )
    }

    /// A message that reads it: a row is the hexadecimal digits of a record of these columns, in a column `found`.
    pub(super) fn reading(&self, rows: &str) -> String {
        let (before, limit) = (&self.before, ROWS + 1);
        format!(
            "{before}\nDECLARE {CURSOR} NO SCROLL CURSOR FOR\n{rows};\nFETCH FORWARD {limit} FROM {CURSOR};\nCLOSE {CURSOR}"
        )
    }

    /// All columns of a part in their order, those NULL that the query lacks. The second half has no rows, but types: a column that does not
    /// go with its type is an error of the server.
    pub(super) fn rows(&self, columns: &[Column], has: &[String]) -> String {
        let (mut selected, mut typed) = (Vec::new(), Vec::new());
        for (place, (name, kind, _)) in columns.iter().enumerate() {
            let kind = kind.sql();
            selected.push(if has.iter().any(|one| one == name) {
                format!("q.{} AS c{place}", escape_identifier(name))
            } else {
                format!("NULL::{kind} AS c{place}")
            });
            typed.push(format!("NULL::{kind}"));
        }
        let query = &self.query;
        records(&format!("SELECT {} FROM (\n{query}\n) AS q", selected.join(", ")), &typed.join(", "))
    }

    /// The one text that it brings.
    pub(super) fn value(&self) -> String {
        let query = &self.query;
        records(&format!("SELECT * FROM (\n{query}\n) AS q (value)"), "NULL::pg_catalog.text")
    }
}

fn records(rows: &str, typed: &str) -> String {
    format!(
        "SELECT pg_catalog.encode(pg_catalog.record_send(u), 'hex') AS found FROM (\n\
         {rows}\nUNION ALL SELECT {typed} WHERE false) AS u"
    )
}

/// A name for a prepared statement that no other message uses.
pub(super) fn statement_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("locktop_adapter_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The query with its pieces filled in; `values` are those of the row that an action is about.
pub(super) fn filled(found: &Found, template: &Template, values: Option<&Values>) -> Option<String> {
    let mut query = String::new();
    for piece in template.pieces() {
        match piece {
            Piece::Text(text) => query.push_str(text),
            Piece::Table(key) => query.push_str(&source(found.tables.get(key)?)),
            Piece::Oid(key) => {
                let _ = write!(query, "{}::pg_catalog.oid", found.tables.get(key)?.oid);
            }
            Piece::Name(key) => query.push_str(&name(found.tables.get(key)?)),
            Piece::Limit => {
                let _ = write!(query, "{}", ROWS + 1);
            }
            Piece::Most => {
                let _ = write!(query, "{}", COUNTED + 1);
            }
            Piece::Each => query.push_str(&escape_literal(&found.prefix)),
            Piece::Value(value) => query.push_str(&literal(values?, *value)?),
            Piece::Setting(name) => {
                let setting = found.adapter.setting(name)?;
                // The server knows fewer units than the config, and other ones.
                let value = setting
                    .seconds
                    .map_or_else(|| setting.value.to_string(), |seconds| format!("{seconds} seconds"));
                query.push_str(&escape_literal(&value));
            }
        }
    }
    Some(query)
}

/// The table in SQL. `ONLY`, since those that inherit from it may be anybody's; not so the parts of a partitioned one.
pub(super) fn source(table: &FoundTable) -> String {
    let only = if table.is_partitioned() { "" } else { "ONLY " };
    format!("{only}{}", name(table))
}

fn name(table: &FoundTable) -> String {
    format!("{}.{}", escape_identifier(&table.schema), escape_identifier(&table.name))
}
