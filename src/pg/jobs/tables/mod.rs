//! User tables that a poll reads: finds them with their columns and indexes, and reads them without blocking other
//! sessions.
//!
//! Tables are searched when connecting, again after an error, and at intervals; statements are built from the columns and
//! indexes that were found. If none were found, a poll sends nothing. A table of an untrusted owner is copied, never
//! queried (`copied`). Each table is read by a separate statement, which fails alone. A table that was locked at the last
//! poll is skipped, so that only the first poll waits for it, at most for `lock_timeout`.

mod copied;
mod found;

use bytes::Bytes;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleColumn, SimpleQueryRow};

use crate::model::Text;
use crate::model::lock::{Lock, LockMode, LockModes, LockType};
use crate::model::snapshot::Section;
use crate::pg::decode::copy::RowBuffer;
use crate::pg::trust::{remedy, untrusted};
use crate::pg::{Scope, SectionError, each_row};

pub(in crate::pg) use copied::Copying;
pub(in crate::pg) use found::{ColumnKind, Columns, NamedTable, Table, columns, guarded, locked, meant};
#[cfg(test)]
pub(in crate::pg) use found::{Index, TableColumn};

/// Largest number of polls skipped between two that read much.
const LONGEST: u32 = 10;

/// Polls to skip after reading this many rows, so that a poll reads about `each` of them on average.
pub(in crate::pg) fn every(rows: usize, each: usize) -> u32 {
    u32::try_from(rows / each).unwrap_or(u32::MAX).min(LONGEST)
}

/// How a table is read: by a statement if its owner is trusted, else by a copy of the table.
#[derive(Debug, Clone)]
pub(in crate::pg) enum TableReading {
    /// A whole transaction in one message.
    Statement(String, Scope),
    /// A copy of a table of an untrusted owner.
    Copy(Copying),
}

impl TableReading {
    /// A copy of these columns of a table, with this many trailing columns that are always NULL; or why the table is not
    /// read.
    pub(in crate::pg) async fn copy(
        client: &Client,
        scope: Scope,
        table: &Table,
        (columns, extra): (Columns, usize),
    ) -> Result<Result<Self, Text>, SectionError> {
        // A copy is prepared once, which a shared session does not keep.
        if scope == Scope::Open {
            let owner = table.stranger.as_deref().unwrap_or_default();
            let (name, remedy) = (table.label(), remedy(owner));
            return Ok(Err(format!(
                "{name} is not read through a pooler in transaction mode: {owner} is not trusted; {remedy}"
            )
            .into()));
        }
        Ok(Copying::prepare(client, table, columns, extra).await?.map(Self::Copy))
    }

    /// A query of trusted tables. Each is locked in the mode that reading takes, then checked again, and only then is the
    /// query planned: all in one message, which is one transaction, so that no table can be replaced in between.
    /// (PostgreSQL's documentation, "Multiple Statements in a Simple Query".)
    pub(in crate::pg) fn query(tables: &[&Table], query: &str, scope: Scope) -> Self {
        let tables: Vec<NamedTable<'_>> = tables.iter().map(|table| table.named()).collect();
        let sql = format!("SET TRANSACTION READ ONLY;{}\n{}", guarded(&tables), records(query));
        Self::Statement(sql, scope)
    }

    /// Returns messages of a binary COPY, unless the table was locked at the last poll.
    pub(in crate::pg) async fn read(&self, client: &Client, locked: bool) -> Result<Vec<Bytes>, Refusal> {
        match self {
            _ if locked => Err(Refusal::Locked),
            Self::Statement(sql, scope) => scope.alone(client, queried(client, sql)).await,
            Self::Copy(copying) => copying.read(client).await,
        }
    }

    /// Whether it reads all rows of the table.
    pub(in crate::pg) fn is_copy(&self) -> bool {
        matches!(self, Self::Copy(_))
    }
}

/// Rows as records in hexadecimal digits, in a column `found`.
pub(in crate::pg) fn records(query: &str) -> String {
    format!("SELECT pg_catalog.encode(pg_catalog.record_send(q), 'hex') AS found FROM (\n{query}\n) AS q")
}

async fn queried(client: &Client, sql: &str) -> Result<Vec<Bytes>, Refusal> {
    let mut rows = RowBuffer::new();
    // The guards answer first, with a column of another name.
    let is_found = |columns: &[SimpleColumn]| columns.iter().any(|column| column.name() == "found");
    let keep = |row: &SimpleQueryRow| {
        rows.record(row.try_get(0)?.unwrap_or_default()).map_err(|error| Refusal::Section(error.into()))
    };
    each_row(client, sql, is_found, keep).await?;
    Ok(rows.finish())
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error.as_db_error().and_then(untrusted) {
            Some(reason) => Self::Guarded(reason.into()),
            None => Self::Section(error.into()),
        }
    }
}

/// Why a table was not read.
#[derive(Debug)]
pub(in crate::pg) enum Refusal {
    Section(SectionError),
    Locked,
    Unreadable(Text),
    /// Larger than the copy limit: the reason, to follow the name.
    TooLarge(Text),
    /// Not, or no longer, a table that locktop reads: the reason, to follow the name.
    Guarded(Text),
}

impl Refusal {
    /// The error of the connection, if more than a statement failed.
    pub(in crate::pg) fn fatal(&self) -> Option<&SectionError> {
        match self {
            Self::Section(error) if error.is_fatal() => Some(error),
            _ => None,
        }
    }
}

/// Whether to search the tables again. A locked table has not changed.
pub(in crate::pg) fn has_changed(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Locked | Refusal::TooLarge(_) => false,
        Refusal::Unreadable(_) | Refusal::Guarded(_) => true,
        Refusal::Section(error) => error.code() != Some(&SqlState::LOCK_NOT_AVAILABLE),
    }
}

/// One line for the section of a table. A lock is reported with its holder.
pub(in crate::pg) fn reason(refusal: &Refusal, oid: u32, name: &str, locks: &Section<Lock>) -> Text {
    let locked = || match blocker(locks, oid) {
        Some(lock) => format!("{name} is locked: {}", holder(lock)),
        None => format!("{name} was locked a moment ago"),
    };
    match refusal {
        Refusal::Locked => locked().into(),
        Refusal::Unreadable(reason) => reason.clone(),
        Refusal::Guarded(reason) | Refusal::TooLarge(reason) => {
            format!("{name} is not read: {reason}").into()
        }
        Refusal::Section(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => locked().into(),
        Refusal::Section(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            format!("{error}; {} is needed", grants(name)).into()
        }
        Refusal::Section(error) => format!("{name}: {error}").into(),
    }
}

/// The grants needed to read a table whose name has a schema. The server reports which one is missing only in words.
fn grants(name: &str) -> String {
    // Names are quoted if necessary: a dot outside of quotes ends the schema.
    let quoted = |at: usize| name.get(..at).is_some_and(|front| front.matches('"').count() % 2 == 1);
    let dot = name.match_indices('.').map(|(at, _)| at).find(|at| !quoted(*at));
    match dot.and_then(|at| name.get(..at)).filter(|schema| *schema != "public") {
        Some(schema) => format!("GRANT USAGE ON SCHEMA {schema} and GRANT SELECT ON {name}"),
        None => format!("GRANT SELECT ON {name}"),
    }
}

fn holder(lock: &Lock) -> String {
    let who = lock.pid.map_or_else(|| "a prepared transaction".to_owned(), |pid| pid.to_string());
    let verb = if lock.granted { "holds" } else { "waits for" };
    format!("{who} {verb} {}", lock.mode.as_str())
}

/// The lock that blocks readers of a table in the connected database: of a holder, else of a waiter.
pub(in crate::pg) fn blocker(locks: &Section<Lock>, oid: u32) -> Option<&Lock> {
    if oid == 0 || locks.error.is_some() {
        return None;
    }
    let read = LockModes::of(LockMode::AccessShare);
    let mut blocking = locks.last_rows().iter().filter(|lock| {
        lock.tag.relation() == Some(oid)
            && lock.tag.locktype() == LockType::Relation
            && lock.mode.conflicts_with(read)
    });
    blocking.clone().find(|lock| lock.granted).or_else(|| blocking.next())
}
