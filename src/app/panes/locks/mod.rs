//! Locks that sessions wait for, each once: the upper pane of the Locks screen.
//!
//! ```text
//!   LOCK                   QUEUE LONGEST REQUESTED            HELD BY
//!   orders                    46     34s AccessShare 30 +2    2053 metabase
//!   accounts ctid (0,1)       12     13s row lock 12          2993 django admin
//! ```

mod detail;
mod strip;

use super::cell::{fit_names, object_first};
use super::column::{Columns, Rows};
use super::definition::Definition;
use super::facts::{Fact, count};
use super::row::{Row, RowId};
use super::words::{QUERY, TYPE_HELP};
use super::{Cell, Total, Value, backends};
use crate::app::context::Context;
use crate::app::keymap::Action;
use crate::app::line::Tone;
use crate::model::awaited_locks::{AwaitedLock, Hold};
use crate::model::lock::LockType;
use crate::model::wait_graph::Party;
use crate::text;

pub(super) use detail::lines as detail_lines;
pub(in crate::app) use strip::strip;

struct Awaited;

impl Rows for Awaited {
    type Row<'a> = &'a AwaitedLock;

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<&'a AwaitedLock> {
        context.view.index.awaited_locks().all().get(row.at()?)
    }

    fn id(_: &Context<'_>, lock: &AwaitedLock) -> Option<RowId> {
        Some(RowId::Awaited(lock.tag))
    }
}

type Column = super::Column<Awaited>;

static COLUMNS: Columns<Awaited> = Columns {
    shown: &[
        Column::cell(
            (
                "LOCK",
                "lock",
                "the locked object: a table, a row of it, an advisory lock by the name of its key",
            ),
            (20, 44),
            |lock, context, room| Cell::plain(fit_names(name(context, lock), room)),
        ),
        Column::text(("TYPE", "type", TYPE_HELP), (8, 13), |lock, _| Some(lock.tag.locktype().as_str()))
            .rank(5),
        Column::number(("QUEUE", "queue", "sessions that wait for it"), (5, 5), Tone::Plain, |lock, _| {
            i64::try_from(lock.queued()).ok()
        }),
        Column::age(("LONGEST", "longest", "the longest wait"), (7, 7), Tone::Plain, |lock, context| {
            context.wait_age(lock.since)
        }),
        Column::sorted(
            ("REQUESTED", "requested", "the requested modes by number of sessions; +2: two more modes"),
            (20, 40),
            |lock, _, room| Cell::plain(requested(lock, usize::from(room))),
            |lock, _| Value::Text(requested(lock, usize::MAX).into()),
        ),
        Column::cell(("HELD BY", "holder", HOLDER_HELP), (20, 40), |lock, context, room| {
            Cell::plain(holder(context, lock, room))
        }),
        Column::cell(QUERY, (26, 0), |lock, context, room| {
            let pid = lock.only_holder().map(|hold| hold.party.pid());
            Cell::query(pid.and_then(|pid| context.backend(pid)?.query.as_ref()), room)
        })
        .rank(9),
    ],
    others: &[
        Column::number(("PID", "pid", "process id of the only holder"), (8, 8), Tone::Plain, |lock, _| {
            match lock.only_holder()?.party {
                Party::Backend(pid) => Some(pid.into()),
                Party::Prepared(_) => None,
            }
        }),
        Column::age(("WAIT", "wait", "the longest wait"), (6, 6), Tone::Plain, |lock, context| {
            context.wait_age(lock.since)
        }),
    ],
};

const HOLDER_HELP: &str = "the session that holds it in a conflicting mode, or how many do";

pub(super) static PANE: Definition = Definition {
    widths: &[
        ("lock", [22, 28, 30, 36, 44]),
        ("type", [0, 0, 9, 10, 10]),
        ("queue", [5; 5]),
        ("longest", [7; 5]),
        ("requested", [20, 26, 28, 34, 40]),
        ("holder", [20, 28, 34, 34, 40]),
        ("query", [0; 5]),
    ],
    empty: "no session waits for a lock",
    calm: Some(calm),
    facts,
    keys: &[Action::AllLocks],
    name: |context, id| match id {
        RowId::Awaited(tag) => context
            .awaited_lock(&tag)
            .map_or_else(String::new, |lock| format!("Lock on {}", name(context, lock))),
        _ => String::new(),
    },
    label: |context, id| match id {
        RowId::Awaited(tag) => context
            .awaited_lock(&tag)
            .map_or_else(|| "a lock".to_owned(), |lock| text::fit(&name(context, lock), 20).into_owned()),
        _ => String::new(),
    },
    detail: |context, id, width| match id {
        RowId::Awaited(tag) => detail_lines(context, &tag, width),
        _ => None,
    },
    ..Definition::new(("Locks", "a lock"), &COLUMNS, |context, _| {
        Row::all(context.view.index.awaited_locks().all().len())
    })
};

/// `4 waited for · 34 advisory held · a shows all types`
fn facts(context: &Context<'_>, total: Total) -> Vec<Fact> {
    let is_advisory =
        |lock: &&crate::model::lock::Lock| lock.granted && lock.tag.locktype() == LockType::Advisory;
    let advisory = context.snapshot.locks.last_rows().iter().filter(is_advisory).count();
    let count = |number: usize| text::count(number as u64);
    let tone = if total.rows > 0 { Tone::Warning } else { Tone::Plain };
    let all = if total.all_locks { "a shows advisory locks only" } else { "a shows all types" };
    vec![
        (format!("{} waited for", count(total.rows)), tone),
        (format!("{} advisory held", count(advisory)), Tone::Plain),
        (all.to_owned(), Tone::Plain),
    ]
}

/// `no session waits for a lock · 5 locks were waited for since 13:40, longest orders 4s`
fn calm(context: &Context<'_>, room: usize) -> String {
    let waits = &context.view.lock_waits;
    let Some(since) = waits.since else { return PANE.empty.to_owned() };
    let since = context.time_of_day(since);
    let since = since.get(..5).unwrap_or(&since);
    let longest = waits.locks.iter().max_by(|a, b| a.longest.total_cmp(&b.longest));
    let Some(longest) = longest else {
        return format!("{} · none was waited for since {since}", PANE.empty);
    };
    let locks = count(waits.locks.len(), "lock was", "locks were");
    let name = text::one_line_prefix(&longest.name, 100);
    let longest = format!("since {since}, longest {name} {}", text::age(longest.longest));
    let whole = format!("{} · {locks} waited for {longest}", PANE.empty);
    if text::width(&whole) <= room {
        return whole;
    }
    format!("{} · {} {longest}", PANE.empty, waits.locks.len())
}

/// `orders`, `accounts ctid (0,1)`, `nightly-export`
pub(super) fn name(context: &Context<'_>, lock: &AwaitedLock) -> String {
    let pids = lock.holders.iter().map(|hold| hold.party.pid()).filter(|pid| *pid > 0);
    let pid = pids.chain(lock.waiters(&context.view.graph).map(|waiter| waiter.pid)).next();
    object_first(context.lock_label(&lock.tag, pid))
}

/// `AccessShare 30, RowExclusive 15`; modes that do not fit are counted: `AccessShare 30 +2`.
fn requested(lock: &AwaitedLock, room: usize) -> String {
    if lock.tag.locktype() == LockType::Tuple {
        return format!("row lock {}", text::count(lock.queued() as u64));
    }
    let words = |(mode, count): &(crate::model::lock::LockMode, usize)| {
        format!("{} {}", mode.short(), text::count(*count as u64))
    };
    let all: Vec<String> = lock.modes.iter().map(words).collect();
    let shown = |count: usize| {
        let first = all.get(..count).unwrap_or(&all).join(", ");
        if count < all.len() { format!("{first} +{}", all.len() - count) } else { first }
    };
    (1..=all.len()).rev().map(shown).find(|words| text::width(words) <= room).unwrap_or_else(|| shown(1))
}

/// `2053 metabase`, `prepared xa-4711-payment`, `4 sessions`
fn holder(context: &Context<'_>, lock: &AwaitedLock, room: u16) -> String {
    match lock.holders.as_slice() {
        [] => String::new(),
        [Hold { party: Party::Backend(pid), .. }] => match context.backend(*pid) {
            // Below 120 columns only the application is shown, as in WHO.
            Some(backend) => {
                let room = if room < HOLDER_WITH_USER { 0 } else { room };
                format!("{pid} {}", backends::who(context, backend, room).text)
            }
            None => pid.to_string(),
        },
        [Hold { party: Party::Prepared(xact), .. }] => match context.prepared(*xact) {
            Some(row) => format!("prepared {}", text::one_line(&row.gid)),
            None => "prepared".to_owned(),
        },
        all if all.iter().any(|hold| matches!(hold.party, Party::Prepared(_))) => {
            format!("{} holders", text::count(all.len() as u64))
        }
        all => format!("{} sessions", text::count(all.len() as u64)),
    }
}

const HOLDER_WITH_USER: u16 = 34;
