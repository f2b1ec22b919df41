use rustc_hash::FxHashMap;

use crate::app::context::Context;
use crate::model::lock::LockMode;
use crate::model::wait_graph::{Party, Tree, TreeNode};

/// From this number on, similar waiters that block no session are shown as one line.
const FOLD_FROM: usize = 4;

/// From this number on, sessions that each have exactly one session behind them are shown as one line.
const RUN_FROM: u32 = 5;

/// One line of the forest. The order of the fields keeps [`super::Row`] at 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct ChainRow {
    /// Index in the tree's nodes; for several waiters, the one that has waited longest, or the first of a run.
    pub at: u32,
    /// Number of waiters that it represents; 0 if it represents only its own.
    pub folded: u32,
    /// The level: 0 for a root, and one more for each level below.
    pub depth: u16,
    /// A bit for each depth above it, from 1 on, at which another line follows; depths beyond 15 are not drawn.
    pub rails: u16,
    /// The last one under its parent.
    pub last: bool,
    /// It does not pass the filter, and is shown because a line below it does.
    pub is_context: bool,
    /// It represents a chain of sessions, each of which waits for the one before; otherwise all wait for one lock.
    pub is_run: bool,
}

/// The lines of the forest. `folded` joins the waiters for one lock in one mode, `runs` joins long chains.
pub(super) fn lines(context: &Context<'_>, folded: bool, runs: bool) -> Vec<ChainRow> {
    let tree = &context.view.graph.tree;
    let mut rows = Vec::new();
    // Depth first without recursion: a chain may be thousands deep.
    let mut stack: Vec<ChainRow> = Vec::new();
    for top in &tree.tops {
        stack.push(line(*top, 0, true));
        while let Some(row) = stack.pop() {
            rows.push(row);
            if row.is_run {
                stack.extend(after_run(tree, row));
            } else if row.folded == 0
                && let Some(node) = tree.nodes.get(row.at as usize)
            {
                let mut below = if folded {
                    children(context, node, row.depth + 1)
                } else {
                    node.children.iter().map(|child| line(*child, row.depth + 1, false)).collect()
                };
                if runs && row.depth > 0 {
                    for row in &mut below {
                        fold_run(tree, row);
                    }
                }
                if let Some(last) = below.last_mut() {
                    last.last = true;
                }
                stack.extend(below.into_iter().rev());
            }
        }
    }
    lead(&mut rows);
    rows
}

/// The sessions of a run, starting with `first`: each has exactly one session behind it.
pub(super) fn run(tree: &Tree, first: usize) -> impl Iterator<Item = &TreeNode> {
    let has_one = |node: &&TreeNode| node.children.len() == 1 && node.cycle.is_none();
    let next = |node: &&TreeNode| node.children.first().and_then(|child| tree.nodes.get(*child));
    std::iter::successors(tree.nodes.get(first), next).take_while(has_one)
}

fn fold_run(tree: &Tree, row: &mut ChainRow) {
    let is_own = row.folded == 0;
    let length = if is_own { run(tree, row.at as usize).count() } else { 0 };
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    if length >= RUN_FROM {
        (row.folded, row.is_run) = (length, true);
    }
}

fn after_run(tree: &Tree, row: ChainRow) -> Option<ChainRow> {
    let last = run(tree, row.at as usize).last()?;
    Some(line(*last.children.first()?, row.depth + 1, true))
}

/// Sets the levels at which a rail is drawn past each row, from a parent to its next child.
fn lead(rows: &mut [ChainRow]) {
    let mut open: u16 = 0;
    for row in rows {
        let own = 1u16.checked_shl(row.depth.into()).unwrap_or(0);
        open &= own.wrapping_sub(1);
        row.rails = open;
        if row.depth > 0 && !row.last {
            open |= own;
        }
    }
}

/// The lines that pass, each below its ancestors: for a waiter, its blockers are of interest.
pub fn with_ancestors(rows: &[ChainRow], passes: impl Fn(ChainRow) -> bool) -> Vec<ChainRow> {
    let mut kept: Vec<ChainRow> = Vec::new();
    // From the end, because descendants come first. `wanted` is the depth of the parent that must still be kept; `later`
    // has the depths at which a later line below the same parent was kept.
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
    lead(&mut kept);
    kept
}

pub(super) fn line(at: usize, depth: u16, last: bool) -> ChainRow {
    ChainRow {
        at: u32::try_from(at).unwrap_or(u32::MAX),
        folded: 0,
        depth,
        last,
        rails: 0,
        is_context: false,
        is_run: false,
    }
}

fn children(context: &Context<'_>, node: &TreeNode, depth: u16) -> Vec<ChainRow> {
    let tree = &context.view.graph.tree;
    let mut alike: FxHashMap<(usize, LockMode), Vec<usize>> = FxHashMap::default();
    for child in &node.children {
        if let Some(key) = tree.nodes.get(*child).and_then(|node| fold_key(context, node)) {
            alike.entry(key).or_default().push(*child);
        }
    }
    let mut rows = Vec::new();
    for child in &node.children {
        let key = tree.nodes.get(*child).and_then(|node| fold_key(context, node));
        match key.and_then(|key| alike.get(&key)) {
            // The line is at the place of its first member.
            Some(members) if members.len() >= FOLD_FROM => {
                if members.first() == Some(child) {
                    let folded = u32::try_from(members.len()).unwrap_or(u32::MAX);
                    rows.push(ChainRow { folded, ..line(*child, depth, false) });
                }
            }
            _ => rows.push(line(*child, depth, false)),
        }
    }
    rows
}

/// The properties that make waiters similar; `None` for a waiter that blocks others.
fn fold_key(context: &Context<'_>, node: &TreeNode) -> Option<(usize, LockMode)> {
    if !node.children.is_empty() || node.cycle.is_some() {
        return None;
    }
    Some((node.waits?.0, context.waiter_at(node)?.1.mode))
}

pub(super) fn members<'a>(context: &Context<'a>, first: &'a TreeNode) -> impl Iterator<Item = Party> {
    let nodes = &context.view.graph.tree.nodes;
    let context = *context;
    let key = fold_key(&context, first);
    let siblings =
        first.parent.and_then(|parent| nodes.get(parent)).map_or(&[][..], |parent| &parent.children);
    let nodes = siblings.iter().filter_map(|at| nodes.get(*at));
    nodes.filter(move |node| fold_key(&context, node) == key).map(|node| node.party)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_from_a_parent_continues_past_the_rows_below_a_child() {
        let depths =
            [(0, true), (1, false), (2, false), (3, true), (2, true), (1, true), (2, true), (0, true)];
        let mut rows: Vec<ChainRow> = depths.iter().map(|(depth, last)| line(0, *depth, *last)).collect();
        lead(&mut rows);
        let rails: Vec<u16> = rows.iter().map(|row| row.rails).collect();
        assert_eq!(rails, [0, 0, 0b10, 0b110, 0b10, 0, 0, 0]);
        let mut deep: Vec<ChainRow> = (0..40).map(|depth| line(0, depth, false)).collect();
        lead(&mut deep);
        assert_eq!(deep[39].rails, 0xfffe, "beyond sixteen nothing is drawn");
    }
}
