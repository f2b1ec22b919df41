//! Requests that were refused: `refusals`, an empty table of which each column has a sequence that counts.

use bytes::Bytes;

use super::source::{Source, filled};
use super::worker::BESIDE;
use crate::model::refusals::Refusals;
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::row::Values;
use crate::pg::decode::texts::Texts;
use crate::pg::tables::{ColumnKind, Columns, Table};

const QUERY: &str = include_str!("../../../assets/sql/refusals.sql");

impl Source for Refusals {
    const TABLE: &'static str = "refusals";
    const COLUMNS: Columns = &[
        ("rate_limit", ColumnKind::Int),
        ("transfer", ColumnKind::Int),
        ("lease", ColumnKind::Int),
        ("task", ColumnKind::Int),
    ];
    const MOST: usize = 1;
    const LACKS: &'static str = "has no columns rate_limit and transfer: not a table of refusals";
    const BESIDE: &'static [&'static str] = BESIDE;

    fn is_one(table: &Table) -> bool {
        Self::COLUMNS.iter().all(|(name, kind)| table.is(name, *kind))
    }

    fn query(table: &Table) -> Result<String, Text> {
        Ok(filled::<Self>(QUERY, table, &[("$oid", &table.oid.to_string())]))
    }

    /// A copy of the table has no rows: its counters are not known.
    fn of_copy(_: &[Bytes], _: &mut Texts, _: Timestamp) -> Result<Vec<Self>, DecodeError> {
        Ok(vec![Self::default()])
    }

    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let (rate_limit, transfer, lease, task) = (row.int()?, row.int()?, row.int()?, row.int()?);
        Ok(Some(Self { at: None, rate_limit, transfer, lease, task }))
    }
}
