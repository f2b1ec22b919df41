//! Waits that were counted while nobody looked: `contended_locks`.

use super::reader::Rows;
use crate::model::counted_waits::{CountedWaits, tag};
use crate::model::lock::{LockMode, LockType};
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Fields;
use crate::pg::decode::texts::Texts;
use crate::pg::decode::value::{float8, int8, timestamp};
use crate::pg::sql;
use crate::pg::tables::{Columns, Kind, Table, columns, source};
use locktop_tasks::sql::{fill, without_comments};

const COLUMNS: Columns = &[
    ("locktype", Kind::Text),
    ("database", Kind::Oid),
    ("relation", Kind::Oid),
    ("classid", Kind::Oid),
    ("objid", Kind::Oid),
    ("objsubid", Kind::Int),
    ("waits_seen", Kind::Int),
    ("total_wait", Kind::Interval),
    ("longest_wait", Kind::Interval),
    ("longest_mode", Kind::Text),
    ("first_seen", Kind::Time),
    ("last_seen", Kind::Time),
];
/// It is read once in so many polls: whoever counts looks every few seconds.
const POLLS: usize = 10;
/// More than that are not read, by what the server has counted and by the statement itself. There is no index on what they have cost:
/// it would change with every look of `observe_lock_waits()`, whose updates stay on their page without it (HOT).
const ROWS: i64 = 20_000;

impl Rows for CountedWaits {
    const TABLE: &'static str = "contended_locks";
    const COLUMNS: usize = COLUMNS.len();
    const MOST: usize = 50;
    const EACH: usize = 51;

    fn lacks(table: &Table) -> Option<&'static str> {
        let is_one = table.kind("locktype") == Some(Kind::Text)
            && table.kind("total_wait") == Some(Kind::Interval)
            && table.kind("objid") == Some(Kind::Oid);
        (!is_one).then_some("has no columns locktype, objid and total_wait: it is no table of counted waits")
    }

    fn query(table: &Table) -> Result<String, Text> {
        if table.rows > ROWS {
            return Err(format!(
                "{} is not read: it has about {} rows, and observe_lock_waits() keeps 10000 unless told otherwise",
                table.label(),
                table.rows
            )
            .into());
        }
        let limit = (Self::MOST + 1).to_string();
        let values = [
            ("$columns", columns(table, COLUMNS)),
            ("$table", source(table)),
            ("$rows", (ROWS + 1).to_string()),
            ("$limit", limit),
        ];
        Ok(fill(&without_comments(sql::CONTENDED_LOCKS), &values))
    }

    fn copied() -> Columns {
        COLUMNS
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.sort_by(|a, b| b.total.total_cmp(&a.total));
        rows
    }

    fn read(fields: &mut Fields<'_>, texts: &mut Texts) -> Result<Option<Self>, DecodeError> {
        let locktype = texts.get(fields.value()?).map(|text| LockType::parse(text.as_bytes()));
        let mut number = || Ok(int8(fields.value()?));
        let (database, relation) = (number()?, number()?);
        let (classid, objid, objsubid) = (number()?, number()?, number()?);
        let waits = number()?.and_then(|waits| u64::try_from(waits).ok());
        let (total, longest) = (float8(fields.value()?), float8(fields.value()?));
        let mode = texts.get(fields.value()?);
        let (first, last) = (timestamp(fields.value()?), timestamp(fields.value()?));
        let oid = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        let objsubid = objsubid.and_then(|number| u16::try_from(number).ok()).unwrap_or(0);
        let (Some(locktype), Some(total)) = (locktype, total.filter(|total| total.is_finite())) else {
            return Ok(None);
        };
        Ok(Some(Self {
            tag: tag(locktype, oid(database), oid(relation), (oid(classid), oid(objid), objsubid)),
            waits: waits.unwrap_or(0),
            total,
            longest: longest.filter(|longest| longest.is_finite()).unwrap_or(0.0),
            longest_mode: mode.and_then(|mode| LockMode::parse(mode.as_bytes())),
            first,
            last,
        }))
    }

    fn cost(_: &[Self]) -> usize {
        POLLS * Self::EACH
    }
}
