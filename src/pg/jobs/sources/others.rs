//! Tables that one query each reads: rate limits, id generators, workers, leases, waits that were counted while no client
//! was watching, and requests that were refused: `refusals`, an empty table of which each column has a sequence.

use bytes::Bytes;

use super::reader::{INT, INT_OR_TEXT, Needed, Reads, TEXT, TIME, TableSource, filled, has_needed};
use crate::model::id_generator::IdGenerator;
use crate::model::lease::{Lease, RowPosition};
use crate::model::lock::{LockMode, LockType};
use crate::model::rate_limit::RateLimit;
use crate::model::refusals::Refusals;
use crate::model::source_tables::{CountedWaits, tag};
use crate::model::table_rows::TaskWorker;
use crate::model::{Text, Timestamp};
use crate::order::SortExt;
use crate::pg::decode::DecodeError;
use crate::pg::decode::Texts;
use crate::pg::decode::copy::CopyValues;
use crate::pg::decode::value::text;
use crate::pg::decode::{DecodedRow, optional};
use crate::pg::jobs::tables::{ColumnKind, Columns, Table};

const LIMITS: &str = include_str!("../../../../assets/sql/rate_limits.sql");

impl TableSource for RateLimit {
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
        Ok(filled::<Self>(LIMITS, table, &[("$where", condition), ("$order", order)]))
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

const GENERATORS: &str = include_str!("../../../../assets/sql/id_generators.sql");

impl TableSource for IdGenerator {
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

const REFUSALS: &str = include_str!("../../../../assets/sql/refusals.sql");

impl DecodedRow for Refusals {
    const COLUMNS: Columns = optional! {
        Int: "rate_limit" "transfer" "lease" "task";
    };

    fn read(row: &mut CopyValues<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let (rate_limit, transfer, lease, task) = (row.int()?, row.int()?, row.int()?, row.int()?);
        Ok(Some(Self { at: None, rate_limit, transfer, lease, task }))
    }
}

impl TableSource for Refusals {
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

const WORKERS: &str = include_str!("../../../../assets/sql/task_workers.sql");

/// OID of the type `text[]` (`src/include/catalog/pg_type.dat`).
const TEXT_ARRAY: u32 = 1009;
/// Read once in this many polls: workers change rarely, and the sessions show whether they are alive.
const POLLS: u32 = 5;
/// Tables of the config whose schemas are searched for tables without a name in the config.
const BESIDE: &[&str] = &["distlock", "task_queue", "rate_limit", "id_generator"];

impl DecodedRow for TaskWorker {
    const COLUMNS: Columns = optional! {
        Int: "backend_pid"; Time: "backend_start"; Text: "worker_id";
        Bool: "takes_tasks" "takes_items"; Time: "announced_at";
    };

    fn read(row: &mut CopyValues<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let Some(pid) = row.small()? else { return Ok(None) };
        Ok(Some(Self {
            pid,
            start: row.time()?,
            name: row.text()?,
            takes_tasks: row.flag()?.unwrap_or(true),
            takes_items: row.flag()?.unwrap_or(true),
            announced_at: row.time()?,
            types: row.whole_text()?,
        }))
    }
}

impl TableSource for TaskWorker {
    const TABLE: &'static str = "locktop_workers";
    /// The types: not known from a copy, and a worker that may take anything causes no alarm.
    const EXTRA: usize = 1;
    const MOST: usize = 2000;
    const LACKS: &'static str = "has no columns backend_pid, takes_tasks and types: not a table of workers";
    const NEEDED: Needed = &[("backend_pid", INT), ("takes_tasks", &[ColumnKind::Bool])];
    const BESIDE: &'static [&'static str] = BESIDE;

    fn is_one(table: &Table) -> bool {
        has_needed::<Self>(table) && table.column("types").is_some_and(|column| column.kind == TEXT_ARRAY)
    }

    fn query(table: &Table) -> Result<String, Text> {
        Ok(filled::<Self>(WORKERS, table, &[]))
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.order_by_key(|row| row.pid);
        rows
    }

    fn rest(_: &[Self], _: Reads) -> u32 {
        POLLS
    }
}

const CONTENDED: &str = include_str!("../../../../assets/sql/contended_locks.sql");

/// Read once in this many polls: the counting process polls only every few seconds.
const CONTENDED_POLLS: u32 = 10;
/// Larger tables are not read, by the server's count and by the statement itself. There is no index on the total wait: it
/// would change with every call of `observe_lock_waits()`, whose updates stay on their page without it (HOT).
const ROWS: i64 = 20_000;

impl DecodedRow for CountedWaits {
    const COLUMNS: Columns = optional! {
        Text: "locktype"; Oid: "database" "relation" "classid" "objid";
        Int: "objsubid" "waits_seen"; Interval: "total_wait" "longest_wait"; Text: "longest_mode";
        Time: "first_seen" "last_seen";
    };

    fn read(row: &mut CopyValues<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let locktype = row.text()?.map(|text| LockType::parse(text.as_bytes()));
        let mut oid = || Ok::<_, DecodeError>(row.small()?.unwrap_or(0));
        let (database, relation, classid, objid) = (oid()?, oid()?, oid()?, oid()?);
        let objsubid = row.small()?.unwrap_or(0);
        let waits = row.small()?.unwrap_or(0);
        let (total, longest) = (row.number()?, row.number()?.unwrap_or(0.0));
        let longest_mode = row.text()?.and_then(|mode| LockMode::parse(mode.as_bytes()));
        let (first, last) = (row.time()?, row.time()?);
        Ok(locktype.zip(total).map(|(locktype, total)| Self {
            tag: tag(locktype, database, relation, (classid, objid, objsubid)),
            waits,
            total,
            longest,
            longest_mode,
            first,
            last,
        }))
    }
}

impl TableSource for CountedWaits {
    const TABLE: &'static str = "contended_locks";
    const MOST: usize = 50;
    const LACKS: &'static str = "has no columns locktype, objid and total_wait: not a table of counted waits";
    const NEEDED: Needed =
        &[("locktype", TEXT), ("total_wait", &[ColumnKind::Interval]), ("objid", &[ColumnKind::Oid])];
    const BESIDE: &'static [&'static str] = BESIDE;

    fn query(table: &Table) -> Result<String, Text> {
        if table.rows > ROWS {
            return Err(format!(
                "{} is not read: it has about {} rows, and observe_lock_waits() keeps 10000 by default",
                table.label(),
                table.rows
            )
            .into());
        }
        Ok(filled::<Self>(CONTENDED, table, &[("$rows", &(ROWS + 1).to_string())]))
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.order_by(|a, b| b.total.total_cmp(&a.total));
        rows
    }

    fn rest(_: &[Self], _: Reads) -> u32 {
        CONTENDED_POLLS
    }
}

const LEASES: &str = include_str!("../../../../assets/sql/leases.sql");

impl DecodedRow for Lease {
    const COLUMNS: Columns = optional! {
        Text: "id" "owner"; Time: "ts"; Interval: "expired_time"; Int: "token";
        Time: "acquired_at" "released_at"; Int: "backend_pid"; Time: "backend_start"; Text: "name";
    };

    fn read(row: &mut CopyValues<'_, '_>) -> Result<Option<Self>, DecodeError> {
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

impl TableSource for Lease {
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
        Ok(filled::<Self>(LEASES, table, &[("$end", &end), ("$place", place), ("$order", order)]))
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
