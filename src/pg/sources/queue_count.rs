//! Number of items of the work queue by status: `task_queue`.

use bytes::Bytes;

use super::places::Places;
use super::queue::{self, MOST, array, split};
use super::source::{Reads, Source, filled};
use crate::model::task::KeyRule;
use crate::model::work_queue::StateCount;
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::row::{self, Values};
use crate::pg::decode::texts::Texts;
use crate::pg::tables::{ColumnKind, Columns, Table, every};

const OF_STATUS: &str = include_str!("../../../assets/sql/queue_count.sql");
const AMONG_NEWEST: &str = include_str!("../../../assets/sql/queue_count_newest.sql");

/// Items that a poll may count on average.
const EACH: usize = 4000;
const STATUSES: [&str; 4] = ["pending", "processing", "completed", "failed"];
const NO_TIME: &str = "NULL::pg_catalog.timestamptz";

impl Source for StateCount {
    const TABLE: &'static str = queue::TABLE;
    /// The columns of a copy, for counting.
    const COLUMNS: Columns = &[
        ("status", ColumnKind::Text),
        ("due_at", ColumnKind::Time),
        ("created_at", ColumnKind::Time),
        ("completed_at", ColumnKind::Time),
    ];
    const WIDTH: usize = 5;
    const MOST: usize = 100;
    const LACKS: &'static str = queue::LACKS;

    fn is_one(table: &Table) -> bool {
        queue::is_one(table)
    }

    fn key_rule(places: &Places) -> KeyRule {
        places.key_rule("queue_key")
    }

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
                AMONG_NEWEST,
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

    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let status = row.text()?;
        let count: u64 = row.small()?.unwrap_or_default();
        let is_more = row.flag()?.unwrap_or_default();
        let count = if is_more { count.min(MOST as u64) } else { count };
        Ok(Some(Self { status, count, is_more, oldest_at: row.time()?, last_minute: row.small()? }))
    }

    /// A copy is counted here. Items of unknown status are counted together, without a name.
    fn of_copy(messages: &[Bytes], texts: &mut Texts, now: Timestamp) -> Result<Vec<Self>, DecodeError> {
        let items = row::rows(messages, Self::COLUMNS.len(), texts, |row| Ok(Some(Counted::read(row)?)))?;
        Ok(count(&items, now))
    }

    fn rest(rows: &[Self], _: Reads) -> u32 {
        let counts = rows.iter().map(|row| usize::try_from(row.count).unwrap_or(usize::MAX));
        every(counts.fold(0, usize::saturating_add), EACH)
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
    filled::<StateCount>(OF_STATUS, table, &values)
}

struct Counted {
    status: Option<Text>,
    since: Option<Timestamp>,
    completed_at: Option<Timestamp>,
}

impl Counted {
    fn read(row: &mut Values<'_, '_>) -> Result<Self, DecodeError> {
        let (status, due_at, created_at) = (row.text()?, row.time()?, row.time()?);
        Ok(Self { status, since: due_at.or(created_at), completed_at: row.time()? })
    }
}

/// Counts as the queries do.
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
