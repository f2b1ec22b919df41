use std::borrow::Cow;

use super::backends::{short_state, state_tone};
use super::row::RowId;
use super::{Cell, Value};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::backend::Backend;
use crate::model::wait_graph::Party;

pub(super) fn root_state(context: &Context<'_>, party: Party, room: usize) -> Cell {
    match party {
        Party::Prepared(xact) => match context.prepared(xact) {
            Some(row) => {
                let age = context.age(row.prepared).map(crate::text::age).unwrap_or_default();
                Cell::toned(format!("prepared {age} '{}'", crate::text::one_line(&row.gid)), Tone::Critical)
            }
            None => Cell::toned("prepared transaction", Tone::Critical),
        },
        Party::Backend(pid) => match context.backend(pid) {
            Some(backend) => backend_state(context, backend, room),
            // Sessions and locks are read one after the other.
            None if context.snapshot.server().is_some_and(|server| server.sees_all) => {
                Cell::toned("ended or just connected", Tone::Dim)
            }
            None => Cell::toned("not shown to this role", Tone::Dim),
        },
    }
}

fn backend_state(context: &Context<'_>, backend: &Backend, room: usize) -> Cell {
    let Some(state) = backend.state else {
        let kind = backend.backend_type.as_deref().unwrap_or("hidden from this role");
        return Cell::toned(crate::text::one_line(kind), Tone::Plain);
    };
    let since = context.age(backend.state_change).map(crate::text::age).unwrap_or_default();
    let words = if room >= state.as_str().len() + 16 { state.as_str() } else { short_state(state) };
    let own = match (backend.wait_event_type.as_deref(), backend.wait_event.as_deref()) {
        // "Client/ClientRead" applies to every idle session.
        (Some("Client"), Some("ClientRead")) | (None, _) => String::new(),
        (Some(kind), event) => format!(" {kind}/{}", event.unwrap_or("?")),
    };
    Cell::toned(crate::text::one_line(&format!("{words} {since}{own}")), state_tone(state))
}

pub(super) fn state_value<'a>(context: &Context<'a>, party: Party) -> Value<'a> {
    let said = Cow::Owned(root_state(context, party, usize::MAX).text);
    let backend = match party {
        Party::Backend(pid) => context.backend(pid),
        Party::Prepared(_) => None,
    };
    match backend.and_then(|backend| backend.state) {
        Some(state) => Value::State(Cow::Borrowed(state.as_str()), said),
        None => Value::Text(said),
    }
}

pub fn party_id(context: &Context<'_>, party: Party) -> RowId {
    match party {
        Party::Prepared(xact) => RowId::Prepared(xact),
        Party::Backend(pid) => RowId::Backend(context.view.backend_id(pid)),
    }
}
