//! Generators of snowflake ids, and how far each is ahead of the server's clock.

mod name;
mod rows;

use super::Timestamp;
pub use name::name_of;
pub use rows::{GeneratorRow, row, rows};

/// What `last_timestamp` counts from, in milliseconds since 1970: 2021-01-01.
const EPOCH: i64 = 1_609_459_200_000;

/// What identifies a generator: the table it is in, and its worker's id there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GeneratorId {
    /// OID of the table, which may be one of several.
    pub table: u32,
    /// `worker_id`, the primary key of the table.
    pub worker: i64,
}

/// A row of `id_generator`: the last id that a worker has made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IdGenerator {
    /// `worker_id`: the number of the worker within each of its ids.
    pub worker: i64,
    /// The sequence within the millisecond of the last id (`sequence`).
    pub sequence: Option<i64>,
    /// Of the last id: milliseconds since 2021-01-01; 0 before the first.
    pub last_timestamp: Option<i64>,
}

impl IdGenerator {
    /// When its last id was made, by its own account; none before the first.
    pub fn last_at(&self) -> Option<Timestamp> {
        let millis = self.last_timestamp.filter(|millis| *millis > 0)?;
        Timestamp::from_timestamp_millis(millis.checked_add(EPOCH)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_id_tells_when_it_was_made() {
        let last = |millis: Option<i64>| {
            IdGenerator { last_timestamp: millis, ..IdGenerator::default() }
                .last_at()
                .map(|at| at.to_rfc3339())
        };
        assert_eq!(last(Some(1)).as_deref(), Some("2021-01-01T00:00:00.001+00:00"));
        for none in [None, Some(0), Some(-1), Some(i64::MAX)] {
            assert_eq!(last(none), None, "{none:?}");
        }
    }
}
