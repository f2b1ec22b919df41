//! Rate limits: `rate_limit`.

use super::reader::Rows;
use crate::model::rate_limit::RateLimit;
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Fields;
use crate::pg::decode::texts::Texts;
use crate::pg::decode::value::{int8, timestamp};
use crate::pg::sql;
use crate::pg::tables::{Columns, Kind, Table, columns, source};
use locktop_tasks::sql::{fill, without_comments};

const COLUMNS: Columns = &[
    ("key", Kind::Text),
    ("count", Kind::Int),
    ("window_start", Kind::Time),
    ("max_requests", Kind::Int),
    ("expires_at", Kind::Time),
];

impl Rows for RateLimit {
    const TABLE: &'static str = "rate_limit";
    const COLUMNS: usize = COLUMNS.len();
    const MOST: usize = 1000;
    const EACH: usize = 1001;

    fn lacks(table: &Table) -> Option<&'static str> {
        let is_one = matches!(table.kind("key"), Some(Kind::Text | Kind::Int))
            && table.kind("count") == Some(Kind::Int);
        (!is_one).then_some("has no columns key and count: it is no table of rate limits")
    }

    fn query(table: &Table) -> Result<String, Text> {
        let sorted = |column: &str| table.kind(column) == Some(Kind::Time) && table.has_index(&[column]);
        let (condition, order) = match () {
            // Windows that are over say nothing, and there may be millions of them.
            () if sorted("expires_at") => {
                ("WHERE t.expires_at OPERATOR(pg_catalog.>) pg_catalog.now()", "ORDER BY t.expires_at DESC")
            }
            () if sorted("window_start") => ("", "ORDER BY t.window_start DESC"),
            () if table.has_index(&["key"]) => ("", "ORDER BY t.key"),
            () => ("", ""),
        };
        let (columns, source) = (columns(table, COLUMNS), source(table));
        let limit = (Self::MOST + 1).to_string();
        let values = [
            ("$columns", columns.as_str()),
            ("$table", &source),
            ("$where", condition),
            ("$order", order),
            ("$limit", &limit),
        ];
        Ok(fill(&without_comments(sql::RATE_LIMITS), &values))
    }

    fn copied() -> Columns {
        COLUMNS
    }

    fn choose(mut rows: Vec<Self>, now: Timestamp) -> Vec<Self> {
        rows.retain(|row| row.expires_at.is_none_or(|end| end > now));
        rows.sort_by(|one, other| {
            let time = |row: &Self| (row.expires_at, row.window_start);
            time(other).cmp(&time(one)).then_with(|| one.key.cmp(&other.key))
        });
        rows
    }

    fn read(fields: &mut Fields<'_>, texts: &mut Texts) -> Result<Option<Self>, DecodeError> {
        let Some(key) = texts.get(fields.value()?) else { return Ok(None) };
        Ok(Some(Self {
            key,
            count: int8(fields.value()?),
            window_start: timestamp(fields.value()?),
            max_requests: int8(fields.value()?),
            expires_at: timestamp(fields.value()?),
        }))
    }
}
