//! Rate limits: how many requests of a key were allowed in the current window.

pub use crate::model::table_rows::RateLimit;

use crate::model::snapshot::Snapshot;
use crate::model::table_rows::NameHash;
use crate::model::{Text, Timestamp};

pub type LimitId = NameHash;

const NEAR: f64 = 0.8;

words! {
    /// Most urgent first.
    pub enum LimitState {
        /// No more requests are allowed until the window ends.
        Full,
        Near,
        Open,
        /// The table does not have the limit, or its duration.
        Unknown,
        /// The window has ended: the next request starts another.
        Over,
    }
}

impl RateLimit {
    pub fn state(&self, now: Timestamp) -> LimitState {
        match (self.share(), self.expires_at) {
            (_, Some(end)) if end <= now => LimitState::Over,
            (None, _) | (_, None) => LimitState::Unknown,
            (Some(share), _) if share >= 1.0 => LimitState::Full,
            (Some(share), _) if share >= NEAR => LimitState::Near,
            _ => LimitState::Open,
        }
    }

    pub fn share(&self) -> Option<f64> {
        let number = |value: i64| i32::try_from(value.max(0)).map_or(f64::from(i32::MAX), f64::from);
        let (count, most) = self.count.zip(self.max_requests)?;
        Some(if most <= 0 { 1.0 } else { number(count) / number(most) })
    }
}

#[derive(Debug, Clone, Copy)]
pub struct LimitRow<'a> {
    pub id: LimitId,
    pub source: &'a Text,
    pub limit: &'a RateLimit,
    pub state: LimitState,
}

pub fn rows(snapshot: &Snapshot) -> impl Iterator<Item = LimitRow<'_>> {
    let tables = snapshot.sources.limits.iter().enumerate();
    let places =
        tables.flat_map(|(table, rows)| (0..rows.section.last_rows().len()).map(move |at| (table, at)));
    places.filter_map(|(table, at)| row(snapshot, table, at))
}

/// By position of the table and of the row; `None` if there is no such row.
pub fn row(snapshot: &Snapshot, table: usize, at: usize) -> Option<LimitRow<'_>> {
    let table = snapshot.sources.limits.get(table)?;
    let limit = table.section.last_rows().get(at)?;
    // Rows that could not be read again keep the state of their own time.
    let now = table.section.taken_at.unwrap_or(snapshot.taken_at);
    let id = LimitId::of(&table.source.name, &limit.key);
    Some(LimitRow { id, source: &table.source.name, limit, state: limit.state(now) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::at;

    #[test]
    fn a_rate_limit_is_judged_by_its_count_and_its_window() {
        for (count, most, ends, expected) in [
            (Some(100), Some(100), Some(5.0), LimitState::Full),
            (Some(101), Some(100), Some(5.0), LimitState::Full),
            (Some(0), Some(0), Some(5.0), LimitState::Full),
            (Some(80), Some(100), Some(5.0), LimitState::Near),
            (Some(79), Some(100), Some(5.0), LimitState::Open),
            (Some(i64::MAX), Some(i64::MAX), Some(5.0), LimitState::Full),
            (Some(-5), Some(100), Some(5.0), LimitState::Open),
            (Some(100), Some(100), Some(0.0), LimitState::Over),
            (Some(100), Some(100), None, LimitState::Unknown),
            (Some(100), None, Some(5.0), LimitState::Unknown),
            (None, None, None, LimitState::Unknown),
        ] {
            let limit =
                RateLimit { count, max_requests: most, expires_at: ends.map(at), ..RateLimit::default() };
            assert_eq!(limit.state(at(0.0)), expected, "{limit:?}");
        }
    }
}
