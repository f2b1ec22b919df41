//! Locks that were waited for since locktop started, the most expensive first, below the other locks on the screen. The
//! counts of `observe_lock_waits()` of the schema are in a column next to them; locks that only the schema has counted
//! follow below.
//!
//! ```text
//!   LOCK                 WAITING  WAITS   TOTAL LONGEST   MEAN    LAST COUNTED MODE                 TYPE
//!   rows of accounts           3    112  41m02s   2m51s    22s     now   4h12m Exclusive            tuple
//!   Prisma Migrate             -      4   7m10s   5m03s  1m47s  12m04s       - Exclusive            advisory
//!   invoices                   -      -       -       -      -   2h01m  22m10s AccessExclusive      relation
//! ```

use rustc_hash::FxHashSet;

use super::backends::several_databases;
use super::cell::fit_names;
use super::column::{DB, Rows, TYPE_HELP, pane_rows};
use super::definition::{Fact, PaneDefinition, ReadState, count, stale_tables};
use super::{Cell, Row, RowId, SortValue};
use crate::app::context::Context;
use crate::app::detail::{field, fields, heading, listed, party, reasons};
use crate::app::line::{Line, Tone};
use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockTag};
use crate::model::lock_waits::{self, WaitedLock, contended};
use crate::model::source_tables::CountedWaits;
use crate::model::wait_graph::{Queue, Waiter};
use crate::order::SortExt;
use crate::text;

#[derive(Debug, Clone, Copy)]
struct WaitedLockRow<'a> {
    tag: &'a LockTag,
    seen: Option<&'a WaitedLock>,
    counted: Option<&'a CountedWaits>,
}

impl<'a> WaitedLockRow<'a> {
    fn of(context: &Context<'a>, tag: &LockTag) -> Option<Self> {
        let seen = context.view.lock_waits.get(tag);
        let counted = context.snapshot.sources.counted(tag);
        let tag = seen.map(|seen| &seen.tag).or_else(|| counted.map(|counted| &counted.tag))?;
        Some(Self { tag, seen, counted })
    }

    /// Its name when a session last began to wait; text of the server.
    fn name(&self, context: &Context<'_>) -> String {
        let now = || lock_waits::name(context.snapshot, context.names, None, self.tag);
        self.seen.map_or_else(now, |seen| seen.name.clone()).to_string()
    }

    fn longest_mode(&self) -> Option<LockMode> {
        let seen = self.seen.map(|seen| seen.longest_mode);
        seen.or_else(|| self.counted.and_then(|counted| counted.longest_mode))
    }

    /// When a session was last seen waiting for it, by locktop or by the schema.
    fn last(&self) -> Option<Timestamp> {
        self.seen.map(|seen| seen.last).max(self.counted.and_then(|counted| counted.last))
    }

    /// Its cost, as seen by locktop and as counted by the schema.
    fn cost(&self) -> (f64, f64) {
        (self.seen.map_or(-1.0, |seen| seen.total), self.counted.map_or(-1.0, |counted| counted.total))
    }
}

pane_rows! {
    Waits<'a> = WaitedLockRow<'a>,
    |context, row| {
        if let Some((table, at)) = row.within() {
            let counted = context.snapshot.sources.contended.get(table)?.section.last_rows().get(at)?;
            return Some(WaitedLockRow { tag: &counted.tag, seen: None, counted: Some(counted) });
        }
        let seen = context.view.lock_waits.locks.get(row.at()?)?;
        let counted = context.snapshot.sources.counted(&seen.tag);
        Some(WaitedLockRow { tag: &seen.tag, seen: Some(seen), counted })
    },
    |lock| RowId::Waits(*lock.tag)
}

/// Locks that locktop saw, then locks that were only counted, each once.
fn rows(context: &Context<'_>) -> Vec<Row> {
    let seen = &context.view.lock_waits.locks;
    let mut rows = Row::all(seen.len());
    let tables = &context.snapshot.sources.contended;
    if tables.is_empty() {
        return rows;
    }
    let mut listed: FxHashSet<LockTag> = seen.iter().map(|lock| lock.tag).collect();
    for place in Row::all_of(tables.iter().map(|table| table.section.last_rows().len())) {
        if Waits::get(context, place).is_some_and(|lock| listed.insert(*lock.tag)) {
            rows.push(place);
        }
    }
    rows
}

fn has_counted(context: &Context<'_>) -> bool {
    context.snapshot.sources.contended.iter().any(|table| !table.section.last_rows().is_empty())
}

static COLUMNS: &[Column] = &[
    Column::sorted(
        ("LOCK", "lock", "the locked object; the rows of a table together"),
        (20, 44),
        |lock, context, room| name(&lock, context, room),
        |lock, context| SortValue::Text(lock.name(context).into()),
    ),
    Column::number(
        ("WAITING", "waiting", "sessions that wait for it now"),
        (7, 7),
        Tone::Warning,
        |lock, _| lock.seen.map(|seen| seen.waiting.into()).filter(|count| *count > 0),
    ),
    Column::number(
        ("WAITS", "waits", "observed waits; a wait that ended between two polls is not seen"),
        (6, 8),
        Tone::Plain,
        |lock, _| i64::try_from(lock.seen?.waits).ok(),
    ),
    Column::duration(("TOTAL", "total", "total duration, at least"), (7, 7), Tone::Plain, |lock, _| {
        Some(lock.seen?.total)
    }),
    Column::duration(("LONGEST", "longest", "longest duration, at least"), (7, 7), Tone::Plain, |lock, _| {
        Some(lock.seen?.longest)
    }),
    Column::duration(("MEAN", "mean", "average duration"), (6, 6), Tone::Dim, |lock, _| mean(lock.seen?))
        .rank(1),
    Column::sorted(
        ("LAST", "last", "when a session was last seen waiting for it"),
        (6, 6),
        |lock, context, _| last(context, &lock),
        |lock, context| SortValue::number(context.age(lock.last())),
    )
    .right(),
    Column::duration(
        (
            "COUNTED",
            "counted",
            "total wait time counted by the schema's observe_lock_waits(), also while locktop was not running",
        ),
        (7, 7),
        Tone::Plain,
        |lock, _| Some(lock.counted?.total),
    )
    .only_where(has_counted),
    Column::text(("MODE", "mode", "the lock mode requested by the longest wait"), (10, 20), |lock, _| {
        lock.longest_mode().map(LockMode::short)
    })
    .rank(2),
    Column::text(("TYPE", "type", TYPE_HELP), (8, 13), |lock, _| Some(lock.tag.locktype().as_str())).rank(4),
    Column::text(DB, (6, 12), |lock, context| super::held::database(context, lock.tag))
        .rank(3)
        .only_where(several_databases),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    order: |context, rows| {
        rows.order_by(|a, b| match (Waits::get(context, *a), Waits::get(context, *b)) {
            (Some(a), Some(b)) => {
                let ((a_seen, a_counted), (b_seen, b_counted)) = (a.cost(), b.cost());
                let by_cost = b_seen.total_cmp(&a_seen).then(b_counted.total_cmp(&a_counted));
                by_cost.then(a.tag.cmp(b.tag))
            }
            (a, b) => a.is_none().cmp(&b.is_none()),
        });
    },
    empty: "no session has been seen waiting for a lock since locktop started",
    facts: |context, _| facts(context),
    read: |context| ReadState { at: context.view.lock_waits.since, error: None },
    name: |context, id| {
        name_of(context, id).map_or_else(|| "Waits".to_owned(), |name| format!("Waits for {name}"))
    },
    label: |context, id| {
        name_of(context, id).map_or_else(|| "a lock".to_owned(), |name| text::fit(&name, 20).into_owned())
    },
    detail: |context, id, _| match id {
        RowId::Waits(tag) => detail(context, &tag),
        _ => None,
    },
    ..PaneDefinition::new(("Waits", "a lock with waits; its sessions are above"), &COLUMNS, |context, _| {
        rows(context)
    })
};

/// `since 13:40:02 · 12 locks · 1h04m in all`
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let waits = &context.view.lock_waits;
    let since = waits.since.map(|since| (format!("since {}", context.time_of_day(since)), Tone::Plain));
    let mut facts: Vec<Fact> = since.into_iter().collect();
    facts.push((count(waits.locks.len(), "lock", "locks"), Tone::Plain));
    facts.push((format!("{} waited in total", text::duration(waits.total())), Tone::Plain));
    if waits.forgotten > 0 {
        facts.push((format!("{} smaller ones dropped", text::count(waits.forgotten)), Tone::Dim));
    }
    let tables = &context.snapshot.sources.contended;
    if has_counted(context) {
        let counted = tables.iter().flat_map(|table| table.section.last_rows().iter());
        let total = counted.map(|lock| lock.total).sum();
        facts.push((format!("{} counted by the schema", text::duration(total)), Tone::Plain));
    }
    facts.extend(stale_tables(context, tables));
    facts
}

fn name(lock: &WaitedLockRow<'_>, context: &Context<'_>, room: u16) -> Cell {
    Cell::plain(fit_names(text::one_line_prefix(&lock.name(context), 500).into_owned(), room))
}

fn name_of(context: &Context<'_>, id: RowId) -> Option<String> {
    let RowId::Waits(tag) = id else { return None };
    Some(text::one_line(&WaitedLockRow::of(context, &tag)?.name(context)).into_owned())
}

/// In seconds; `None` before the first wait.
fn mean(lock: &WaitedLock) -> Option<f64> {
    let waits = u32::try_from(lock.waits).unwrap_or(u32::MAX);
    (waits > 0).then(|| lock.total / f64::from(waits))
}

/// `12m04s`, `now`: when a session was last seen waiting.
fn last(context: &Context<'_>, lock: &WaitedLockRow<'_>) -> Cell {
    if lock.seen.is_some_and(|seen| seen.waiting > 0) {
        return Cell::toned("now", Tone::Warning);
    }
    Cell::age(context.age(lock.last()), Tone::Dim)
}

fn detail(context: &Context<'_>, tag: &LockTag) -> Option<Vec<Line>> {
    let lock = WaitedLockRow::of(context, tag)?;
    let mut lines = vec![
        field("lock", text::one_line(&lock.name(context)), Tone::Title),
        field("type", tag.locktype().as_str(), Tone::Plain),
    ];
    let since = context.view.lock_waits.since.map(|since| context.day_and_time(since)).unwrap_or_default();
    match lock.seen {
        Some(seen) => {
            lines.push(heading(format!("Seen by locktop since {since}")));
            let mean = ("mean", mean(seen).map(text::duration).unwrap_or_default());
            let total = ("total", text::duration(seen.total));
            lines.push(fields(&[("waits", text::count(seen.waits)), total, mean]));
            let times = (Some(seen.first), Some(seen.last));
            lines.extend(bounds(context, seen.longest, Some(seen.longest_mode), times));
        }
        None => lines.push(heading(format!("No session was seen waiting for it since {since}"))),
    }
    if let Some(counted) = lock.counted {
        lines.push(Line::new());
        lines.push(heading("Counted by the schema's observe_lock_waits(), also before that"));
        let total = ("total", text::duration(counted.total));
        lines.push(fields(&[("waits", text::count(counted.waits)), total]));
        let times = (counted.first, counted.last);
        lines.extend(bounds(context, counted.longest, counted.longest_mode, times));
    }
    lines.push(Line::new());
    lines.extend(now(context, tag));
    lines.push(Line::new());
    lines.extend(AT_LEAST.map(|line| Line::new().with(line, Tone::Dim)));
    Some(lines)
}

fn bounds(
    context: &Context<'_>,
    longest: f64,
    mode: Option<LockMode>,
    (first, last): (Option<Timestamp>, Option<Timestamp>),
) -> [Line; 2] {
    let time = |at: Option<Timestamp>| at.map(|at| context.day_and_time(at)).unwrap_or_default();
    let mode = mode.map_or_else(String::new, |mode| mode.as_str().to_owned());
    [
        fields(&[("longest", text::duration(longest)), ("requested", mode)]),
        fields(&[("first began", time(first)), ("last seen", time(last))]),
    ]
}

const AT_LEAST: [&str; 2] = [
    "  A wait that ends between two polls is not seen, nor the rest of a wait",
    "  after the last poll: the true numbers are these or larger.",
];

fn now(context: &Context<'_>, tag: &LockTag) -> Vec<Line> {
    let queues = context.view.graph.queues.iter();
    let all = queues.flat_map(|queue| queue.waiters.iter().map(move |waiter| (queue, waiter)));
    let waiting: Vec<(&Queue, &Waiter)> =
        all.filter(|(queue, waiter)| contended(context.awaited(&queue.tag, waiter.pid)) == *tag).collect();
    if waiting.is_empty() {
        return vec![heading("No session waits for it now")];
    }
    let mut lines = vec![heading(format!("Waiting now: {}", waiting.len()))];
    lines.extend(listed(&waiting, |(queue, waiter)| waiting_line(context, queue, waiter)));
    // Only one is described in words: the others wait for the same lock, or behind it.
    if let Some((_, first)) = waiting.first() {
        lines.push(Line::new());
        lines.push(heading(format!("Why {} waits", party(context, first.party))));
        lines.extend(reasons(context, first.party));
    }
    lines
}

/// `  2m51s  Exclusive            4410 deploy@ci  held by 4312 app@web-3`
fn waiting_line(context: &Context<'_>, queue: &Queue, waiter: &Waiter) -> Line {
    let age = context.wait_age(waiter.wait_start).map(text::duration).unwrap_or_default();
    let mut line = Line::new()
        .with(format!("  {age:>6}  "), Tone::Warning)
        .with(format!("{:<20} {}", waiter.mode.short(), party(context, waiter.party)), Tone::Plain);
    if let Some(holder) = queue.holders.first() {
        let more =
            if queue.holders.len() > 1 { format!(" +{}", queue.holders.len() - 1) } else { String::new() };
        line.push(format!("  held by {}{more}", party(context, holder.party)), Tone::Dim);
    }
    line
}
