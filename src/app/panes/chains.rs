//! The blocking forest as rows; if no session waits, the longest transactions.
//!
//! ```text
//!   PID         BLOCKS   NOW  TURN   WAIT STATE / WAITS FOR        WHO          QUERY
//!   4312            17     1    16        idle in transaction 3m12s app@web     SELECT * FROM …
//!   └4410           16                2m51s accounts AccessExclusive deploy@ci  ALTER TABLE ac…
//!    └queue        ×16                2m48s accounts AccessShare   app@web      SELECT balance…
//! ```

use super::backends::{party_id, several_databases, xact};
use super::column::{BLOCKS, DB, PID, QUERY, Rows, WHO, XACT};
use super::definition::{Basis, Fact, PaneDefinition, count};
use super::{Cell, Row, RowId, SortValue, forest};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::backend::Backend;
use crate::model::lock::LockTag;
use crate::model::wait_graph::{Party, TreeNode, Waiter};
use crate::text;

mod cells;

pub use super::forest::{ChainRow, with_ancestors};

struct Chains;

/// A line with its node in the graph; `None` for a session without a node.
#[derive(Clone, Copy)]
struct ChainPlace<'a> {
    row: ChainRow,
    party: Party,
    node: Option<&'a TreeNode>,
    waiter: Option<&'a Waiter>,
}

impl ChainPlace<'_> {
    fn backend<'a>(self, context: &Context<'a>) -> Option<&'a Backend> {
        context.backend(self.party.pid())
    }

    fn tag(self, context: &Context<'_>) -> Option<LockTag> {
        Some(context.waiter_at(self.node?)?.0.tag)
    }

    fn is_top(self) -> bool {
        self.row.depth == 0
    }

    fn is_group(self) -> bool {
        self.row.folded > 0
    }
}

impl Rows for Chains {
    type Row<'a> = ChainPlace<'a>;

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<ChainPlace<'a>> {
        let row = match row {
            Row::Chain(row) => row,
            Row::At(at) => {
                let backend = context.snapshot.backends.last_rows().get(at as usize)?;
                let party = Party::Backend(backend.pid);
                return Some(ChainPlace { row: forest::line(0, 0, true), party, node: None, waiter: None });
            }
            _ => return None,
        };
        let node = context.view.graph.tree.nodes.get(row.at as usize)?;
        let waiter = context.waiter_at(node).map(|(_, waiter)| waiter);
        Some(ChainPlace { row, party: node.party, node: Some(node), waiter })
    }

    fn id(context: &Context<'_>, place: ChainPlace<'_>) -> Option<RowId> {
        if place.row.is_run {
            return Some(RowId::Run(place.party));
        }
        if !place.is_group() {
            return Some(party_id(context, place.party));
        }
        let parent = context.view.graph.tree.nodes.get(place.node?.parent?)?;
        Some(RowId::Group(parent.party, place.tag(context)?, place.waiter?.mode))
    }
}

type Column = super::Column<Chains>;

static COLUMNS: &[Column] = &[
    Column::sorted(
        PID,
        (9, 18),
        |place, _, room| cells::pid(place, room),
        |place, _| SortValue::whole(Some(place.party.pid().into())),
    ),
    Column::sorted(
        BLOCKS,
        (6, 6),
        |place, context, _| cells::blocks(context, place),
        |place, context| {
            let blocked = if place.is_group() { 0 } else { context.blocked_of_all(place.party) };
            SortValue::whole((blocked > 0).then_some(blocked.into()))
        },
    )
    .right(),
    Column::sorted(
        ("NOW", "now", "sessions that continue at once if this one ends"),
        (5, 5),
        |place, context, _| cells::number(context, place, |promise| promise.now, cells::now_tone),
        |place, context| cells::sorted(context, place, |promise| promise.now),
    )
    .right()
    .rank(6),
    Column::sorted(
        (
            "TURN",
            "turn",
            "sessions that continue after those, one after another; if NOW is 0, at least one of them at once",
        ),
        (5, 5),
        |place, context, _| cells::number(context, place, |promise| promise.in_turn, |_| Tone::Plain),
        |place, context| cells::sorted(context, place, |promise| promise.in_turn),
    )
    .right()
    .rank(7),
    Column::sorted(
        ("STILL", "still", "sessions that stay, or may stay, blocked by others"),
        (5, 5),
        |place, context, _| cells::number(context, place, |promise| promise.still + promise.unsure, cells::still_tone),
        |place, context| cells::sorted(context, place, |promise| promise.still + promise.unsure),
    )
    .right()
    .rank(9),
    Column::sorted(
        ("WAIT", "wait", "how long it has waited"),
        (6, 6),
        |place, context, _| {
            cells::wait(context, place).map_or_else(Cell::default, |age| Cell::plain(text::age(age)))
        },
        |place, context| cells::urgency(context, place),
    )
    .right()
    .rank(2),
    Column::sorted(
        (
            "STATE / WAITS FOR",
            "state",
            "for a root its state; for a waiter the lock and mode that it waits for",
        ),
        (21, 44),
        |place, context, room| cells::state(context, place, room),
        |place, context| cells::state_or_wait(context, place),
    ),
    Column::text(DB, (6, 12), |place, context| cells::database(context, place))
        .rank(10)
        .only_where(several_databases),
    Column::cell(WHO, (10, 22), |place, context, room| cells::who(context, place, room)).rank(3),
    Column::text(("CLIENT", "client", "address of the client"), (9, 15), |place, context| {
        place.backend(context)?.client.as_deref()
    })
    .rank(11),
    Column::sorted(
        XACT,
        (8, 8),
        |place, context, _| {
            let backend = place.backend(context).filter(|backend| backend.xact_start.is_some());
            backend.map_or_else(Cell::default, |backend| xact(context, backend))
        },
        |place, context| {
            SortValue::number(context.age(place.backend(context).and_then(|backend| backend.xact_start)))
        },
    )
    .right()
    .rank(8),
    Column::cell(QUERY, (8, 0), |place, context, room| cells::query(context, place, room)).rank(4),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    basis: Basis::Forest,
    widths: &[
        ("pid", [9, 10, 11, 12, 12]),
        ("blocks", [6; 5]),
        ("now", [0, 5, 5, 5, 5]),
        ("turn", [0, 0, 5, 5, 5]),
        ("still", [0, 0, 0, 5, 5]),
        ("wait", [6; 5]),
        ("state", [21, 26, 30, 34, 38]),
        ("db", [0, 0, 0, 0, 10]),
        ("who", [14, 16, 19, 22, 24]),
        ("client", [0, 0, 0, 0, 15]),
        ("xact", [0, 0, 8, 8, 8]),
        ("query", [0; 5]),
    ],
    empty: "no session waits for a lock",
    facts: |context, _| facts(context),
    name,
    detail: |context, id, width| match id {
        RowId::Prepared(xact) => super::backends::prepared(context, xact),
        RowId::Group(_, tag, _) => super::locks::lines(context, &tag, width),
        _ => None,
    },
    ..PaneDefinition::new(("Chains", "a session"), &COLUMNS, |context, wanted| {
        let lines = forest::lines(context, wanted.folded, wanted.runs);
        if lines.is_empty() { transactions(context) } else { lines.into_iter().map(Row::Chain).collect() }
    })
};

pub fn is_in_run(context: &Context<'_>, row: Row, id: RowId) -> bool {
    let Row::Chain(line) = row else { return false };
    let mut nodes = forest::run(&context.view.graph.tree, line.at as usize);
    line.is_run && nodes.any(|node| party_id(context, node.party) == id)
}

const TRANSACTIONS: usize = 50;

/// The longest transactions, by their position in `pg_stat_activity`, without those of locktop.
fn transactions(context: &Context<'_>) -> Vec<Row> {
    if !context.snapshot.locks.is_known() {
        return Vec::new();
    }
    let backends = (0u32..).zip(context.snapshot.backends.last_rows().iter());
    let is_own = |backend: &Backend| backend.application.as_deref() == Some("locktop");
    let mut open: Vec<_> = backends
        .filter(|(_, backend)| !is_own(backend))
        .filter_map(|(at, backend)| Some((backend.xact_start?, backend.pid, at)))
        .collect();
    open.sort_unstable();
    open.into_iter().take(TRANSACTIONS).map(|(_, _, at)| Row::At(at)).collect()
}

/// `1 deadlock · 2 roots · 19 blocked`, or that these are the longest transactions.
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let graph = &context.view.graph;
    if graph.tree.tops.is_empty() && context.snapshot.locks.is_known() {
        return ["no session waits for a lock", "longest transactions"]
            .map(|words| (words.to_owned(), Tone::Dim))
            .into();
    }
    let mut facts = Vec::new();
    if !graph.cycles.is_empty() {
        facts.push((count(graph.cycles.len(), "deadlock", "deadlocks"), Tone::Critical));
    }
    facts.push((count(context.view.blocking_roots().count(), "root", "roots"), Tone::Plain));
    facts.push((format!("{} blocked", text::count(graph.waiting.into())), Tone::Plain));
    facts
}

fn name(context: &Context<'_>, id: RowId) -> String {
    match id {
        RowId::Prepared(xact) => match context.prepared(xact) {
            Some(row) => format!("Prepared transaction '{}'", text::one_line(&row.gid)),
            None => format!("Prepared transaction {xact}"),
        },
        RowId::Group(_, tag, _) => format!("Queue for {}", context.lock_label(&tag, None)),
        RowId::Run(first) => format!("Chain from {} on", first.pid()),
        _ => String::new(),
    }
}
