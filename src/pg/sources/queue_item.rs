//! The items of the work queue that are worth showing: `task_queue`.

use rustc_hash::FxHashSet;

use super::places::Places;
use super::queue::{self, MOST, array, split};
use super::source::{Reads, Source, fields, filled};
use crate::model::task::KeyRule;
use crate::model::work_queue::Item;
use crate::model::{Text, Timestamp};
use crate::pg::tables::{ColumnKind, KEY, LOCKER, Table, every};

const OF_STATUS: &str = include_str!("../../../assets/sql/queue_items.sql");
const AMONG_NEWEST: &str = include_str!("../../../assets/sql/queue_items_newest.sql");

/// Limit of items in progress.
const PROCESSING: usize = 500;
/// Limit of items set aside, newest first.
const FAILED: usize = 50;
/// Limit of pending items, in the order in which they are taken.
const PENDING: usize = 20;
/// Rows that are searched for items which no index finds.
const NEWEST: usize = 1000;
/// Items that a poll may read on average.
const EACH: usize = 600;

impl Source for Item {
    const TABLE: &'static str = queue::TABLE;
    fields! {
        id: int = "id";
        name: text = "task_name",
        status: text = "status",
        worker: text = "worker_id",
        created_at: time = "created_at",
        started_at: time = "started_at",
        completed_at: time = "completed_at",
        attempt: int = "attempt",
        max_attempts: int = "max_attempts",
        backend_pid: small = "backend_pid",
        backend_start: time = "backend_start",
        heartbeat_at: time = "heartbeat_at",
        error: text = "error_message",
        timeout: number = "timeout",
        due_at: time = "due_at",
        key: int = KEY,
        locker: small = LOCKER,
    }
    const MOST: usize = PROCESSING + FAILED + PENDING;
    const LACKS: &'static str = queue::LACKS;

    fn is_one(table: &Table) -> bool {
        queue::is_one(table)
    }

    fn own_keys(table: &Table) -> bool {
        ["backend_pid", "backend_start", "attempt"].iter().all(|column| table.kind(column).is_some())
    }

    fn key_rule(places: &Places) -> KeyRule {
        places.key_rule("queue_key")
    }

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
        rows.sort_by_key(|row| row.due_at.or(row.created_at));
        rows.sort_by_key(|row| match row.status.as_deref() {
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
        every(rows.len(), EACH)
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
    filled::<Item>(OF_STATUS, table, &[("$status", &status), ("$order", order), ("$limit", &limit)])
}

fn newest(table: &Table, statuses: &[&str], condition: &str) -> String {
    let (statuses, newest, limit) = (array(statuses), NEWEST.to_string(), (PROCESSING + 1).to_string());
    let values = [("$where", condition), ("$statuses", &statuses), ("$newest", &newest), ("$limit", &limit)];
    filled::<Item>(AMONG_NEWEST, table, &values)
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
