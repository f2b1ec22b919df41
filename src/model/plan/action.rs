//! The plan of an action, the command that the executor gets of it, and the result.

use std::sync::Arc;
use std::time::Duration;

use strum::{Display, IntoStaticStr};

use super::{
    Confirm, PlanContext, PlanIndex, RecoveryPlan, Request, Target, TargetKind, TargetScope, Verb, rows,
    signal,
};
use crate::model::Text;
use crate::model::consequence::Consequence;
use crate::model::finding::Subject;
use crate::model::lease::LeaseId;
use crate::model::task::TaskId;
use crate::model::view::TargetId;
use crate::model::wait_graph::Release;
use crate::model::work_queue::ItemId;
use crate::order::SortExt as _;

/// The plan of an action. It is valid while every target stays as seen; the statement that acts compares them on the
/// server.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionPlan {
    pub verb: Verb,
    /// Targets in the order of execution, one at a time; the operator chose each of them.
    pub rows: Vec<PlannedTarget>,
    pub refused: Vec<Refused>,
    /// Number of targets left out because the filter hides them.
    pub hidden: usize,
    /// The combined effect of all targets; only for sessions.
    pub effect: Option<PlanEffect>,
    /// Other scopes that the row could mean, in words; only if one row of the forest was chosen.
    pub offers: Vec<(TargetScope, String)>,
    pub confirm: Confirm,
}

/// A target, with what is known about it. Each text is one sanitized line.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTarget {
    pub target: Target,
    /// The request to the server: `pg_terminate_backend(4312)`.
    pub does: String,
    pub facts: Vec<String>,
    /// The effect of this target alone; only for sessions.
    pub effect: Option<PlanEffect>,
    /// What the action does to the session and its data; only for sessions.
    pub consequence: Option<Consequence>,
    pub cautions: Vec<Caution>,
    pub lease: Option<LeaseHeld>,
    /// The work of the session by locktop's own tables: while it stays the same, the session serves the same client, whatever
    /// it has run.
    pub work: Option<WorkAtRisk>,
    /// How the target has changed since it was chosen, so that the server will not act on it. Once set, it stays set.
    pub change: Option<TargetChange>,
}

/// A lease and its owner: the values that a renewal does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHeld {
    pub id: LeaseId,
    /// Process id of the owner's session; `None` if the table does not have it.
    pub pid: Option<i32>,
    pub owner: Option<Text>,
    /// `None` if the table has no tokens.
    pub token: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub name: String,
    pub subject: Subject,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanEffect {
    pub release: Release,
    /// `17: 1 continues now, 16 in turn`, or that they block no session.
    pub blocks: String,
    /// Lines that name sessions, each with its label: `now`, `in turn`, `still`, `by`, `root`.
    pub named: Vec<(&'static str, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caution {
    pub kind: CautionKind,
    pub words: String,
    /// The work of the session that the caution is about: with another task, item or lease it is a different caution.
    pub about: Vec<WorkAtRisk>,
}

/// Work that is lost with a session, by values that stay the same as long as it is the same work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkAtRisk {
    /// An execution that the session runs, and its attempt.
    Execution(TaskId, Option<i64>),
    Item(ItemId, Option<i64>),
    Lease(LeaseHeld),
}

/// The order is that of the display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CautionKind {
    /// The action applies to the leader instead of its parallel worker.
    ParallelWorker,
    /// The session keeps a session-level lock while it runs other statements.
    Keeps,
    /// Another locktop, recognized by `application_name`.
    Locktop,
    /// A program that must be started again.
    Tool,
    Task,
    Item,
    Lease,
    /// This was the last attempt: lost work is not tried again.
    GivesUp,
    /// A large amount of written data is rolled back.
    Written,
    Futile,
    /// The owner may be working, and the action does not stop it.
    Owner,
    /// The display is out of date: part of it could not be read again.
    Old,
}

impl ActionPlan {
    pub(crate) fn new(verb: Verb) -> Self {
        Self {
            verb,
            rows: Vec::new(),
            refused: Vec::new(),
            hidden: 0,
            effect: None,
            offers: Vec::new(),
            confirm: Confirm::Nothing,
        }
    }

    /// The command to execute after confirmation: all targets, also changed ones, since the server compares and reports those.
    /// `server` is the one the plan was made for, `number` identifies the report, and `wait` is how long to wait for the
    /// change to happen.
    pub fn command(&self, server: TargetId, number: u64, wait: Duration) -> ActionCommand {
        let targets = self.rows.iter().map(|row| row.target.clone()).collect();
        ActionCommand { server, number, verb: self.verb, targets, wait }
    }

    /// Whether nothing is left to do: there was no target, or every target has changed.
    pub fn is_over(&self) -> bool {
        self.rows.iter().all(|row| row.change.is_some())
    }

    /// Why nothing is left to do; `None` while a target is left.
    pub fn why_over(&self) -> Option<String> {
        if !self.is_over() {
            return None;
        }
        let changed = || self.rows.iter().filter_map(|row| Some((&row.target.name, row.change.as_ref()?)));
        match (changed().next(), self.refused.first()) {
            (Some((name, change)), _) if self.rows.len() == 1 => Some(format!("{name}: {change}")),
            (Some(_), _) => Some(format!("all {} have changed since they were shown", self.rows.len())),
            (None, Some(refused)) if self.refused.len() == 1 => {
                Some(format!("{}: {}", refused.name, refused.reason))
            }
            (None, Some(first)) => {
                let more = self.refused.len() - 1;
                Some(format!("{}: {}; and {more} more", first.name, first.reason))
            }
            (None, None) if self.hidden > 0 => Some("the filter hides all of them".to_owned()),
            (None, None) => Some("nothing selected".to_owned()),
        }
    }
}

impl PlannedTarget {
    pub(super) fn new(target: Target, does: &str, facts: Vec<String>, mut cautions: Vec<Caution>) -> Self {
        let does = crate::text::one_line(does).into_owned();
        let facts = facts.into_iter().map(|fact| crate::text::one_line(&fact).into_owned()).collect();
        cautions.order_by_key(|caution| caution.kind);
        Self {
            target,
            does,
            facts,
            effect: None,
            consequence: None,
            cautions,
            lease: None,
            work: None,
            change: None,
        }
    }
}

impl Caution {
    /// Its owner may be working.
    pub(super) fn owner(words: impl Into<String>) -> Self {
        Self::new(CautionKind::Owner, words)
    }

    pub(super) fn of_worker() -> Self {
        Self::owner("the worker may still be running; unfenced work may run twice")
    }

    pub(super) fn of_session(pid: i32) -> Self {
        Self::owner(format!(
            "its worker is alive: its session {pid} will be terminated; its process must stop on its own"
        ))
    }

    pub(super) fn new(kind: CautionKind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into(), about: Vec::new() }
    }
}

impl Refused {
    pub(super) fn new(name: impl Into<String>, subject: Subject, reason: impl Into<String>) -> Self {
        Self { name: name.into(), subject, reason: reason.into() }
    }

    pub(super) fn server(reason: &str) -> Self {
        Self::new("the server", Subject::Server, reason)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display)]
pub enum TargetChange {
    #[strum(serialize = "has ended")]
    Gone,
    #[strum(serialize = "is no longer visible to this role")]
    Hidden,
    #[strum(serialize = "its transaction has ended")]
    OtherTransaction,
    #[strum(serialize = "its query has ended")]
    OtherQuery,
    /// Its session is idle.
    #[strum(serialize = "has run another statement since then: it may serve another client")]
    RanSomething,
    /// The application, role or address differs.
    #[strum(serialize = "now serves another client")]
    OtherClient,
    #[strum(serialize = "no longer runs a query")]
    NotActive,
    #[strum(serialize = "no longer holds that lock")]
    HoldsNotAnyMore,
    #[strum(serialize = "no longer blocks any session")]
    BlocksNobody,
    #[strum(serialize = "its row has changed")]
    OtherRow,
}

/// The change of each target since the plan was made, in order; `None` if no change is known.
pub fn still_there(plan: &ActionPlan, context: &PlanContext<'_>) -> Vec<Option<TargetChange>> {
    plan.refreshed(context).rows.into_iter().map(|row| row.change).collect()
}

impl ActionPlan {
    /// The same plan with current data: the change of each target, its facts, what it blocks and frees. The targets stay,
    /// except a lease that its holder renewed, and so does the text to type.
    pub fn refreshed(&self, context: &PlanContext<'_>) -> Self {
        let mut plan = self.clone();
        let Ok(index) = PlanIndex::of(context) else { return plan };
        if plan.rows.iter().any(|row| matches!(row.target.what, TargetKind::Session(_))) {
            signal::refresh(&index, &mut plan);
            return plan;
        }
        for row in &mut plan.rows {
            row.change = row.change.or_else(|| rows::follow(&index, &mut row.target.what));
        }
        plan
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ActionCommand {
    /// The server whose rows were on the screen; an executor for another server does nothing.
    pub server: TargetId,
    /// Increases with each command; its report has the same number.
    pub number: u64,
    pub verb: Verb,
    /// Targets in the order in which the executor handles them, one at a time.
    pub targets: Vec<Target>,
    /// How long to wait until the requested change has happened.
    pub wait: Duration,
}

/// A request to the executor.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutorOrder {
    Act(Arc<ActionCommand>),
    PlanRecovery {
        server: TargetId,
        /// A number chosen by the caller, which the reply repeats.
        number: u64,
        schema: String,
        request: Arc<Request>,
    },
}

impl ExecutorOrder {
    pub fn server(&self) -> TargetId {
        match self {
            Self::Act(command) => command.server,
            Self::PlanRecovery { server, .. } => *server,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    Done,
    /// Done, and the recovered item is not tried again: that was its last attempt.
    GivenUp,
    /// The server accepted the request, but the change did not happen within the time limit.
    StillThere,
    /// The target has changed or no longer exists; nothing was done.
    Changed,
    /// The server refused, or the action is impossible; nothing was done.
    Refused,
    /// The role lacks a privilege; nothing was done.
    Forbidden,
    /// The connection was lost or no answer arrived; it is not known what was done.
    #[strum(serialize = "outcome_unknown")]
    Uncertain,
    /// Not tried: the result of an earlier target is unknown, or no server could be reached.
    NotTried,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TargetResult {
    pub name: String,
    pub subject: Subject,
    pub outcome: Outcome,
    /// The result, or the reason for none with the missing grant, in one sanitized line.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ActionReport {
    pub number: u64,
    pub verb: Verb,
    pub results: Vec<TargetResult>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExecutorReply {
    /// The number of a command, and how many of its targets have a known result. Some of these replies may be skipped.
    Progress(u64, usize),
    Reported(Arc<ActionReport>),
    /// The plan, or in one line why there is none.
    RecoveryPlanned(u64, Result<Arc<RecoveryPlan>, String>),
}
