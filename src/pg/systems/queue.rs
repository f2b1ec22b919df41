//! The work queue: `task_queue`. How deep it is, and the items that somebody should see.
//!
//! A queue may have millions of rows. No status is counted beyond ten thousand, and each is counted and read by an index that is
//! known to find it; what none finds is looked for among the newest rows.

use bytes::Bytes;
use rustc_hash::FxHashSet;

use super::reader::{Rows, decoded};
use crate::model::work_queue::{Item, StateCount};
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Fields;
use crate::pg::decode::texts::Texts;
use crate::pg::decode::value::{boolean, float8, int8, timestamp};
use crate::pg::sql;
use crate::pg::tables::{Columns, KEY, Kind, Table, columns, source};
use locktop_tasks::sql::{fill, without_comments};

/// A status is counted up to this number.
const MOST: usize = 10_000;
/// Items being worked on that are read.
const PROCESSING: usize = 500;
/// Items set aside that are read, the newest first.
const FAILED: usize = 50;
/// Pending items that are read, the first to be taken first.
const PENDING: usize = 20;
/// Rows that are looked through for items which no index finds.
const NEWEST: usize = 1000;

const COLUMNS: Columns = &[
    ("id", Kind::Int),
    ("task_name", Kind::Text),
    ("status", Kind::Text),
    ("worker_id", Kind::Text),
    ("created_at", Kind::Time),
    ("started_at", Kind::Time),
    ("completed_at", Kind::Time),
    ("attempt", Kind::Int),
    ("max_attempts", Kind::Int),
    ("backend_pid", Kind::Int),
    ("backend_start", Kind::Time),
    ("heartbeat_at", Kind::Time),
    ("error_message", Kind::Text),
    ("timeout", Kind::Interval),
    ("due_at", Kind::Time),
    (KEY, Kind::Int),
];

const STATUSES: [&str; 4] = ["pending", "processing", "completed", "failed"];

fn lacks(table: &Table) -> Option<&'static str> {
    let is_one = table.kind("id") == Some(Kind::Int) && table.kind("status") == Some(Kind::Text);
    (!is_one).then_some("has no columns id and status: it is no work queue")
}

/// Which statuses an index finds, and which none does.
fn split(table: &Table, statuses: &[&'static str]) -> (Vec<&'static str>, Vec<&'static str>) {
    statuses.iter().partition(|status| table.index_where("status", status, &[]).is_some())
}

fn unindexed(table: &Table) -> Text {
    let name = table.label();
    format!("{name} has no index on status nor on id, and is not read: that would read all of it").into()
}

fn is_time(table: &Table, column: &str) -> bool {
    table.kind(column) == Some(Kind::Time)
}

/// The column by which the pending items are in order: where there is none of when each is due, that of when it came in.
fn waits_since(table: &Table) -> &'static str {
    if is_time(table, "due_at") { "due_at" } else { "created_at" }
}

/// `'{"pending","failed"}'`
fn array(statuses: &[&str]) -> String {
    format!("'{{{}}}'", statuses.join(","))
}

impl Rows for StateCount {
    const TABLE: &'static str = "task_queue";
    const COLUMNS: usize = 5;
    const MOST: usize = 100;
    const EACH: usize = 4000;

    fn lacks(table: &Table) -> Option<&'static str> {
        lacks(table)
    }

    fn query(table: &Table) -> Result<String, Text> {
        let (indexed, rest) = split(table, &STATUSES);
        let by_id = table.has_index(&["id"]);
        if indexed.is_empty() && !by_id {
            return Err(unindexed(table));
        }
        let mut parts: Vec<String> = indexed.iter().map(|status| count_of(table, status)).collect();
        if by_id && !rest.is_empty() {
            let time = |column: &str| {
                if is_time(table, column) {
                    format!("t.{column}::pg_catalog.timestamptz")
                } else {
                    NO_TIME.to_owned()
                }
            };
            let values = [
                ("$created", time(waits_since(table))),
                ("$completed", time("completed_at")),
                ("$table", source(table)),
                ("$rest", array(&rest)),
                ("$known", array(&STATUSES)),
                ("$most", MOST.to_string()),
            ];
            parts.push(fill(&without_comments(sql::QUEUE_COUNT_NEWEST), &values));
        }
        Ok(parts.join("\nUNION ALL\n"))
    }

    fn read(fields: &mut Fields<'_>, texts: &mut Texts) -> Result<Option<Self>, DecodeError> {
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let status = texts.get(fields.value()?);
        let count = number(int8(fields.value()?)).unwrap_or_default();
        let is_more = boolean(fields.value()?).unwrap_or_default();
        let most = MOST as u64;
        Ok(Some(Self {
            status,
            count: if is_more { count.min(most) } else { count },
            is_more,
            oldest_at: timestamp(fields.value()?),
            last_minute: number(int8(fields.value()?)),
        }))
    }

    fn copied() -> Columns {
        COUNTED
    }

    /// Counted here. What none of the known statuses is counts as another one, without a name.
    fn of_copy(messages: &[Bytes], texts: &mut Texts, now: Timestamp) -> Result<Vec<Self>, DecodeError> {
        let items =
            decoded(messages, COUNTED.len(), texts, |fields, texts| Ok(Some(counted(fields, texts)?)))?;
        Ok(count(&items, now))
    }

    fn cost(rows: &[Self]) -> usize {
        rows.iter().map(|row| usize::try_from(row.count).unwrap_or(usize::MAX)).fold(0, usize::saturating_add)
    }
}

const NO_TIME: &str = "NULL::pg_catalog.timestamptz";

/// Counts one status. The oldest is exact where the index has the times in order; else it is that of those counted.
fn count_of(table: &Table, status: &str) -> String {
    let from = source(table);
    let since = waits_since(table);
    let is_sorted = is_time(table, since) && table.index_where("status", status, &[since]).is_some();
    let oldest = match (status, is_time(table, since)) {
        ("pending", true) if is_sorted => format!(
            "(SELECT t.{since}::pg_catalog.timestamptz FROM {from} AS t \
              WHERE t.status OPERATOR(pg_catalog.=) 'pending' ORDER BY t.{since} LIMIT 1)"
        ),
        ("pending", true) => "pg_catalog.min(q.created)::pg_catalog.timestamptz".to_owned(),
        _ => NO_TIME.to_owned(),
    };
    let has_times =
        is_time(table, "completed_at") && table.index_where("status", status, &["completed_at"]).is_some();
    let recent = if status == "completed" && has_times {
        format!(
            "(SELECT pg_catalog.count(*) FROM (SELECT 1 FROM {from} AS t \
              WHERE t.status OPERATOR(pg_catalog.=) 'completed' AND t.completed_at OPERATOR(pg_catalog.>) \
                    (pg_catalog.now() OPERATOR(pg_catalog.-) interval '1 minute') LIMIT {MOST}) AS r)"
        )
    } else {
        "NULL::pg_catalog.int8".to_owned()
    };
    // What is counted is read of the index alone where it has the time, too.
    let created = if status == "pending" && is_time(table, since) { since } else { "status" };
    let values = [
        ("$created", created.to_owned()),
        ("$oldest", oldest),
        ("$recent", recent),
        ("$table", from),
        ("$status", format!("'{status}'")),
        ("$most", MOST.to_string()),
    ];
    fill(&without_comments(sql::QUEUE_COUNT), &values)
}

/// What is copied to be counted.
const COUNTED: Columns = &[
    ("status", Kind::Text),
    ("due_at", Kind::Time),
    ("created_at", Kind::Time),
    ("completed_at", Kind::Time),
];

/// An item, as far as it is counted.
struct Counted {
    status: Option<Text>,
    since: Option<Timestamp>,
    completed_at: Option<Timestamp>,
}

fn counted(fields: &mut Fields<'_>, texts: &mut Texts) -> Result<Counted, DecodeError> {
    let status = texts.get(fields.value()?);
    let due_at = timestamp(fields.value()?);
    let created_at = timestamp(fields.value()?);
    Ok(Counted { status, since: due_at.or(created_at), completed_at: timestamp(fields.value()?) })
}

/// As the queries count.
fn count(items: &[Counted], now: Timestamp) -> Vec<StateCount> {
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
    let is_known = |item: &&Counted| item.status.as_deref().is_some_and(|status| STATUSES.contains(&status));
    let others = items.iter().filter(|item| !is_known(item)).count() as u64;
    let other = StateCount { count: others, ..StateCount::default() };
    known.into_iter().chain((others > 0).then_some(other)).collect()
}

impl Rows for Item {
    const TABLE: &'static str = "task_queue";
    const COLUMNS: usize = COLUMNS.len();
    const MOST: usize = PROCESSING + FAILED + PENDING;
    const EACH: usize = 600;

    fn lacks(table: &Table) -> Option<&'static str> {
        lacks(table)
    }

    fn own_keys(table: &Table) -> bool {
        ["backend_pid", "backend_start", "attempt"].iter().all(|column| table.kind(column).is_some())
    }

    fn query(table: &Table) -> Result<String, Text> {
        let (indexed, rest) = split(table, &["processing", "failed", "pending"]);
        let by_id = table.has_index(&["id"]);
        if indexed.is_empty() && !by_id {
            return Err(unindexed(table));
        }
        let mut parts: Vec<String> = indexed.iter().map(|status| items_of(table, status)).collect();
        if by_id && !rest.is_empty() {
            parts.push(newest(table, &rest, ""));
            // What is being worked on came in just before what is pending, of which there may be any number.
            if indexed.contains(&"pending") && rest.contains(&"processing") {
                let first = format!(
                    "WHERE t.id OPERATOR(pg_catalog.<) (SELECT pg_catalog.min(p.id) FROM (SELECT t.id FROM {} AS t \
                     WHERE t.status OPERATOR(pg_catalog.=) 'pending' LIMIT {MOST}) AS p)",
                    source(table)
                );
                parts.push(newest(table, &["processing"], &first));
            }
        }
        Ok(parts.join("\nUNION ALL\n"))
    }

    fn read(fields: &mut Fields<'_>, texts: &mut Texts) -> Result<Option<Self>, DecodeError> {
        let Some(id) = int8(fields.value()?) else { return Ok(None) };
        Ok(Some(Self {
            id,
            name: texts.get(fields.value()?),
            status: texts.get(fields.value()?),
            worker: texts.get(fields.value()?),
            created_at: timestamp(fields.value()?),
            started_at: timestamp(fields.value()?),
            completed_at: timestamp(fields.value()?),
            attempt: int8(fields.value()?),
            max_attempts: int8(fields.value()?),
            backend_pid: int8(fields.value()?).and_then(|pid| i32::try_from(pid).ok()),
            backend_start: timestamp(fields.value()?),
            heartbeat_at: timestamp(fields.value()?),
            error: texts.get(fields.value()?),
            timeout: float8(fields.value()?).filter(|seconds| seconds.is_finite()),
            due_at: timestamp(fields.value()?),
            key: int8(fields.value()?),
        }))
    }

    fn copied() -> Columns {
        COLUMNS
    }

    /// In the order of the queries, so that those of which there are too many are cut where they are cut there.
    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.sort_by_key(|row| row.due_at.or(row.created_at));
        rows.sort_by_key(|row| match row.status.as_deref() {
            Some("failed") => std::cmp::Reverse(row.completed_at),
            _ => std::cmp::Reverse(None),
        });
        rows
    }

    /// Each once: the newest and those before the pending ones may be the same.
    fn tidy(mut rows: Vec<Self>) -> (Vec<Self>, bool) {
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
}

fn items_of(table: &Table, status: &str) -> String {
    let sorted =
        |column: &str| is_time(table, column) && table.index_where("status", status, &[column]).is_some();
    let (limit, order) = match status {
        "processing" => (PROCESSING + 1, ""),
        "failed" if sorted("completed_at") => (FAILED, "ORDER BY t.completed_at DESC"),
        "failed" => (FAILED, ""),
        _ if sorted("due_at") => (PENDING, "ORDER BY t.due_at"),
        _ if sorted("created_at") => (PENDING, "ORDER BY t.created_at"),
        _ => (PENDING, ""),
    };
    let values = [
        ("$columns", columns(table, COLUMNS)),
        ("$table", source(table)),
        ("$status", format!("'{status}'")),
        ("$order", order.to_owned()),
        ("$limit", limit.to_string()),
    ];
    fill(&without_comments(sql::QUEUE_ITEMS), &values)
}

fn newest(table: &Table, statuses: &[&str], condition: &str) -> String {
    let values = [
        ("$columns", columns(table, COLUMNS)),
        ("$table", source(table)),
        ("$where", condition.to_owned()),
        ("$statuses", array(statuses)),
        ("$newest", NEWEST.to_string()),
        ("$limit", (PROCESSING + 1).to_string()),
    ];
    fill(&without_comments(sql::QUEUE_ITEMS_NEWEST), &values)
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
        let (kept, is_cut) = Item::tidy(rows);
        let count = |status: &str| kept.iter().filter(|row| row.status.as_deref() == Some(status)).count();
        assert_eq!(["processing", "failed", "pending", "completed"].map(count), [500, 50, 20, 0]);
        assert!(is_cut && kept.len() == Item::MOST);
    }
}
