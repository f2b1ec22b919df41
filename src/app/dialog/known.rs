//! Blockers that are known: the entries that expect them from now on, or that are taken away.
//!
//! Nothing of it is asked of the server. The entries count in this run; into the config file goes only what somebody switches on.

use std::path::PathBuf;

use super::Choice;
use super::labelled::field;
use crate::app::line::{Line, Tone};
use crate::app::panes::{Owner, RowId};
use crate::model::Text;
use crate::model::backend::Backend;
use crate::model::expected::{Blocker, ExpectedBlocker};
use crate::model::finding::Finding;
use crate::model::plan::Verb;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::words;

/// Checks whose findings are about a blocker.
const CHECKS: [&str; 3] = ["root_blocker", "prepared_transaction", "convoy"];

/// The key of the switch for the config file.
pub(super) const FILE: char = 'f';

/// Blockers that are to be expected, or not any more.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// What each is called, in a harmless line, and its entry.
    rows: Vec<(String, ExpectedBlocker)>,
    /// Entries are taken away.
    takes_away: bool,
    /// How many sessions meet the entries now, and how many of these block others.
    met: (usize, usize),
    /// The config file; none where there is none.
    pub(in crate::app) file: Option<PathBuf>,
    /// The entries are written there, too.
    writes: bool,
    /// Why nothing can be asked of some.
    refused: Vec<String>,
}

/// Whether a finding is about a blocker.
#[must_use]
pub(in crate::app) fn is_blocker(finding: &Finding) -> bool {
    CHECKS.contains(&finding.check)
}

/// The finding about the blocker of a row.
#[must_use]
pub(in crate::app) fn finding(view: &View, row: RowId) -> Option<&Finding> {
    about(view, party_of(view, row)?)
}

fn about(view: &View, party: Party) -> Option<&Finding> {
    view.findings.iter().find(|finding| is_blocker(finding) && finding.is_about(party))
}

fn party_of(view: &View, row: RowId) -> Option<Party> {
    match row {
        RowId::Prepared(xact) | RowId::Lock(_, Owner::Prepared(xact), ..) => Some(Party::Prepared(xact)),
        RowId::Backend(id) | RowId::Lock(_, Owner::Backend(id), ..) => {
            let backend = view.index.backend(view.snapshot.as_deref()?, id.pid);
            Some(Party::Backend(backend.map_or(id.pid, Backend::group)))
        }
        _ => None,
    }
}

impl Known {
    /// For the rows that are about somebody who may block others; none where no row is. Where all of them are expected their entries
    /// are taken away, else entries are made for the others.
    #[must_use]
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
                None => known.refused.push(format!("{name} blocks nobody")),
                Some(Finding { expected: Some(entry), .. }) => {
                    expected.push((name, ExpectedBlocker::clone(entry)));
                }
                Some(_) => match entry(view, snapshot, party) {
                    Some(entry) => made.push((name, entry)),
                    None => known.refused.push(format!(
                        "{name}: nothing is known of it that tells it apart (pg_read_all_stats shows it)"
                    )),
                },
            }
        }
        known.takes_away = made.is_empty() && !expected.is_empty();
        known.rows = if known.takes_away { expected } else { made };
        known.met = met(view, snapshot, &known.rows);
        Some(known)
    }

    /// What is done.
    #[must_use]
    pub fn verb(&self) -> Verb {
        if self.takes_away { Verb::ExpectNoMore } else { Verb::Expect }
    }

    /// Why there is nothing to ask; none where there is something.
    pub(super) fn why_nothing(&self) -> Option<String> {
        self.rows.is_empty().then(|| self.refused.join("; "))
    }

    /// Whom it is about: `4312 app@web-3`, `3 blockers`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.rows.as_slice() {
            [(name, _)] => name.clone(),
            several => format!("{} blockers", several.len()),
        }
    }

    /// The entries, each once.
    #[must_use]
    pub fn entries(&self) -> Vec<ExpectedBlocker> {
        let mut entries: Vec<ExpectedBlocker> = Vec::new();
        for (_, entry) in &self.rows {
            if !entries.contains(entry) {
                entries.push(entry.clone());
            }
        }
        entries
    }

    /// What is expected after it.
    #[must_use]
    pub fn applied(&self, expected: &[ExpectedBlocker]) -> Vec<ExpectedBlocker> {
        let entries = self.entries();
        let mut left = expected.to_vec();
        left.retain(|entry| !entries.contains(entry));
        if !self.takes_away {
            left.extend(entries);
        }
        left
    }

    /// What goes into the config file.
    #[must_use]
    pub fn written(&self) -> Vec<ExpectedBlocker> {
        if self.writes && !self.takes_away { self.entries() } else { Vec::new() }
    }

    pub(super) fn choices(&self) -> Vec<Choice> {
        let file = self.file.as_ref().filter(|_| !self.takes_away);
        let switch = |file: &PathBuf| Choice {
            letter: FILE,
            title: crate::text::one_line(&format!("write it to {}, too", file.display())).into_owned(),
            taken: self.writes,
            is_switch: true,
        };
        file.map(switch).into_iter().collect()
    }

    /// Turns the switch; whether there is one of that letter.
    pub(super) fn choose(&mut self, letter: char) -> bool {
        let is_there = self.choices().iter().any(|choice| choice.letter == letter);
        self.writes ^= is_there;
        is_there
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for entry in self.entries() {
            let label = |at: usize| if at == 0 { "entry" } else { "" };
            let keys = entry.toml();
            lines.extend(keys.lines().enumerate().map(|(at, key)| field(label(at), key, Tone::Plain)));
        }
        let (sessions, blocking) = self.met;
        if self.takes_away {
            lines.push(field("effect", "what it causes is told as that of any other", Tone::Good));
            lines.push(field("", "in this run; the config file stays as it is", Tone::Plain));
        } else {
            lines.push(field(
                "effect",
                "what it causes is worth knowing and no more, in this run",
                Tone::Good,
            ));
            if self.file.is_none() {
                let how = "to keep it, put the entry into the config file (locktop config path)";
                lines.push(field("", how, Tone::Plain));
            }
        }
        let one = if sessions == 1 { "session meets" } else { "sessions meet" };
        let blocks = if blocking == 1 { "blocks" } else { "block" };
        let text = format!("{sessions} {one} it now; {blocking} {blocks} others");
        let tone = if sessions > self.rows.len() { Tone::Warning } else { Tone::Plain };
        lines.push(field("who", text, tone));
        if !self.takes_away && self.entries().iter().any(is_wide) {
            let wide = "every session of this role meets it, whatever it does, also later";
            lines.push(field("!", wide, Tone::Warning));
        }
        lines.extend(self.refused.iter().map(|why| field("!", why.as_str(), Tone::Warning)));
        lines
    }
}

/// It says neither which application nor what is run, as for a prepared transaction, which has neither.
fn is_wide(entry: &ExpectedBlocker) -> bool {
    let ExpectedBlocker { application, lock, statement, .. } = entry;
    application.is_none() && lock.is_none() && statement.is_none()
}

/// How many sessions meet one of the entries, and how many of those are roots.
fn met(view: &View, snapshot: &Snapshot, rows: &[(String, ExpectedBlocker)]) -> (usize, usize) {
    let is_met = |blocker: Blocker<'_>| rows.iter().any(|(_, entry)| entry.is_met(blocker, |_| true));
    let sessions = snapshot.backends.rows.iter().filter(|backend| is_met(Blocker::of(backend)));
    let prepared = snapshot.prepared.rows.iter().filter(|row| is_met(Blocker::of_prepared(row)));
    let roots = view.graph.roots.iter().filter(|root| match root.party {
        Party::Backend(pid) => {
            view.index.backend(snapshot, pid).is_some_and(|backend| is_met(Blocker::of(backend)))
        }
        Party::Prepared(xact) => {
            view.index.prepared(snapshot, xact).is_some_and(|row| is_met(Blocker::of_prepared(row)))
        }
    });
    (sessions.count() + prepared.count(), roots.count())
}

fn name(view: &View, snapshot: &Snapshot, party: Party) -> String {
    match party {
        Party::Backend(pid) => {
            let who = view.index.backend(snapshot, pid).map(words::who).unwrap_or_default();
            if who.is_empty() { pid.to_string() } else { format!("{pid} {who}") }
        }
        Party::Prepared(xact) => match view.index.prepared(snapshot, xact) {
            Some(row) => format!("prepared transaction {}", crate::text::one_line(&row.gid)),
            None => format!("prepared transaction {xact}"),
        },
    }
}

/// Who it is, by all that stays the same when it comes again: application, role and database; of an autovacuum worker, which has
/// neither of the first two, what it vacuums. None where nothing is known but the database.
fn entry(view: &View, snapshot: &Snapshot, party: Party) -> Option<ExpectedBlocker> {
    let backend = view.index.backend(snapshot, party.pid());
    let known = |text: Option<&str>| text.filter(|text| !text.trim().is_empty()).map(Text::from);
    let blocker = match party {
        Party::Backend(_) => Blocker::of(backend?),
        Party::Prepared(xact) => Blocker::of_prepared(view.index.prepared(snapshot, xact)?),
    };
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
