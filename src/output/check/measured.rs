//! A value that is known, or the reason why it is not.

use crate::model::backend::{Backend, State};
use crate::model::disclosure::Channel;
use crate::model::finding::Finding;
use crate::model::lock::Lock;
use crate::model::section::Observed;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::source_tables::TableRows;
use crate::model::view::View;
use crate::model::wait_graph::{Party, Root};
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub value: f64,
    /// The session, task or table concerned: one line, which can be empty.
    pub about: String,
}

pub(super) fn measured(value: f64, about: impl Into<String>) -> Measured {
    Measured { value, about: about.into() }
}

pub(super) fn plain(value: f64) -> Observed<Measured> {
    Observed::Read(measured(value, ""))
}

pub(super) fn known(value: Option<f64>, reason: &str) -> Observed<Measured> {
    value.map_or_else(|| Observed::Unknown(reason.into()), plain)
}

#[expect(clippy::cast_precision_loss, reason = "a count of rows")]
pub(super) fn counted(number: u64) -> Measured {
    measured(number as f64, "")
}

pub(super) fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

pub(super) fn section<'a, T>(section: &'a Section<T>, what: &str) -> Observed<&'a [T]> {
    match section.observed() {
        Observed::Unknown(reason) => {
            Observed::Unknown(format!("cannot read {what}: {}", crate::text::one_line(&reason)).into())
        }
        observed => observed,
    }
}

pub(super) fn unread<'a, T: 'a>(snapshot: &Snapshot, tables: &'a [TableRows<T>]) -> Option<Text> {
    let of = |table: &TableRows<T>| section(&table.section, &table.source.name).reason().cloned();
    tables.iter().find_map(of).or_else(|| unsearched(snapshot))
}

pub(super) fn unsearched(snapshot: &Snapshot) -> Option<Text> {
    section(&snapshot.detection.tables, "the catalog to find tables").reason().cloned()
}

/// The count. A count of zero is not known if a part could not be read.
pub(super) fn unless_unread(counted: Measured, unread: Option<Text>) -> Observed<Measured> {
    match unread {
        Some(reason) if counted.value <= 0.0 => Observed::Unknown(reason),
        _ => Observed::Read(counted),
    }
}

pub(super) fn locks(snapshot: &Snapshot) -> Observed<&[Lock]> {
    section(&snapshot.locks, "pg_locks")
}

pub(super) fn sessions(snapshot: &Snapshot) -> Observed<&[Backend]> {
    match snapshot.server() {
        Some(server) if !server.sees_all => Observed::Unknown(
            format!("{} cannot see the sessions of other roles: GRANT pg_read_all_stats", server.user).into(),
        ),
        _ => section(&snapshot.backends, "pg_stat_activity"),
    }
}

pub(super) fn age(snapshot: &Snapshot, since: Option<Timestamp>) -> Option<f64> {
    Some((snapshot.taken_at - since?).as_seconds_f64().max(0.0))
}

pub(super) fn about(view: &View, checks: &[&str]) -> String {
    let finding = view.findings.iter().find(|finding| checks.contains(&finding.check));
    finding.map(words).unwrap_or_default()
}

pub(super) fn words(finding: &Finding) -> String {
    let about = finding.about_in(Channel::Check);
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    format!("{}{about}", finding.short)
}

pub(super) fn of_check(view: &View, check: &str) -> Measured {
    let number = view.findings.iter().filter(|finding| finding.check == check).count();
    measured(count(number), about(view, &[check]))
}

// Measures of the sessions that block others.

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
    let name = view.with_snapshot().map(|seen| seen.party(party)).unwrap_or_default();
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
