//! The plan of an action and its result, the same for the command line and the dashboard.
//!
//! From chosen rows, [`sessions()`], [`rows()`] and, with the server's help, [`RecoverySearch`] and [`recovery()`] make an
//! [`ActionPlan`]: targets, each with an identity, and refusals, each with a reason. While a dialog is open,
//! [`ActionPlan::refreshed`] updates it. A confirmed plan is an [`ActionCommand`].

mod action;
mod command;
mod context;
mod executions;
mod question;
mod rights;
mod row_target;
pub(crate) mod rows;
mod signal;
mod target;
#[cfg(test)]
pub(crate) mod tests;

pub use action::{
    ActionCommand, ActionPlan, ActionReport, Caution, CautionKind, ExecutorOrder, ExecutorReply, LeaseHeld,
    Outcome, PlanEffect, PlannedTarget, Refused, TargetChange, TargetResult, WorkAtRisk, still_there,
};
pub use command::{Command, CommandId, Verb, VerbDefinition};
pub use context::PlanContext;
use context::PlanIndex;
pub use executions::{RecoverySearch, recovery, without_grace};
pub use locktop_tasks::recovery::{
    AlsoEnded, Others, Planned, Reason, RecoveryOutcome, RecoveryPlan, RecoveryResult, Request, RunState,
    RunningExecution, Selection, Step,
};
pub use question::{Ask, Choice, ChosenTargets, Confirm, KnownBlockers, TargetScope, is_blocker};
pub use rights::{MissingPrivilege, Rights};
pub use row_target::{Identity, PublishedHolder, PublishedTarget, RowTarget};
pub use rows::{ItemVerb, TaskVerb, is_published, published_plan, rows};
pub use signal::{sessions, with_offers};
pub use target::{
    AdapterTarget, Client, ExecutionTarget, ExpectedTime, SessionTarget, Signal, Target, TargetKind,
};
