//! Measures of the sessions that block others.

use super::measured::{Measured, age, locks, measured, sessions, words};
use crate::model::backend::State;
use crate::model::section::Observed;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::model::wait_graph::{Party, Root};

/// The checks that name the session to terminate: a root, or a queued request whose end frees more.
pub(super) const ROOTS: [&str; 3] = ["root_blocker", "prepared_transaction", "convoy"];

pub(super) fn longest_wait(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    locks(snapshot).map(|_| {
        let first = view.longest_waiter();
        let about = first.map(|first| {
            let mut findings = view.findings.iter().filter(|finding| finding.check == "long_wait");
            let own = findings.find(|finding| finding.is_about(first.party));
            own.map_or_else(|| party_name(view, first.party), words)
        });
        let about = about.unwrap_or_default();
        // A wait that has just begun can have no start time yet; it is younger than any other.
        measured(first.and_then(|first| age(snapshot, first.wait_start)).unwrap_or(0.0), about)
    })
}

/// The finding about this root, or the request at the head of its queue.
fn about_root(view: &View, party: Party) -> String {
    let mut findings = view.findings.iter().filter(|finding| ROOTS.contains(&finding.check));
    let own = findings.clone().find(|finding| finding.is_about(party));
    let behind = || {
        findings.find(|finding| {
            finding.pid().is_some_and(|pid| view.graph.roots_above(Party::Backend(pid)).contains(&party))
        })
    };
    own.or_else(behind).map_or_else(|| party_name(view, party), words)
}

fn party_name(view: &View, party: Party) -> String {
    let name = view.with_snapshot().map(|look| look.party(party)).unwrap_or_default();
    crate::text::one_line(&name).into_owned()
}

/// The maximum over all roots except those that the config expects, with the finding about that root.
pub(super) fn root(
    view: &View,
    snapshot: &Snapshot,
    read: impl Fn(&Root) -> Option<f64>,
) -> Observed<Measured> {
    locks(snapshot).map(|_| {
        let expected = |party: Party| {
            let mut findings = view.findings.iter();
            findings.any(|finding| finding.expected.is_some() && finding.is_about(party))
        };
        let roots = view.blocking_roots().filter(|root| !expected(root.party));
        // Of equal ones the first, which is the worst root.
        let values = roots.rev().filter_map(|root| Some((read(root)?, root.party)));
        let most = values.max_by(|one, other| one.0.total_cmp(&other.0));
        most.map_or_else(|| measured(0.0, ""), |(value, party)| measured(value, about_root(view, party)))
    })
}

pub(super) fn idle_root(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    sessions(snapshot).and_then(|_| {
        let idle = |root: &Root| {
            let backend = view.index.backend(snapshot, root.party.pid())?;
            let state = backend.state.filter(|state| state.is_idle_in_transaction() || *state == State::Idle);
            state.and_then(|_| age(snapshot, backend.state_change))
        };
        root(view, snapshot, idle)
    })
}
