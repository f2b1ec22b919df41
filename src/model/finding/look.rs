//! A scene with what several checks need of it.

use super::{Scene, Subject};
use crate::model::Timestamp;
use crate::model::backend::Backend;
use crate::model::lock::LockTag;
use crate::model::wait_graph::Party;
use crate::model::words;
use crate::text;

/// Columns of a query beside a finding.
const QUERY: usize = 200;

/// A scene, and what several checks ask of it.
pub(super) struct Look<'a> {
    pub(super) scene: Scene<'a>,
}

impl<'a> Look<'a> {
    pub(super) fn new(scene: Scene<'a>) -> Self {
        Self { scene }
    }

    pub(super) fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.scene.index.backend(self.scene.snapshot, pid)
    }

    /// Seconds from `since` to the snapshot; less than none is none.
    pub(super) fn age(&self, since: Timestamp) -> f64 {
        (self.scene.snapshot.taken_at - since).as_seconds_f64().max(0.0)
    }

    /// The same for people, with a blank before it; nothing where it is not known.
    pub(super) fn age_text(&self, since: Option<Timestamp>) -> String {
        since.map_or_else(String::new, |since| format!(" {}", text::duration(self.age(since))))
    }

    /// Whether `since` is known and at least `seconds` ago.
    pub(super) fn is_older(&self, since: Option<Timestamp>, seconds: f64) -> bool {
        since.is_some_and(|since| self.age(since) >= seconds)
    }

    /// What `waiter` waits for: of a transaction the row behind it, where that is known.
    pub(super) fn awaited<'b>(&'b self, tag: &'b LockTag, waiter: i32) -> &'b LockTag {
        self.scene.index.awaited(tag, waiter)
    }

    /// `app@web-3 · accounts · SELECT …`: whose session it is, what it locks or waits for, and what it runs or ran last.
    pub(super) fn about(&self, pid: i32, target: Option<&str>) -> String {
        let backend = self.backend(pid);
        let who = backend.map(words::who).unwrap_or_default();
        let query = backend.and_then(|backend| backend.query.as_deref()).unwrap_or_default();
        let query = text::one_line_prefix(query.trim(), QUERY);
        let parts = [who.as_str(), target.unwrap_or_default(), &query];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }

    /// The subject for a party: the backend itself where there is a row of it.
    pub(super) fn subject(&self, party: Party) -> Subject {
        match self.backend(party.pid()) {
            Some(backend) => Subject::Backend(backend.id()),
            None => Subject::Party(party),
        }
    }
}

/// A party in a sentence: its process id, or the prepared transaction.
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
        [] => "nobody".to_owned(),
        [one] => name(one),
        [one, two] => format!("{} and {}", name(one), name(two)),
        [one, two, three] => format!("{}, {} and {}", name(one), name(two), name(three)),
        [one, two, rest @ ..] => format!("{}, {} and {} more", name(one), name(two), rest.len()),
    }
}
