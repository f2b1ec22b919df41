use super::requested;
use crate::app::context::Context;
use crate::app::detail::{LIST, field, fields, heading, party};
use crate::app::line::{Line, Tone};
use crate::app::panes::cell::object_first;
use crate::app::panes::lock_age::{age_words, lock_age};
use crate::app::panes::party::root_state;
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::output::{Channel, shown};
use crate::model::wait_graph::{Party, Waiter};

const QUERY: usize = 300;

pub(in crate::app::panes) fn lines(context: &Context<'_>, tag: &LockTag, width: usize) -> Option<Vec<Line>> {
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
    for lock in held.iter().take(LIST) {
        lines.push(holder_line(context, lock, !of_row.is_empty()));
    }
    if held.len() > LIST {
        lines.push(Line::new().with(format!("  and {} more", held.len() - LIST), Tone::Dim));
    }
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
        name.map_or_else(|| oid.to_string(), |name| crate::text::one_line(name).into_owned())
    });
    let relation = tag.relation().map(|oid| match context.snapshot.names.relation(tag) {
        Some(name) => format!("{} (oid {oid})", crate::text::one_line(name)),
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
                let doubt = if name.uncertain { "perhaps: " } else { "" };
                let tone = if name.uncertain { Tone::Warning } else { Tone::Plain };
                lines.push(field(
                    "name from",
                    format!("{doubt}{}", crate::text::one_line(&name.origin)),
                    tone,
                ));
            }
            None => {
                lines.push(field("name", "not known; name it under [[lock_names]] in the config", Tone::Dim));
            }
        }
    }
    lines
}

fn holder_line(context: &Context<'_>, lock: &Lock, is_row: bool) -> Line {
    let subject = match lock.pid {
        Some(pid) => Party::Backend(pid),
        None => Party::Prepared(lock.virtualtransaction),
    };
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
    for (place, waiter) in waiters.iter().enumerate().take(LIST) {
        let age = context.wait_age(waiter.wait_start).map(crate::text::duration).unwrap_or_default();
        let mode = if is_row { "row lock" } else { waiter.mode.short() };
        let mut line = Line::new()
            .with(format!("  {:>4}  {age:>6}  ", place + 1), Tone::Warning)
            .with(format!("{mode:<20} {}", party(context, waiter.party)), Tone::Plain);
        let query = context.backend(waiter.pid).and_then(|backend| backend.query.as_ref());
        if let Some(query) = query.filter(|query| !query.is_blank()) {
            line.push("  ", Tone::Plain);
            // One line each: the detail view of the session has the whole query.
            let room = width.saturating_sub(line.width()).min(QUERY);
            line.push(
                crate::text::fit(&crate::text::one_line_prefix(&shown(Channel::Screen, query), QUERY), room),
                Tone::Dim,
            );
        }
        lines.push(line);
    }
    if waiters.len() > LIST {
        lines.push(Line::new().with(format!("  and {} more", waiters.len() - LIST), Tone::Dim));
    }
    lines
}
