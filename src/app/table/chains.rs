//! The blocking forest as rows.
//!
//! ```text
//!   PID         BLOCKS FREES  WAIT  STATE / WAITS FOR         WHO       QUERY
//!   4312            17     1     -  idle in xact 3m12s        app@web   SELECT * FROM …
//!   └ 4410          16     - 2m51s  AccessExclusive accounts  deploy@ci ALTER TABLE ac…
//!     └ queue 16     -     - 2m48s  AccessShare accounts      app@web   SELECT balance…
//! ```

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::backends::{short_state, state_tone, xact};
use super::{Cell, Column, RowId, Value, age, fit_names, server_text};
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::backend::{Backend, BackendId};
use crate::model::lock::{LockMode, LockType};
use crate::model::wait_graph::{Party, TreeNode, Waiter};

/// This many alike waiters that block nobody are shown as one line.
const FOLD_FROM: usize = 4;

pub(super) const COLUMNS: &[Column] = &[
    Column { title: "PID", name: "pid", min: 12, max: 18, right: false, rank: 0 },
    Column { title: "BLOCKS", name: "blocks", min: 6, max: 6, right: true, rank: 0 },
    Column { title: "FREES", name: "frees", min: 5, max: 5, right: true, rank: 0 },
    Column { title: "WAIT", name: "wait", min: 6, max: 6, right: true, rank: 0 },
    Column { title: "STATE / WAITS FOR", name: "state", min: 24, max: 44, right: false, rank: 0 },
    Column { title: "DB", name: "db", min: 6, max: 12, right: false, rank: 4 },
    Column { title: "WHO", name: "who", min: 10, max: 22, right: false, rank: 0 },
    Column { title: "XACT", name: "xact", min: 8, max: 8, right: true, rank: 2 },
    Column { title: "QUERY", name: "query", min: 8, max: 0, right: false, rank: 0 },
];

/// One line of the forest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChainRow {
    /// Index in the tree's nodes, or in the groups when `folded`.
    pub at: u32,
    /// Whether it stands for a group.
    pub folded: bool,
    /// How far in.
    pub depth: u16,
    /// The last one under its parent.
    pub last: bool,
    /// How far in the deepest line of the forest is: all are indented alike.
    pub deepest: u16,
    /// A filter does not let it through; it is there for what is under it, which it does.
    pub is_context: bool,
}

/// Waiters that are alike and block nobody, shown as one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Indices in the tree's nodes, longest wait first.
    pub members: Vec<usize>,
    /// Index in the graph's queues.
    pub queue: usize,
    /// The mode all of them ask for.
    pub mode: LockMode,
    /// Whom they are shown under.
    pub parent: Party,
}

/// The lines of the forest, and the groups among them. `fold` puts waiters that are alike into one line; a filter wants
/// each by itself.
#[must_use]
pub fn chain_rows(scene: &Scene<'_>, fold: bool) -> (Vec<ChainRow>, Vec<Group>) {
    let tree = &scene.view.graph.tree;
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    // Depth first without recursion: a chain may be thousands deep.
    let mut stack: Vec<ChainRow> = Vec::new();
    for top in &tree.tops {
        stack.push(line(*top, 0, true));
        while let Some(row) = stack.pop() {
            rows.push(row);
            if !row.folded
                && let Some(node) = tree.nodes.get(row.at as usize)
            {
                let mut below = if fold {
                    children(scene, node, row.depth + 1, &mut groups)
                } else {
                    node.children.iter().map(|child| line(*child, row.depth + 1, false)).collect()
                };
                if let Some(last) = below.last_mut() {
                    last.last = true;
                }
                stack.extend(below.into_iter().rev());
            }
        }
    }
    let deepest = rows.iter().map(|row| row.depth).max().unwrap_or(0);
    for row in &mut rows {
        row.deepest = deepest;
    }
    (rows, groups)
}

/// The lines that pass, each under those that it waits behind: whoever looks for a waiter wants to see who blocks it.
#[must_use]
pub fn with_ancestors(rows: &[ChainRow], passes: impl Fn(ChainRow) -> bool) -> Vec<ChainRow> {
    let mut kept: Vec<ChainRow> = Vec::new();
    // From the end: what is under a line comes first. How far in the parent is that is still wanted, and at which
    // depths a line below the same parent has been kept.
    let mut wanted: Option<u16> = None;
    let mut later: Vec<bool> = Vec::new();
    for row in rows.iter().rev() {
        let is_hit = passes(*row);
        if !is_hit && wanted != Some(row.depth) {
            continue;
        }
        wanted = row.depth.checked_sub(1);
        let depth = usize::from(row.depth);
        let last = !later.get(depth).copied().unwrap_or(false);
        later.resize(depth + 1, false);
        if let Some(later) = later.last_mut() {
            *later = true;
        }
        kept.push(ChainRow { last, is_context: !is_hit, ..*row });
    }
    kept.reverse();
    let deepest = kept.iter().map(|row| row.depth).max().unwrap_or(0);
    for row in &mut kept {
        row.deepest = deepest;
    }
    kept
}

fn line(at: usize, depth: u16, last: bool) -> ChainRow {
    ChainRow {
        at: u32::try_from(at).unwrap_or(u32::MAX),
        folded: false,
        depth,
        last,
        deepest: 0,
        is_context: false,
    }
}

fn children(scene: &Scene<'_>, node: &TreeNode, depth: u16, groups: &mut Vec<Group>) -> Vec<ChainRow> {
    let tree = &scene.view.graph.tree;
    let mut alike: FxHashMap<(usize, LockMode), Vec<usize>> = FxHashMap::default();
    for child in &node.children {
        if let Some(key) = tree.nodes.get(*child).and_then(|node| fold_key(scene, node)) {
            alike.entry(key).or_default().push(*child);
        }
    }
    let mut rows = Vec::new();
    for child in &node.children {
        let key = tree.nodes.get(*child).and_then(|node| fold_key(scene, node));
        let members = key.and_then(|key| Some((key, alike.get_mut(&key)?)));
        match members {
            // Its line stands where the first of it would.
            Some(((queue, mode), members)) if members.len() >= FOLD_FROM => {
                if members.first() == Some(child) {
                    let at = u32::try_from(groups.len()).unwrap_or(u32::MAX);
                    groups.push(Group { members: members.clone(), queue, mode, parent: node.party });
                    let line = ChainRow { folded: true, ..line(0, depth, false) };
                    rows.push(ChainRow { at, ..line });
                }
            }
            _ => rows.push(line(*child, depth, false)),
        }
    }
    rows
}

/// What makes waiters alike; none for one that blocks others.
fn fold_key(scene: &Scene<'_>, node: &TreeNode) -> Option<(usize, LockMode)> {
    if !node.children.is_empty() || node.cycle.is_some() {
        return None;
    }
    let (queue, waiter) = node.waits?;
    Some((queue, scene.view.graph.queues.get(queue)?.waiters.get(waiter)?.mode))
}

/// A line, resolved.
struct Place<'a> {
    node: &'a TreeNode,
    group: Option<Group>,
    waiter: Option<&'a Waiter>,
}

fn place<'a>(scene: &Scene<'a>, groups: &[Group], row: ChainRow) -> Option<Place<'a>> {
    let group = if row.folded { Some(groups.get(row.at as usize)?.clone_head()) } else { None };
    let at = match &group {
        Some(group) => *group.members.first()?,
        None => row.at as usize,
    };
    let node = scene.view.graph.tree.nodes.get(at)?;
    let waiter =
        node.waits.and_then(|(queue, waiter)| scene.view.graph.queues.get(queue)?.waiters.get(waiter));
    Some(Place { node, group, waiter })
}

impl Group {
    /// The group with its first member alone: all that a line needs, without copying thousands.
    fn clone_head(&self) -> Self {
        let members = self.members.first().copied().into_iter().collect();
        Self { members, queue: self.queue, mode: self.mode, parent: self.parent }
    }
}

fn label(scene: &Scene<'_>, groups: &[Group], row: ChainRow, party: Party) -> String {
    if row.folded {
        let count = groups.get(row.at as usize).map_or(0, |group| group.members.len());
        return format!("queue {count}");
    }
    match party {
        Party::Backend(pid) => pid.to_string(),
        Party::Prepared(_) if scene.view.snapshot.is_some() => "prepared".to_owned(),
        Party::Prepared(xact) => xact.to_string(),
    }
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
pub(in crate::app) fn root_state(scene: &Scene<'_>, party: Party, room: usize) -> Cell {
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

fn state(scene: &Scene<'_>, place: &Place<'_>, room: u16) -> Cell {
    let Some(waiter) = place.waiter else { return root_state(scene, place.node.party, usize::from(room)) };
    let tag =
        scene.view.graph.queues.get(place.node.waits.map_or(usize::MAX, |(queue, _)| queue)).map(|q| q.tag);
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

fn wait(scene: &Scene<'_>, place: &Place<'_>) -> Option<f64> {
    scene.wait_age(place.waiter?.wait_start)
}

pub(super) fn cell(scene: &Scene<'_>, groups: &[Group], row: ChainRow, column: &str, room: u16) -> Cell {
    let Some(place) = place(scene, groups, row) else { return Cell::none() };
    let party = place.node.party;
    let backend = scene.backend(party.pid());
    match column {
        "pid" => {
            let tone = if row.depth == 0 { Tone::Title } else { Tone::Plain };
            let label = label(scene, groups, row, party);
            let spare = usize::from(room).saturating_sub(label.len());
            Cell::toned(format!("{}{label}", guide(row, spare)), tone)
        }
        "blocks" => match blocked(scene, &place) {
            Some(count) => {
                Cell::toned(count.to_string(), if row.depth == 0 { Tone::Critical } else { Tone::Warning })
            }
            None => Cell::none(),
        },
        "frees" => match scene.root(party).filter(|_| row.depth == 0) {
            Some(top) => Cell::plain(top.frees.to_string()),
            None => Cell::none(),
        },
        "wait" => age(wait(scene, &place), Tone::Warning),
        "state" => state(scene, &place, room),
        "who" if row.folded => Cell::plain(whose(scene, groups, row, room)),
        "who" => match (party, backend) {
            (Party::Prepared(xact), _) => {
                server_text(scene.prepared(xact).and_then(|row| row.owner.as_deref()))
            }
            (_, Some(backend)) => super::backends::who(scene, backend, room),
            _ => Cell::none(),
        },
        "db" => match party {
            Party::Prepared(xact) => {
                server_text(scene.prepared(xact).and_then(|row| row.database.as_deref()))
            }
            Party::Backend(_) => server_text(backend.and_then(|backend| backend.database.as_deref())),
        },
        "xact" => backend.map_or_else(Cell::none, |backend| xact(scene, backend)),
        "query" => match (party, backend) {
            (Party::Prepared(xact), _) => rollback(scene, xact),
            (_, backend) => server_text(backend.and_then(|backend| backend.query.as_deref())),
        },
        _ => Cell::none(),
    }
}

/// The statement that ends a prepared transaction: no process can be ended for it.
fn rollback(scene: &Scene<'_>, xact: crate::model::lock::VirtualTransaction) -> Cell {
    scene.prepared(xact).map_or_else(Cell::none, |row| {
        Cell::toned(format!("ROLLBACK PREPARED {}", crate::text::literal(&row.gid)), Tone::Key)
    })
}

/// Who waits in a group: the one name all share, or how many there are.
fn whose(scene: &Scene<'_>, groups: &[Group], row: ChainRow, room: u16) -> String {
    let Some(group) = groups.get(row.at as usize) else { return String::new() };
    let mut names: Vec<String> = Vec::new();
    // Looking at some is enough to know whether they are alike.
    for member in group.members.iter().take(64) {
        let party = scene.view.graph.tree.nodes.get(*member).map(|node| node.party);
        let backend = party.and_then(|party| scene.backend(party.pid()));
        let name = backend.map(|backend| super::backends::who(scene, backend, room).text);
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

fn blocked(scene: &Scene<'_>, place: &Place<'_>) -> Option<u32> {
    if place.group.is_some() {
        return None;
    }
    let count = scene.root(place.node.party).map_or(place.node.below, |root| root.blocked);
    Some(count).filter(|count| *count > 0)
}

pub(super) fn value<'a>(scene: &Scene<'a>, groups: &[Group], row: ChainRow, column: &str) -> Value<'a> {
    let Some(place) = place(scene, groups, row) else { return Value::Missing };
    let party = place.node.party;
    match column {
        "pid" => Value::Number(f64::from(party.pid())),
        "blocks" => Value::number(blocked(scene, &place).map(f64::from)),
        "frees" => Value::number(scene.root(party).map(|root| f64::from(root.frees))),
        // A root is as urgent as the longest wait behind it.
        "wait" => match scene.root(party) {
            Some(root) => Value::number(scene.wait_age(root.longest_wait)),
            None => Value::number(wait(scene, &place)),
        },
        "state" if place.waiter.is_none() => state_value(scene, party),
        "xact" => Value::number(scene.age(scene.backend(party.pid()).and_then(|backend| backend.xact_start))),
        _ => Value::Text(Cow::Owned(cell(scene, groups, row, column, u16::MAX).text)),
    }
}

pub(super) fn id(scene: &Scene<'_>, groups: &[Group], row: ChainRow) -> Option<RowId> {
    if row.folded {
        let group = groups.get(row.at as usize)?;
        let tag = scene.view.graph.queues.get(group.queue)?.tag;
        return Some(RowId::Group(group.parent, tag, group.mode));
    }
    Some(party_id(scene, scene.view.graph.tree.nodes.get(row.at as usize)?.party))
}

/// The identity of a party.
pub(in crate::app) fn party_id(scene: &Scene<'_>, party: Party) -> RowId {
    match party {
        Party::Prepared(xact) => RowId::Prepared(xact),
        Party::Backend(pid) => RowId::Backend(backend_id(scene, pid)),
    }
}

/// The identity of the process with this id, as far as its row is there.
pub(super) fn backend_id(scene: &Scene<'_>, pid: i32) -> BackendId {
    scene.backend(pid).map_or(BackendId { pid, backend_start: None }, Backend::id)
}
