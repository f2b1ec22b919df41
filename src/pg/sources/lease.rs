use super::source::{INT_OR_TEXT, Needed, Source, TEXT, TIME, filled};
use crate::model::lease::{Lease, RowPosition};
use crate::model::{Text, Timestamp};
use crate::order::Order;
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Values;
use crate::pg::decode::rows::{DecodedRow, optional};
use crate::pg::decode::value::text;
use crate::pg::tables::{ColumnKind, Columns, Table};

const QUERY: &str = include_str!("../../../assets/sql/leases.sql");

impl DecodedRow for Lease {
    const COLUMNS: Columns = optional! {
        Text: "id" "owner"; Time: "ts"; Interval: "expired_time"; Int: "token";
        Time: "acquired_at" "released_at"; Int: "backend_pid"; Time: "backend_start"; Text: "name";
    };

    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let Some(id) = row.text()? else { return Ok(None) };
        Ok(Some(Self {
            id,
            owner: row.text()?,
            renewed_at: row.time()?,
            term: row.float()?.filter(|seconds| !seconds.is_nan()),
            token: row.int()?,
            acquired_at: row.time()?,
            released_at: row.time()?,
            backend_pid: row.small()?,
            backend_start: row.time()?,
            name: row.text()?,
            expires_at: row.time()?,
            place: text(row.bytes()?).and_then(|place| place_of(&place)),
        }))
    }
}

impl Source for Lease {
    const TABLE: &'static str = "distlock";
    /// `$end` and `$place`.
    const EXTRA: usize = 2;
    const MOST: usize = 1000;
    const LACKS: &'static str = "has no columns id, owner and ts: not a table of leases";
    const NEEDED: Needed = &[("id", INT_OR_TEXT), ("owner", TEXT), ("ts", TIME)];
    const OWN: &'static [&'static str] = &["token", "acquired_at", "released_at"];

    fn query(table: &Table) -> Result<String, Text> {
        let order = if table.has_index(&["id"]) { "ORDER BY t.id" } else { "" };
        // Partitions may have rows at the same position.
        let place = if table.is_partitioned { "NULL::pg_catalog.text" } else { "t.ctid::pg_catalog.text" };
        let end = end(table);
        Ok(filled::<Self>(QUERY, table, &[("$end", &end), ("$place", place), ("$order", order)]))
    }

    /// Sorts numeric ids as numbers. A copy has no row position, and the end is computed here.
    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.order_by(|one, other| {
            let number = |lease: &Self| lease.id.parse::<i64>().ok();
            number(one).cmp(&number(other)).then_with(|| one.id.cmp(&other.id))
        });
        for lease in &mut rows {
            lease.expires_at = lease.renewed_at.zip(lease.term).and_then(|(at, term)| end_of(at, term));
        }
        rows
    }
}

/// When a lease ends. Infinite and absurd values are clamped so that the sum cannot overflow: beyond the bounds they are
/// a thousand years away.
fn end(table: &Table) -> String {
    let term = match table.kind("expired_time") {
        Some(ColumnKind::Interval) => {
            "least(greatest(t.expired_time, interval '-1000 years'), interval '1000 years')".to_owned()
        }
        Some(ColumnKind::Int | ColumnKind::Number) => {
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

/// The same for a copied row. Its term is in seconds: a month counts as 30 days and a day as 24 hours, even across a
/// change to daylight saving time.
fn end_of(renewed_at: Timestamp, term: f64) -> Option<Timestamp> {
    /// A thousand years in seconds: longer terms are clamped.
    const BOUND: f64 = 1000.0 * 365.25 * 86_400.0;
    #[expect(clippy::cast_possible_truncation, reason = "bounded")]
    let micros = (term.clamp(-BOUND, BOUND) * 1e6) as i64;
    renewed_at.checked_add_signed(chrono::TimeDelta::microseconds(micros))
}

/// Parses a `ctid` such as `(0,7)` into page and line; None for any other form.
fn place_of(text: &str) -> Option<RowPosition> {
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
