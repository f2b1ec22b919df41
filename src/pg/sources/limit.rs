use super::source::{Source, fields, filled};
use crate::model::rate_limit::RateLimit;
use crate::model::{Text, Timestamp};
use crate::pg::tables::{ColumnKind, Table};

const QUERY: &str = include_str!("../../../assets/sql/rate_limits.sql");

impl Source for RateLimit {
    const TABLE: &'static str = "rate_limit";
    fields! {
        key: text = "key";
        count: int = "count",
        window_start: time = "window_start",
        max_requests: int = "max_requests",
        expires_at: time = "expires_at",
    }
    const MOST: usize = 1000;
    const LACKS: &'static str = "has no columns key and count: not a table of rate limits";

    fn is_one(table: &Table) -> bool {
        (table.is("key", ColumnKind::Text) || table.is("key", ColumnKind::Int))
            && table.is("count", ColumnKind::Int)
    }

    fn query(table: &Table) -> Result<String, Text> {
        let sorted = |column: &str| table.is(column, ColumnKind::Time) && table.has_index(&[column]);
        let (condition, order) = match () {
            // Expired windows are irrelevant, and there may be millions of them.
            () if sorted("expires_at") => {
                ("WHERE t.expires_at OPERATOR(pg_catalog.>) pg_catalog.now()", "ORDER BY t.expires_at DESC")
            }
            () if sorted("window_start") => ("", "ORDER BY t.window_start DESC"),
            () if table.has_index(&["key"]) => ("", "ORDER BY t.key"),
            () => ("", ""),
        };
        Ok(filled::<Self>(QUERY, table, &[("$where", condition), ("$order", order)]))
    }

    fn choose(mut rows: Vec<Self>, now: Timestamp) -> Vec<Self> {
        rows.retain(|row| row.expires_at.is_none_or(|end| end > now));
        rows.sort_by(|one, other| {
            let time = |row: &Self| (row.expires_at, row.window_start);
            time(other).cmp(&time(one)).then_with(|| one.key.cmp(&other.key))
        });
        rows
    }
}
