//! The blocking forest as rows.
//!
//! ```text
//!   PID         BLOCKS   NOW  WAIT  STATE / WAITS FOR         WHO       QUERY
//!   4312            17     1     -  idle in xact 3m12s        app@web   SELECT * FROM …
//!   └ 4410          16     - 2m51s  AccessExclusive accounts  deploy@ci ALTER TABLE ac…
//!     └ queue 16     -     - 2m48s  AccessShare accounts      app@web   SELECT balance…
//! ```

use super::backends::{self, several_databases, xact};
use super::cell::fit_names;
use super::column::{Columns, Rows};
use super::definition::{Basis, Definition};
use super::facts::{Fact, count};
use super::forest;
use super::party::{party_id, root_state, state_value};
use super::row::{Row, RowId};
use super::words::{BLOCKS, DB, PID, QUERY, WHO, XACT};
use super::{Cell, Value};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::lock::{LockTag, LockType, VirtualTransaction};
use crate::model::promise::Promise;
use crate::model::wait_graph::{Party, TreeNode, Waiter};

pub use super::forest::{ChainRow, with_ancestors};

/// Lines of the forest, of the wait graph's tree.
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
    fn tag(self, context: &Context<'_>) -> Option<LockTag> {
        let (queue, _) = self.node.waits?;
        Some(context.view.graph.queues.get(queue)?.tag)
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

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<Place<'a>> {
        let Row::Chain(row) = row else { return None };
        let node = context.view.graph.tree.nodes.get(row.at as usize)?;
        let waiter =
            node.waits.and_then(|(queue, waiter)| context.view.graph.queues.get(queue)?.waiters.get(waiter));
        Some(Place { row, node, waiter })
    }

    fn id(context: &Context<'_>, place: Place<'_>) -> Option<RowId> {
        if !place.is_group() {
            return Some(party_id(context, place.party()));
        }
        let parent = context.view.graph.tree.nodes.get(place.node.parent?)?;
        Some(RowId::Group(parent.party, place.tag(context)?, place.waiter?.mode))
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
            |place, context, _| blocks(context, place),
            |place, context| {
                let blocked = if place.is_group() { 0 } else { context.blocked_of_all(place.party()) };
                Value::whole((blocked > 0).then_some(blocked.into()))
            },
        )
        .right(),
        Column::sorted(
            ("NOW", "now", "sessions that continue at once if this one ends"),
            (5, 5),
            |place, context, _| number(context, place, |promise| promise.now),
            |place, context| sorted(context, place, |promise| promise.now),
        )
        .right()
        .rank(6),
        Column::sorted(
            ("TURN", "turn", "sessions that continue after those, one after another"),
            (5, 5),
            |place, context, _| number(context, place, |promise| promise.in_turn),
            |place, context| sorted(context, place, |promise| promise.in_turn),
        )
        .right()
        .rank(7),
        Column::sorted(
            ("STILL", "still", "sessions that stay blocked by others, or may"),
            (5, 5),
            |place, context, _| number(context, place, |promise| promise.still + promise.unsure),
            |place, context| sorted(context, place, |promise| promise.still + promise.unsure),
        )
        .right()
        .rank(9),
        Column::sorted(
            ("WAIT", "wait", "how long it has waited"),
            (6, 6),
            |place, context, _| Cell::age(wait(context, place), Tone::Warning),
            |place, context| urgency(context, place),
        )
        .right(),
        Column::sorted(
            (
                "STATE / WAITS FOR",
                "state",
                "of a root what it does; of a waiter the lock mode and what it waits for",
            ),
            (24, 44),
            |place, context, room| state(context, place, room),
            |place, context| state_or_wait(context, place),
        ),
        Column::text(DB, (6, 12), |place, context| database(context, place))
            .rank(4)
            .only_where(several_databases),
        Column::cell(WHO, (10, 22), |place, context, room| who(context, place, room)),
        Column::sorted(
            XACT,
            (8, 8),
            |place, context, _| {
                context.backend(place.party().pid()).map_or_else(Cell::none, |backend| xact(context, backend))
            },
            |place, context| {
                Value::number(
                    context.age(context.backend(place.party().pid()).and_then(|backend| backend.xact_start)),
                )
            },
        )
        .right()
        .rank(2),
        Column::cell(QUERY, (8, 0), |place, context, _| query(context, place)),
    ],
    others: &[],
};

pub(super) static PANE: Definition = Definition {
    basis: Basis::Forest,
    empty: "no session waits for a lock",
    facts: |context, _| facts(context),
    name,
    detail: |context, id, width| match id {
        RowId::Prepared(xact) => super::backends::prepared(context, xact),
        RowId::Group(_, tag, _) => super::locks::detail_lines(context, &tag, width),
        _ => None,
    },
    ..Definition::new(("Chains", "a session"), &COLUMNS, |context, wanted| {
        forest::lines(context, wanted.folded).into_iter().map(Row::Chain).collect()
    })
};

/// `1 deadlock · 2 roots · 19 blocked`
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let graph = &context.view.graph;
    let mut facts = Vec::new();
    if !graph.cycles.is_empty() {
        facts.push((count(graph.cycles.len(), "deadlock", "deadlocks"), Tone::Critical));
    }
    facts.push((count(graph.roots.len(), "root", "roots"), Tone::Plain));
    facts.push((format!("{} blocked", graph.waiting), Tone::Plain));
    facts
}

fn name(context: &Context<'_>, id: RowId) -> String {
    match id {
        RowId::Prepared(xact) => match context.prepared(xact) {
            Some(row) => format!("Prepared transaction '{}'", crate::text::one_line(&row.gid)),
            None => format!("Prepared transaction {xact}"),
        },
        RowId::Group(_, tag, _) => format!("Queue for {}", context.lock_label(&tag, None)),
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
        _ if (depth - 1) * step + 2 <= room => {
            let goes_on =
                |depth: u16| row.rails.checked_shr(depth.into()).is_some_and(|rails| rails & 1 == 1);
            let rails = (1..row.depth).map(|depth| if goes_on(depth) { "│ " } else { "  " });
            let rails: String = rails.flat_map(|rail| rail.chars().take(step)).collect();
            format!("{rails}{corner} ")
        }
        _ if room >= 4 => format!("·{}{corner}", depth.min(99)),
        _ => corner.to_owned(),
    }
}

fn state(context: &Context<'_>, place: Place<'_>, room: u16) -> Cell {
    let Some(waiter) = place.waiter else { return root_state(context, place.node.party, usize::from(room)) };
    let tag = place.tag(context);
    let what = tag.map_or_else(|| "?".to_owned(), |tag| context.wait_label(&tag, waiter.pid));
    let on = if room >= 32 { " on " } else { " " };
    let more = match place.node.unseen_blockers() {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    // Waiting for a transaction to end has one mode only.
    let xid = tag.is_some_and(|tag| tag.locktype() == LockType::TransactionId);
    let wants = if xid { what } else { format!("{}{on}{what}", waiter.mode.short()) };
    let (cycle, tone) = match place.node.cycle {
        Some(_) if place.node.parent.is_none() => ("DEADLOCK ", Tone::Critical),
        Some(_) => ("", Tone::Critical),
        None => ("", Tone::Warning),
    };
    Cell::toned(fit_names(format!("{cycle}{wants}{more}"), room), tone)
}

fn wait(context: &Context<'_>, place: Place<'_>) -> Option<f64> {
    context.wait_age(place.waiter?.wait_start)
}

/// A root is as urgent as the longest wait behind it.
fn urgency(context: &Context<'_>, place: Place<'_>) -> Value<'static> {
    Value::number(match context.root(place.party()) {
        Some(root) => context.wait_age(root.longest_wait),
        None => wait(context, place),
    })
}

fn state_or_wait<'a>(context: &Context<'a>, place: Place<'a>) -> Value<'a> {
    match place.waiter {
        None => state_value(context, place.party()),
        Some(_) => state(context, place, u16::MAX).into_value(),
    }
}

fn blocks(context: &Context<'_>, place: Place<'_>) -> Cell {
    let tone = if place.is_top() { Tone::Critical } else { Tone::Warning };
    match if place.is_group() { 0 } else { context.blocked(place.party()) } {
        0 => Cell::none(),
        blocked => Cell::toned(blocked.to_string(), tone),
    }
}

fn number(context: &Context<'_>, place: Place<'_>, of: fn(Promise) -> u32) -> Cell {
    let promise = if place.is_group() { None } else { context.promise(place.party()) };
    promise
        .filter(|promise| !promise.is_hidden)
        .map_or_else(Cell::none, |promise| Cell::plain(of(promise).to_string()))
}

fn sorted(context: &Context<'_>, place: Place<'_>, of: fn(Promise) -> u32) -> Value<'static> {
    let promise = if place.is_group() { None } else { context.promise_of_all(place.party()) };
    Value::whole(promise.map(|promise| of(promise).into()))
}

fn who(context: &Context<'_>, place: Place<'_>, room: u16) -> Cell {
    match place.party() {
        _ if place.is_group() => Cell::plain(whose(context, place, room)),
        Party::Prepared(xact) => Cell::server(context.prepared(xact).and_then(|row| row.owner.as_deref())),
        Party::Backend(pid) => {
            context.backend(pid).map_or_else(Cell::none, |backend| backends::who(context, backend, room))
        }
    }
}

/// Who waits in a group: the one name all share, or how many there are.
fn whose(context: &Context<'_>, place: Place<'_>, room: u16) -> String {
    let mut names: Vec<String> = Vec::new();
    // Looking at some is enough to know whether they are alike.
    for party in forest::members(context, place.node).take(64) {
        let name = context.backend(party.pid()).map(|backend| backends::who(context, backend, room).text);
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

fn database<'a>(context: &Context<'a>, place: Place<'a>) -> Option<&'a str> {
    match place.party() {
        Party::Prepared(xact) => context.prepared(xact)?.database.as_deref(),
        Party::Backend(pid) => context.backend(pid)?.database.as_deref(),
    }
}

fn query(context: &Context<'_>, place: Place<'_>) -> Cell {
    match place.party() {
        Party::Prepared(xact) => rollback(context, xact),
        Party::Backend(pid) => {
            Cell::statement(context.backend(pid).and_then(|backend| backend.query.as_ref()))
        }
    }
}

/// The statement that ends a prepared transaction: no process can be ended for it.
fn rollback(context: &Context<'_>, xact: VirtualTransaction) -> Cell {
    context.prepared(xact).map_or_else(Cell::none, |row| {
        Cell::toned(format!("ROLLBACK PREPARED {}", crate::text::literal(&row.gid)), Tone::Key)
    })
}
