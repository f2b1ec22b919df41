//! Events from the difference between two snapshots. Every snapshot is processed, even if it is never drawn.
//!
//! The first snapshot yields events for existing waits, whose start the server reports, and for current root blockers;
//! everything else yields events only from then on. Time and memory are linear in the number of waits, tasks, leases and
//! items.

mod leases;
mod roots;
mod server;
mod tasks;
#[cfg(test)]
mod tests;
mod waits;

use rustc_hash::FxHashMap;

use crate::model::backend::{Backend, BackendId};
use crate::model::event::Draft;
use crate::model::finding::{Deadlocks, Severity};
use crate::model::view::SnapshotView;
use crate::model::wait_graph::Party;
use crate::model::{Text, Timestamp, event};

use crate::order::Order;

pub(super) struct Change<'a> {
    /// `None` at the first snapshot.
    pub(super) before: Option<SnapshotView<'a>>,
    pub(super) after: SnapshotView<'a>,
    /// Whether the connection was lost in between.
    pub(super) was_down: bool,
    pub(super) deadlocks: &'a Deadlocks,
}

impl<'a> Change<'a> {
    fn now(&self) -> Timestamp {
        self.after.snapshot.taken_at
    }

    /// Whether the previous state is unknown, so that what is present may have started differently.
    fn is_first(&self) -> bool {
        self.before.is_none() || self.was_down
    }

    /// The time `at` from the server if it is between the two snapshots, otherwise now.
    fn moment(&self, at: Option<Timestamp>) -> Timestamp {
        let earliest = self.before.map(|before| before.snapshot.taken_at);
        let is_between = |at: &Timestamp| *at <= self.now() && earliest.is_none_or(|earliest| *at > earliest);
        at.filter(is_between).unwrap_or_else(|| self.now())
    }

    fn has_locks(&self) -> bool {
        self.after.snapshot.locks.is_known()
    }

    fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.after.backend(pid)
    }

    /// Whether a session has ended, as far as this can be determined.
    fn is_gone(&self, id: BackendId) -> bool {
        let is_another = |start: Timestamp| id.backend_start.is_some_and(|before| before != start);
        self.after.snapshot.backends.is_known()
            && self.backend(id.pid).is_none_or(|backend| backend.backend_start.is_some_and(is_another))
    }

    /// `4312 app@web-3`, `prepared transaction 'order-17'`.
    fn who(&self, party: Party) -> Text {
        event::harmless(&self.after.party(party))
    }
}

#[derive(Debug, Default)]
pub(super) struct Diff {
    waits: waits::Waits,
    roots: roots::Roots,
    cycles: roots::Cycles,
    tasks: tasks::Tasks,
}

impl Diff {
    pub(super) fn look(&mut self, change: &Change<'_>) -> Vec<Draft> {
        let mut drafts = server::look(change);
        if change.has_locks() {
            // At the same time, an effect follows its cause.
            drafts.extend(self.roots.look(change));
            drafts.extend(self.waits.look(change));
            drafts.extend(self.cycles.look(change));
        }
        drafts.extend(self.cycles.deadlocks(change));
        drafts.extend(self.tasks.look(change));
        drafts.extend(leases::look(change));
        drafts.extend(tasks::look_at_items(change));
        arrange(&mut drafts);
        drafts
    }
}

/// Sorts by time. Events that are shown as one line are adjacent, at the time of the first.
fn arrange(drafts: &mut [Draft]) {
    if drafts.len() < 2 {
        return;
    }
    let key = |draft: &Draft| (draft.kind, draft.severity, Text::clone(&draft.what));
    let mut groups: FxHashMap<_, (Timestamp, usize, usize)> = FxHashMap::default();
    for (place, draft) in drafts.iter().enumerate().filter(|(_, draft)| !draft.who.is_empty()) {
        let group = groups.entry(key(draft)).or_insert((draft.at, place, 0));
        *group = (group.0.min(draft.at), group.1, group.2 + 1);
    }
    groups.retain(|_, (_, _, count)| *count > event::FEW);
    drafts.order_by_cached_key(|draft| {
        let group = groups.get(&key(draft)).filter(|_| !draft.who.is_empty());
        group.map_or((draft.at, 0, draft.at), |(first, place, _)| (*first, 1 + place, draft.at))
    });
}

fn of(who: Text, what: &str, at: Timestamp, kind: event::Kind, severity: Severity) -> Draft {
    Draft { who, ..Draft::new(at, kind, severity, what) }
}

/// Seconds between two times, at least 0.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    (to - from).as_seconds_f64().max(0.0)
}
