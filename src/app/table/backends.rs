//! The columns of the Backends screen.

use std::borrow::Cow;

use super::{Cell, Column, Value, age, server_text};
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::backend::{Backend, State};
use crate::model::wait_graph::Party;

/// `pg_stat_activity`, and what the wait graph knows of each.
pub(super) const COLUMNS: &[Column] = &[
    Column { title: "PID", name: "pid", min: 7, max: 8, right: false, rank: 0 },
    Column { title: "BLOCKS", name: "blocks", min: 6, max: 6, right: true, rank: 2 },
    Column { title: "STATE", name: "state", min: 12, max: 20, right: false, rank: 0 },
    Column { title: "XACT", name: "xact", min: 8, max: 8, right: true, rank: 1 },
    Column { title: "TIME", name: "time", min: 6, max: 6, right: true, rank: 1 },
    Column { title: "WAIT EVENT", name: "event", min: 13, max: 24, right: false, rank: 3 },
    Column { title: "DB", name: "db", min: 6, max: 12, right: false, rank: 4 },
    Column { title: "WHO", name: "who", min: 10, max: 24, right: false, rank: 0 },
    Column { title: "CLIENT", name: "client", min: 9, max: 15, right: false, rank: 6 },
    Column { title: "TYPE", name: "type", min: 12, max: 19, right: false, rank: 7 },
    Column { title: "QUERY", name: "query", min: 10, max: 0, right: false, rank: 0 },
];

/// How long it waits for a lock.
pub(super) const FILTER_ONLY: &[&str] = &["wait"];

fn wait(scene: &Scene<'_>, backend: &Backend) -> Option<f64> {
    let (_, node) = scene.node(Party::Backend(backend.group()))?;
    let (queue, waiter) = node.waits?;
    scene.wait_age(scene.view.graph.queues.get(queue)?.waiters.get(waiter)?.wait_start)
}

/// Short words for a state, so that the column can be narrow.
#[must_use]
pub(super) fn short_state(state: State) -> &'static str {
    match state {
        State::IdleInTransaction => "idle in xact",
        State::IdleInTransactionAborted => "idle aborted",
        State::FastpathFunctionCall => "fastpath",
        state => state.as_str(),
    }
}

/// How a state looks: idle in a transaction is what stops others.
pub(super) fn state_tone(state: State) -> Tone {
    match state {
        State::Idle | State::Disabled => Tone::Dim,
        State::IdleInTransaction | State::IdleInTransactionAborted => Tone::Warning,
        _ => Tone::Plain,
    }
}

/// The age of the transaction, with a `w` when it has written.
pub(super) fn xact(scene: &Scene<'_>, backend: &Backend) -> Cell {
    let Some(seconds) = scene.age(backend.xact_start) else { return Cell::none() };
    let written = if backend.backend_xid.is_some() { " w" } else { "  " };
    Cell::plain(format!("{}{written}", crate::text::duration(seconds)))
}

fn event(backend: &Backend) -> Option<String> {
    match (backend.wait_event_type.as_deref(), backend.wait_event.as_deref()) {
        (Some(kind), Some(event)) => Some(format!("{kind}/{event}")),
        (Some(kind), None) => Some(kind.to_owned()),
        _ => None,
    }
}

/// How long the current query runs; none for one that has ended.
fn running(scene: &Scene<'_>, backend: &Backend) -> Option<f64> {
    backend.state.filter(|state| matches!(state, State::Active | State::FastpathFunctionCall))?;
    scene.age(backend.query_start)
}

fn state_cell(scene: &Scene<'_>, backend: &Backend, room: u16) -> Cell {
    let Some(state) = backend.state else {
        // A process that serves no client has no state; that of a stranger is hidden.
        let hidden = backend.backend_start.is_none() && scene.snapshot.server().is_some_and(|s| !s.sees_all);
        return if hidden { Cell::toned("hidden", Tone::Dim) } else { Cell::none() };
    };
    let words = if usize::from(room) >= state.as_str().len() { state.as_str() } else { short_state(state) };
    Cell::toned(words, state_tone(state))
}

/// Role and application. Where both are too long the end of the application is what goes: whose session it is stays. Where all
/// are of one role that says nothing, and the application has its room.
pub(super) fn who(scene: &Scene<'_>, backend: &Backend, room: u16) -> Cell {
    let who = scene.who(backend);
    let application = backend.application.as_deref().filter(|text| !text.is_empty() && who.contains('@'));
    match application {
        Some(application) if scene.is_one_role() && crate::text::width(&who) > usize::from(room) => {
            Cell::plain(format!("@{}", crate::text::one_line_prefix(application, 100)))
        }
        _ => Cell::plain(who),
    }
}

pub(super) fn blocks(scene: &Scene<'_>, party: Party) -> Option<u32> {
    let (_, node) = scene.node(party)?;
    Some(scene.root(party).map_or(node.below, |root| root.blocked)).filter(|count| *count > 0)
}

pub(super) fn cell(scene: &Scene<'_>, at: u32, column: &str, room: u16) -> Cell {
    let Some(backend) = scene.snapshot.backends.rows.get(at as usize) else { return Cell::none() };
    match column {
        "pid" => {
            let own = scene.snapshot.server().is_some_and(|server| server.own_pid == backend.pid);
            Cell::toned(backend.pid.to_string(), if own { Tone::Dim } else { Tone::Plain })
        }
        "blocks" => match blocks(scene, Party::Backend(backend.group())) {
            Some(count) => Cell::toned(count.to_string(), Tone::Critical),
            None => Cell::none(),
        },
        "state" => state_cell(scene, backend, room),
        "xact" => xact(scene, backend),
        "time" => age(running(scene, backend), Tone::Plain),
        "event" => event(backend).map_or_else(Cell::none, |event| {
            let lock = backend.wait_event_type.as_deref() == Some("Lock");
            Cell::toned(crate::text::one_line(&event), if lock { Tone::Warning } else { Tone::Plain })
        }),
        "db" => server_text(backend.database.as_deref()),
        "who" => who(scene, backend, room),
        "client" => server_text(backend.client.as_deref()),
        "type" => server_text(backend.backend_type.as_deref()),
        "query" => server_text(backend.query.as_deref()),
        _ => Cell::none(),
    }
}

pub(super) fn value<'a>(scene: &Scene<'a>, at: u32, column: &str) -> Value<'a> {
    let Some(backend) = scene.snapshot.backends.rows.get(at as usize) else { return Value::Missing };
    let text = |text: &'a Option<crate::model::Text>| {
        text.as_deref().map_or(Value::Missing, |text| Value::Text(Cow::Borrowed(text)))
    };
    match column {
        "pid" => Value::Number(f64::from(backend.pid)),
        "blocks" => Value::number(blocks(scene, Party::Backend(backend.group())).map(f64::from)),
        "state" => backend.state.map_or(Value::Missing, |state| Value::state(state.as_str())),
        "xact" => Value::number(scene.age(backend.xact_start)),
        "time" => Value::number(running(scene, backend)),
        "wait" => Value::number(wait(scene, backend)),
        "event" => event(backend).map_or(Value::Missing, |event| Value::Text(Cow::Owned(event))),
        "db" => text(&backend.database),
        "who" => Value::Text(Cow::Owned(scene.who(backend))),
        "client" => text(&backend.client),
        "type" => text(&backend.backend_type),
        "query" => text(&backend.query),
        _ => Value::Missing,
    }
}
