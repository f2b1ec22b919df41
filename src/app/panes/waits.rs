//! Which locks were waited for since locktop began to look, the most expensive first: below the locks on their screen.
//!
//! ```text
//!   LOCK                 WAITING  WAITS   TOTAL LONGEST   MEAN    LAST MODE                 TYPE
//!   rows of accounts           3    112  41m02s   2m51s    22s     now Exclusive            tuple
//!   Prisma Migrate             -      4   7m10s   5m03s  1m47s  12m04s Exclusive            advisory
//! ```

use super::backends::several_databases;
use super::cell::fit_names;
use super::column::{Columns, Rows};
use super::definition::{Definition, Read};
use super::facts::{Fact, count};
use super::row::{Row, RowId};
use super::words::DB;
use super::{Cell, Value};
use crate::app::context::Context;
use crate::app::detail::{LIST, field, fields, heading, party, reasons};
use crate::app::line::{Line, Tone};
use crate::model::lock::LockTag;
use crate::model::lock_waits::{WaitedLock, contended};
use crate::model::wait_graph::{Queue, Waiter};
use crate::text;

/// Locks that were waited for.
struct Waits;

impl Rows for Waits {
    type Row<'a> = &'a WaitedLock;

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<&'a WaitedLock> {
        context.view.lock_waits.locks.get(row.at()?)
    }

    fn id(_: &Context<'_>, lock: &WaitedLock) -> Option<RowId> {
        Some(RowId::Waits(lock.tag))
    }
}

type Column = super::Column<Waits>;

static COLUMNS: Columns<Waits> = Columns {
    shown: &[
        Column::sorted(
            ("LOCK", "lock", "what is locked; the rows of a table are taken together"),
            (20, 44),
            |lock, _, room| name(lock, room),
            |lock, _| Value::text(Some(&lock.name)),
        ),
        Column::number(
            ("WAITING", "waiting", "sessions that wait for it now"),
            (7, 7),
            Tone::Warning,
            |lock, _| Some(lock.waiting.into()).filter(|count| *count > 0),
        ),
        Column::number(
            ("WAITS", "waits", "waits that were seen: one that was over between two looks was not"),
            (6, 8),
            Tone::Plain,
            |lock, _| i64::try_from(lock.waits).ok(),
        ),
        Column::age(
            ("TOTAL", "total", "how long all of them have lasted together, at least"),
            (7, 7),
            Tone::Plain,
            |lock, _| Some(lock.total),
        ),
        Column::age(
            ("LONGEST", "longest", "how long the longest of them has lasted, at least"),
            (7, 7),
            Tone::Plain,
            |lock, _| Some(lock.longest),
        ),
        Column::age(("MEAN", "mean", "how long one has lasted on average"), (6, 6), Tone::Dim, |lock, _| {
            mean(lock)
        })
        .rank(1),
        Column::sorted(
            ("LAST", "last", "when somebody was last seen waiting for it"),
            (6, 6),
            |lock, context, _| last(context, lock),
            |lock, context| Value::number(context.age(Some(lock.last))),
        )
        .right(),
        Column::text(
            ("MODE", "mode", "the lock mode that the longest wait asked for"),
            (10, 20),
            |lock, _| Some(lock.longest_mode.short()),
        )
        .rank(2),
        Column::text(("TYPE", "type", "the lock type, as in pg_locks"), (8, 13), |lock, _| {
            Some(lock.tag.locktype.as_str())
        })
        .rank(4),
        Column::text(DB, (6, 12), |lock, context| {
            context.snapshot.names.databases.get(&lock.tag.database?).map(|name| &**name)
        })
        .rank(3)
        .only_where(several_databases),
    ],
    others: &[],
};

pub(super) static PANE: Definition = Definition {
    order: |context, rows| {
        rows.sort_by(|a, b| match (Waits::get(context, *a), Waits::get(context, *b)) {
            (Some(a), Some(b)) => b.total.total_cmp(&a.total).then(a.tag.cmp(&b.tag)),
            (a, b) => a.is_none().cmp(&b.is_none()),
        });
    },
    empty: "since locktop began to look no session was seen waiting for a lock",
    facts: |context, _| facts(context),
    read: |context| Read { at: context.view.lock_waits.since, error: None },
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
    ..Definition::new(
        ("Waits", "a lock that was waited for; its sessions are above"),
        &COLUMNS,
        |context, _| Row::all(context.view.lock_waits.locks.len()),
    )
};

/// `since 13:40:02 · 12 locks · 1h04m in all`
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let waits = &context.view.lock_waits;
    let since = waits.since.map(|since| (format!("since {}", context.time_of_day(since)), Tone::Plain));
    let mut facts: Vec<Fact> = since.into_iter().collect();
    facts.push((count(waits.locks.len(), "lock", "locks"), Tone::Plain));
    facts.push((format!("{} waited in all", text::duration(waits.total())), Tone::Plain));
    if waits.forgotten > 0 {
        facts.push((format!("{} lesser ones forgotten", text::count(waits.forgotten)), Tone::Dim));
    }
    facts
}

fn name(lock: &WaitedLock, room: u16) -> Cell {
    Cell::plain(fit_names(text::one_line_prefix(&lock.name, 500).into_owned(), room))
}

fn name_of(context: &Context<'_>, id: RowId) -> Option<String> {
    let RowId::Waits(tag) = id else { return None };
    Some(text::one_line(&context.view.lock_waits.get(&tag)?.name).into_owned())
}

/// Seconds; none before the first wait.
fn mean(lock: &WaitedLock) -> Option<f64> {
    let waits = u32::try_from(lock.waits).unwrap_or(u32::MAX);
    (waits > 0).then(|| lock.total / f64::from(waits))
}

/// `12m04s`, `now`: when somebody was last seen waiting.
fn last(context: &Context<'_>, lock: &WaitedLock) -> Cell {
    if lock.waiting > 0 {
        return Cell::toned("now", Tone::Warning);
    }
    Cell::age(context.age(Some(lock.last)), Tone::Dim)
}

fn detail(context: &Context<'_>, tag: &LockTag) -> Option<Vec<Line>> {
    let lock = context.view.lock_waits.get(tag)?;
    let since = context.view.lock_waits.since.map(|since| context.day_and_time(since));
    let mean = mean(lock).map(text::duration).unwrap_or_default();
    let mut lines = vec![
        field("lock", text::one_line(&lock.name), Tone::Title),
        fields(&[("type", tag.locktype.as_str().to_owned()), ("counted since", since.unwrap_or_default())]),
        fields(&[
            ("waits", text::count(lock.waits)),
            ("together", text::duration(lock.total)),
            ("on average", mean),
        ]),
        fields(&[
            ("the longest", text::duration(lock.longest)),
            ("asked for", lock.longest_mode.as_str().to_owned()),
        ]),
        fields(&[
            ("the first began", context.day_and_time(lock.first)),
            ("the last was seen", context.day_and_time(lock.last)),
        ]),
        Line::new(),
    ];
    lines.extend(now(context, tag));
    lines.push(Line::new());
    lines.extend(AT_LEAST.map(|line| Line::new().with(line, Tone::Dim)));
    Some(lines)
}

/// Why the true numbers may be larger.
const AT_LEAST: [&str; 2] = [
    "  A wait that is over between two looks is not seen, nor what one still lasted",
    "  after the last look: the true numbers are these or larger.",
];

/// Who waits for it now, and behind whom.
fn now(context: &Context<'_>, tag: &LockTag) -> Vec<Line> {
    let queues = context.view.graph.queues.iter();
    let all = queues.flat_map(|queue| queue.waiters.iter().map(move |waiter| (queue, waiter)));
    let waiting: Vec<(&Queue, &Waiter)> =
        all.filter(|(queue, waiter)| contended(context.awaited(&queue.tag, waiter.pid)) == *tag).collect();
    if waiting.is_empty() {
        return vec![heading("Nobody waits for it now")];
    }
    let mut lines = vec![heading(format!("Waiting now: {}", waiting.len()))];
    lines.extend(waiting.iter().take(LIST).map(|(queue, waiter)| waiting_line(context, queue, waiter)));
    if waiting.len() > LIST {
        lines.push(Line::new().with(format!("  and {} more", waiting.len() - LIST), Tone::Dim));
    }
    // One is said in words: the others wait for the same, or behind it.
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
