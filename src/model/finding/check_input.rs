use super::{Deadlocks, NewRoots};
use crate::model::lock::LockTag;
use crate::model::thresholds::Thresholds;
use crate::model::view::SnapshotView;
use crate::model::wait_graph::Party;
use crate::model::words;
use crate::model::{QueryText, Timestamp};
use crate::text;

/// A view whose findings are not known yet.
#[derive(Debug, Clone, Copy)]
pub struct CheckInput<'a> {
    pub view: SnapshotView<'a>,
    /// Remembered deadlocks, including this snapshot.
    pub deadlocks: &'a Deadlocks,
    /// Since when each root has been one, including this graph.
    pub new_roots: &'a NewRoots,
    pub thresholds: &'a Thresholds,
}

impl<'a> std::ops::Deref for CheckInput<'a> {
    type Target = SnapshotView<'a>;

    fn deref(&self) -> &SnapshotView<'a> {
        &self.view
    }
}

impl CheckInput<'_> {
    /// Seconds from `since` to the snapshot, at least 0.
    pub(super) fn age(&self, since: Timestamp) -> f64 {
        (self.snapshot.taken_at - since).as_seconds_f64().max(0.0)
    }

    /// The age as text, with a leading blank. Empty if not known.
    pub(super) fn age_text(&self, since: Option<Timestamp>) -> String {
        since.map_or_else(String::new, |since| format!(" {}", text::duration(self.age(since))))
    }

    pub(super) fn is_older(&self, since: Option<Timestamp>, seconds: f64) -> bool {
        since.is_some_and(|since| self.age(since) >= seconds)
    }

    /// What `waiter` waits for; for a transaction the row behind it, if known.
    pub(super) fn awaited<'b>(&'b self, tag: &'b LockTag, waiter: i32) -> &'b LockTag {
        self.index.awaited(tag, waiter)
    }

    /// `app@web-3 · accounts`: the session, and what it locks or waits for.
    pub(super) fn about(&self, pid: i32, target: Option<&str>) -> String {
        let backend = self.backend(pid);
        let who = backend.map(words::who).unwrap_or_default();
        let parts = [who.as_str(), target.unwrap_or_default()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }

    pub(super) fn statement(&self, pid: i32) -> Option<QueryText> {
        self.backend(pid)?.query.clone().filter(|query| !query.is_blank())
    }
}

pub(super) fn party_text(party: Party) -> String {
    match party {
        Party::Backend(pid) => pid.to_string(),
        Party::Prepared(_) => "a prepared transaction".to_owned(),
    }
}

/// `4410`, `4410 and 4466`, `4410, 4466 and 5 more`.
pub(crate) fn parties_text(parties: &[Party]) -> String {
    let name = |party: &Party| party_text(*party);
    match parties {
        [] => "no session".to_owned(),
        [one] => name(one),
        [one, two] => format!("{} and {}", name(one), name(two)),
        [one, two, three] => format!("{}, {} and {}", name(one), name(two), name(three)),
        [one, two, rest @ ..] => format!("{}, {} and {} more", name(one), name(two), rest.len()),
    }
}
