//! Known blockers: entries that expect them from now on, or that are removed. No request is sent to the server.

use super::Verb;
use crate::model::backend::Backend;
use crate::model::finding::Finding;
use crate::model::row_id::{Owner, RowId};
use crate::model::snapshot::Snapshot;
use crate::model::thresholds::{Blocker, ExpectedBlocker};
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::{Text, words};

const CHECKS: [&str; 3] = ["root_blocker", "prepared_transaction", "convoy"];

#[derive(Debug, Clone, Default)]
pub struct Known {
    pub rows: Vec<(String, ExpectedBlocker)>,
    pub takes_away: bool,
    /// How many sessions match the entries now, and how many of these block others.
    pub met: (usize, usize),
    pub refused: Vec<String>,
}

pub fn is_blocker(finding: &Finding) -> bool {
    CHECKS.contains(&finding.check)
}

pub(super) fn finding(view: &View, row: RowId) -> Option<&Finding> {
    about(view, party_of(view, row)?)
}

fn about(view: &View, party: Party) -> Option<&Finding> {
    view.findings
        .iter()
        .find(|finding| is_blocker(finding) && finding.ended.is_none() && finding.is_about(party))
}

/// A root whose convoy is a finding has no finding of its own.
fn is_root(view: &View, party: Party) -> bool {
    view.graph.roots.iter().any(|root| root.party == party)
}

fn party_of(view: &View, row: RowId) -> Option<Party> {
    match row {
        RowId::Prepared(xact) => Some(Party::Prepared(xact)),
        RowId::Backend(id) | RowId::Lock(_, Owner::Backend(id), _) => {
            let backend = view.index.backend(view.snapshot.as_deref()?, id.pid);
            Some(Party::Backend(backend.map_or(id.pid, Backend::group)))
        }
        _ => None,
    }
}

impl Known {
    /// `None` if no row is about a possible blocker. If all of them are already expected, their entries are removed; else
    /// entries are made for the others.
    pub fn of(view: &View, rows: &[RowId]) -> Option<Self> {
        let snapshot = view.snapshot.as_deref()?;
        let parties: Vec<Party> = rows.iter().filter_map(|row| party_of(view, *row)).collect();
        if parties.is_empty() {
            return None;
        }
        let mut known = Self::default();
        let mut expected = Vec::new();
        let mut made = Vec::new();
        for party in parties {
            let name = name(view, snapshot, party);
            match about(view, party) {
                None if !is_root(view, party) || view.normal_wait(party).is_some() => known.refused.push(format!("{name} is no root blocker")),
                Some(Finding { expected: Some(entry), .. }) => {
                    expected.push((name, ExpectedBlocker::clone(entry)));
                }
                _ => match entry(view, snapshot, party) {
                    Some(entry) => made.push((name, entry)),
                    None => known.refused.push(format!(
                        "{name}: nothing known distinguishes it from other sessions (GRANT pg_read_all_stats shows more)"
                    )),
                },
            }
        }
        known.takes_away = made.is_empty() && !expected.is_empty();
        known.rows = if known.takes_away { expected } else { made };
        known.met = met(view, snapshot, &known.rows);
        Some(known)
    }

    pub fn verb(&self) -> Verb {
        if self.takes_away { Verb::ExpectNoMore } else { Verb::Expect }
    }

    /// `None` if there is something to confirm.
    pub fn why_nothing(&self) -> Option<String> {
        self.rows.is_empty().then(|| self.refused.join("; "))
    }

    /// `4312 app@web-3`, `3 blockers`.
    pub fn name(&self) -> String {
        match self.rows.as_slice() {
            [(name, _)] => name.clone(),
            several => format!("{} blockers", several.len()),
        }
    }

    pub fn entries(&self) -> Vec<ExpectedBlocker> {
        let mut entries: Vec<ExpectedBlocker> = Vec::new();
        for (_, entry) in &self.rows {
            if !entries.contains(entry) {
                entries.push(entry.clone());
            }
        }
        entries
    }

    pub fn applied(&self, expected: &[ExpectedBlocker]) -> Vec<ExpectedBlocker> {
        let entries = self.entries();
        let mut left = expected.to_vec();
        left.retain(|entry| !entries.contains(entry));
        if !self.takes_away {
            left.extend(entries);
        }
        left
    }
}

fn met(view: &View, snapshot: &Snapshot, rows: &[(String, ExpectedBlocker)]) -> (usize, usize) {
    let is_met = |blocker: Blocker<'_>| rows.iter().any(|(_, entry)| entry.is_met(blocker, |_| true));
    let sessions = snapshot.backends.last_rows().iter().filter(|backend| is_met(Blocker::of(backend)));
    let prepared = snapshot.prepared.last_rows().iter().filter(|row| is_met(Blocker::of_prepared(row)));
    let roots = view.blocking_roots().filter(|root| blocker(view, snapshot, root.party).is_some_and(is_met));
    (sessions.count() + prepared.count(), roots.count())
}

fn blocker<'a>(view: &'a View, snapshot: &'a Snapshot, party: Party) -> Option<Blocker<'a>> {
    match party {
        Party::Backend(pid) => view.index.backend(snapshot, pid).map(Blocker::of),
        Party::Prepared(xact) => view.index.prepared(snapshot, xact).map(Blocker::of_prepared),
    }
}

fn name(view: &View, snapshot: &Snapshot, party: Party) -> String {
    match party {
        Party::Backend(pid) => words::process(pid, view.index.backend(snapshot, pid)),
        Party::Prepared(xact) => match view.index.prepared(snapshot, xact) {
            Some(row) => format!("prepared transaction {}", crate::text::one_line(&row.gid)),
            None => format!("prepared transaction {xact}"),
        },
    }
}

/// The entry matches what stays the same when the session comes again: application, role and database; for an autovacuum
/// worker, which has no application or role, what it vacuums. `None` if only the database is known.
fn entry(view: &View, snapshot: &Snapshot, party: Party) -> Option<ExpectedBlocker> {
    let backend = view.index.backend(snapshot, party.pid());
    let known = |text: Option<&str>| text.filter(|text| !text.trim().is_empty()).map(Text::from);
    let blocker = blocker(view, snapshot, party)?;
    let is_vacuum = backend.and_then(|row| row.backend_type.as_deref()) == Some("autovacuum worker");
    let (application, user) = (known(blocker.application), known(blocker.user));
    let statement = known(blocker.statement).filter(|_| is_vacuum);
    if application.is_none() && user.is_none() && statement.is_none() {
        return None;
    }
    Some(ExpectedBlocker {
        application,
        user,
        database: known(blocker.database),
        statement,
        reason: Some(format!("known since {}", snapshot.taken_at.format("%Y-%m-%d")).into()),
        ..ExpectedBlocker::default()
    })
}
