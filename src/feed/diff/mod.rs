//! What changed between two snapshots, as events. Every snapshot passes here, also those that nobody draws.
//!
//! The first snapshot shows what has been going on already. Its waits are events, since the server says when each began, though not
//! behind whom, and its roots are, as they are then; of the rest only what changes from then on is one. Each part looks at its rows once and keeps what it needs in
//! maps: time and memory are linear in what a snapshot has of waits, tasks, leases and items.

mod cycles;
mod items;
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
use crate::model::{Text, Timestamp, event, words};

/// Two views, one after the other.
pub(super) struct Change<'a> {
    /// None before the first snapshot.
    before: Option<SnapshotView<'a>>,
    after: SnapshotView<'a>,
    /// There was no connection in between.
    was_down: bool,
    deadlocks: &'a Deadlocks,
}

impl<'a> Change<'a> {
    pub(super) fn new(
        before: Option<SnapshotView<'a>>,
        after: SnapshotView<'a>,
        was_down: bool,
        deadlocks: &'a Deadlocks,
    ) -> Self {
        Self { before, after, was_down, deadlocks }
    }

    fn now(&self) -> Timestamp {
        self.after.snapshot.taken_at
    }

    /// Whether nobody knows what was there before: what goes on may have begun otherwise than it is now.
    fn is_first(&self) -> bool {
        self.before.is_none() || self.was_down
    }

    /// When something happened that the server puts at `at`: that is believed where it is between the two snapshots.
    fn moment(&self, at: Option<Timestamp>) -> Timestamp {
        let earliest = self.before.map(|before| before.snapshot.taken_at);
        let is_between = |at: &Timestamp| *at <= self.now() && earliest.is_none_or(|earliest| *at > earliest);
        at.filter(is_between).unwrap_or_else(|| self.now())
    }

    /// Whether the locks are of this moment.
    fn has_locks(&self) -> bool {
        self.after.snapshot.locks.is_known()
    }

    /// The backend with this process id.
    fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.after.backend(pid)
    }

    /// Whether a session that was there is not any more, as far as that can be told.
    fn is_gone(&self, id: BackendId) -> bool {
        let is_another = |start: Timestamp| id.backend_start.is_some_and(|before| before != start);
        self.after.snapshot.backends.is_known()
            && self.backend(id.pid).is_none_or(|backend| backend.backend_start.is_some_and(is_another))
    }

    /// `4312 app@web-3`, `prepared transaction 'order-17'`.
    fn who(&self, party: Party) -> Text {
        let text = match party {
            Party::Backend(pid) => match self.backend(pid).map(words::who) {
                Some(who) if !who.is_empty() => format!("{pid} {who}"),
                _ => pid.to_string(),
            },
            Party::Prepared(xact) => match self.after.prepared(xact) {
                Some(row) => format!("prepared transaction '{}'", row.gid),
                None => format!("prepared transaction {xact}"),
            },
        };
        event::harmless(&text)
    }
}

/// What has to be remembered from snapshot to snapshot.
#[derive(Debug, Default)]
pub(super) struct Diff {
    waits: waits::Waits,
    roots: roots::Roots,
    cycles: cycles::Cycles,
    tasks: tasks::Tasks,
}

impl Diff {
    /// What has changed, in the order in which it happened; what is alike stays together.
    pub(super) fn look(&mut self, change: &Change<'_>) -> Vec<Draft> {
        let mut drafts = server::look(change);
        if change.has_locks() {
            // What has its cause in another comes behind it, where both have one time.
            drafts.extend(self.roots.look(change));
            drafts.extend(self.waits.look(change));
            drafts.extend(self.cycles.look(change));
        }
        drafts.extend(self.cycles.deadlocks(change));
        drafts.extend(self.tasks.look(change));
        drafts.extend(leases::look(change));
        drafts.extend(items::look(change));
        arrange(&mut drafts);
        drafts
    }
}

/// Puts them in the order of their time. Those that will be one line follow each other, from the time of the first on.
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
    drafts.sort_by_cached_key(|draft| {
        let group = groups.get(&key(draft)).filter(|_| !draft.who.is_empty());
        group.map_or((draft.at, 0, draft.at), |(first, place, _)| (*first, 1 + place, draft.at))
    });
}

/// An event that happened to somebody.
fn of(who: Text, what: &str, at: Timestamp, kind: event::Kind, severity: Severity) -> Draft {
    Draft { who, ..Draft::new(at, kind, severity, what) }
}

/// Seconds from one moment to another; less than none is none.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    (to - from).as_seconds_f64().max(0.0)
}
