//! The question of a dialog: its rows, the text to type to confirm, and blockers to expect from now on, for which no request is
//! sent to the server.

use rustc_hash::FxHashSet;

use super::{ActionPlan, PlanContext, PlannedTarget, RecoverySearch, Verb, rows, signal};
use crate::model::backend::Backend;
use crate::model::finding::Finding;
use crate::model::row_id::{LockOwner, RowId};
use crate::model::snapshot::Snapshot;
use crate::model::thresholds::{Blocker, ExpectedBlocker};
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::{Text, words};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum TargetScope {
    /// The row itself; for a folded line, all its members.
    #[default]
    This,
    Root,
    /// The row itself and the others that must end before the sessions behind it continue.
    Blockers,
}

impl TargetScope {
    pub const fn letter(self) -> char {
        match self {
            Self::This => 't',
            Self::Root => 'r',
            Self::Blockers => 'b',
        }
    }
}

/// Something else that the request could mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The key that selects it, as an alternative to Tab.
    pub letter: char,
    pub title: String,
    pub taken: bool,
    /// A switch is independent; the other choices exclude each other.
    pub is_switch: bool,
}

impl Choice {
    pub fn one_of(letter: char, title: impl Into<String>, taken: bool) -> Self {
        Self { letter, title: title.into(), taken, is_switch: false }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// [`Verb::Cancel`] or [`Verb::Terminate`], no other verb.
    pub verb: Verb,
    pub scope: TargetScope,
    pub chosen: Vec<RowId>,
    /// The rows were chosen in the forest of waits: a session that blocked another must still do so.
    pub from_chains: bool,
    /// The rows were chosen in a list of blockers: a session-level lock is meant.
    pub of_roots: bool,
    /// The parties that the filter shows; no other session is touched, whatever a row means. `None`: no filter.
    pub shown: Option<FxHashSet<Party>>,
}

impl Ask {
    pub fn new(verb: Verb, chosen: Vec<RowId>) -> Self {
        Self { verb, scope: TargetScope::This, chosen, from_chains: false, of_roots: false, shown: None }
    }

    pub(super) fn is_of_chains(&self) -> bool {
        self.from_chains || self.scope != TargetScope::This
    }

    pub(super) fn shows(&self, party: Party) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(&party))
    }
}

#[derive(Debug, Clone)]
pub enum ChosenTargets {
    Sessions(Ask),
    /// Executions of tasks: the server must be queried for them.
    Executions(Box<RecoverySearch>),
    /// Rows of one kind, never empty: each is changed separately.
    Rows(Vec<RowId>),
    /// Expected blockers: nothing is sent to the server.
    Known(Box<KnownBlockers>),
}

impl ChosenTargets {
    /// The singular; the plural has an added `s`.
    pub fn one(&self, verb: Verb) -> &'static str {
        match self {
            Self::Sessions(_) => "session",
            Self::Executions(_) => "execution",
            Self::Rows(rows) => match rows.first() {
                Some(RowId::Lease(_) | RowId::OtherLease(_)) => "lease",
                Some(RowId::Item(_)) => "item",
                Some(RowId::Job(_)) => "job",
                _ if verb == Verb::Recover => "execution",
                _ => "task",
            },
            Self::Known(_) => "blocker",
        }
    }

    pub fn plan(&self, context: &PlanContext<'_>, verb: Verb) -> ActionPlan {
        match self {
            Self::Sessions(ask) => signal::sessions(context, ask),
            Self::Executions(search) => search.plan(context),
            Self::Rows(rows) => rows::rows(context, verb, rows),
            Self::Known(_) => ActionPlan { confirm: Confirm::Yes, ..ActionPlan::new(verb) },
        }
    }
}

/// Those of the rows to which a verb applies; `None` if it applies to none.
pub(super) fn only(rows: &[RowId], applies: impl Fn(&RowId) -> bool) -> Option<Vec<RowId>> {
    let rows: Vec<RowId> = rows.iter().copied().filter(applies).collect();
    (!rows.is_empty()).then_some(rows)
}

/// Each task once, whichever of its executions was chosen.
pub(super) fn schedules(rows: &[RowId]) -> Option<Vec<RowId>> {
    let tasks = only(rows, |row| matches!(row, RowId::Task(..)))?;
    let whole = |row| if let RowId::Task(task, _) = row { RowId::Task(task, None) } else { row };
    Some(tasks.into_iter().map(whole).collect())
}

pub(super) fn items(rows: &[RowId]) -> Option<Vec<RowId>> {
    only(rows, |row| matches!(row, RowId::Item(_)))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirm {
    /// Nothing can be confirmed: there is no target.
    Nothing,
    /// One target: the key `y` is enough.
    Yes,
    /// Several targets: their number.
    Count(usize),
    /// One target with a live owner: the process id, or the id of the lease.
    Owner(String),
}

const LONGEST: usize = 40;

impl Confirm {
    /// `owner` is the word to type for a single target with a live owner.
    pub(super) fn of(rows: &[PlannedTarget], owner: impl FnOnce(&PlannedTarget) -> Option<String>) -> Self {
        match rows {
            [] => Self::Nothing,
            [one] => owner(one).map_or(Self::Yes, Self::Owner),
            several => Self::Count(several.len()),
        }
    }

    /// `None` if nothing can be confirmed.
    pub fn word(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Yes => Some("y".to_owned()),
            Self::Count(several) => Some(several.to_string()),
            Self::Owner(word) => Some(word.clone()),
        }
    }

    /// Whether `typed` is the required word; surrounding blanks are ignored.
    pub fn accepts(&self, typed: &str) -> bool {
        self.word().is_some_and(|word| word == typed.trim())
    }

    /// The prompt; `unlocks` if the word is that of a lease, not a process id.
    pub fn asks(&self, unlocks: bool) -> String {
        match self {
            Self::Nothing => "nothing to do".to_owned(),
            Self::Yes => "y to confirm".to_owned(),
            Self::Count(several) => format!("type {several} to confirm all {several}"),
            // A lease whose name cannot be typed.
            Self::Owner(word) if word == "end" => "its owner may be alive: type end to confirm".to_owned(),
            Self::Owner(owner) => {
                let is_pid = owner.bytes().all(|byte| byte.is_ascii_digit());
                match (unlocks, is_pid) {
                    (true, _) => format!("its owner may be alive: type {owner}, the lease, to confirm"),
                    (_, true) => format!("its owner may be alive: type {owner}, its pid, to confirm"),
                    _ => format!("its worker may still be running: type {owner} to confirm"),
                }
            }
        }
    }
}

pub(super) fn is_typable(word: &str) -> bool {
    !word.is_empty() && word.len() <= LONGEST && word.chars().all(|character| character.is_ascii_graphic())
}

const ROOT_CHECKS: [&str; 3] = ["root_blocker", "prepared_transaction", "convoy"];

#[derive(Debug, Clone, Default)]
pub struct KnownBlockers {
    pub rows: Vec<(String, ExpectedBlocker)>,
    pub takes_away: bool,
    /// How many sessions match the entries now, and how many of these block others.
    pub met: (usize, usize),
    pub refused: Vec<String>,
}

pub fn is_blocker(finding: &Finding) -> bool {
    ROOT_CHECKS.contains(&finding.check)
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
        RowId::Backend(id) | RowId::Lock(_, LockOwner::Backend(id), _) => {
            let backend = view.index.backend(view.snapshot.as_deref()?, id.pid);
            Some(Party::Backend(backend.map_or(id.pid, Backend::group)))
        }
        _ => None,
    }
}

impl KnownBlockers {
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
