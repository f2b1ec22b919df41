//! The effect of the end of a session on the sessions behind it, in numbers and words: the same for findings, screens, the
//! dialog, `check`, JSON and the report.
//!
//! `now` is a promise: each of those sessions continues at once. `in turn` assumes that each session finishes its
//! transaction.

use std::fmt::Write;

use crate::model::backend::Backend;
use crate::model::consequence::{DataEffect, is_one_statement};
use crate::model::plan::Verb;
use crate::model::view::SnapshotView;
use crate::model::wait_graph::{End, Party, Release, Root};
use crate::text::count;

/// The four numbers after `blocked` add up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Promise {
    /// Sessions that wait behind it, directly or indirectly.
    pub blocked: u32,
    /// Continue at once.
    pub now: u32,
    /// Continue one after another; if none continues at once for certain, at least one of these does.
    pub in_turn: u32,
    /// Stay blocked by others.
    pub still: u32,
    /// May stay blocked.
    pub unsure: u32,
    /// How many others must end before the sessions that stay blocked continue; `None` if unknown.
    pub others: Option<u32>,
    /// This role cannot see the session, and so not everything that waits for it.
    pub is_hidden: bool,
    /// For a cancel: the sessions that continue now and in turn, unless the session keeps a lock afterwards; `None` if that is
    /// certain.
    pub perhaps: Option<(u32, u32)>,
}

impl From<&Root> for Promise {
    fn from(root: &Root) -> Self {
        Self {
            blocked: root.blocked,
            now: root.frees,
            in_turn: root.in_turn,
            still: root.still_blocked,
            unsure: root.may_stay_blocked,
            others: root.others_must_end,
            ..Self::default()
        }
    }
}

impl From<&Release> for Promise {
    fn from(release: &Release) -> Self {
        let number = |parties: &[Party]| u32::try_from(parties.len()).unwrap_or(u32::MAX);
        let [now, in_turn, still, unsure] =
            [&release.now, &release.in_turn, &release.still, &release.unsure].map(|parties| number(parties));
        let blocked = now + in_turn + still + unsure;
        Self { blocked, now, in_turn, still, unsure, others: release.others_must_end(), ..Self::default() }
    }
}

impl SnapshotView<'_> {
    pub fn release(self, verb: Verb, parties: &[Party]) -> Release {
        self.normal_waits.held_back(&self.graph, self.release_of_locks(verb, parties))
    }

    fn release_of_locks(self, verb: Verb, parties: &[Party]) -> Release {
        let graph = &self.graph;
        if verb != Verb::Cancel {
            return graph.release(parties, End::Session);
        }
        let session = |party: &Party| self.backend(party.pid());
        let has_effect = |row: &Backend| self.consequence(verb, row).effect != DataEffect::NoneYet;
        let ends: Vec<Party> =
            parties.iter().copied().filter(|party| session(party).is_none_or(has_effect)).collect();
        let is_whole = ends.iter().all(|party| session(party).is_some_and(is_one_statement));
        let release = graph.release(&ends, if is_whole { End::Transaction } else { End::Statement });
        if ends.len() == parties.len() {
            return release;
        }
        // The locks that others wait for are kept as long as the client does nothing.
        let lists = [&release.now, &release.in_turn, &release.still, &release.unsure];
        let all = graph.blocked_by_all(parties).into_iter();
        let stay = all.filter(|party| !lists.iter().any(|list| list.contains(party)));
        let still = release.still.iter().copied().chain(stay).collect();
        let deaf = parties.iter().copied().filter(|party| !ends.contains(party));
        let others = release.others.iter().copied().chain(deaf).collect();
        Release { still, others, ..release }
    }

    pub fn promise_of(self, verb: Verb, parties: &[Party]) -> Promise {
        let is_hidden = parties.iter().any(|party| self.hides(self.backend(party.pid())));
        let promise = Promise::from(&self.release(verb, parties));
        let is_open = verb == Verb::Cancel && promise.unsure > 0 && promise.unsure == promise.blocked;
        let whole = is_open.then(|| Promise::from(&self.release(Verb::Terminate, parties)));
        let perhaps = whole.filter(|whole| whole.now + whole.in_turn == promise.blocked);
        let perhaps = perhaps.map(|whole| (whole.now, whole.in_turn));
        Promise { is_hidden, perhaps, ..promise }
    }

    pub fn promise(self, root: &Root) -> Promise {
        Promise { is_hidden: self.hides(self.backend(root.party.pid())), ..Promise::from(root) }
    }

    /// Whether this role can see neither state nor start of the session.
    pub fn hides(self, backend: Option<&Backend>) -> bool {
        let is_hidden = backend.is_some_and(|row| row.state.is_none() && row.backend_start.is_none());
        is_hidden && self.snapshot.server().is_some_and(|server| !server.sees_all)
    }
}

impl Promise {
    /// `blocks 17: 1 continues now, 16 in turn`.
    pub fn words(self) -> String {
        self.sentence(true)
    }

    /// `blocks 17: 1 now, 16 in turn`.
    pub fn short(self) -> String {
        self.sentence(false)
    }

    fn sentence(self, is_long: bool) -> String {
        let blocked = count(self.blocked.into());
        match self {
            Self { blocked: 0, .. } => "blocks no session".to_owned(),
            Self { is_hidden: true, .. } => {
                format!("blocks at least {blocked}; the rest is not shown to this role")
            }
            _ => format!("blocks {blocked}: {}", self.numbers(is_long)),
        }
    }

    /// `1 continues now, 16 in turn`.
    pub fn numbers(self, is_long: bool) -> String {
        let Self { now, in_turn, still, unsure, .. } = self;
        let is_mixed = still + unsure > 0;
        let number = |number: u32| count(number.into());
        if let Some(perhaps) = self.perhaps {
            let words = match perhaps {
                (0, in_turn) => format!("{} now or in turn", number(in_turn)),
                (now, 0) => format!("{} now", number(now)),
                (now, in_turn) => format!("{} now, {} in turn", number(now), number(in_turn)),
            };
            return format!("perhaps {words}");
        }
        if now + in_turn == 0 && is_mixed {
            return match (unsure, self.others) {
                (0, Some(others)) => format!("0 now: {} more must end", number(others)),
                (0, None) => "0 now: others must end too".to_owned(),
                _ => "0 for certain: others may have to end too".to_owned(),
            };
        }
        // It is not known which of them continues at once.
        let is_open = now == 0;
        let (first, when) = if is_open { (in_turn, "now or in turn") } else { (now, "now") };
        let continues = match first {
            _ if !is_long || is_mixed => "",
            1 => "continues ",
            _ => "continue ",
        };
        let mut words = format!("{} {continues}{when}", number(first));
        let parts = [
            (if is_open { 0 } else { in_turn }, "in turn"),
            (still, "still blocked"),
            (unsure, "may stay blocked"),
        ];
        for (part, name) in parts.into_iter().filter(|(part, _)| *part > 0) {
            let _ = write!(words, ", {} {name}", number(part));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_in_words() {
        let promise = |[now, in_turn, still, unsure]: [u32; 4], others: Option<u32>| Promise {
            blocked: now + in_turn + still + unsure,
            now,
            in_turn,
            still,
            unsure,
            others,
            is_hidden: false,
            perhaps: None,
        };
        for (numbers, others, words, short) in [
            ([45, 0, 0, 0], Some(0), "blocks 45: 45 continue now", "blocks 45: 45 now"),
            (
                [1, 16, 0, 0],
                Some(0),
                "blocks 17: 1 continues now, 16 in turn",
                "blocks 17: 1 now, 16 in turn",
            ),
            (
                [1, 12, 4, 0],
                Some(2),
                "blocks 17: 1 now, 12 in turn, 4 still blocked",
                "blocks 17: 1 now, 12 in turn, 4 still blocked",
            ),
            ([0, 0, 2, 0], Some(3), "blocks 2: 0 now: 3 more must end", "blocks 2: 0 now: 3 more must end"),
            (
                [0, 0, 2, 0],
                None,
                "blocks 2: 0 now: others must end too",
                "blocks 2: 0 now: others must end too",
            ),
            (
                [0, 0, 0, 2],
                None,
                "blocks 2: 0 for certain: others may have to end too",
                "blocks 2: 0 for certain: others may have to end too",
            ),
            ([0, 3, 0, 0], Some(0), "blocks 3: 3 continue now or in turn", "blocks 3: 3 now or in turn"),
            (
                [0, 3, 1, 0],
                None,
                "blocks 4: 3 now or in turn, 1 still blocked",
                "blocks 4: 3 now or in turn, 1 still blocked",
            ),
            (
                [1, 0, 0, 1_000],
                None,
                "blocks 1,001: 1 now, 1,000 may stay blocked",
                "blocks 1,001: 1 now, 1,000 may stay blocked",
            ),
            ([0, 0, 0, 0], Some(0), "blocks no session", "blocks no session"),
        ] {
            let promise = promise(numbers, others);
            assert_eq!((promise.words().as_str(), promise.short().as_str()), (words, short));
        }
        let kept = Promise { perhaps: Some((1, 8)), ..promise([0, 0, 0, 9], None) };
        assert_eq!(kept.words(), "blocks 9: perhaps 1 now, 8 in turn");
        let open = Promise { perhaps: Some((0, 8)), ..promise([0, 0, 0, 8], None) };
        assert_eq!(open.words(), "blocks 8: perhaps 8 now or in turn");
        let hidden = Promise { is_hidden: true, ..promise([1, 16, 0, 0], Some(0)) };
        assert_eq!(hidden.words(), "blocks at least 17; the rest is not shown to this role");
    }
}
