mod rows;

use super::Timestamp;
pub use super::table_rows::IdGenerator;
pub use rows::{GeneratorRow, name_of, row, rows};

/// The epoch of `last_timestamp`, in milliseconds since 1970: 2021-01-01.
const EPOCH: i64 = 1_609_459_200_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GeneratorId {
    pub table: u32,
    pub worker: i64,
}

impl IdGenerator {
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
