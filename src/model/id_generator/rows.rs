use super::{GeneratorId, IdGenerator};
use crate::model::Text;
use crate::model::snapshot::Snapshot;

#[derive(Debug, Clone, Copy)]
pub struct GeneratorRow<'a> {
    pub id: GeneratorId,
    pub source: &'a Text,
    pub generator: &'a IdGenerator,
    /// Seconds that its last id is ahead of the server's clock; normally negative.
    pub ahead: Option<f64>,
}

pub fn rows(snapshot: &Snapshot) -> impl Iterator<Item = GeneratorRow<'_>> {
    let tables = snapshot.systems.generators.iter().enumerate();
    let places =
        tables.flat_map(|(table, rows)| (0..rows.section.last_rows().len()).map(move |at| (table, at)));
    places.filter_map(|(table, at)| row(snapshot, table, at))
}

pub fn row(snapshot: &Snapshot, table: usize, at: usize) -> Option<GeneratorRow<'_>> {
    let table = snapshot.systems.generators.get(table)?;
    let generator = table.section.last_rows().get(at)?;
    let now = table.section.taken_at.unwrap_or(snapshot.taken_at);
    Some(GeneratorRow {
        id: GeneratorId { table: table.source.table, worker: generator.worker },
        source: &table.source.name,
        generator,
        ahead: generator.last_at().map(|at| (at - now).as_seconds_f64()),
    })
}
