//! One session for each worker name in a schema: it holds an advisory lock whose key is derived from the name. The
//! server releases the lock when the session ends, for any reason.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::error::{Namesake, OpenError};
use super::worker_id::WorkerId;
use locktop_base::namespace;
use locktop_base::text::one_line;
use locktop_locks::SchemaName;

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

pub(super) async fn take(client: &Client, schema: &SchemaName, worker: &WorkerId) -> Result<(), OpenError> {
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
