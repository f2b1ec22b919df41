//! The work queue: its items that need attention.

use std::borrow::Cow;

use super::cell::{attempts, job_tone};
use super::column::{BEAT, TRY, WORKER, pane_rows};
use super::definition::{Fact, PaneDefinition, ReadState, is_unsearched, stale_tables, taken};
use super::{Cell, Row, RowId, Rows, SortValue};
use crate::app::context::Context;
use crate::app::detail::{ago, field, fields, last_error, of, session, state, words};
use crate::app::line::{Line, Tone};
use crate::model::Timestamp;
use crate::model::work_queue::{Item, ItemRow, JobState};
use crate::model::worker_types::{WorkKind, WorkerTypes};
use crate::order::SortExt;
use crate::text;

pane_rows! {
    Items<'a> = (&'a ItemRow, &'a Item),
    |context, row| {
        let row = context.view.queue.rows.get(row.at()?)?;
        Some((row, row.item(context.snapshot)?))
    },
    |(row, _)| RowId::Item(row.id)
}

static COLUMNS: &[Column] = &[
    Column::state("state of the item; each is explained below", 8, |(row, _), _| {
        (row.state.as_str(), job_tone(row.state))
    }),
    Column::sorted(
        ("ITEM", "item", "its id"),
        (8, 12),
        |(_, item), _, _| Cell::plain(item.id.to_string()),
        |(_, item), _| id_value(item),
    ),
    Column::text(("NAME", "name", "its task"), (13, 32), |(_, item), _| item.name.as_deref()),
    Column::worker(WORKER, (11, 24), |(_, item), _| item.worker.as_deref()),
    Column::age(
        ("RUN", "run", "how long it has been in progress"),
        (6, 6),
        Tone::Plain,
        |(row, _), context| row.run(context.snapshot),
    ),
    Column::since(BEAT, (6, 6), Tone::Dim, |(_, item), _| item.heartbeat_at.filter(|_| item.is_processing()))
        .rank(1),
    Column::cell(TRY, (4, 5), |(_, item), _, _| attempts(item.attempt, item.max_attempts)).right(),
    Column::number(("PID", "pid", "the session that works on it"), (7, 8), Tone::Plain, |(row, _), _| {
        row.pid.map(i64::from)
    })
    .left(),
    Column::age(("DUE", "due", "when it can be taken again"), (6, 6), Tone::Plain, |(row, _), context| {
        row.due_in(context.snapshot)
    })
    .rank(2),
    Column::since(("AGE", "age", "since it was added"), (6, 6), Tone::Dim, |(_, item), _| item.created_at),
    Column::since(("ENDED", "ended", "since it ended"), (6, 6), Tone::Dim, |(_, item), _| ended_at(item))
        .rank(4),
    Column::table((14, 24), |(row, _), context| row.source(context.snapshot).map(|name| &**name)).rank(5),
    Column::sorted(
        ("ERROR", "error", "its last error"),
        (12, 0),
        |(_, item), _, _| error(item),
        |(_, item), _| SortValue::text(item.error.as_deref()),
    )
    .rank(3),
    Column::number(
        ("FAILURES", "failures", "attempts that failed; lost ones are not counted"),
        (8, 8),
        Tone::Plain,
        |(_, item), _| item.failures,
    )
    .only_in_filters(),
];

pub(in crate::app::panes) static PANE: PaneDefinition = PaneDefinition {
    order: |context, rows| {
        rows.order_by_cached_key(|row| {
            Items::get(context, *row).map(|(row, _)| row.urgency(context.snapshot))
        });
    },
    is_there: Some(|_, snapshot| is_unsearched(snapshot) || !snapshot.sources.counts.is_empty()),
    empty: "no pending, running or failed items",
    facts: |context, _| facts(context),
    read: |context| ReadState { at: taken(&context.snapshot.sources.items), error: None },
    is_state: |word| JobState::named(word).is_some(),
    name: |_, id| numbered("Queue item", id),
    label: |_, id| numbered("queue item", id),
    detail: |context, id, _| lines(context, id),
    ..PaneDefinition::new(("Queue", "an item of the work queue"), &COLUMNS, |context, _| {
        Row::all(context.view.queue.rows.len())
    })
};

/// A number, if a number in the filter can be compared with it.
fn id_value(item: &Item) -> SortValue<'static> {
    match i32::try_from(item.id) {
        Ok(id) => SortValue::Number(f64::from(id)),
        Err(_) => SortValue::Text(Cow::Owned(item.id.to_string())),
    }
}

fn error(item: &Item) -> Cell {
    Cell::server(item.error.as_deref().filter(|error| !error.is_empty())).with_tone(Tone::Warning)
}

fn ended_at(item: &Item) -> Option<Timestamp> {
    item.completed_at.filter(|_| !item.is_processing())
}

/// `1,204 pending · 3 processing · 1 lost · 3 failed · oldest 25m10s · 118/min · 10,000+ completed`
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let depth = &context.view.queue.depth;
    let systems = &context.snapshot.sources;
    let mut facts = stale_tables(context, &systems.counts);
    if facts.is_empty() {
        facts = stale_tables(context, &systems.items);
    }
    if systems.counts.iter().all(|table| table.section.taken_at.is_none()) {
        return facts;
    }
    facts.push((format!("{} pending", depth.pending), Tone::Plain));
    // By the states of the rows, of which each has one: an item that has lost its worker is not in progress.
    let of = |state: JobState| context.view.queue.of_state(state).count();
    let (lost, slow) = (of(JobState::Lost), of(JobState::Slow));
    let mut processing = depth.processing;
    processing.number = processing.number.saturating_sub((lost + slow) as u64);
    facts.push((format!("{processing} processing"), Tone::Plain));
    for (count, state, tone) in [(lost, "lost", Tone::Critical), (slow, "slow", Tone::Warning)] {
        facts.extend((count > 0).then(|| (format!("{} {state}", crate::text::count(count as u64)), tone)));
    }
    facts.extend((depth.failed.number > 0).then(|| (format!("{} failed", depth.failed), Tone::Warning)));
    if let Some(age) = context.age(depth.oldest_pending_at) {
        facts.push((format!("oldest {}", crate::text::duration(age)), Tone::Plain));
    }
    facts.extend(depth.per_minute.map(|rate| (format!("{}/min", crate::text::count(rate)), Tone::Plain)));
    facts.push((format!("{} completed", depth.completed), Tone::Dim));
    if depth.other.number > 0 {
        facts.push((format!("{} with another status", depth.other), Tone::Dim));
    }
    if systems.items.iter().any(|table| table.section.is_cut) || depth.processing.is_least {
        facts.push(("older items are not read".to_owned(), Tone::Warning));
    }
    facts
}

fn numbered(what: &str, id: RowId) -> String {
    if let RowId::Item(id) = id { format!("{what} {}", id.id) } else { String::new() }
}

fn lines(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let RowId::Item(id) = id else { return None };
    let row = context.item(id)?;
    let item = row.item(context.snapshot)?;
    let mut lines = vec![
        state((row.state.as_str(), job_tone(row.state)), why(context, row, item)),
        field("name", words(item.name.as_ref()), Tone::Plain),
        field("kept in", words(row.source(context.snapshot)), Tone::Plain),
        fields(&[
            ("worker", words(item.worker.as_ref())),
            ("attempt", of(item.attempt, item.max_attempts)),
            ("failed", item.failures.map(|failures| failures.to_string()).unwrap_or_default()),
            ("runs", row.run(context.snapshot).map(text::duration).unwrap_or_default()),
        ]),
        fields(&[("added", ago(context, item.created_at)), ("taken", ago(context, item.started_at))]),
        fields(&[("heartbeat", ago(context, item.heartbeat_at)), ("ended", ago(context, ended_at(item)))]),
    ];
    lines.retain(|line| line.spans.len() > 1);
    lines.extend(session_of(context, item));
    lines.extend(key(context, row));
    lines.extend(last_error(item.error.as_ref()));
    Some(lines)
}

fn why(context: &Context<'_>, row: &ItemRow, item: &Item) -> Cow<'static, str> {
    let table = context.snapshot.sources.items.get(row.table);
    let is_printed = table.is_some_and(|table| !table.source.own_keys);
    let words = match row.state {
        JobState::Slow => {
            return format!(": for longer than its limit of {}", text::duration(row.limit)).into();
        }
        JobState::Resting => {
            let left = row.due_in(context.snapshot).map(text::duration).unwrap_or_default();
            return format!(": no worker takes it for another {left}").into();
        }
        JobState::Stopping if is_printed => ": no session holds its key; its worker may still be stopping",
        JobState::Stopping => ": the session that took it has ended; its worker might not have noticed yet",
        JobState::Lost if is_printed => ": no session holds the key that its worker took",
        JobState::Lost => ": the session that took it has ended",
        JobState::MaybeLost => {
            ": no session holds its probable key; not known whether its worker uses that key"
        }
        JobState::MaybeSlow | JobState::MaybeRunning => {
            ": a session holds its key, but nothing links it to its worker"
        }
        JobState::Uncommitted | JobState::MaybeUncommitted => {
            ": a session holds its key, or has locked its row, in an open transaction; its changes are visible after the commit"
        }
        JobState::Failed => ": set aside; no worker takes it",
        JobState::Pending if is_unserved(context, row, item) => {
            ": it is not held, and no connected worker takes its type"
        }
        JobState::Pending => ": it is not held",
        JobState::Unknown if table.is_some_and(|table| table.section.error.is_some()) => {
            ": its table could not be read"
        }
        JobState::Unknown if context.snapshot.server().is_none_or(|server| server.in_recovery) => {
            ": the sessions of the primary are not visible on a standby"
        }
        JobState::Unknown if is_printed => {
            ": its key is not known ([tables] queue_key in the config names it)"
        }
        JobState::Unknown if item.backend_pid.is_none() => ": its row names no session",
        JobState::Unknown => ": the start of its session is hidden from this role",
        _ => "",
    };
    words.into()
}

fn is_unserved(context: &Context<'_>, row: &ItemRow, item: &Item) -> bool {
    let table = context.snapshot.sources.items.get(row.table).filter(|table| table.source.own_keys);
    table.is_some_and(|table| {
        let place = (&*table.source.name, WorkKind::Items);
        WorkerTypes::lacks(context.view, context.snapshot, place, item.name.as_deref())
    })
}

fn session_of(context: &Context<'_>, item: &Item) -> Option<Line> {
    let pid = item.backend_pid?;
    let is_there = item.backend_start.and_then(|start| context.snapshot.has_session(pid, start));
    let ended = if item.is_processing() { Tone::Warning } else { Tone::Dim };
    Some(match is_there {
        Some(is_alive) => session(context, pid, is_alive, ended),
        None => field("session", pid.to_string(), Tone::Plain),
    })
}

fn key(context: &Context<'_>, row: &ItemRow) -> Vec<Line> {
    let Some(tag) = row.tag else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(key) = tag.advisory_key() {
        lines.push(field("key", key.to_string(), Tone::Plain));
    }
    if let Some(queue) = context.queue(&tag) {
        lines.push(field("waited for by", queue.waiters.len().to_string(), Tone::Warning));
    }
    lines
}
