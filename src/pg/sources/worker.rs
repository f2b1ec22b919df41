//! Workers, and waits that were counted while no client was watching.

use super::source::{INT, Needed, Reads, Source, TEXT, filled, has_needed};
use crate::model::lock::{LockMode, LockType};
use crate::model::systems::{CountedWaits, tag};
use crate::model::task_worker::TaskWorker;
use crate::model::{Text, Timestamp};
use crate::order::Order;
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Values;
use crate::pg::decode::rows::{DecodedRow, optional};
use crate::pg::tables::{ColumnKind, Columns, Table};

const QUERY: &str = include_str!("../../../assets/sql/task_workers.sql");

/// OID of the type `text[]` (`src/include/catalog/pg_type.dat`).
const TEXT_ARRAY: u32 = 1009;
/// Read once in this many polls: workers change rarely, and the sessions show whether they are alive.
const POLLS: u32 = 5;
/// Tables of the config whose schemas are searched for tables without a name in the config.
pub(super) const BESIDE: &[&str] = &["distlock", "task_queue", "rate_limit", "id_generator"];

impl DecodedRow for TaskWorker {
    const COLUMNS: Columns = optional! {
        Int: "backend_pid"; Time: "backend_start"; Text: "worker_id";
        Bool: "takes_tasks" "takes_items"; Time: "announced_at";
    };

    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
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

impl Source for TaskWorker {
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
        Ok(filled::<Self>(QUERY, table, &[]))
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.order_by_key(|row| row.pid);
        rows
    }

    fn rest(_: &[Self], _: Reads) -> u32 {
        POLLS
    }
}

const CONTENDED: &str = include_str!("../../../assets/sql/contended_locks.sql");

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

    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
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

impl Source for CountedWaits {
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
