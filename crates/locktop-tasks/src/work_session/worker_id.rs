use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::error::{Namesake, OpenError};
use locktop_base::namespace;
use locktop_base::text::one_line;
use locktop_locks::SchemaName;

/// In characters.
const LONGEST: usize = 100;

/// The name of a worker, as it appears in the log. It is unique, so that people can tell workers apart; the server does
/// so by their sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerId(Arc<str>);

/// Why a text is not a valid worker name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerIdError {
    /// Empty, or only blanks.
    #[error("a worker's id cannot be empty")]
    Empty,
    /// More than 100 characters; with their number.
    #[error("a worker's id has at most {LONGEST} characters; this one has {0}")]
    TooLong(usize),
    /// It has control or invisible characters.
    #[error("a worker's id cannot have control or invisible characters")]
    Unprintable,
}

impl WorkerId {
    /// The name as it is stored in `worker_id`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkerId {
    type Err = WorkerIdError;

    fn from_str(text: &str) -> Result<Self, WorkerIdError> {
        if text.trim().is_empty() {
            return Err(WorkerIdError::Empty);
        }
        let length = text.chars().count();
        if length > LONGEST {
            return Err(WorkerIdError::TooLong(length));
        }
        // Text that has to be sanitized for a terminal is not printable.
        if one_line(text) != text {
            return Err(WorkerIdError::Unprintable);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The session of a worker that was just killed may last a moment longer.
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_millis(250);

/// $1: the name in its schema. The low 48 bits of its hash, in a namespace of its own.
fn key() -> String {
    let namespace = i64::from(namespace::WORKERS) << 48;
    format!("({namespace}::int8 | (pg_catalog.hashtextextended($1, 0) & 281474976710655))")
}

/// The text to hash, unique for each schema and name.
fn whole(schema: &SchemaName, worker: &WorkerId) -> String {
    format!("{}.{worker}", schema.quoted())
}

/// Makes a session the only one with this name in a schema: it holds an advisory lock whose key is derived from the name.
/// The server releases the lock when the session ends, for any reason.
pub(super) async fn take_name(
    client: &Client,
    schema: &SchemaName,
    worker: &WorkerId,
) -> Result<(), OpenError> {
    let sql = format!("SELECT pg_catalog.pg_try_advisory_lock({})", key());
    for attempt in 1..=TRIES {
        let rows = client.query_typed(&sql, &[(&whole(schema, worker), Type::TEXT)]).await?;
        if rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false)) {
            return Ok(());
        }
        if attempt < TRIES {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Err(OpenError::NameTaken(holder(client, schema, worker).await?))
}

/// The session that holds the name. The two halves of a key are in classid and objid, with objsubid 1
/// (src/backend/utils/adt/lockfuncs.c).
async fn holder(client: &Client, schema: &SchemaName, worker: &WorkerId) -> Result<Namesake, OpenError> {
    let sql = format!(
        "SELECT l.pid, pg_catalog.host(a.client_addr), a.backend_start::pg_catalog.text
           FROM pg_catalog.pg_locks l
           LEFT JOIN LATERAL pg_catalog.pg_stat_get_activity(l.pid) a ON true
          WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
            AND ((l.classid::int8 << 32) | l.objid::int8) = {}
            AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())",
        key()
    );
    let rows = client.query_typed(&sql, &[(&whole(schema, worker), Type::TEXT)]).await?;
    let mut found =
        Namesake { name: worker.as_str().to_owned(), schema: schema.clone(), ..Namesake::default() };
    if let Some(row) = rows.first() {
        let text = |text: Option<String>| text.map(|text| one_line(&text).into_owned());
        found.pid = row.try_get(0)?;
        found.client = text(row.try_get(1)?);
        found.since = text(row.try_get(2)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_read_on_a_screen() {
        for name in ["w", "worker-007", "报表 3", "node1/a b"] {
            assert_eq!(name.parse::<WorkerId>().unwrap().as_str(), name);
        }
        for (name, error) in [
            ("", WorkerIdError::Empty),
            ("  ", WorkerIdError::Empty),
            ("a\nb", WorkerIdError::Unprintable),
            ("a\u{1b}[2Jb", WorkerIdError::Unprintable),
            ("a\u{202e}b", WorkerIdError::Unprintable),
            (&"x".repeat(101), WorkerIdError::TooLong(101)),
        ] {
            assert_eq!(name.parse::<WorkerId>(), Err(error), "{name:?}");
        }
        assert!("ä".repeat(100).parse::<WorkerId>().is_ok());
    }
}
