//! The question of a dialog: its rows, and the text to type to confirm.

use rustc_hash::FxHashSet;

use super::{ActionPlan, Known, PlanContext, PlannedTarget, RecoverySearch, Verb, rows, signal};
use crate::model::row_id::RowId;
use crate::model::wait_graph::Party;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Scope {
    /// The row itself; for a folded line, all its members.
    #[default]
    This,
    Root,
    /// The row itself and the others that must end before the sessions behind it continue.
    Blockers,
}

impl Scope {
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
    pub scope: Scope,
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
        Self { verb, scope: Scope::This, chosen, from_chains: false, of_roots: false, shown: None }
    }

    pub(super) fn is_of_chains(&self) -> bool {
        self.from_chains || self.scope != Scope::This
    }

    pub(super) fn shows(&self, party: Party) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(&party))
    }
}

#[derive(Debug, Clone)]
pub enum Chosen {
    Sessions(Ask),
    /// Executions of tasks: the server must be queried for them.
    Executions(Box<RecoverySearch>),
    /// Rows of one kind, never empty: each is changed separately.
    Rows(Vec<RowId>),
    /// Expected blockers: nothing is sent to the server.
    Known(Box<Known>),
}

impl Chosen {
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
