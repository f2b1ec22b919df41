//! What is going to be done, to whom, and what comes of it.

use std::sync::Arc;

use super::{ActionCommand, Change, Confirm, RecoveryPlan, Scope, Target, Verb};
use crate::model::Text;
use crate::model::consequence::Consequence;
use crate::model::finding::Subject;
use crate::model::lease::LeaseId;
use crate::model::task::TaskId;
use crate::model::view::TargetId;
use crate::model::wait_graph::Release;
use crate::model::work_queue::ItemId;

/// What is going to be done. It is good for as long as every target stays as it was seen; whoever carries it out has the
/// server compare, in the statement that acts.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionPlan {
    /// What is done to each target.
    pub verb: Verb,
    /// To whom, in this order, each alone; every one of them was chosen.
    pub rows: Vec<PlannedTarget>,
    /// What was chosen and is left alone, and why.
    pub refused: Vec<Refused>,
    /// How many were meant and are left out because the filter hides them.
    pub hidden: usize,
    /// What comes of all of them together; for sessions alone.
    pub effect: Option<Effect>,
    /// Who else could be meant by the row, and in words who that is: where one row of the forest was chosen.
    pub offers: Vec<(Scope, String)>,
    /// What has to be typed before it is done.
    pub confirm: Confirm,
    /// The plan behind a recovery; none for everything else.
    pub recovery: Option<Arc<RecoveryPlan>>,
}

/// A target, and what is known about it. All words are one harmless line each.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTarget {
    /// What is sent to whoever carries it out.
    pub target: Target,
    /// What is asked of the server: `pg_terminate_backend(4312)`.
    pub does: String,
    /// How it is: its state, its transaction, its locks, …, most telling first.
    pub facts: Vec<String>,
    /// What comes of it alone; for sessions.
    pub effect: Option<Effect>,
    /// What it does to the session and to its data; for sessions.
    pub consequence: Option<Consequence>,
    /// What else it breaks or may break; often nothing.
    pub cautions: Vec<Caution>,
    /// The lease for which its session was chosen.
    pub lease: Option<LeaseHeld>,
    /// What its session works on by tables of our own: while that stays, so does who is behind it, whatever was run for it.
    pub work: Option<Stake>,
    /// How it has changed since it was chosen: the server will not act on it any more. Once it is there it stays.
    pub change: Option<Change>,
}

/// A lease, and who has it: what does not change when it is renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHeld {
    /// What identifies it: where it is kept, and its id there.
    pub id: LeaseId,
    /// Process id of its owner's session; none where the table does not say it.
    pub pid: Option<i32>,
    /// Who has it by its row.
    pub owner: Option<Text>,
    /// Its token; none where the table has none.
    pub token: Option<i64>,
}

/// What was chosen, and is left alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// What it is called, in one harmless line.
    pub name: String,
    /// The row it is about, for whoever wants to go there.
    pub subject: Subject,
    /// Why, in one harmless line, with what can be done instead.
    pub reason: String,
}

/// What ending sessions, or their queries, does to those that wait.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Effect {
    /// Whoever waits behind them, divided.
    pub release: Release,
    /// `17: 1 continues now, 16 in turn`, or that they block no session.
    pub blocks: String,
    /// Lines that name sessions, each with its label: `now`, `in turn`, `still`, `by`, `root`.
    pub named: Vec<(&'static str, String)>,
}

/// Something that an action breaks, or that speaks against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caution {
    /// What kind of thing that is; [`Self::words`] say it of this target.
    pub kind: CautionKind,
    /// What that means, in one harmless line.
    pub words: String,
    /// What of the session's it is about: another task, item or lease in its place is another caution, whatever else is the same.
    pub about: Vec<Stake>,
}

/// What is lost with a session, by what stays the same for as long as it is the same piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stake {
    /// An execution of a task that the session runs, and which attempt it is.
    Execution(TaskId, Option<i64>),
    /// An item of the queue, and which attempt it is.
    Item(ItemId, Option<i64>),
    /// A lease that the session has.
    Lease(LeaseHeld),
}

/// What a caution is about. The order is that in which they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CautionKind {
    /// The leader is meant in place of its parallel worker.
    ParallelWorker,
    /// It keeps a lock of its session while it runs other statements.
    Keeps,
    /// Another locktop, by its `application_name`.
    Locktop,
    /// A program that has to be started again.
    Tool,
    /// It runs a task by the log.
    Task,
    /// It works on an item of the queue.
    Item,
    /// It has a lease by its row.
    Lease,
    /// It was the last attempt: what is lost is not tried again.
    GivesUp,
    /// Much that was written is undone.
    Written,
    /// It does not help, or not at once.
    Futile,
    /// Its owner may be at work, and is not stopped by it.
    Owner,
    /// What is shown is old: some of it could not be read anew.
    Old,
}

impl ActionPlan {
    /// A plan of which nothing is known yet but what is done.
    pub(crate) fn new(verb: Verb) -> Self {
        Self {
            verb,
            rows: Vec::new(),
            refused: Vec::new(),
            hidden: 0,
            effect: None,
            offers: Vec::new(),
            confirm: Confirm::Nothing,
            recovery: None,
        }
    }

    /// What is carried out once it was confirmed: all targets, also those that have changed since; of those the server, which
    /// compares, will say so. `server` is the one that the plan was made for; `number` tells its report apart; `wait` is how long to wait
    /// for what was asked to happen, in seconds.
    pub fn command(&self, server: TargetId, number: u64, wait: f64) -> ActionCommand {
        let targets = self.rows.iter().map(|row| row.target.clone()).collect();
        ActionCommand { server, number, verb: self.verb, targets, recovery: self.recovery.clone(), wait }
    }

    /// Whether nothing is left that could be done: nothing could from the start, or every target has changed since.
    pub fn is_over(&self) -> bool {
        self.rows.iter().all(|row| row.change.is_some())
    }

    /// Why there is nothing to do any more, for the message in place of the dialog; none while there is.
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
    /// A target that is no session, and what is asked of the server for it.
    pub(super) fn new(target: Target, does: &str, facts: Vec<String>, cautions: Vec<Caution>) -> Self {
        let does = crate::text::one_line(does).into_owned();
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
    pub(super) fn new(kind: CautionKind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into(), about: Vec::new() }
    }
}

impl Refused {
    pub(super) fn new(name: impl Into<String>, subject: Subject, reason: impl Into<String>) -> Self {
        Self { name: name.into(), subject, reason: reason.into() }
    }
}
