//! Offsets of times without a zone: the server knows the daylight saving time of its zone, and is asked for them.

use rustc_hash::FxHashMap;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::pg::section_error::SectionError;

/// Offsets change only at a quarter of an hour. In microseconds.
const QUARTER: i64 = 900_000_000;
/// Largest number of offsets requested; for the others the current offset is used.
const MOST: usize = 10_000;
/// 2000-01-01 in microseconds since 1970.
const EPOCH: i64 = 946_684_800_000_000;

/// The casts that a query would make.
const OFFSETS: &str = "SELECT pg_catalog.array_agg((EXTRACT(epoch FROM h.at) - EXTRACT(epoch FROM h.at::pg_catalog.timestamptz))::pg_catalog.int8 ORDER BY h.place)
  FROM pg_catalog.unnest($1::pg_catalog.timestamp[]) WITH ORDINALITY AS h (at, place)";

/// Seconds east of UTC, by quarter of an hour.
#[derive(Debug)]
pub(super) struct Offsets {
    now: i64,
    known: FxHashMap<i64, i64>,
}

impl Offsets {
    /// `now` is the current offset in seconds, for all times not requested.
    pub(super) fn new(now: i64) -> Self {
        Self { now, known: FxHashMap::default() }
    }

    /// Requests the offsets of times in microseconds since 2000.
    pub(super) async fn ask(&mut self, client: &Client, times: Vec<i64>) -> Result<(), SectionError> {
        let mut quarters: Vec<i64> = times.into_iter().map(|time| time.div_euclid(QUARTER)).collect();
        quarters.sort_unstable();
        quarters.dedup();
        quarters.truncate(MOST);
        let at = |quarter: &i64| {
            let micros = quarter.checked_mul(QUARTER)?.checked_add(EPOCH)?;
            Some((*quarter, chrono::DateTime::from_timestamp_micros(micros)?.naive_utc()))
        };
        let (quarters, times): (Vec<_>, Vec<_>) = quarters.iter().filter_map(at).unzip();
        if quarters.is_empty() {
            return Ok(());
        }
        let row = client.query_typed_one(OFFSETS, &[(&times, Type::TIMESTAMP_ARRAY)]).await?;
        let offsets: Vec<i64> = row.try_get::<_, Option<Vec<i64>>>(0)?.unwrap_or_default();
        self.known = quarters.into_iter().zip(offsets).collect();
        Ok(())
    }

    /// The offset at a time in microseconds since 2000.
    pub(super) fn of(&self, time: i64) -> i64 {
        self.known.get(&time.div_euclid(QUARTER)).copied().unwrap_or(self.now)
    }
}
