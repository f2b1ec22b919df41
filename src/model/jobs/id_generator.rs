pub use crate::model::table_rows::IdGenerator;

use crate::model::lock_name::LockName;
use crate::model::snapshot::Snapshot;
use crate::model::source_tables::TableRows;
use crate::model::{Text, Timestamp, namespace};

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

#[derive(Debug, Clone, Copy)]
pub struct GeneratorRow<'a> {
    pub id: GeneratorId,
    pub source: &'a Text,
    pub generator: &'a IdGenerator,
    /// Seconds that its last id is ahead of the server's clock; normally negative.
    pub ahead: Option<f64>,
}

pub fn rows(snapshot: &Snapshot) -> impl Iterator<Item = GeneratorRow<'_>> {
    let tables = snapshot.sources.generators.iter().enumerate();
    let places =
        tables.flat_map(|(table, rows)| (0..rows.section.last_rows().len()).map(move |at| (table, at)));
    places.filter_map(|(table, at)| row(snapshot, table, at))
}

pub fn row(snapshot: &Snapshot, table: usize, at: usize) -> Option<GeneratorRow<'_>> {
    let table = snapshot.sources.generators.get(table)?;
    let generator = table.section.last_rows().get(at)?;
    let now = table.section.taken_at.unwrap_or(snapshot.taken_at);
    Some(GeneratorRow {
        id: GeneratorId { table: table.source.table, worker: generator.worker },
        source: &table.source.name,
        generator,
        ahead: generator.last_at().map(|at| (at - now).as_seconds_f64()),
    })
}

/// The name of the generator behind a bigint key: `id generator 3`. A key of the namespace is certain if its id is that of
/// one generator; a raw number may belong to other software.
pub fn name_of(tables: &[TableRows<IdGenerator>], number: i64) -> Option<LockName> {
    let own = namespace::id_in(namespace::GENERATORS, number);
    let id = own.unwrap_or(number);
    let mut owners =
        tables.iter().filter(|table| table.section.last_rows().iter().any(|row| row.worker == id));
    let table = owners.next()?;
    let origin = match own {
        Some(id) => format!("the key of id generator {id} in {}", table.source.name),
        None => format!("the same number as a worker in {}", table.source.name),
    };
    // With two tables, it is not known which one has keys of its own: their columns are the same.
    let uncertain = own.is_none() || owners.next().is_some();
    Some(LockName { name: format!("id generator {id}").into(), uncertain, origin: origin.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_timestamp_gives_the_time_of_the_last_id() {
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
