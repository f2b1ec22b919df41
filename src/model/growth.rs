//! The size of a log by the planner's statistics: an estimate that opens no table.

#[derive(Debug, Clone, Copy, Default)]
pub struct Growth {
    /// Estimated number of rows (`pg_class.reltuples`); 0 if the table was never analyzed.
    pub rows: u64,
    /// Whether a setting of the database defines the retention.
    pub is_limited: bool,
    /// Estimated number of rows past the retention. None if not known.
    pub old: Option<u64>,
}

/// Always equal: a table is the same whatever its size.
impl PartialEq for Growth {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Growth {}
