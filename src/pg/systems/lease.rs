//! Leases: `distlock`.

use super::reader::Rows;
use crate::model::lease::{Lease, Place};
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Fields;
use crate::pg::decode::texts::Texts;
use crate::pg::decode::value::{float8, int8, text, timestamp};
use crate::pg::sql;
use crate::pg::tables::{Columns, Kind, Table, columns, source};
use locktop_tasks::sql::{fill, without_comments};

const COLUMNS: Columns = &[
    ("id", Kind::Text),
    ("owner", Kind::Text),
    ("ts", Kind::Time),
    ("expired_time", Kind::Interval),
    ("token", Kind::Int),
    ("acquired_at", Kind::Time),
    ("released_at", Kind::Time),
    ("backend_pid", Kind::Int),
    ("backend_start", Kind::Time),
];

impl Rows for Lease {
    const TABLE: &'static str = "distlock";
    // With the end and the place.
    const COLUMNS: usize = COLUMNS.len() + 2;
    const MOST: usize = 1000;
    const EACH: usize = 1001;

    fn lacks(table: &Table) -> Option<&'static str> {
        let is_one = matches!(table.kind("id"), Some(Kind::Int | Kind::Text))
            && table.kind("owner") == Some(Kind::Text)
            && table.kind("ts") == Some(Kind::Time);
        (!is_one).then_some("has no columns id, owner and ts: it is no table of leases")
    }

    /// The published table knows nothing of these.
    fn own_keys(table: &Table) -> bool {
        ["token", "acquired_at", "released_at"].iter().all(|column| table.kind(column).is_some())
    }

    fn query(table: &Table) -> Result<String, Text> {
        let order = if table.has_index(&["id"]) { "ORDER BY t.id" } else { "" };
        // The parts of a partitioned table may have rows at the same place.
        let place = if table.is_partitioned { "NULL::pg_catalog.text" } else { "t.ctid::pg_catalog.text" };
        let (columns, source, end) = (columns(table, COLUMNS), source(table), end(table));
        let limit = (Self::MOST + 1).to_string();
        let values = [
            ("$columns", columns.as_str()),
            ("$end", &end),
            ("$place", place),
            ("$table", &source),
            ("$order", order),
            ("$limit", &limit),
        ];
        Ok(fill(&without_comments(sql::LEASES), &values))
    }

    fn copied() -> Columns {
        COLUMNS
    }

    const EXTRA: usize = 2;

    /// A number is sorted as one. Where the row is, is not in a copy, and when it ends is computed here.
    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.sort_by(|one, other| {
            let number = |lease: &Self| lease.id.parse::<i64>().ok();
            number(one).cmp(&number(other)).then_with(|| one.id.cmp(&other.id))
        });
        for lease in &mut rows {
            lease.expires_at = lease.renewed_at.zip(lease.term).and_then(|(at, term)| end_of(at, term));
        }
        rows
    }

    fn read(fields: &mut Fields<'_>, texts: &mut Texts) -> Result<Option<Self>, DecodeError> {
        let Some(id) = texts.get(fields.value()?) else { return Ok(None) };
        Ok(Some(Self {
            id,
            owner: texts.get(fields.value()?),
            renewed_at: timestamp(fields.value()?),
            term: float8(fields.value()?).filter(|seconds| !seconds.is_nan()),
            token: int8(fields.value()?),
            acquired_at: timestamp(fields.value()?),
            released_at: timestamp(fields.value()?),
            backend_pid: int8(fields.value()?).and_then(|pid| i32::try_from(pid).ok()),
            backend_start: timestamp(fields.value()?),
            expires_at: timestamp(fields.value()?),
            place: text(fields.value()?).and_then(|place| place_of(&place)),
        }))
    }
}

/// When a lease ends. Infinite and absurd values are brought within bounds that a sum cannot leave: what is beyond them is
/// a thousand years away all the same.
fn end(table: &Table) -> String {
    let term = match table.kind("expired_time") {
        Some(Kind::Interval) => {
            "least(greatest(t.expired_time, interval '-1000 years'), interval '1000 years')".to_owned()
        }
        Some(Kind::Int | Kind::Number) => {
            "pg_catalog.make_interval(secs => least(greatest(t.expired_time::pg_catalog.float8, -3e10), 3e10))"
                .to_owned()
        }
        _ => return "NULL::pg_catalog.timestamptz".to_owned(),
    };
    let first = "timestamptz '0001-01-01 00:00:00+00'";
    let last = "timestamptz '9999-01-01 00:00:00+00'";
    format!(
        "CASE WHEN t.ts IS NOT NULL AND t.expired_time IS NOT NULL
            THEN least(greatest(t.ts::pg_catalog.timestamptz, {first}), {last})
                 OPERATOR(pg_catalog.+) {term} END"
    )
}

/// The same where the row was copied. The term is in seconds here: one of months has 30 days each, and one of days 24 hours, also where
/// the zone changes to summer in between.
fn end_of(renewed_at: Timestamp, term: f64) -> Option<Timestamp> {
    /// A thousand years.
    const BOUND: f64 = 1000.0 * 365.25 * 86_400.0;
    #[expect(clippy::cast_possible_truncation, reason = "bounded")]
    let micros = (term.clamp(-BOUND, BOUND) * 1e6) as i64;
    renewed_at.checked_add_signed(chrono::TimeDelta::microseconds(micros))
}

/// `(0,7)`
fn place_of(text: &str) -> Option<Place> {
    let (page, line) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    Some((page.parse().ok()?, line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::place_of;

    #[test]
    fn a_place_is_a_page_and_a_line() {
        for (text, expected) in [
            ("(0,7)", Some((0, 7))),
            ("(4294967295,65535)", Some((u32::MAX, u16::MAX))),
            ("0,7", None),
            ("(0,-1)", None),
        ] {
            assert_eq!(place_of(text), expected, "{text}");
        }
    }
}
