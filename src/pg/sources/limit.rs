//! Rate limits, id generators, and requests that were refused: `refusals`, an empty table of which each column has a
//! sequence that counts.

use bytes::Bytes;

use super::source::{INT, INT_OR_TEXT, Needed, Source, filled};
use super::worker::BESIDE;
use crate::model::id_generator::IdGenerator;
use crate::model::rate_limit::RateLimit;
use crate::model::refusals::Refusals;
use crate::model::{Text, Timestamp};
use crate::order::Order;
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Values;
use crate::pg::decode::rows::{DecodedRow, optional};
use crate::pg::decode::texts::Texts;
use crate::pg::tables::{ColumnKind, Columns, Table};

const QUERY: &str = include_str!("../../../assets/sql/rate_limits.sql");

impl Source for RateLimit {
    const TABLE: &'static str = "rate_limit";
    const MOST: usize = 1000;
    const LACKS: &'static str = "has no columns key and count: not a table of rate limits";
    const NEEDED: Needed = &[("key", INT_OR_TEXT), ("count", INT)];

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
        rows.order_by(|one, other| {
            let time = |row: &Self| (row.expires_at, row.window_start);
            time(other).cmp(&time(one)).then_with(|| one.key.cmp(&other.key))
        });
        rows
    }
}

const GENERATORS: &str = include_str!("../../../assets/sql/id_generators.sql");

impl Source for IdGenerator {
    const TABLE: &'static str = "id_generator";
    const MOST: usize = 1024;
    const LACKS: &'static str = "has no columns worker_id and last_timestamp: not a table of id generators";
    const NEEDED: Needed = &[("worker_id", INT), ("last_timestamp", INT)];

    fn query(table: &Table) -> Result<String, Text> {
        let order = if table.has_index(&["worker_id"]) { "ORDER BY t.worker_id" } else { "" };
        Ok(filled::<Self>(GENERATORS, table, &[("$order", order)]))
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.order_by_key(|row| row.worker);
        rows
    }
}

const REFUSALS: &str = include_str!("../../../assets/sql/refusals.sql");

impl DecodedRow for Refusals {
    const COLUMNS: Columns = optional! {
        Int: "rate_limit" "transfer" "lease" "task";
    };

    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let (rate_limit, transfer, lease, task) = (row.int()?, row.int()?, row.int()?, row.int()?);
        Ok(Some(Self { at: None, rate_limit, transfer, lease, task }))
    }
}

impl Source for Refusals {
    const TABLE: &'static str = "refusals";
    const MOST: usize = 1;
    const LACKS: &'static str = "has no columns rate_limit and transfer: not a table of refusals";
    const NEEDED: Needed = &[("rate_limit", INT), ("transfer", INT), ("lease", INT), ("task", INT)];
    const BESIDE: &'static [&'static str] = BESIDE;

    fn query(table: &Table) -> Result<String, Text> {
        Ok(filled::<Self>(REFUSALS, table, &[("$oid", &table.oid.to_string())]))
    }

    /// A copy of the table has no rows: its counters are not known.
    fn of_copy(_: &[Bytes], _: &mut Texts, _: Timestamp) -> Result<Vec<Self>, DecodeError> {
        Ok(vec![Self::default()])
    }
}
