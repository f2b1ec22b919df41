//! Job systems of other software: which exist, and whether and how each may be read.
//!
//! One catalog query finds the tables of all adapters. An installation is a schema with all required tables of an
//! adapter. It is planned or read only if its tables and schema belong to trusted owners ([`crate::pg::trust`]). Each
//! query is first parsed, to see what it names, then planned, to see what it would cost ([`gate`]), and only then run.
//! Each step is one message: a read-only transaction in which the tables are locked and checked again.

mod act;
mod find;
pub mod gate;
mod reader;
mod survey;

use std::sync::atomic::{AtomicU64, Ordering};

use locktop_tasks::sql::{fill, without_comments};
use postgres_protocol::escape::{escape_identifier, escape_literal};

use crate::model::adapter::{ActionValue, COUNTED, ROWS, Template, TemplatePiece};
use crate::pg::decode::copy::CHARACTERS;
use crate::pg::jobs::tables::{ColumnKind, Columns, NamedTable, guarded, records};
use crate::pg::sql;
use crate::pg::trust::MARK;
use find::FoundInstallation;

pub use act::{ActError, act_message, find_statement};
pub(in crate::pg) use reader::Adapters;
pub use survey::survey;

// The messages that are sent: each is a separate transaction.

const CURSOR: &str = "locktop_adapter";

#[derive(Debug, Clone)]
struct Framed {
    before: String,
    query: Filled,
    /// OIDs of the tables that the query names, separated by commas.
    oids: String,
    /// OIDs of the tables that the query names, and of their parts.
    tables: Vec<u32>,
}

impl Framed {
    /// None if a table that the query names is missing. The guard of the tables must be prepared where the message is sent
    /// ([`sql::prepare_guard`]).
    fn new(found: &FoundInstallation, template: &Template) -> Option<Self> {
        let mut tables = Vec::new();
        for key in template.tables() {
            tables.push(found.tables.get(key)?);
        }
        let query = Filled::of(found, template, |_| None)?;
        let named: Vec<NamedTable<'_>> = tables.iter().map(|table| table.named()).collect();
        let before = without_comments(sql::ADAPTERS_FRAME) + &zone(found) + &guarded(&named);
        let oids: Vec<String> = tables.iter().map(|table| table.oid.to_string()).collect();
        let tables = tables
            .iter()
            .flat_map(|table| [table.oid].into_iter().chain(table.parts.iter().copied()))
            .collect();
        Some(Self { before, query, oids: oids.join(", "), tables })
    }

    fn origin(&self, message: &str, position: usize) -> Option<usize> {
        self.query.origin(message, position)
    }

    /// A message that parses the query, checks the objects that it names, and then fetches its columns without any row.
    fn understood(&self, name: &str) -> String {
        let Self { before, query: Filled { sql: query, .. }, oids, .. } = self;
        let named =
            fill(&without_comments(sql::ADAPTERS_NAMED), &[("$oids", oids.as_str()), ("$mark", MARK)]);
        format!(
            "{before}\nPREPARE {name} AS\n{query};\n{named};\nDEALLOCATE {name};\n\
             DECLARE {CURSOR} NO SCROLL CURSOR FOR\n{query};\nFETCH FORWARD 0 FROM {CURSOR};\nCLOSE {CURSOR}"
        )
    }

    /// A message that plans the query. The sizes of its tables come first, in a column `sizes`.
    fn planned(&self, rows: &str) -> String {
        let Self { before, oids, .. } = self;
        let sizes = fill(&without_comments(sql::ADAPTERS_SIZES), &[("$oids", oids.as_str())]);
        format!(
            "{before}\n{sizes};\nEXPLAIN (FORMAT JSON, VERBOSE) DECLARE {CURSOR} NO SCROLL CURSOR FOR\n{rows}"
        )
    }

    /// A message that reads the query. Each row is a record in hexadecimal digits, in a column `found`.
    fn reading(&self, rows: &str) -> String {
        let (before, limit) = (&self.before, ROWS + 1);
        format!(
            "{before}\nDECLARE {CURSOR} NO SCROLL CURSOR FOR\n{rows};\nFETCH FORWARD {limit} FROM {CURSOR};\nCLOSE {CURSOR}"
        )
    }

    /// All columns of a part in order, NULL if the query lacks one. The second half returns no rows but sets the types: a
    /// column of another type is a server error. Texts are truncated: one row of megabytes would use up the one second of the
    /// part.
    fn rows(&self, columns: Columns, has: &[String]) -> String {
        let (mut selected, mut typed, mut cut) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (name, kind, _)) in columns.iter().enumerate() {
            let sql = kind.sql();
            selected.push(if has.iter().any(|one| one == name) {
                format!("q.{} AS c{place}", escape_identifier(name))
            } else {
                format!("NULL::{sql} AS c{place}")
            });
            typed.push(typed_null(*kind));
            cut.push(match kind {
                ColumnKind::Text => format!("pg_catalog.left(t.c{place}, {CHARACTERS}) AS c{place}"),
                _ => format!("t.c{place}"),
            });
        }
        let (query, selected, typed) = (&self.query.sql, selected.join(", "), typed.join(", "));
        let rows = format!("SELECT {selected} FROM (\n{query}\n) AS q\nUNION ALL SELECT {typed} WHERE false");
        records(&format!("SELECT {} FROM (\n{rows}) AS t", cut.join(", ")))
    }

    fn value(&self) -> String {
        let query = &self.query.sql;
        let typed = "UNION ALL SELECT NULL::pg_catalog.text WHERE false";
        records(&format!("SELECT * FROM (\n{query}\n) AS q (value)\n{typed}"))
    }
}

/// The time zone of timestamps without a zone, if it is not UTC.
fn zone(found: &FoundInstallation) -> String {
    let zone = found.adapter.time_zone.as_deref();
    zone.map(|zone| format!("\nSET LOCAL TimeZone = {};", escape_literal(zone))).unwrap_or_default()
}

fn typed_null(kind: ColumnKind) -> String {
    format!("NULL::{}", kind.sql())
}

/// The column whose type cast is at this position of a message: the query returns another type for it.
fn mistyped(message: &str, position: usize, columns: Columns) -> Option<(&'static str, ColumnKind)> {
    let typed: Vec<String> = columns.iter().map(|(_, kind, _)| typed_null(*kind)).collect();
    let begins = message.get(..message.rfind(&typed.join(", "))?)?.chars().count();
    let mut rest = position.checked_sub(begins + 1)?;
    for (column, typed) in columns.iter().zip(typed) {
        if rest < typed.len() {
            return Some((column.0, column.1));
        }
        rest = rest.checked_sub(typed.len() + ", ".len())?;
    }
    None
}

fn statement_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("locktop_adapter_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

#[derive(Debug, Clone)]
struct Filled {
    sql: String,
    /// For each piece: its length in characters in the file and here, and whether its text is the same in both.
    pieces: Vec<(usize, usize, bool)>,
}

impl Filled {
    /// `value` gives the values of the row that an action is for. None if a value or a table is missing.
    fn of(
        found: &FoundInstallation,
        template: &Template,
        value: impl Fn(ActionValue) -> Option<String>,
    ) -> Option<Self> {
        let (mut sql, mut pieces) = (String::new(), Vec::new());
        for piece in template.pieces() {
            let filled = filled(found, piece, &value)?;
            let source = piece.source();
            pieces.push((
                source.chars().count(),
                filled.chars().count(),
                matches!(piece, TemplatePiece::Text(_)),
            ));
            sql.push_str(&filled);
        }
        Some(Self { sql, pieces })
    }

    /// Position in the statement's file (from 0) of a character of a message (from 1); None if it is outside the statement.
    fn origin(&self, message: &str, position: usize) -> Option<usize> {
        let length = self.sql.chars().count();
        let starts =
            message.match_indices(&self.sql).filter_map(|(at, _)| Some(message.get(..at)?.chars().count()));
        let mut rest = starts.filter_map(|start| position.checked_sub(start + 1)).find(|at| *at < length)?;
        let mut origin = 0;
        for (source, filled, is_same) in &self.pieces {
            if rest < *filled {
                return Some(if *is_same { origin + rest } else { origin });
            }
            (origin, rest) = (origin + source, rest - filled);
        }
        None
    }
}

fn filled(
    found: &FoundInstallation,
    piece: &TemplatePiece,
    value: impl Fn(ActionValue) -> Option<String>,
) -> Option<String> {
    Some(match piece {
        TemplatePiece::Text(text) => text.to_string(),
        TemplatePiece::Table(key) => found.tables.get(key)?.named().source(),
        TemplatePiece::Oid(key) => format!("{}::pg_catalog.oid", found.tables.get(key)?.oid),
        TemplatePiece::Name(key) => found.tables.get(key)?.named().sql(),
        TemplatePiece::Limit => (ROWS + 1).to_string(),
        TemplatePiece::Most => (COUNTED + 1).to_string(),
        TemplatePiece::Each => escape_literal(&found.prefix),
        TemplatePiece::Value(of) => value(*of)?,
        TemplatePiece::Setting(name) => {
            let setting = found.adapter.setting(name)?;
            // The server has fewer units than the config, and different ones.
            let value = setting
                .seconds
                .map_or_else(|| setting.value.to_string(), |seconds| format!("{seconds} seconds"));
            escape_literal(&value)
        }
    })
}
