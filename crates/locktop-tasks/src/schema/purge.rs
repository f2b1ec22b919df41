//! Removing what is over and old.
//!
//! How long it is kept is said in the call, or for good by the settings `locktop.keep_executions`, `locktop.keep_queue` and
//! `locktop.keep_audit` of the database. What runs or waits is never removed, nor are the last ten executions of a task.

use std::time::Duration;

use strum::{EnumString, IntoStaticStr};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

use super::error::SchemaError;
use super::place::Schema;
use super::rights::{Need, explained};
use super::script;
use super::state::{State, look};

/// The first version of the schema that has `purge_candidates` and its like.
const SINCE: u32 = 5;
/// Rows that one transaction removes at most.
const BATCH: i32 = 10_000;
/// To count what is old goes through all of it.
const COUNTING: &str = "SET LOCAL statement_timeout = '10min'";

/// A table that grows with every job or action, from which old rows can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Log {
    /// `task_execution_log`: executions that have ended.
    Executions,
    /// `task_queue`: items that completed or were set aside as failed.
    Queue,
    /// `locktop_audit`: what was done to tasks, items and sessions, by whom.
    Audit,
}

impl Log {
    /// Every log that old rows can be removed from.
    pub const ALL: [Self; 3] = [Self::Executions, Self::Queue, Self::Audit];

    /// As the schema calls it: in `locktop.keep_executions` and `purge_executions()`.
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

/// The rows of one log that are older than they are to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Old {
    /// The log that they are in.
    pub log: Log,
    /// For how long rows are kept, as the server writes it.
    pub keep: String,
    /// Rows that are over and older than that.
    pub rows: i64,
}

/// What [`purge`] would remove; nothing is said of a log of which nobody says how long it is kept.
///
/// # Errors
/// When the schema is not there, not ours or too old, or the server refuses.
pub async fn purgeable(
    client: &mut Client,
    place: &Schema,
    keep: Option<Duration>,
) -> Result<Vec<Old>, SchemaError> {
    let look = async {
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
    let found = look.await;
    explained(client, &place.name, Need::Own, found).await
}

/// Removes what is old from one log, in transactions of at most 10,000 rows, so that nobody waits long; how many rows are gone. What was
/// removed before an error stays removed.
///
/// # Errors
/// As for [`purgeable`], and when nobody says how long it is kept.
pub async fn purge(
    client: &mut Client,
    place: &Schema,
    log: Log,
    keep: Option<Duration>,
) -> Result<i64, SchemaError> {
    let mut all = 0;
    loop {
        let gone = batch(client, place, log, keep).await;
        let gone = explained(client, &place.name, Need::Own, gone).await?;
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

/// A function of null is null, and so the setting counts.
fn seconds(keep: Option<Duration>) -> Option<f64> {
    keep.map(|keep| keep.as_secs_f64())
}

/// Makes sure, in this transaction, that the schema is ours and has these functions.
async fn begin(transaction: &Transaction<'_>, place: &Schema) -> Result<(), SchemaError> {
    transaction.batch_execute(script::SETTINGS).await?;
    match look(transaction, place).await? {
        State::Absent => Err(SchemaError::Missing(place.name.clone())),
        State::Foreign => Err(SchemaError::Foreign(place.name.clone())),
        State::Installed { version, .. } if version < SINCE => {
            Err(SchemaError::Old { schema: place.name.clone(), found: version })
        }
        State::Installed { .. } => Ok(()),
    }
}
