//! The blocking forest as rows.
//!
//! ```text
//!   PID         BLOCKS FREES  WAIT  STATE / WAITS FOR         WHO       QUERY
//!   4312            17     1     -  idle in xact 3m12s        app@web   SELECT * FROM …
//!   └ 4410          16     - 2m51s  AccessExclusive accounts  deploy@ci ALTER TABLE ac…
//!     └ queue 16     -     - 2m48s  AccessShare accounts      app@web   SELECT balance…
//! ```

use std::borrow::Cow;

use super::backends::{self, several_databases, short_state, state_tone, xact};
use super::cell::fit_names;
use super::column::{Columns, Rows};
use super::definition::{Basis, Definition};
use super::facts::{Fact, count};
use super::forest;
use super::row::{Row, RowId};
use super::words::{BLOCKS, DB, PID, QUERY, WHO, XACT};
use super::{Cell, Value};
use crate::app::detail;
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::backend::{Backend, BackendId};
use crate::model::lock::{LockTag, LockType, VirtualTransaction};
use crate::model::wait_graph::{Party, TreeNode, Waiter};

pub use super::forest::{ChainRow, with_ancestors};

/// Lines of the forest.
struct Chains;

/// A line, with its place in the graph.
#[derive(Clone, Copy)]
struct Place<'a> {
    row: ChainRow,
    node: &'a TreeNode,
    waiter: Option<&'a Waiter>,
}

impl Place<'_> {
    /// What it waits for; none for a root.
    fn tag(self, scene: &Scene<'_>) -> Option<LockTag> {
        let (queue, _) = self.node.waits?;
        Some(scene.view.graph.queues.get(queue)?.tag)
    }

    fn party(self) -> Party {
        self.node.party
    }

    fn is_top(self) -> bool {
        self.row.depth == 0
    }

    /// Whether it stands for several that are alike.
    fn is_group(self) -> bool {
        self.row.folded > 0
    }
}

impl Rows for Chains {
    type Row<'a> = Place<'a>;

    fn get<'a>(scene: &Scene<'a>, row: Row) -> Option<Place<'a>> {
        let Row::Chain(row) = row else { return None };
        let node = scene.view.graph.tree.nodes.get(row.at as usize)?;
        let waiter =
            node.waits.and_then(|(queue, waiter)| scene.view.graph.queues.get(queue)?.waiters.get(waiter));
        Some(Place { row, node, waiter })
    }

    fn id(scene: &Scene<'_>, place: Place<'_>) -> Option<RowId> {
        if !place.is_group() {
            return Some(party_id(scene, place.party()));
        }
        let parent = scene.view.graph.tree.nodes.get(place.node.parent?)?;
        Some(RowId::Group(parent.party, place.tag(scene)?, place.waiter?.mode))
    }
}

type Column = super::Column<Chains>;

static COLUMNS: Columns<Chains> = Columns {
    shown: &[
        Column::sorted(
            PID,
            (12, 18),
            |place, _, room| pid(place, room),
            |place, _| Value::whole(Some(place.party().pid().into())),
        ),
        Column::sorted(
            BLOCKS,
            (6, 6),
            |place, scene, _| blocks(scene, place),
            |place, scene| Value::number(blocked(scene, place).map(f64::from)),
        )
        .right(),
        Column::sorted(
            ("FREES", "frees", "sessions that get their lock at once if this one ends"),
            (5, 5),
            |place, scene, _| frees(scene, place),
            |place, scene| Value::number(scene.root(place.party()).map(|root| root.frees.into())),
        )
        .right(),
        Column::sorted(
            ("WAIT", "wait", "how long it has waited"),
            (6, 6),
            |place, scene, _| Cell::age(wait(scene, place), Tone::Warning),
            |place, scene| urgency(scene, place),
        )
        .right(),
        Column::sorted(
            (
                "STATE / WAITS FOR",
                "state",
                "of a root what it does; of a waiter the lock mode and what it waits for",
            ),
            (24, 44),
            |place, scene, room| state(scene, place, room),
            |place, scene| state_or_wait(scene, place),
        ),
        Column::text(DB, (6, 12), |place, scene| database(scene, place))
            .rank(4)
            .only_where(several_databases),
        Column::cell(WHO, (10, 22), |place, scene, room| who(scene, place, room)),
        Column::sorted(
            XACT,
            (8, 8),
            |place, scene, _| {
                scene.backend(place.party().pid()).map_or_else(Cell::none, |backend| xact(scene, backend))
            },
            |place, scene| {
                Value::number(
                    scene.age(scene.backend(place.party().pid()).and_then(|backend| backend.xact_start)),
                )
            },
        )
        .right()
        .rank(2),
        Column::cell(QUERY, (8, 0), |place, scene, _| query(scene, place)),
    ],
    others: &[],
};

pub(super) static PANE: Definition = Definition {
    basis: Basis::Forest,
    empty: "no session waits for a lock",
    facts: |scene, _| facts(scene),
    name,
    detail: |scene, id, width| match id {
        RowId::Prepared(xact) => detail::backend::prepared(scene, xact),
        RowId::Group(_, tag, _) => detail::lock::lines(scene, &tag, width),
        _ => None,
    },
    ..Definition::new(("Chains", "a session"), &COLUMNS, |scene, wanted| {
        forest::lines(scene, wanted.folded).into_iter().map(Row::Chain).collect()
    })
};

/// `1 deadlock · 2 roots · 19 blocked`
fn facts(scene: &Scene<'_>) -> Vec<Fact> {
    let graph = &scene.view.graph;
    let mut facts = Vec::new();
    if !graph.cycles.is_empty() {
        facts.push((count(graph.cycles.len(), "deadlock", "deadlocks"), Tone::Critical));
    }
    facts.push((count(graph.roots.len(), "root", "roots"), Tone::Plain));
    facts.push((format!("{} blocked", graph.waiting), Tone::Plain));
    facts
}

fn name(scene: &Scene<'_>, id: RowId) -> String {
    match id {
        RowId::Prepared(xact) => match scene.prepared(xact) {
            Some(row) => format!("Prepared transaction '{}'", crate::text::one_line(&row.gid)),
            None => format!("Prepared transaction {xact}"),
        },
        RowId::Group(_, tag, _) => format!("Queue for {}", scene.lock_label(&tag, None)),
        _ => String::new(),
    }
}

fn pid(place: Place<'_>, room: u16) -> Cell {
    let label = match place.party() {
        _ if place.is_group() => format!("queue {}", place.row.folded),
        Party::Backend(pid) => pid.to_string(),
        Party::Prepared(_) => "prepared".to_owned(),
    };
    let spare = usize::from(room).saturating_sub(label.len());
    let tone = if place.is_top() { Tone::Title } else { Tone::Plain };
    Cell::toned(format!("{}{label}", guide(place.row, spare)), tone)
}

/// What leads to a name from its parent. A chain that is deeper than the column is wide says how deep instead: the name
/// itself is never cut.
fn guide(row: ChainRow, room: usize) -> String {
    let corner = if row.last { "└" } else { "├" };
    let depth = usize::from(row.depth);
    let step = if usize::from(row.deepest) * 2 <= room { 2 } else { 1 };
    match depth {
        0 => String::new(),
        _ if (depth - 1) * step + 2 <= room => format!("{}{corner} ", " ".repeat((depth - 1) * step)),
        _ if room >= 4 => format!("·{}{corner}", depth.min(99)),
        _ => corner.to_owned(),
    }
}

/// What a party that waits for nobody is doing.
#[must_use]
pub fn root_state(scene: &Scene<'_>, party: Party, room: usize) -> Cell {
    match party {
        Party::Prepared(xact) => match scene.prepared(xact) {
            Some(row) => {
                let age = scene.age(row.prepared).map(crate::text::duration).unwrap_or_default();
                Cell::toned(format!("prepared {age} '{}'", crate::text::one_line(&row.gid)), Tone::Critical)
            }
            None => Cell::toned("prepared transaction", Tone::Critical),
        },
        Party::Backend(pid) => match scene.backend(pid) {
            Some(backend) => backend_state(scene, backend, room),
            None => Cell::toned("not shown to this role", Tone::Dim),
        },
    }
}

fn backend_state(scene: &Scene<'_>, backend: &Backend, room: usize) -> Cell {
    let Some(state) = backend.state else {
        let kind = backend.backend_type.as_deref().unwrap_or("hidden from this role");
        return Cell::toned(crate::text::one_line(kind), Tone::Plain);
    };
    let since = scene.age(backend.state_change).map(crate::text::duration).unwrap_or_default();
    let words = if room >= state.as_str().len() + 16 { state.as_str() } else { short_state(state) };
    let own = match (backend.wait_event_type.as_deref(), backend.wait_event.as_deref()) {
        // "Client/ClientRead" is what every idle session does.
        (Some("Client"), Some("ClientRead")) | (None, _) => String::new(),
        (Some(kind), event) => format!(" {kind}/{}", event.unwrap_or("?")),
    };
    Cell::toned(crate::text::one_line(&format!("{words} {since}{own}")), state_tone(state))
}

/// The state of a party that waits for nobody, for the filter.
pub(super) fn state_value<'a>(scene: &Scene<'a>, party: Party) -> Value<'a> {
    let said = Cow::Owned(root_state(scene, party, usize::MAX).text);
    let backend = match party {
        Party::Backend(pid) => scene.backend(pid),
        Party::Prepared(_) => None,
    };
    match backend.and_then(|backend| backend.state) {
        Some(state) => Value::State(Cow::Borrowed(state.as_str()), said),
        None => Value::Text(said),
    }
}

fn state(scene: &Scene<'_>, place: Place<'_>, room: u16) -> Cell {
    let Some(waiter) = place.waiter else { return root_state(scene, place.node.party, usize::from(room)) };
    let tag = place.tag(scene);
    let what = tag.map_or_else(|| "?".to_owned(), |tag| scene.wait_label(&tag, waiter.pid));
    let on = if room >= 32 { " on " } else { " " };
    let more = match place.node.more_blockers {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    // Waiting for a transaction to end has one mode only.
    let xid = tag.is_some_and(|tag| tag.locktype == LockType::TransactionId);
    let wants = if xid { what } else { format!("{}{on}{what}", waiter.mode.short()) };
    let (cycle, tone) = match place.node.cycle {
        Some(_) if place.node.parent.is_none() => ("DEADLOCK ", Tone::Critical),
        Some(_) => ("", Tone::Critical),
        None => ("", Tone::Warning),
    };
    Cell::toned(fit_names(format!("{cycle}{wants}{more}"), room), tone)
}

fn wait(scene: &Scene<'_>, place: Place<'_>) -> Option<f64> {
    scene.wait_age(place.waiter?.wait_start)
}

/// A root is as urgent as the longest wait behind it.
fn urgency(scene: &Scene<'_>, place: Place<'_>) -> Value<'static> {
    Value::number(match scene.root(place.party()) {
        Some(root) => scene.wait_age(root.longest_wait),
        None => wait(scene, place),
    })
}

fn state_or_wait<'a>(scene: &Scene<'a>, place: Place<'a>) -> Value<'a> {
    match place.waiter {
        None => state_value(scene, place.party()),
        Some(_) => state(scene, place, u16::MAX).into_value(),
    }
}

fn blocks(scene: &Scene<'_>, place: Place<'_>) -> Cell {
    let tone = if place.is_top() { Tone::Critical } else { Tone::Warning };
    blocked(scene, place).map_or_else(Cell::none, |count| Cell::toned(count.to_string(), tone))
}

fn blocked(scene: &Scene<'_>, place: Place<'_>) -> Option<u32> {
    if place.is_group() {
        return None;
    }
    let count = scene.root(place.party()).map_or(place.node.below, |root| root.blocked);
    Some(count).filter(|count| *count > 0)
}

fn frees(scene: &Scene<'_>, place: Place<'_>) -> Cell {
    let root = scene.root(place.party()).filter(|_| place.is_top());
    root.map_or_else(Cell::none, |root| Cell::plain(root.frees.to_string()))
}

fn who(scene: &Scene<'_>, place: Place<'_>, room: u16) -> Cell {
    match place.party() {
        _ if place.is_group() => Cell::plain(whose(scene, place, room)),
        Party::Prepared(xact) => Cell::server(scene.prepared(xact).and_then(|row| row.owner.as_deref())),
        Party::Backend(pid) => {
            scene.backend(pid).map_or_else(Cell::none, |backend| backends::who(scene, backend, room))
        }
    }
}

/// Who waits in a group: the one name all share, or how many there are.
fn whose(scene: &Scene<'_>, place: Place<'_>, room: u16) -> String {
    let mut names: Vec<String> = Vec::new();
    // Looking at some is enough to know whether they are alike.
    for party in forest::members(scene, place.node).take(64) {
        let name = scene.backend(party.pid()).map(|backend| backends::who(scene, backend, room).text);
        if let Some(name) = name
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    match names.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first, others @ ..] => format!("{first} +{}", others.len()),
    }
}

fn database<'a>(scene: &Scene<'a>, place: Place<'a>) -> Option<&'a str> {
    match place.party() {
        Party::Prepared(xact) => scene.prepared(xact)?.database.as_deref(),
        Party::Backend(pid) => scene.backend(pid)?.database.as_deref(),
    }
}

fn query(scene: &Scene<'_>, place: Place<'_>) -> Cell {
    match place.party() {
        Party::Prepared(xact) => rollback(scene, xact),
        Party::Backend(pid) => Cell::server(scene.backend(pid).and_then(|backend| backend.query.as_deref())),
    }
}

/// The statement that ends a prepared transaction: no process can be ended for it.
fn rollback(scene: &Scene<'_>, xact: VirtualTransaction) -> Cell {
    scene.prepared(xact).map_or_else(Cell::none, |row| {
        Cell::toned(format!("ROLLBACK PREPARED {}", crate::text::literal(&row.gid)), Tone::Key)
    })
}

/// The identity of a party.
pub(super) fn party_id(scene: &Scene<'_>, party: Party) -> RowId {
    match party {
        Party::Prepared(xact) => RowId::Prepared(xact),
        Party::Backend(pid) => RowId::Backend(backend_id(scene, pid)),
    }
}

/// The identity of the process with this id, as far as its row is there.
pub(super) fn backend_id(scene: &Scene<'_>, pid: i32) -> BackendId {
    scene.backend(pid).map_or(BackendId { pid, backend_start: None }, Backend::id)
}
