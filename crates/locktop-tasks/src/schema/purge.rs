//! Removes old rows of ended work.
//!
//! The retention is given in the call, or permanently by the settings `locktop.keep_executions`, `locktop.keep_queue` and
//! `locktop.keep_audit` of the database. Rows of running or waiting work are never removed, nor are the last ten
//! executions of a task.

use std::time::Duration;

use strum::{EnumString, IntoStaticStr};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

use super::Schema;
use super::error::{SchemaError, SchemaNeed, explained};
use super::script;
use super::state::{State, read};

/// The first version of the schema that has `purge_candidates` and related functions.
const SINCE: u32 = 5;
/// Most rows that one transaction removes.
const BATCH: i32 = 10_000;
/// Counting old rows reads all of them.
const COUNTING: &str = "SET LOCAL statement_timeout = '10min'";

/// A table that grows with every job or action, from which old rows can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Log {
    /// `task_execution_log`: executions that have ended.
    Executions,
    /// `task_queue`: items that completed or were set aside as failed.
    Queue,
    /// `locktop_audit`: what was done to tasks, items and sessions, and by which role.
    Audit,
}

impl Log {
    /// Every log that old rows can be removed from.
    pub const ALL: [Self; 3] = [Self::Executions, Self::Queue, Self::Audit];

    /// Its name in the schema: in `locktop.keep_executions` and `purge_executions()`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The name of its table, without the schema.
    #[must_use]
    pub fn table(self) -> &'static str {
        match self {
            Self::Executions => "task_execution_log",
            Self::Queue => "task_queue",
            Self::Audit => "locktop_audit",
        }
    }
}

/// The rows of one log that are past their retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Old {
    /// The log that they are in.
    pub log: Log,
    /// How long rows are kept, as the server writes it.
    pub keep: String,
    /// Rows of ended work that are older than that.
    pub rows: i64,
}

/// The rows that [`purge`] would remove; a log without a given or configured retention is omitted.
///
/// # Errors
/// If the schema does not exist, is not locktop's or is too old, or the server refuses.
pub async fn purgeable(
    client: &mut Client,
    place: &Schema,
    keep: Option<Duration>,
) -> Result<Vec<Old>, SchemaError> {
    let reading = async {
        let transaction = client.build_transaction().read_only(true).start().await?;
        begin(&transaction, place).await?;
        transaction.batch_execute(COUNTING).await?;
        let sql = format!(
            "SELECT log, justify_hours(keep)::text, old_rows FROM {}.purge_candidates(make_interval(secs => $1))",
            place.quoted()
        );
        let rows = transaction.query_typed(&sql, &[(&seconds(keep), Type::FLOAT8)]).await?;
        let mut found = Vec::new();
        for row in rows {
            if let Ok(log) = row.try_get::<_, &str>(0)?.parse() {
                found.push(Old { log, keep: row.try_get(1)?, rows: row.try_get(2)? });
            }
        }
        Ok(found)
    };
    let found = reading.await;
    explained(client, &place.name, SchemaNeed::Own, found).await
}

/// Removes what is old from one log, in transactions of at most 10,000 rows, so that no other session waits long; returns
/// the number of rows removed. Rows removed before an error stay removed.
///
/// # Errors
/// As for [`purgeable`], and if no retention is given or configured.
pub async fn purge(
    client: &mut Client,
    place: &Schema,
    log: Log,
    keep: Option<Duration>,
) -> Result<i64, SchemaError> {
    let mut all = 0;
    loop {
        let gone = batch(client, place, log, keep).await;
        let gone = explained(client, &place.name, SchemaNeed::Own, gone).await?;
        all += gone;
        if gone < i64::from(BATCH) {
            return Ok(all);
        }
    }
}

async fn batch(
    client: &mut Client,
    place: &Schema,
    log: Log,
    keep: Option<Duration>,
) -> Result<i64, SchemaError> {
    let transaction = client.build_transaction().start().await?;
    begin(&transaction, place).await?;
    let sql = format!("SELECT {}.purge_{}(make_interval(secs => $1), $2)", place.quoted(), log.name());
    let rows = transaction.query_typed(&sql, &[(&seconds(keep), Type::FLOAT8), (&BATCH, Type::INT4)]).await?;
    let gone = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    transaction.commit().await?;
    Ok(gone)
}

/// A null argument makes the function's value null, and so the setting counts.
fn seconds(keep: Option<Duration>) -> Option<f64> {
    keep.map(|keep| keep.as_secs_f64())
}

/// Ensures, in this transaction, that the schema is locktop's and has these functions.
async fn begin(transaction: &Transaction<'_>, place: &Schema) -> Result<(), SchemaError> {
    transaction.batch_execute(script::SETTINGS).await?;
    match read(transaction, place).await? {
        State::Absent => Err(SchemaError::Missing(place.name.clone())),
        State::Foreign => Err(SchemaError::Foreign(place.name.clone())),
        State::Installed { version, .. } if version < SINCE => {
            Err(SchemaError::Old { schema: place.name.clone(), found: version })
        }
        State::Installed { .. } => Ok(()),
    }
}
