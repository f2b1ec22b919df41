use std::borrow::Cow;

use crate::app::context::Context;
use crate::app::detail::{ago, field, fields, heading, of, party, state, words};
use crate::app::line::{Line, Tone};
use crate::app::panes::queue::tone;
use crate::model::takers::{Takers, Work};
use crate::model::wait_graph::Party;
use crate::model::work_queue::{Item, ItemId, ItemRow, ItemState};
use crate::text;

pub(super) fn lines(context: &Context<'_>, id: ItemId) -> Option<Vec<Line>> {
    let row = context.item(id)?;
    let item = row.item(context.snapshot)?;
    let mut lines = vec![
        state(row.state.as_str(), tone(row.state), why(context, row, item)),
        field("name", words(item.name.as_ref()), Tone::Plain),
        field("kept in", words(row.source(context.snapshot)), Tone::Plain),
        fields(&[
            ("worker", words(item.worker.as_ref())),
            ("attempt", of(item.attempt, item.max_attempts)),
            ("runs", row.run(context.snapshot).map(text::duration).unwrap_or_default()),
        ]),
        fields(&[("added", ago(context, item.created_at)), ("taken", ago(context, item.started_at))]),
        fields(&[
            ("heartbeat", ago(context, item.heartbeat_at)),
            ("ended", ago(context, item.completed_at.filter(|_| !item.is_processing()))),
        ]),
    ];
    lines.retain(|line| line.spans.len() > 1);
    lines.extend(session(context, item));
    lines.extend(key(context, row));
    if let Some(error) = item.error.as_ref().filter(|error| !error.is_empty()) {
        lines.push(Line::new());
        lines.push(heading("Last error"));
        lines.push(Line::new().with("  ", Tone::Plain).with(text::one_line(error), Tone::Critical));
    }
    Some(lines)
}

fn why(context: &Context<'_>, row: &ItemRow, item: &Item) -> Cow<'static, str> {
    let table = context.snapshot.systems.items.get(row.table);
    let is_printed = table.is_some_and(|table| !table.source.own_keys);
    let words = match row.state {
        ItemState::Slow => {
            return format!(": for longer than its limit of {}", text::duration(row.limit)).into();
        }
        ItemState::Resting => {
            let left = row.due_in(context.snapshot).map(text::duration).unwrap_or_default();
            return format!(": no worker takes it for another {left}").into();
        }
        ItemState::Settling => ": the session that took it has ended; its worker might not have noticed yet",
        ItemState::Lost if is_printed => ": no session holds the key that its worker took",
        ItemState::Lost => ": the session that took it has ended",
        ItemState::MaybeLost => {
            ": no session holds its probable key; not known whether its worker uses that key"
        }
        ItemState::MaybeSlow | ItemState::MaybeRunning => {
            ": a session holds its key, but nothing links it to its worker"
        }
        ItemState::Running => "",
        ItemState::Uncommitted | ItemState::MaybeUncommitted => {
            ": a session holds its key, or has locked its row, in an open transaction; its changes are visible after the commit"
        }
        ItemState::Failed => ": set aside; no worker takes it",
        ItemState::Pending if is_unserved(context, row, item) => {
            ": it is not held, and no connected worker takes its type"
        }
        ItemState::Pending => ": it is not held",
        ItemState::Unknown if table.is_some_and(|table| table.section.error.is_some()) => {
            ": its table could not be read"
        }
        ItemState::Unknown if is_printed => {
            ": its key is not known ([tables] queue_key in the config names it)"
        }
        ItemState::Unknown if item.backend_pid.is_none() => ": its row names no session",
        ItemState::Unknown if context.snapshot.server().is_none_or(|server| server.in_recovery) => {
            ": the sessions of the primary are not visible on a standby"
        }
        ItemState::Unknown => ": the start of its session is hidden from this role",
    };
    words.into()
}

fn is_unserved(context: &Context<'_>, row: &ItemRow, item: &Item) -> bool {
    let table = context.snapshot.systems.items.get(row.table).filter(|table| table.source.own_keys);
    table.is_some_and(|table| {
        let place = (&*table.source.name, Work::Items);
        Takers::lacks(context.view, context.snapshot, place, item.name.as_deref())
    })
}

fn session(context: &Context<'_>, item: &Item) -> Option<Line> {
    let pid = item.backend_pid?;
    let is_there = item.backend_start.and_then(|start| context.snapshot.has_session(pid, start));
    Some(match is_there {
        Some(true) => field("session", party(context, Party::Backend(pid)), Tone::Plain),
        Some(false) if item.is_processing() => {
            field("session", format!("{pid}, which has ended"), Tone::Warning)
        }
        Some(false) => field("session", format!("{pid}, which has ended"), Tone::Dim),
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
