//! Ids of 64 bits that grow with time, made by the server: 41 bits of milliseconds since 2021-01-01, 10 of a worker, 12 of a
//! sequence.
//!
//! ```no_run
//! use locktop_locks::snowflake::Generator;
//!
//! # async fn example(client: &tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let generator = Generator::new(1)?;
//! generator.register(client).await?;
//! let id = generator.next(client).await?;
//! assert_eq!(id.worker(), 1);
//! let more = generator.many(client, 1000).await?;
//! assert!(id < more[0]);
//! # Ok(())
//! # }
//! ```
//!
//! The ids of a worker are different and grow: over transactions, sessions and used-up sequences, and when the clock goes back. Then the
//! next one waits, or fails with [`SnowflakeError::ClockBehind`] when it would be for longer than `locktop.max_clock_wait` (1 s).
//! A worker's key is held until the transaction ends, so that the next one knows what was given; give each session a worker of its own, or
//! commit soon. Many ids in one transaction are much cheaper with [`Generator::many`] than one by one. Ids that were rolled back
//! are not given again, unless the clock went back as well, or 4,096 more were made in the same millisecond.
//!
//! In SQL: `generate_snowflake_id(worker_id)`, `generate_snowflake_ids(worker_id, count)`, the table `id_generator` and the view
//! `id_generators`.

use std::time::Duration;

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::call::{CallError, column, row, rows};
use crate::SchemaName;

/// From 1970 to the beginning of the ids' time, 2021-01-01 00:00 UTC.
pub const EPOCH: Duration = Duration::from_secs(1_609_459_200);

/// The largest number of a worker.
pub const LAST_WORKER: u16 = 1023;

/// An id. They are in the order of their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snowflake(pub i64);

impl Snowflake {
    /// When it was made on the server's clock, since 1970.
    #[must_use]
    pub fn time(self) -> Duration {
        EPOCH + Duration::from_millis((self.0 >> 22).unsigned_abs())
    }

    /// The number of the worker that made it, 0 to [`LAST_WORKER`].
    #[must_use]
    pub fn worker(self) -> u16 {
        u16::try_from(self.0 >> 12 & 1023).unwrap_or_default()
    }

    /// Its place in the millisecond. Where a millisecond begins the sequence goes on.
    #[must_use]
    pub fn sequence(self) -> u16 {
        u16::try_from(self.0 & 4095).unwrap_or_default()
    }
}

/// Why no id came back.
#[derive(Debug, thiserror::Error)]
pub enum SnowflakeError {
    /// A number of a worker above [`LAST_WORKER`]: it has 10 bits of an id.
    #[error("worker {0} is outside 0 to {LAST_WORKER}")]
    Worker(u16),
    /// No generator is registered for this worker: [`Generator::register`] does that.
    #[error("there is no id generator for worker {0}: register it first")]
    Unknown(u16),
    /// The server's clock went back by too much.
    #[error("{0}: set it right, or use another worker until it has caught up")]
    ClockBehind(String),
    /// The function is not installed, the server refuses for another reason, or the connection failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A worker that makes ids; one number is to be used by one session at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator {
    worker: u16,
    /// The schema that the table of generators is in.
    pub schema: SchemaName,
}

impl Generator {
    /// A worker in the schema `locktop`.
    ///
    /// # Errors
    /// When the number is above [`LAST_WORKER`].
    pub fn new(worker: u16) -> Result<Self, SnowflakeError> {
        if worker > LAST_WORKER {
            return Err(SnowflakeError::Worker(worker));
        }
        Ok(Self { worker, schema: SchemaName::default() })
    }

    /// The worker's number, 0 to [`LAST_WORKER`].
    #[must_use]
    pub fn worker(&self) -> u16 {
        self.worker
    }

    /// Makes the worker known, if it is not. What it gave before counts on.
    ///
    /// # Errors
    /// When the server refuses, or the connection fails.
    pub async fn register<C: GenericClient + Sync>(&self, client: &C) -> Result<(), SnowflakeError> {
        let sql = "INSERT INTO @schema@.id_generator (worker_id) VALUES ($1) ON CONFLICT DO NOTHING";
        let worker = i32::from(self.worker);
        rows(client, &self.schema, "id_generator", sql, &[(&worker, Type::INT4)]).await?;
        Ok(())
    }

    /// The next id.
    ///
    /// # Errors
    /// When the worker is unknown, the clock went back by too much, the server refuses, or the connection fails.
    pub async fn next<C: GenericClient + Sync>(&self, client: &C) -> Result<Snowflake, SnowflakeError> {
        const WHAT: &str = "generate_snowflake_id";
        let worker = i32::from(self.worker);
        let sql = "SELECT @schema@.generate_snowflake_id($1)";
        let row = row(client, &self.schema, WHAT, sql, &[(&worker, Type::INT4)]).await;
        Ok(Snowflake(column(WHAT, &row.map_err(|error| self.meant(error))?, 0)?))
    }

    /// The next so many, growing.
    ///
    /// # Errors
    /// As for [`Generator::next`].
    pub async fn many<C: GenericClient + Sync>(
        &self,
        client: &C,
        count: u16,
    ) -> Result<Vec<Snowflake>, SnowflakeError> {
        const WHAT: &str = "generate_snowflake_ids";
        let (worker, count) = (i32::from(self.worker), i32::from(count));
        let sql = "SELECT @schema@.generate_snowflake_ids($1, $2)";
        let rows =
            rows(client, &self.schema, WHAT, sql, &[(&worker, Type::INT4), (&count, Type::INT4)]).await;
        let rows = rows.map_err(|error| self.meant(error))?;
        rows.iter().map(|row| Ok(Snowflake(column(WHAT, row, 0)?))).collect()
    }

    fn meant(&self, error: CallError) -> SnowflakeError {
        match error {
            CallError::Server { sqlstate, .. } if sqlstate == "P0002" => SnowflakeError::Unknown(self.worker),
            CallError::Server { sqlstate, message, .. } if sqlstate == "55000" => {
                SnowflakeError::ClockBehind(message)
            }
            other => SnowflakeError::Call(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_id() {
        let id = Snowflake(1 << 62 | 1023 << 12 | 4095);
        assert_eq!((id.worker(), id.sequence()), (1023, 4095));
        assert_eq!(id.time(), EPOCH + Duration::from_millis(1 << 40));
        assert_eq!(Snowflake(0).time(), EPOCH);
        assert!(matches!(Generator::new(1024), Err(SnowflakeError::Worker(1024))));
    }
}
