//! The plan of an action and its result, the same for the command line and the dashboard.
//!
//! From chosen rows, [`sessions()`], [`rows()`] and, with the server's help, [`executions()`] and [`recovery()`] make an [`ActionPlan`]: targets, each with an identity, and refusals, each with a reason. While a
//! dialog is open, [`ActionPlan::refreshed`] updates it. A confirmed plan is an [`ActionCommand`].

mod act;
mod action;
mod command;
mod context;
mod executions;
pub mod known;
mod question;
mod rights;
pub(crate) mod rows;
mod search;
mod seen;
mod signal;
#[cfg(test)]
pub(crate) mod tests;

pub use act::{
    ActionCommand, AdapterTarget, ExecutionTarget, ExecutorReply, ItemTarget, LeaseTarget, Order, Outcome,
    PublishedHolder, PublishedTarget, Report, Target, TargetKind, TargetResult, TaskTarget,
};
pub use action::{
    ActionPlan, Caution, CautionKind, Change, Effect, LeaseHeld, PlannedTarget, Refused, Stake, still_there,
};
pub use command::{Command, CommandId, Definition, Verb};
pub use context::PlanContext;
pub use executions::{Recovery, RecoveryFilter, RecoveryScope, executions, place, recovery, without_grace};
pub use known::Known;
pub use locktop_tasks::recovery::{
    AlsoEnded, Others, Planned, Reason, RecoveryOutcome, RecoveryPlan, RecoveryResult, Request, RunState,
    Running, Selection, Step,
};
pub use question::{Ask, Choice, Chosen, Confirm, Scope};
pub use rights::{Lack, Rights};
pub use rows::{ItemVerb, TaskVerb, is_published, published_plan, rows};
pub use search::RecoverySearch;
pub use seen::{Client, Seen, SessionTarget, Signal};
pub use signal::{sessions, with_offers};
