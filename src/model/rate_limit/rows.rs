use super::{LimitId, LimitState, RateLimit};
use crate::model::Text;
use crate::model::snapshot::Snapshot;

#[derive(Debug, Clone, Copy)]
pub struct LimitRow<'a> {
    pub id: LimitId,
    pub source: &'a Text,
    pub limit: &'a RateLimit,
    pub state: LimitState,
}

pub fn rows(snapshot: &Snapshot) -> impl Iterator<Item = LimitRow<'_>> {
    let tables = snapshot.systems.limits.iter().enumerate();
    let places =
        tables.flat_map(|(table, rows)| (0..rows.section.last_rows().len()).map(move |at| (table, at)));
    places.filter_map(|(table, at)| row(snapshot, table, at))
}

/// By position of the table and of the row; `None` if there is no such row.
pub fn row(snapshot: &Snapshot, table: usize, at: usize) -> Option<LimitRow<'_>> {
    let table = snapshot.systems.limits.get(table)?;
    let limit = table.section.last_rows().get(at)?;
    // Rows that could not be read again keep the state of their own time.
    let now = table.section.taken_at.unwrap_or(snapshot.taken_at);
    let id = LimitId::of(&table.source.name, &limit.key);
    Some(LimitRow { id, source: &table.source.name, limit, state: limit.state(now) })
}
