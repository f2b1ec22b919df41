//! The work queue: its items that need attention.
//!
//! ```text
//!   STATE    ITEM     NAME            WORKER       RUN   BEAT   TRY PID         IN  WHAT
//!   lost     41207    邮件发送        worker-3   4m10s  4m10s   1/3 -        4m40s
//!   running  41211    resize images   worker-1     42s   1.0s   1/3 6101     1m12s
//! ```

mod detail;

use std::borrow::Cow;

use crate::app::context::Context;
use crate::app::line::Tone;
use crate::app::panes::cell::{table_name, worker};
use crate::app::panes::column::Columns;
use crate::app::panes::definition::{Definition, Read};
use crate::app::panes::facts::{Fact, stale_tables, taken};
use crate::app::panes::row::{Row, RowId};
use crate::app::panes::words::{BEAT, TABLE, TRY, WORKER};
use crate::app::panes::{Cell, Rows, Value};
use crate::model::work_queue::{Item, ItemRow, ItemState};

struct Items;

impl Rows for Items {
    type Row<'a> = (&'a ItemRow, &'a Item);

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<Self::Row<'a>> {
        let row = context.view.queue.rows.get(row.at()?)?;
        Some((row, row.item(context.snapshot)?))
    }

    fn id(_: &Context<'_>, (row, _): Self::Row<'_>) -> Option<RowId> {
        Some(RowId::Item(row.id))
    }
}

type Column = crate::app::panes::Column<Items>;

static COLUMNS: Columns<Items> = Columns {
    shown: &[
        Column::state(
            ("STATE", "state", "state of the item; each is explained below"),
            (8, 8),
            |(row, _), _| (row.state.as_str(), tone(row.state)),
        ),
        Column::sorted(
            ("ITEM", "item", "its id"),
            (8, 12),
            |(_, item), _, _| Cell::plain(item.id.to_string()),
            |(_, item), _| id_value(item),
        ),
        Column::text(("NAME", "name", "its task"), (13, 32), |(_, item), _| item.name.as_deref()),
        Column::sorted(
            WORKER,
            (11, 24),
            |(_, item), _, room| worker(item.worker.as_deref(), room),
            |(_, item), _| Value::text(item.worker.as_deref()),
        ),
        Column::age(
            ("RUN", "run", "how long it has been in progress"),
            (6, 6),
            Tone::Plain,
            |(row, _), context| row.run(context.snapshot),
        ),
        Column::age(BEAT, (6, 6), Tone::Dim, |(_, item), context| beat(context, item)).rank(1),
        Column::cell(TRY, (4, 5), |(_, item), _, _| attempts(item).map_or_else(Cell::none, Cell::plain))
            .right(),
        Column::number(("PID", "pid", "the session that works on it"), (7, 8), Tone::Plain, |(row, _), _| {
            row.pid.map(i64::from)
        })
        .left(),
        Column::age(
            ("DUE", "due", "when it can be taken again"),
            (6, 6),
            Tone::Plain,
            |(row, _), context| row.due_in(context.snapshot),
        )
        .rank(2),
        Column::age(("AGE", "age", "since it was added"), (6, 6), Tone::Dim, |(_, item), context| {
            context.age(item.created_at)
        }),
        Column::age(("ENDED", "ended", "since it ended"), (6, 6), Tone::Dim, |(_, item), context| {
            ended(context, item)
        })
        .rank(4),
        Column::cell(TABLE, (14, 24), |(row, _), context, room| {
            table_name(row.source(context.snapshot).map(|name| &**name), room)
        })
        .rank(5),
        Column::sorted(
            ("ERROR", "error", "its last error"),
            (12, 0),
            |(_, item), _, _| error(item),
            |(_, item), _| Value::text(item.error.as_deref()),
        )
        .rank(3),
    ],
    others: &[],
};

pub(in crate::app::panes) static PANE: Definition = Definition {
    order: |context, rows| {
        rows.sort_by_cached_key(|row| {
            Items::get(context, *row).map(|(row, _)| row.urgency(context.snapshot))
        });
    },
    is_there: |has| has.queue,
    search: Some(|snapshot| &snapshot.detection.tables),
    empty: "no pending, running or failed items",
    facts: |context, _| facts(context),
    read: |context| Read { at: taken(&context.snapshot.systems.items), error: None },
    is_state: |word| ItemState::ALL.iter().any(|state| state.as_str().eq_ignore_ascii_case(word)),
    name: |_, id| match id {
        RowId::Item(id) => format!("Queue item {}", id.id),
        _ => String::new(),
    },
    label: |_, id| match id {
        RowId::Item(id) => format!("queue item {}", id.id),
        _ => String::new(),
    },
    detail: |context, id, _| match id {
        RowId::Item(id) => detail::lines(context, id),
        _ => None,
    },
    ..Definition::new(("Queue", "an item of the work queue"), &COLUMNS, |context, _| {
        Row::all(context.view.queue.rows.len())
    })
};

/// A number, if a number in the filter can be compared with it.
fn id_value(item: &Item) -> Value<'static> {
    match i32::try_from(item.id) {
        Ok(id) => Value::Number(f64::from(id)),
        Err(_) => Value::Text(Cow::Owned(item.id.to_string())),
    }
}

fn error(item: &Item) -> Cell {
    Cell::server(item.error.as_deref().filter(|error| !error.is_empty())).with_tone(Tone::Warning)
}

pub(in crate::app) fn tone(state: ItemState) -> Tone {
    match state {
        ItemState::Lost => Tone::Critical,
        ItemState::MaybeLost
        | ItemState::Slow
        | ItemState::MaybeSlow
        | ItemState::Unknown
        | ItemState::Settling
        | ItemState::Failed => Tone::Warning,
        ItemState::Running
        | ItemState::MaybeRunning
        | ItemState::Uncommitted
        | ItemState::MaybeUncommitted => Tone::Good,
        ItemState::Pending => Tone::Plain,
        ItemState::Resting => Tone::Dim,
    }
}

/// `2/3`: how often it was taken, and how often it may be.
fn attempts(item: &Item) -> Option<String> {
    match (item.attempt?, item.max_attempts) {
        (attempt, Some(most)) => Some(format!("{attempt}/{most}")),
        (attempt, None) => Some(attempt.to_string()),
    }
}

/// Seconds since the last heartbeat of its worker.
fn beat(context: &Context<'_>, item: &Item) -> Option<f64> {
    context.age(item.heartbeat_at.filter(|_| item.is_processing()))
}

fn ended(context: &Context<'_>, item: &Item) -> Option<f64> {
    context.age(item.completed_at.filter(|_| !item.is_processing()))
}

/// `1,204 pending · 3 processing · 1 lost · 3 failed · oldest 25m10s · 118/min · 10,000+ completed`
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let depth = &context.view.queue.depth;
    let systems = &context.snapshot.systems;
    let mut facts = stale_tables(context, &systems.counts);
    if facts.is_empty() {
        facts = stale_tables(context, &systems.items);
    }
    if systems.counts.iter().all(|table| table.section.taken_at.is_none()) {
        return facts;
    }
    facts.push((format!("{} pending", depth.pending), Tone::Plain));
    // By the states of the rows, of which each has one: an item that has lost its worker is not in progress.
    let of = |state: ItemState| context.view.queue.of_state(state).count();
    let (lost, slow) = (of(ItemState::Lost), of(ItemState::Slow));
    let mut processing = depth.processing;
    processing.count = processing.count.saturating_sub((lost + slow) as u64);
    facts.push((format!("{processing} processing"), Tone::Plain));
    for (count, state, tone) in [(lost, "lost", Tone::Critical), (slow, "slow", Tone::Warning)] {
        if count > 0 {
            facts.push((format!("{} {state}", crate::text::count(count as u64)), tone));
        }
    }
    if depth.failed.count > 0 {
        facts.push((format!("{} failed", depth.failed), Tone::Warning));
    }
    if let Some(age) = context.age(depth.oldest_pending_at) {
        facts.push((format!("oldest {}", crate::text::duration(age)), Tone::Plain));
    }
    if let Some(rate) = depth.per_minute {
        facts.push((format!("{}/min", crate::text::count(rate)), Tone::Plain));
    }
    facts.push((format!("{} completed", depth.completed), Tone::Dim));
    if depth.other.count > 0 {
        facts.push((format!("{} with another status", depth.other), Tone::Dim));
    }
    if systems.items.iter().any(|table| table.is_cut) || depth.processing.is_more {
        facts.push(("older items are not read".to_owned(), Tone::Warning));
    }
    facts
}

pub fn urgent(context: &Context<'_>) -> Option<Fact> {
    let lost = context.view.queue.of_state(ItemState::Lost).count();
    let noun = if lost == 1 { "item" } else { "items" };
    (lost > 0).then(|| (format!("{} {noun} lost", crate::text::count(lost as u64)), Tone::Critical))
}
