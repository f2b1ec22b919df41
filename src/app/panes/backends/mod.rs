mod detail;

pub(super) use detail::prepared;

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::cell::{fit_names, object_first};
use super::column::{BLOCKS, DB, Listed, PID, QUERY, WHO, XACT, listed_rows};
use super::definition::{PaneDefinition, ReadState};
use super::{Cell, RowId, Rows, SortValue};
use crate::app::context::Context;
use crate::app::line::{Line, Tone};
use crate::model::backend::{Backend, State};
use crate::model::session_facts::{WriteKnowledge, write_knowledge};
use crate::model::wait_graph::{Party, Queue, Waiter};
use crate::order::SortExt;
use crate::text;

listed_rows!(Backends = Backend, |context| context.snapshot.backends.last_rows(), |backend| RowId::Backend(
    backend.id()
));

static COLUMNS: &[Column] = &[
    Column::sorted(PID, (7, 8), |b, context, _| pid(context, b), |b, _| SortValue::whole(Some(b.pid.into()))),
    Column::sorted(
        BLOCKS,
        (6, 6),
        |b, context, _| match context.blocked(Party::Backend(b.group())) {
            0 => Cell::none(),
            blocked => Cell::toned(blocked.to_string(), Tone::Critical),
        },
        |b, context| {
            let blocked = context.blocked_of_all(Party::Backend(b.group()));
            SortValue::whole((blocked > 0).then_some(blocked.into()))
        },
    )
    .right()
    .rank(2),
    Column::sorted(
        (
            "STATE",
            "state",
            "as in pg_stat_activity; for a waiting session its lock, for a process of the server its kind",
        ),
        (12, 20),
        |b, context, room| state_cell(context, b, room),
        |b, _| b.state.map_or(SortValue::Missing, |state| SortValue::state(state.as_str())),
    ),
    Column::sorted(
        XACT,
        (8, 8),
        |b, context, _| xact(context, b),
        |b, context| SortValue::number(context.age(b.xact_start)),
    )
    .right()
    .rank(1),
    Column::since(("TIME", "time", "how long the query has run"), (6, 6), Tone::Plain, |b, _| {
        b.query_start.filter(|_| is_running(b))
    })
    .rank(1),
    Column::cell(("WAIT EVENT", "event", "its wait event: type and name"), (13, 24), |b, _, _| event(b))
        .rank(3),
    Column::text(DB, (6, 12), |b, _| b.database.as_deref()).rank(4).only_where(several_databases),
    Column::sorted(
        WHO,
        (10, 24),
        |b, context, room| who(context, b, room),
        |b, context| SortValue::Text(Cow::Owned(context.who(b))),
    ),
    Column::text(("CLIENT", "client", "address of the client"), (9, 15), |b, _| b.client.as_deref()).rank(6),
    Column::statement(QUERY, (10, 0), |b, _| b.query.as_ref()),
    Column::age(("WAIT", "wait", "how long it has waited for a lock"), (6, 6), Tone::Plain, |b, context| {
        context.wait_age(request(context, b)?.1.wait_start)
    })
    .only_in_filters(),
    Column::text(("TYPE", "type", "kind of process"), (12, 19), |b, _| b.backend_type.as_deref())
        .only_in_filters(),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    order: |context, rows| {
        rows.order_by_cached_key(|row| Backends::get(context, *row).map(|backend| urgency(context, backend)));
    },
    empty: "no backends",
    facts: |context, total| {
        let hidden = context.hidden();
        let hidden = (hidden > 0)
            .then(|| (format!("{} hidden from this role", text::count(hidden as u64)), Tone::Dim));
        std::iter::once((total.rows.to_string(), Tone::Plain)).chain(hidden).collect()
    },
    read: |context| {
        let backends = &context.snapshot.backends;
        ReadState { at: backends.taken_at, error: backends.error.as_deref() }
    },
    above: Some(wait_classes),
    is_state: |word| State::ALL.iter().any(|state| state.as_str().eq_ignore_ascii_case(word)),
    name: |_, id| match id {
        RowId::Backend(id) => format!("Backend {}", id.pid),
        _ => String::new(),
    },
    detail: |context, id, width| match id {
        RowId::Backend(id) => detail::lines(context, id, width),
        _ => None,
    },
    ..PaneDefinition::new(("Backends", "a session"), &COLUMNS, Backends::rows)
};

pub(super) fn several_databases(context: &Context<'_>) -> bool {
    context.index.other_database
}

/// Sort order: most blocked sessions, then oldest transaction, then active sessions, idle sessions, and processes of
/// the server.
fn urgency(context: &Context<'_>, backend: &Backend) -> (u32, u8, i64, i32) {
    let party = Party::Backend(backend.group());
    let blocked = context.blocked_of_all(party);
    let class = match backend.state {
        _ if backend.xact_start.is_some() => 0,
        Some(State::Idle) => 2,
        Some(_) => 1,
        None => 3,
    };
    // Sessions of a pool become idle all the time: sorted by that, their rows would change places at each poll.
    let since = backend.xact_start.or(backend.state_change.filter(|_| class != 2));
    let since = since.map_or(i64::MAX, |start| start.timestamp_micros());
    (u32::MAX - blocked, class, since, backend.pid)
}

fn pid(context: &Context<'_>, backend: &Backend) -> Cell {
    let own = context.snapshot.server().is_some_and(|server| server.own_pid == backend.pid);
    Cell::toned(backend.pid.to_string(), if own { Tone::Dim } else { Tone::Plain })
}

fn request<'a>(context: &Context<'a>, backend: &Backend) -> Option<(&'a Queue, &'a Waiter)> {
    context.waiter(Party::Backend(backend.group()))
}

pub(super) fn short_state(state: State) -> &'static str {
    match state {
        State::IdleInTransaction => "idle in xact",
        State::IdleInTransactionAborted => "idle aborted",
        State::FastpathFunctionCall => "fastpath",
        state => state.as_str(),
    }
}

/// Idle in transaction is highlighted, because it blocks others.
pub(super) fn state_tone(state: State) -> Tone {
    match state {
        State::Idle | State::Disabled => Tone::Dim,
        State::IdleInTransaction | State::IdleInTransactionAborted => Tone::Warning,
        _ => Tone::Plain,
    }
}

/// The age of the transaction, with a `w` if it has written.
pub(super) fn xact(context: &Context<'_>, backend: &Backend) -> Cell {
    let Some(seconds) = context.age(backend.xact_start) else { return Cell::none() };
    let written =
        if write_knowledge(&context.view.graph, backend) == WriteKnowledge::Maybe { " w" } else { "  " };
    Cell::plain(format!("{}{written}", text::age(seconds))).with_dim_end(written)
}

/// `Lock/relation`: the wait event type, and the wait event.
fn event(backend: &Backend) -> Cell {
    let words = match (backend.wait_event_type.as_deref(), backend.wait_event.as_deref()) {
        (Some(kind), Some(event)) => format!("{kind}/{event}"),
        (Some(kind), None) => kind.to_owned(),
        _ => return Cell::none(),
    };
    let lock = backend.wait_event_type.as_deref() == Some("Lock");
    Cell::toned(text::one_line(&words), if lock { Tone::Warning } else { Tone::Plain })
}

fn is_running(backend: &Backend) -> bool {
    matches!(backend.state, Some(State::Active | State::FastpathFunctionCall))
}

fn state_cell(context: &Context<'_>, backend: &Backend, room: u16) -> Cell {
    let Some(state) = backend.state else {
        // A process without a client has no state; the state of another role's session is hidden.
        return match backend.backend_type.as_deref() {
            _ if context.is_hidden(backend) => Cell::toned("hidden", Tone::Dim),
            Some(kind) => Cell::toned(text::one_line_prefix(kind, 100), Tone::Dim),
            None => Cell::none(),
        };
    };
    if let Some((queue, _)) = request(context, backend) {
        let lock = object_first(context.wait_label(&queue.tag, backend.pid));
        return Cell::plain(fit_names(format!("Lock {lock}"), room));
    }
    let words = if usize::from(room) >= state.as_str().len() { state.as_str() } else { short_state(state) };
    Cell::toned(words, state_tone(state))
}

/// A narrower column has no room for user and application.
const ROOM_FOR_USERS: u16 = 19;

/// `app@web-3`; in a narrow column the application, or else the user, or else the address. The rule is the same for the
/// whole column.
pub(super) fn who(context: &Context<'_>, backend: &Backend, room: u16) -> Cell {
    let who = context.who(backend);
    let is_client = matches!(backend.backend_type.as_deref(), None | Some("client backend" | "walsender"));
    if room >= ROOM_FOR_USERS || !is_client {
        return Cell::plain(who);
    }
    let names = [&backend.application, &backend.user, &backend.client];
    let name = names.into_iter().filter_map(|name| name.as_deref()).find(|name| !name.is_empty());
    name.map_or_else(Cell::default, |name| Cell::plain(text::one_line_prefix(name, 100)))
}

fn wait_classes(context: &Context<'_>) -> Line {
    const CLASSES: [&str; 6] = ["CPU", "Lock", "LWLock", "IO", "IPC", "Client"];
    let mut counts = [0u32; CLASSES.len()];
    let (mut other, mut others) = (0u32, BTreeSet::new());
    for backend in context.snapshot.backends.last_rows().iter().filter(|backend| is_running(backend)) {
        let class = backend.wait_event_type.as_deref().unwrap_or("CPU");
        if let Some(count) =
            CLASSES.iter().position(|known| *known == class).and_then(|at| counts.get_mut(at))
        {
            *count += 1;
        } else {
            other += 1;
            others.insert(class);
        }
    }
    let total: u32 = counts.iter().sum::<u32>() + other;
    let mut line = Line::new().with(format!("  active {total:<5}"), Tone::Plain);
    for (class, count) in CLASSES.iter().zip(counts) {
        let tone = match (*class, count) {
            (_, 0) => Tone::Dim,
            ("Lock", _) => Tone::Warning,
            _ => Tone::Plain,
        };
        line.push(format!(" {class} {count:<5}"), tone);
    }
    // A VACUUM that waits for a buffer pin is the only session of its class, and waits for another session.
    let class = others.first().filter(|_| others.len() == 1).map_or("other", |class| *class);
    if other > 0 {
        line.push(format!(" {} {other}", text::one_line_prefix(class, 20)), Tone::Plain);
    }
    line
}

pub(super) fn root_state(context: &Context<'_>, party: Party, room: usize) -> Cell {
    if let Some(words) = context.view.normal_wait_words(party) {
        return Cell::plain(words);
    }
    match party {
        Party::Prepared(xact) => match context.prepared(xact) {
            Some(row) => {
                let age = context.age(row.prepared).map(text::age).unwrap_or_default();
                Cell::toned(format!("prepared {age} '{}'", text::one_line(&row.gid)), Tone::Critical)
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
        return Cell::toned(text::one_line(kind), Tone::Plain);
    };
    let since = context.age(backend.state_change).map(text::age).unwrap_or_default();
    let words = if room >= state.as_str().len() + 16 { state.as_str() } else { short_state(state) };
    let own = match (backend.wait_event_type.as_deref(), backend.wait_event.as_deref()) {
        // "Client/ClientRead" applies to every idle session.
        (Some("Client"), Some("ClientRead")) | (None, _) => String::new(),
        (Some(kind), event) => format!(" {kind}/{}", event.unwrap_or("?")),
    };
    Cell::toned(text::one_line(&format!("{words} {since}{own}")), state_tone(state))
}

pub(super) fn state_value<'a>(context: &Context<'a>, party: Party) -> SortValue<'a> {
    let said = Cow::Owned(root_state(context, party, usize::MAX).text);
    let backend = match party {
        Party::Backend(pid) => context.backend(pid),
        Party::Prepared(_) => None,
    };
    match backend.and_then(|backend| backend.state) {
        Some(state) => SortValue::State(Cow::Borrowed(state.as_str()), said),
        None => SortValue::Text(said),
    }
}

pub fn party_id(context: &Context<'_>, party: Party) -> RowId {
    match party {
        Party::Prepared(xact) => RowId::Prepared(xact),
        Party::Backend(pid) => RowId::Backend(context.view.backend_id(pid)),
    }
}
