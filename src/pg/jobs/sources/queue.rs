//! The work queue, `task_queue`: the number of items by status, and the items that are worth showing.
//!
//! A queue may have millions of rows. Each status is counted up to ten thousand only, and counted and read by an index
//! that is known to find it; statuses without an index are searched among the newest rows.

use bytes::Bytes;
use rustc_hash::FxHashSet;

use super::reader::{INT, Needed, Reads, TEXT, TableSource, filled};
use crate::model::work_queue::{Item, StateCount};
use crate::model::{Text, Timestamp};
use crate::order::SortExt;
use crate::pg::decode::DecodeError;
use crate::pg::decode::Texts;
use crate::pg::decode::copy::{self, CopyValues};
use crate::pg::decode::{DecodedRow, optional};
use crate::pg::jobs::tables::{ColumnKind, Columns, Table, every};

pub(super) const TABLE: &str = "task_queue";
pub(super) const LACKS: &str = "has no columns id and status: not a work queue";
/// A status is counted up to this number.
pub(super) const MOST: usize = 10_000;

const NEEDED_ONES: Needed = &[("id", INT), ("status", TEXT)];

/// The statuses that an index finds and, if the newest rows may be read, those that none finds.
pub(super) fn split(
    table: &Table,
    statuses: &[&'static str],
) -> Result<(Vec<&'static str>, Vec<&'static str>), Text> {
    let (indexed, mut rest): (Vec<_>, Vec<_>) =
        statuses.iter().partition(|status| table.index_where("status", status, &[]).is_some());
    if !table.has_index(&["id"]) {
        rest.clear();
    }
    if indexed.is_empty() && rest.is_empty() {
        let name = table.label();
        return Err(format!(
            "{name} has no index on status nor on id, and is not read: it would be a sequential scan"
        )
        .into());
    }
    Ok((indexed, rest))
}

pub(super) fn array(statuses: &[&str]) -> String {
    format!("'{{{}}}'", statuses.join(","))
}

const COUNT_OF_STATUS: &str = include_str!("../../../../assets/sql/queue_count.sql");
const COUNT_AMONG_NEWEST: &str = include_str!("../../../../assets/sql/queue_count_newest.sql");

/// Items that a poll may count on average.
const COUNTED_PER_POLL: usize = 4000;
const STATUSES: [&str; 4] = ["pending", "processing", "completed", "failed"];
const NO_TIME: &str = "NULL::pg_catalog.timestamptz";

impl DecodedRow for StateCount {
    const COLUMNS: Columns = optional! {
        Text: "status"; Time: "due_at" "created_at" "completed_at";
    };

    fn read(row: &mut CopyValues<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let status = row.text()?;
        let count: u64 = row.small()?.unwrap_or_default();
        let is_more = row.flag()?.unwrap_or_default();
        let count = if is_more { count.min(MOST as u64) } else { count };
        Ok(Some(Self { status, count, is_more, oldest_at: row.time()?, last_minute: row.small()? }))
    }
}

impl TableSource for StateCount {
    const TABLE: &'static str = TABLE;
    const WIDTH: usize = 5;
    const MOST: usize = 100;
    const LACKS: &'static str = LACKS;
    const NEEDED: Needed = NEEDED_ONES;
    const KEY_RULE: &'static str = "queue_key";

    fn query(table: &Table) -> Result<String, Text> {
        let (indexed, rest) = split(table, &STATUSES)?;
        let mut parts: Vec<String> = indexed.iter().map(|status| count_of(table, status)).collect();
        if !rest.is_empty() {
            let time = |column: &str| {
                if table.is(column, ColumnKind::Time) {
                    format!("t.{column}::pg_catalog.timestamptz")
                } else {
                    NO_TIME.to_owned()
                }
            };
            parts.push(filled::<Self>(
                COUNT_AMONG_NEWEST,
                table,
                &[
                    ("$created", &time(waits_since(table))),
                    ("$completed", &time("completed_at")),
                    ("$rest", &array(&rest)),
                    ("$known", &array(&STATUSES)),
                    ("$most", &MOST.to_string()),
                ],
            ));
        }
        Ok(parts.join("\nUNION ALL\n"))
    }

    /// A copy is counted here. Items of unknown status are counted together, without a name.
    fn of_copy(messages: &[Bytes], texts: &mut Texts, now: Timestamp) -> Result<Vec<Self>, DecodeError> {
        let items = copy::rows(messages, Self::COLUMNS.len(), texts, |row| Ok(Some(CountRow::read(row)?)))?;
        Ok(count(&items, now))
    }

    fn rest(rows: &[Self], _: Reads) -> u32 {
        let counts = rows.iter().map(|row| usize::try_from(row.count).unwrap_or(usize::MAX));
        every(counts.fold(0, usize::saturating_add), COUNTED_PER_POLL)
    }
}

/// The column that orders pending items: `due_at`, else `created_at`.
fn waits_since(table: &Table) -> &'static str {
    if table.is("due_at", ColumnKind::Time) { "due_at" } else { "created_at" }
}

/// Counts one status. The oldest item is exact if the index has the times in order; otherwise it is the oldest of those
/// counted.
fn count_of(table: &Table, status: &str) -> String {
    let from = table.named().source();
    let since = waits_since(table);
    let is_sorted =
        table.is(since, ColumnKind::Time) && table.index_where("status", status, &[since]).is_some();
    let oldest = match (status, table.is(since, ColumnKind::Time)) {
        ("pending", true) if is_sorted => format!(
            "(SELECT t.{since}::pg_catalog.timestamptz FROM {from} AS t \
              WHERE t.status OPERATOR(pg_catalog.=) 'pending' ORDER BY t.{since} LIMIT 1)"
        ),
        ("pending", true) => "pg_catalog.min(q.created)::pg_catalog.timestamptz".to_owned(),
        _ => NO_TIME.to_owned(),
    };
    let has_times = table.is("completed_at", ColumnKind::Time)
        && table.index_where("status", status, &["completed_at"]).is_some();
    let recent = if status == "completed" && has_times {
        format!(
            "(SELECT pg_catalog.count(*) FROM (SELECT 1 FROM {from} AS t \
              WHERE t.status OPERATOR(pg_catalog.=) 'completed' AND t.completed_at OPERATOR(pg_catalog.>) \
                    (pg_catalog.now() OPERATOR(pg_catalog.-) interval '1 minute') LIMIT {MOST}) AS r)"
        )
    } else {
        "NULL::pg_catalog.int8".to_owned()
    };
    // If the index also has the time, the count is an index-only scan.
    let created = if status == "pending" && table.is(since, ColumnKind::Time) { since } else { "status" };
    let (status, most) = (format!("'{status}'"), MOST.to_string());
    let values = [
        ("$created", created),
        ("$oldest", &oldest),
        ("$recent", &recent),
        ("$status", &status),
        ("$most", &most),
    ];
    filled::<StateCount>(COUNT_OF_STATUS, table, &values)
}

struct CountRow {
    status: Option<Text>,
    since: Option<Timestamp>,
    completed_at: Option<Timestamp>,
}

impl CountRow {
    fn read(row: &mut CopyValues<'_, '_>) -> Result<Self, DecodeError> {
        let (status, due_at, created_at) = (row.text()?, row.time()?, row.time()?);
        Ok(Self { status, since: due_at.or(created_at), completed_at: row.time()? })
    }
}

fn count(items: &[CountRow], now: Timestamp) -> Vec<StateCount> {
    let known = STATUSES.map(|status| {
        let those = || items.iter().filter(move |item| item.status.as_deref() == Some(status));
        let minute = now - chrono::TimeDelta::minutes(1);
        let recent = those().filter(|item| item.completed_at.is_some_and(|at| at > minute)).count();
        StateCount {
            status: Some(status.into()),
            count: those().count().min(MOST) as u64,
            is_more: those().count() > MOST,
            oldest_at: if status == "pending" { those().filter_map(|item| item.since).min() } else { None },
            last_minute: (status == "completed").then_some(recent as u64),
        }
    });
    let is_known = |item: &&CountRow| item.status.as_deref().is_some_and(|status| STATUSES.contains(&status));
    let others = items.iter().filter(|item| !is_known(item)).count() as u64;
    let other = StateCount { count: others, ..StateCount::default() };
    known.into_iter().chain((others > 0).then_some(other)).collect()
}

const ITEMS_OF_STATUS: &str = include_str!("../../../../assets/sql/queue_items.sql");
const ITEMS_AMONG_NEWEST: &str = include_str!("../../../../assets/sql/queue_items_newest.sql");

/// Limit of items in progress.
const PROCESSING: usize = 500;
/// Limit of items set aside, newest first.
const FAILED: usize = 50;
/// Limit of pending items, in the order in which they are taken.
const PENDING: usize = 20;
/// Rows that are searched for items which no index finds.
const NEWEST: usize = 1000;
/// Items that a poll may read on average.
const ITEMS_PER_POLL: usize = 600;

impl TableSource for Item {
    const TABLE: &'static str = TABLE;
    const MOST: usize = PROCESSING + FAILED + PENDING;
    const LACKS: &'static str = LACKS;
    const NEEDED: Needed = NEEDED_ONES;
    const OWN: &'static [&'static str] = &["backend_pid", "backend_start", "attempt"];
    const KEY_RULE: &'static str = "queue_key";

    fn query(table: &Table) -> Result<String, Text> {
        let (indexed, rest) = split(table, &["processing", "failed", "pending"])?;
        let mut parts: Vec<String> = indexed.iter().map(|status| items_of(table, status)).collect();
        if !rest.is_empty() {
            parts.push(newest(table, &rest, ""));
            // Items in progress came in just before the pending ones, of which there may be any number.
            if indexed.contains(&"pending") && rest.contains(&"processing") {
                let first = format!(
                    "WHERE t.id OPERATOR(pg_catalog.<) (SELECT pg_catalog.min(p.id) FROM (SELECT t.id FROM {} AS t \
                     WHERE t.status OPERATOR(pg_catalog.=) 'pending' LIMIT {MOST}) AS p)",
                    table.named().source()
                );
                parts.push(newest(table, &["processing"], &first));
            }
        }
        Ok(parts.join("\nUNION ALL\n"))
    }

    /// In the order of the queries, so that the limits cut off the same items.
    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.order_by_key(|row| row.due_at.or(row.created_at));
        rows.order_by_key(|row| match row.status.as_deref() {
            Some("failed") => std::cmp::Reverse(row.completed_at),
            _ => std::cmp::Reverse(None),
        });
        rows
    }

    /// Without duplicates: the newest items and those before the pending ones may overlap.
    fn tidy(mut rows: Vec<Self>, _: Reads) -> (Vec<Self>, bool) {
        let mut seen = FxHashSet::default();
        rows.retain(|row| seen.insert(row.id));
        let mut of_status = [("processing", PROCESSING), ("failed", FAILED), ("pending", PENDING)];
        let mut is_cut = false;
        rows.retain(|row| {
            let left = of_status.iter_mut().find(|(status, _)| row.status.as_deref() == Some(status));
            let Some((status, left)) = left else { return false };
            is_cut |= *left == 0 && *status == "processing";
            let is_kept = *left > 0;
            *left = left.saturating_sub(1);
            is_kept
        });
        (rows, is_cut)
    }

    fn rest(rows: &[Self], _: Reads) -> u32 {
        every(rows.len(), ITEMS_PER_POLL)
    }
}

fn items_of(table: &Table, status: &str) -> String {
    let sorted = |column: &str| {
        table.is(column, ColumnKind::Time) && table.index_where("status", status, &[column]).is_some()
    };
    let (limit, order) = match status {
        "processing" => (PROCESSING + 1, ""),
        "failed" if sorted("completed_at") => (FAILED, "ORDER BY t.completed_at DESC"),
        "failed" => (FAILED, ""),
        _ if sorted("due_at") => (PENDING, "ORDER BY t.due_at"),
        _ if sorted("created_at") => (PENDING, "ORDER BY t.created_at"),
        _ => (PENDING, ""),
    };
    let (status, limit) = (format!("'{status}'"), limit.to_string());
    filled::<Item>(ITEMS_OF_STATUS, table, &[("$status", &status), ("$order", order), ("$limit", &limit)])
}

fn newest(table: &Table, statuses: &[&str], condition: &str) -> String {
    let (statuses, newest, limit) = (array(statuses), NEWEST.to_string(), (PROCESSING + 1).to_string());
    let values = [("$where", condition), ("$statuses", &statuses), ("$newest", &newest), ("$limit", &limit)];
    filled::<Item>(ITEMS_AMONG_NEWEST, table, &values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_kept_once_and_no_more_than_enough_of_each_status() {
        let item = |id: i64, status: &str| Item { id, status: Some(status.into()), ..Item::default() };
        let mut rows: Vec<Item> = (0..600).map(|id| item(id, "processing")).collect();
        rows.extend((0..600).map(|id| item(id, "processing")));
        rows.extend((600..700).map(|id| item(id, "failed")));
        rows.extend((700..800).map(|id| item(id, "pending")));
        rows.extend([item(900, "completed"), Item { id: 901, ..Item::default() }]);
        let (kept, is_cut) = Item::tidy(rows, Reads::Query);
        let count = |status: &str| kept.iter().filter(|row| row.status.as_deref() == Some(status)).count();
        assert_eq!(["processing", "failed", "pending", "completed"].map(count), [500, 50, 20, 0]);
        assert!(is_cut && kept.len() == Item::MOST);
    }
}
