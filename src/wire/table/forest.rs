//! The blocking forest: who blocks whom, and what ending a root would free.

use rustc_hash::FxHashMap;

use super::{columns, more};
use crate::model::backend::Backend;
use crate::model::lock::LockMode;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::view::View;
use crate::model::wait_graph::{Party, TreeNode, WaitGraph};
use crate::text::{Align, duration, one_line, one_line_prefix};
use crate::wire::gids::Gids;
use crate::wire::words::Words;

/// Sessions that are shown under one blocker.
const CHILDREN: usize = 10;
/// This many alike waiters that block nobody are one line.
const FOLD_FROM: usize = 4;
/// Rows that are shown in all.
const ROWS: usize = 200;
/// Levels that are indented.
const DEPTH: usize = 20;
/// Columns of a query that are shown.
const QUERY: usize = 200;

const HEADS: [(&str, Align); 9] = [
    ("PID", Align::Left),
    ("BLOCKS", Align::Right),
    ("FREES", Align::Right),
    ("WAIT", Align::Right),
    ("STATE / WAITS FOR", Align::Left),
    ("DATABASE", Align::Left),
    ("WHO", Align::Left),
    ("XACT", Align::Right),
    ("QUERY", Align::Left),
];

pub(super) fn lines(
    view: &View,
    snapshot: &Snapshot,
    words: &Words<'_>,
    gids: &Gids<'_>,
    width: Option<usize>,
) -> Vec<String> {
    let graph = &*view.graph;
    if graph.waiting == 0 {
        return vec!["No session waits for a lock.".to_owned()];
    }
    let mut forest = Forest { graph, index: &view.index, snapshot, words, gids, rows: Vec::new() };
    for top in &graph.tree.tops {
        forest.walk(*top);
    }
    let there_are = forest.rows.len();
    forest.rows.truncate(ROWS);
    // What is waited for leaves room for who waits and with what; where there is little, so does the transaction's age.
    let narrow =
        |share: usize| width.map_or(columns::WIDEST, |width| (width / share).clamp(12, columns::WIDEST));
    let widest = |head: &str| match head {
        "WHO" => narrow(5),
        head if head.starts_with("STATE") => narrow(4),
        _ => columns::WIDEST,
    };
    let is_narrow = width.is_some_and(|width| width < WIDE);
    let one_database = is_one_database(snapshot, graph);
    let is_shown = |head: &str| !(head == "DATABASE" && one_database || head == "XACT" && is_narrow);
    let shown: Vec<_> = HEADS.into_iter().filter(|(head, _)| is_shown(head)).collect();
    let cells = |row: &[String; 9]| -> Vec<String> {
        let cells = HEADS.iter().zip(row).filter(|((head, _), _)| is_shown(head));
        cells.map(|(_, cell)| cell.clone()).collect()
    };
    let rows: Vec<Vec<String>> = forest.rows.iter().map(cells).collect();
    let mut lines = columns::laid_out_within(&shown, &rows, widest);
    lines.extend(more(there_are, ROWS, "rows"));
    lines
}

/// From this width on there is room for everything.
const WIDE: usize = 120;

/// Whether all who wait or block are in the database that locktop is connected to: then nobody needs to be told which.
fn is_one_database(snapshot: &Snapshot, graph: &WaitGraph) -> bool {
    let Some(server) = snapshot.server() else { return false };
    let backends = snapshot.backends.rows.iter();
    let involved =
        backends.filter(|backend| graph.tree.nodes.iter().any(|node| node.party.pid() == backend.pid));
    involved.take(ROWS).all(|backend| backend.datid.is_none_or(|oid| oid == server.datid))
}

struct Forest<'a> {
    graph: &'a WaitGraph,
    index: &'a SnapshotIndex,
    snapshot: &'a Snapshot,
    words: &'a Words<'a>,
    gids: &'a Gids<'a>,
    rows: Vec<[String; 9]>,
}

/// A row to come.
enum Entry {
    /// A node of the tree, by its position.
    Node(usize),
    /// So many sessions beside those that are shown.
    More(u32),
    /// So many that wait for the same in the same way and block nobody; the place of the first.
    Alike(usize, usize),
}

impl Forest<'_> {
    fn walk(&mut self, place: usize) {
        let mut todo = vec![(Entry::Node(place), String::new())];
        while let Some((entry, start)) = todo.pop() {
            if self.rows.len() > ROWS {
                return;
            }
            let node = match entry {
                Entry::Node(place) => self.graph.tree.nodes.get(place),
                Entry::Alike(place, count) => {
                    if let Some(node) = self.graph.tree.nodes.get(place) {
                        let mut row = self.row(node, &start);
                        row[0] = format!("{start}queue {count}");
                        self.rows.push(row);
                    }
                    None
                }
                Entry::More(sessions) => {
                    let mut row: [String; 9] = Default::default();
                    row[0] = format!("{start}({sessions} more)");
                    self.rows.push(row);
                    None
                }
            };
            let Some(node) = node else { continue };
            self.rows.push(self.row(node, &start));
            let mut below = self.below(node);
            let last = below.pop().map(|entry| (entry, child(&start, "└ ")));
            // What is pushed first comes out last.
            let others = below.into_iter().rev().map(|entry| (entry, child(&start, "├ ")));
            todo.extend(last.into_iter().chain(others));
        }
    }

    /// What stands under a node.
    fn below(&self, node: &TreeNode) -> Vec<Entry> {
        let mut alike: FxHashMap<(usize, LockMode), Vec<usize>> = FxHashMap::default();
        for child in &node.children {
            if let Some(kind) = self.kind(*child) {
                alike.entry(kind).or_default().push(*child);
            }
        }
        alike.retain(|_, members| members.len() >= FOLD_FROM);
        let entry = |child: &usize| match self.kind(*child).and_then(|kind| alike.get(&kind)) {
            // Their line stands where the first of them would.
            Some(members) if members.first() == Some(child) => Some(Entry::Alike(*child, members.len())),
            Some(_) => None,
            None => Some(Entry::Node(*child)),
        };
        let mut below: Vec<Entry> = node.children.iter().filter_map(entry).collect();
        let left_out = below.split_off(below.len().min(CHILDREN));
        let sessions: u32 = left_out.iter().map(|entry| self.sessions(entry)).sum();
        below.extend((sessions > 0).then_some(Entry::More(sessions)));
        below
    }

    /// What makes waiters alike; none for one that blocks others.
    fn kind(&self, place: usize) -> Option<(usize, LockMode)> {
        let node = self.graph.tree.nodes.get(place)?;
        let (queue, waiter) = node.waits.filter(|_| node.children.is_empty() && node.cycle.is_none())?;
        Some((queue, self.graph.queues.get(queue)?.waiters.get(waiter)?.mode))
    }

    fn sessions(&self, entry: &Entry) -> u32 {
        match entry {
            Entry::Node(place) => self.graph.tree.nodes.get(*place).map_or(0, |node| node.below + 1),
            Entry::Alike(_, count) => u32::try_from(*count).unwrap_or(u32::MAX),
            Entry::More(count) => *count,
        }
    }

    fn row(&self, node: &TreeNode, start: &str) -> [String; 9] {
        let party = node.party;
        let backend = match party {
            Party::Backend(pid) => self.words.backend(pid),
            Party::Prepared(_) => None,
        };
        let root = self.index.ending(self.graph, party);
        let blocks = root.map_or(node.below, |root| root.blocked);
        let (wait, state) = self.waits(node, backend);
        let mark = if node.cycle.is_some() { " deadlock" } else { "" };
        [
            format!("{start}{}{mark}", self.name(party)),
            if blocks > 0 { blocks.to_string() } else { String::new() },
            root.map_or_else(String::new, |root| root.frees.to_string()),
            wait,
            state,
            cell(backend.and_then(|backend| backend.database.as_deref())),
            who(backend),
            backend.and_then(|backend| backend.xact_start).map_or_else(String::new, |since| {
                duration((self.snapshot.taken_at - since).as_seconds_f64())
            }),
            backend
                .and_then(|backend| backend.query.as_deref())
                .map_or_else(String::new, |query| one_line_prefix(query, QUERY).into_owned()),
        ]
    }

    fn name(&self, party: Party) -> String {
        match party {
            Party::Backend(pid) => pid.to_string(),
            Party::Prepared(virtualtransaction) => match self.gids.gid(party) {
                Some(gid) => format!("prepared '{}'", one_line(gid)),
                None => format!("prepared {virtualtransaction}"),
            },
        }
    }

    /// How long it waits and for what; of a root, what it does.
    fn waits(&self, node: &TreeNode, backend: Option<&Backend>) -> (String, String) {
        let waiter = node.waits.and_then(|(queue, place)| {
            let queue = self.graph.queues.get(queue)?;
            Some((queue, queue.waiters.get(place)?))
        });
        let Some((queue, waiter)) = waiter else {
            let state = match (node.party, backend.and_then(|backend| backend.state)) {
                (Party::Prepared(_), _) => "prepared transaction",
                (_, Some(state)) => state.as_str(),
                (_, None) => "",
            };
            return (String::new(), state.to_owned());
        };
        let wait = waiter
            .wait_start
            .map_or_else(String::new, |since| duration((self.snapshot.taken_at - since).as_seconds_f64()));
        let target = self.words.awaited(&queue.tag, waiter.pid);
        let others = match node.unseen_blockers() {
            0 => String::new(),
            1 => " (+1 more blocker)".to_owned(),
            more => format!(" (+{more} more blockers)"),
        };
        (wait, one_line(&format!("{} on {target}{others}", waiter.mode.short())).into_owned())
    }
}

/// What a line begins with under one that begins with `start`: deeper by one, as far as there is room.
fn child(start: &str, corner: &str) -> String {
    let depth = start.chars().count() / 2;
    format!("{}{corner}", "  ".repeat(depth.min(DEPTH)))
}

fn cell(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| one_line(text).into_owned())
}

/// Who a session is: `user@application`, or the kind of process where it has no user.
pub(super) fn who(backend: Option<&Backend>) -> String {
    let Some(backend) = backend else { return String::new() };
    let user = cell(backend.user.as_deref().or(backend.backend_type.as_deref()));
    match backend.application.as_deref() {
        None | Some("") => user,
        Some(application) => format!("{user}@{}", one_line(application)),
    }
}
