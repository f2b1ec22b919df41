//! The rate limits of a snapshot.

use super::{LimitId, LimitState, RateLimit};
use crate::model::Text;
use crate::model::snapshot::Snapshot;

/// One rate limit of a snapshot, with its table and state.
#[derive(Debug, Clone, Copy)]
pub struct LimitRow<'a> {
    /// What identifies it: its table and its key.
    pub id: LimitId,
    /// The table that it is in, as `schema.table`.
    pub source: &'a Text,
    /// What was read of it.
    pub limit: &'a RateLimit,
    /// How much room it had at the time of the snapshot.
    pub state: LimitState,
}

/// All of them, in the order of the tables.
pub fn rows(snapshot: &Snapshot) -> impl Iterator<Item = LimitRow<'_>> {
    let tables = snapshot.systems.limits.iter().enumerate();
    let places =
        tables.flat_map(|(table, rows)| (0..rows.section.last_rows().len()).map(move |at| (table, at)));
    places.filter_map(|(table, at)| row(snapshot, table, at))
}

/// One by the places of its table and of its row; none where there is no such row.
pub fn row(snapshot: &Snapshot, table: usize, at: usize) -> Option<LimitRow<'_>> {
    let table = snapshot.systems.limits.get(table)?;
    let limit = table.section.last_rows().get(at)?;
    // What could not be read anew is as it was then.
    let now = table.section.taken_at.unwrap_or(snapshot.taken_at);
    let id = LimitId::of(&table.source.name, &limit.key);
    Some(LimitRow { id, source: &table.source.name, limit, state: limit.state(now) })
}
