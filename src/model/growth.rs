//! How large a log has become, by the planner's statistics: an estimate that opens no table.

/// The size of a table that grows, and what of it is past its retention.
#[derive(Debug, Clone, Copy, Default)]
pub struct Growth {
    /// About how many rows there are (`pg_class.reltuples`); 0 where nobody has counted.
    pub rows: u64,
    /// Whether a setting of the database says how long rows are kept.
    pub is_limited: bool,
    /// About how many rows are older than that; none where it cannot be told.
    pub old: Option<u64>,
}

/// A table is the same one however large it is.
impl PartialEq for Growth {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Growth {}
