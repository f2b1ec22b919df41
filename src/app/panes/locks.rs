//! Locks that sessions wait for, each once: the upper pane of the Locks screen.
//!
//! ```text
//!   LOCK                   QUEUE LONGEST REQUESTED            HELD BY
//!   orders                    46     34s AccessShare 30 +2    2053 metabase
//!   accounts ctid (0,1)       12     13s row lock 12          2993 django admin
//! ```

use super::backends::root_state;
use super::cell::{self, age_words, fit_names, lock_age, object_first};
use super::column::{Listed, QUERY, TYPE_HELP, listed_rows};
use super::definition::{Fact, PaneDefinition, count};
use super::{Cell, RowId, SortValue, Total, backends};
use crate::app::context::Context;
use crate::app::detail::{field, fields, heading, listed, parties, party};
use crate::app::keymap::Action;
use crate::app::line::{Line, Tone};
use crate::model::awaited_locks::{AwaitedLock, LockHold};
use crate::model::disclosure::{Channel, shown};
use crate::model::lock::{Lock, LockMode, LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::wait_graph::{Party, Waiter};
use crate::text;

listed_rows!(Awaited = AwaitedLock, |context| context.view.index.awaited_locks().all(), |lock| {
    RowId::Awaited(lock.tag)
});

static COLUMNS: &[Column] = &[
    Column::cell(
        ("LOCK", "lock", "the locked object: a table, a row of it, an advisory lock by the name of its key"),
        (20, 44),
        |lock, context, room| Cell::plain(fit_names(name(context, lock), room)),
    ),
    Column::text(("TYPE", "type", TYPE_HELP), (8, 13), |lock, _| Some(lock.tag.locktype().as_str())).rank(5),
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
        |lock, _| SortValue::Text(requested(lock, usize::MAX).into()),
    ),
    Column::cell(
        ("HELD BY", "holder", "the session that holds it in a conflicting mode, or how many do"),
        (20, 40),
        |lock, context, room| Cell::plain(holder(context, lock, room)),
    ),
    Column::cell(QUERY, (26, 0), |lock, context, room| {
        let pid = lock.only_holder().map(|hold| hold.party.pid());
        Cell::query(pid.and_then(|pid| context.backend(pid)?.query.as_ref()), room)
    })
    .rank(9),
    Column::number(
        ("PID", "pid", "process id of the only holder"),
        (8, 8),
        Tone::Plain,
        |lock, _| match lock.only_holder()?.party {
            Party::Backend(pid) => Some(pid.into()),
            Party::Prepared(_) => None,
        },
    )
    .only_in_filters(),
    Column::age(("WAIT", "wait", "the longest wait"), (6, 6), Tone::Plain, |lock, context| {
        context.wait_age(lock.since)
    })
    .only_in_filters(),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
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
    name: |context, id| {
        Awaited::find(context, id).map_or_else(String::new, |lock| format!("Lock on {}", name(context, lock)))
    },
    label: |context, id| {
        Awaited::find(context, id)
            .map_or_else(|| "a lock".to_owned(), |lock| text::fit(&name(context, lock), 20).into_owned())
    },
    detail: |context, id, width| match id {
        RowId::Awaited(tag) => lines(context, &tag, width),
        _ => None,
    },
    ..PaneDefinition::new(("Locks", "a lock"), &COLUMNS, Awaited::rows)
};

/// `4 waited for · 34 advisory held · a shows all types`
fn facts(context: &Context<'_>, total: Total) -> Vec<Fact> {
    let count = |number: usize| text::count(number as u64);
    let tone = if total.rows > 0 { Tone::Warning } else { Tone::Plain };
    let all = if total.all_locks { "a shows advisory locks only" } else { "a shows all types" };
    vec![
        (format!("{} waited for", count(total.rows)), tone),
        (format!("{} advisory held", count(context.index.advisory_held)), Tone::Plain),
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
    let words =
        |(mode, count): &(LockMode, usize)| format!("{} {}", mode.short(), text::count(*count as u64));
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
        [LockHold { party: Party::Backend(pid), .. }] => match context.backend(*pid) {
            // Below 120 columns only the application is shown, as in WHO.
            Some(backend) => {
                let room = if room < HOLDER_WITH_USER { 0 } else { room };
                format!("{pid} {}", backends::who(context, backend, room).text)
            }
            None => pid.to_string(),
        },
        [LockHold { party: Party::Prepared(xact), .. }] => match context.prepared(*xact) {
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

/// The title, and one line each; `None` if no session waits for the lock.
pub(in crate::app) fn strip(context: &Context<'_>, tag: &LockTag) -> Option<(String, Vec<Line>)> {
    let lock = context.awaited_lock(tag)?;
    let title = format!("{} · {}", name(context, lock), requested(lock, usize::MAX));
    let holder = match lock.holders.as_slice() {
        [] => "no session holds it now".to_owned(),
        [hold] => holds(context, lock, *hold),
        all => {
            let all: Vec<Party> = all.iter().map(|hold| hold.party).collect();
            format!("{} holders: {}", all.len(), parties(context, &all))
        }
    };
    let first = lock.waiters(&context.view.graph).next()?;
    let mode = if tag.locktype() == LockType::Tuple { "" } else { first.mode.short() };
    let first = format!("first in the queue: {} {mode}", party(context, first.party));
    let behind = match lock.queued() - 1 {
        0 => String::new(),
        behind => format!(", {} behind it", text::count(behind as u64)),
    };
    let lines = [holder, format!("{}{behind}", first.trim_end())];
    Some((title, lines.map(|line| Line::new().with(line, Tone::Plain)).into()))
}

/// `2053 report@metabase holds AccessShare, active 34s: SELECT count(*) FROM orders`
fn holds(context: &Context<'_>, lock: &AwaitedLock, hold: LockHold) -> String {
    let what = if lock.tag.locktype() == LockType::Tuple { "the row" } else { hold.mode.short() };
    let is_its = |row: &&Lock| row.granted && row.tag == hold.tag && row.pid == Some(hold.party.pid());
    let age = context.snapshot.locks.last_rows().iter().find(is_its).and_then(|row| lock_age(context, row));
    let since = match hold.party {
        Party::Backend(_) => age.map(|age| format!(" for {}", age_words(age))).unwrap_or_default(),
        Party::Prepared(_) => String::new(),
    };
    let state = root_state(context, hold.party, usize::MAX).text;
    let state = if matches!(hold.party, Party::Prepared(_)) { String::new() } else { format!(", {state}") };
    let query = context.backend(hold.party.pid()).and_then(cell::query_of);
    let query = query.map(|query| format!(": {query}"));
    format!("{} holds {what}{since}{state}{}", party(context, hold.party), query.unwrap_or_default())
}

const LONGEST_QUERY: usize = 300;

pub(super) fn lines(context: &Context<'_>, tag: &LockTag, width: usize) -> Option<Vec<Line>> {
    let awaited = context.awaited_lock(tag);
    // A row is locked by a transaction: the tuple lock belongs to the first waiter in the queue.
    let of_row = awaited.filter(|lock| lock.tag.locktype() == LockType::Tuple);
    let of_row: Vec<LockTag> =
        of_row.into_iter().flat_map(|lock| &lock.holders).map(|hold| hold.tag).collect();
    let is_its = |lock: &&Lock| if of_row.is_empty() { lock.tag == *tag } else { of_row.contains(&lock.tag) };
    let rows: Vec<&Lock> = context.snapshot.locks.last_rows().iter().filter(is_its).collect();
    let holder = rows.iter().find(|lock| lock.granted).or(rows.first())?;
    let mut lines = what(context, tag, holder.pid);
    if let Some(lock) = awaited {
        lines.push(field("requested", requested(lock, usize::MAX), Tone::Plain));
    }
    lines.push(Line::new());
    let held: Vec<&&Lock> = rows.iter().filter(|lock| lock.granted).collect();
    lines.push(heading(format!("Held by {}", held.len())));
    lines.extend(listed(&held, |lock| holder_line(context, lock, !of_row.is_empty())));
    lines.push(Line::new());
    let of_queue = || context.queue(tag).map(|queue| queue.waiters.iter().collect());
    let waiters: Vec<&Waiter> =
        awaited.map(|lock| lock.waiters(&context.view.graph).collect()).or_else(of_queue).unwrap_or_default();
    match waiters.as_slice() {
        [] => lines.push(heading("No waiters")),
        waiters => lines.extend(queue_lines(context, waiters, (!of_row.is_empty(), width))),
    }
    Some(lines)
}

fn what(context: &Context<'_>, tag: &LockTag, pid: Option<i32>) -> Vec<Line> {
    let database = tag.database().filter(|oid| *oid != 0).map(|oid| {
        let name = context.snapshot.names.databases.get(&oid);
        name.map_or_else(|| oid.to_string(), |name| text::one_line(name).into_owned())
    });
    let relation = tag.relation().map(|oid| match context.snapshot.names.relation(tag) {
        Some(name) => format!("{} (oid {oid})", text::one_line(name)),
        None => oid.to_string(),
    });
    let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
    let mut lines = vec![
        field("lock", object_first(context.lock_label(tag, pid)), Tone::Plain),
        fields(&[
            ("type", tag.locktype().as_str().to_owned()),
            ("database", database.unwrap_or_default()),
            ("relation", relation.unwrap_or_default()),
            ("transaction", number(tag.transactionid())),
        ]),
    ];
    if let Some(key) = tag.advisory_key() {
        let kind = match key {
            LockKey::Bigint(_) => "bigint",
            LockKey::Pair(..) => "pair of int4",
        };
        lines.push(field("key", format!("{key} ({kind})"), Tone::Plain));
        match context.lock_name(tag, pid) {
            Some(name) => {
                let (doubt, tone) =
                    if name.uncertain { ("perhaps: ", Tone::Warning) } else { ("", Tone::Plain) };
                lines.push(field("name from", format!("{doubt}{}", text::one_line(&name.origin)), tone));
            }
            None => {
                lines.push(field("name", "not known; name it under [[lock_names]] in the config", Tone::Dim));
            }
        }
    }
    lines
}

fn holder_line(context: &Context<'_>, lock: &Lock, is_row: bool) -> Line {
    let subject = cell::party(lock);
    let state = root_state(context, subject, 60);
    let age = lock_age(context, lock).map(|known| format!("  held {}", age_words(known)));
    let mode = if is_row { "row lock" } else { lock.mode.short() };
    Line::new()
        .with(format!("  {mode:<20} "), Tone::Plain)
        .with(format!("{}  ", party(context, subject)), Tone::Plain)
        .with(state.text, state.tone)
        .with(age.unwrap_or_default(), Tone::Dim)
}

fn queue_lines(context: &Context<'_>, waiters: &[&Waiter], (is_row, width): (bool, usize)) -> Vec<Line> {
    let inferred = waiters.iter().any(|waiter| waiter.exact.is_none());
    let note = if inferred { " (order inferred from the start of each wait)" } else { "" };
    let mut lines = vec![heading(format!("Queue of {}{note}", waiters.len()))];
    let places: Vec<(usize, &&Waiter)> = (1..).zip(waiters).collect();
    lines.extend(listed(&places, |(place, waiter)| {
        let age = context.wait_age(waiter.wait_start).map(text::duration).unwrap_or_default();
        let mode = if is_row { "row lock" } else { waiter.mode.short() };
        let mut line = Line::new()
            .with(format!("  {place:>4}  {age:>6}  "), Tone::Warning)
            .with(format!("{mode:<20} {}", party(context, waiter.party)), Tone::Plain);
        let query = context.backend(waiter.pid).and_then(|backend| backend.query.as_ref());
        if let Some(query) = query.filter(|query| !query.is_blank()) {
            line.push("  ", Tone::Plain);
            // One line each: the detail view of the session has the whole query.
            let room = width.saturating_sub(line.width()).min(LONGEST_QUERY);
            let query = shown(Channel::Screen, query);
            line.push(text::fit(&text::one_line_prefix(&query, LONGEST_QUERY), room), Tone::Dim);
        }
        line
    }));
    lines
}
