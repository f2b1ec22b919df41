//! What a plan is made from.

use rustc_hash::FxHashMap;

use super::Rights;
use crate::model::awaited_rows::AwaitedRows;
use crate::model::backend::{Backend, BackendId};
use crate::model::finding::Subject;
use crate::model::lock::{LockMode, LockTag};
use crate::model::prepared::PreparedIndex;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::model::wait_graph::{Party, TreeNode, WaitGraph};
use crate::model::{Timestamp, words};
use crate::text;

/// What a plan is made from: what the screens show, and what is known of ourselves.
#[derive(Debug, Clone, Copy)]
pub struct PlanContext<'a> {
    /// What is shown.
    pub view: &'a View,
    /// What the role may do, once that has been looked up. Without it nothing is refused for want of a right; the server
    /// does that.
    pub rights: Option<&'a Rights>,
    /// Process ids of our own sessions, beside that of the poll.
    pub own_pids: &'a [i32],
}

/// The context of a plan with its snapshot, and where things are in it: built once for each plan.
pub(super) struct PlanIndex<'a> {
    pub(super) context: PlanContext<'a>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) graph: &'a WaitGraph,
    backends: FxHashMap<i32, &'a Backend>,
    nodes: FxHashMap<Party, usize>,
    prepared: PreparedIndex,
    rows: AwaitedRows,
}

impl<'a> PlanIndex<'a> {
    /// None before the first snapshot.
    pub(super) fn of(context: &PlanContext<'a>) -> Option<Self> {
        let snapshot = context.view.snapshot.as_deref()?;
        let graph = &*context.view.graph;
        let nodes = graph.tree.nodes.iter().enumerate().map(|(at, node)| (node.party, at)).collect();
        Some(Self {
            context: *context,
            snapshot,
            graph,
            backends: snapshot.backends.rows.iter().map(|backend| (backend.pid, backend)).collect(),
            nodes,
            prepared: PreparedIndex::of(snapshot),
            rows: AwaitedRows::of(snapshot, graph),
        })
    }

    pub(super) fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.backends.get(&pid).copied()
    }

    /// The place of a party in the forest.
    pub(super) fn node(&self, party: Party) -> Option<(usize, &'a TreeNode)> {
        let at = *self.nodes.get(&party)?;
        Some((at, self.graph.tree.nodes.get(at)?))
    }

    pub(super) fn prepared(&self) -> &PreparedIndex {
        &self.prepared
    }

    pub(super) fn is_standby(&self) -> bool {
        self.snapshot.server().is_some_and(|server| server.in_recovery)
    }

    /// Whether that is one of our own sessions.
    pub(super) fn is_own(&self, pid: i32) -> bool {
        self.context.own_pids.contains(&pid) || self.snapshot.server().is_some_and(|own| own.own_pid == pid)
    }

    /// Whether all locks that are held now are shown.
    pub(super) fn knows_locks(&self) -> bool {
        self.snapshot.locks.error.is_none() && self.snapshot.locks_omitted == 0
    }

    /// Whether a session, or one of its parallel workers, holds a lock in this mode, as far as that is known.
    pub(super) fn may_hold(&self, pid: i32, (tag, mode): (LockTag, LockMode)) -> bool {
        let locks = self.snapshot.locks.rows.iter();
        let mut same = locks.filter(|lock| lock.granted && lock.mode == mode && lock.tag == tag);
        let group = |holder: i32| self.backend(holder).map_or(holder, Backend::group);
        !self.knows_locks() || same.any(|lock| lock.pid.map(group) == Some(pid))
    }

    /// Seconds from `since` to the snapshot; less than none is none.
    pub(super) fn age(&self, since: Timestamp) -> f64 {
        (self.snapshot.taken_at - since).as_seconds_f64().max(0.0)
    }

    /// The same for people.
    pub(super) fn age_text(&self, since: Timestamp) -> String {
        text::duration(self.age(since))
    }

    /// `4312 app@web-3`; the process id alone where nothing else is known.
    pub(super) fn name(&self, pid: i32) -> String {
        let who = self.backend(pid).map(words::who).unwrap_or_default();
        if who.is_empty() { pid.to_string() } else { format!("{pid} {who}") }
    }

    /// The same for whoever can hold a lock.
    pub(super) fn party_name(&self, party: Party) -> String {
        match party {
            Party::Backend(pid) => self.name(pid),
            Party::Prepared(xact) => match self.prepared.get(self.snapshot, xact) {
                Some(row) => format!("prepared transaction {}", text::literal(&row.gid)),
                None => format!("prepared transaction {xact}"),
            },
        }
    }

    /// The row of a session: with its start where that is known.
    pub(super) fn subject(&self, pid: i32) -> Subject {
        let id = self.backend(pid).map_or(BackendId { pid, backend_start: None }, Backend::id);
        Subject::Backend(id)
    }

    /// What is locked, within a sentence: one harmless line.
    pub(super) fn lock_words(&self, tag: &LockTag, pid: i32) -> String {
        let tag = self.rows.awaited(tag, pid);
        let words = words::quoted(self.snapshot, &self.context.view.lock_names, tag, self.backend(pid));
        text::one_line(&words).into_owned()
    }
}
