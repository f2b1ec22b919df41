//! Generators of snowflake ids, and how far each is ahead of the server's clock.

use super::lock_name::LockName;
use super::snapshot::Snapshot;
use super::systems::TableRows;
use super::{Text, Timestamp, namespace};

/// What `last_timestamp` counts from, in milliseconds since 1970: 2021-01-01.
const EPOCH: i64 = 1_609_459_200_000;

/// What identifies a generator: the table it is in, and its worker's id there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GeneratorId {
    /// OID of the table.
    pub table: u32,
    /// `worker_id`.
    pub worker: i64,
}

/// A row of `id_generator`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IdGenerator {
    /// The worker.
    pub worker: i64,
    /// Of the last id.
    pub sequence: Option<i64>,
    /// Of the last id: milliseconds since 2021-01-01; 0 before the first.
    pub last_timestamp: Option<i64>,
}

impl IdGenerator {
    /// When its last id was made, by its own account; none before the first.
    #[must_use]
    pub fn last_at(&self) -> Option<Timestamp> {
        let millis = self.last_timestamp.filter(|millis| *millis > 0)?;
        Timestamp::from_timestamp_millis(millis.checked_add(EPOCH)?)
    }
}

/// One generator of a snapshot, with its table.
#[derive(Debug, Clone, Copy)]
pub struct GeneratorRow<'a> {
    /// Which.
    pub id: GeneratorId,
    /// The table by name.
    pub source: &'a Text,
    /// The row.
    pub generator: &'a IdGenerator,
    /// Seconds that its last id is ahead of the server's clock; less than none where that is past, as it should be.
    pub ahead: Option<f64>,
}

/// All of them, in the order of the tables.
pub fn rows(snapshot: &Snapshot) -> impl Iterator<Item = GeneratorRow<'_>> {
    let tables = snapshot.systems.generators.iter().enumerate();
    let places = tables.flat_map(|(table, rows)| (0..rows.section.rows.len()).map(move |at| (table, at)));
    places.filter_map(|(table, at)| row(snapshot, table, at))
}

/// One by its place.
#[must_use]
pub fn row(snapshot: &Snapshot, table: usize, at: usize) -> Option<GeneratorRow<'_>> {
    let table = snapshot.systems.generators.get(table)?;
    let generator = table.section.rows.get(at)?;
    let now = table.section.taken_at.unwrap_or(snapshot.taken_at);
    Some(GeneratorRow {
        id: GeneratorId { table: table.source.table, worker: generator.worker },
        source: &table.source.name,
        generator,
        ahead: generator.last_at().map(|at| (at - now).as_seconds_f64()),
    })
}

/// The name of the generator behind a bigint key: `id generator 3`. A key of the namespace is certain where its id is that of
/// one generator; a raw number may be anybody's.
#[must_use]
pub fn name_of(tables: &[TableRows<IdGenerator>], number: i64) -> Option<LockName> {
    let own = namespace::id_in(namespace::GENERATORS, number);
    let id = own.unwrap_or(number);
    let mut owners = tables.iter().filter(|table| table.section.rows.iter().any(|row| row.worker == id));
    let table = owners.next()?;
    let origin = match own {
        Some(id) => format!("the key of id generator {id} in {}", table.source.name),
        None => format!("the same number as a worker in {}", table.source.name),
    };
    // Of two tables the one with keys of its own is not known: their columns are the same.
    let uncertain = own.is_none() || owners.next().is_some();
    Some(LockName { name: format!("id generator {id}").into(), uncertain, origin: origin.into() })
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
