//! What an action is going to do, before it does it, and what came of it: the same for the command line and the dashboard.
//!
//! Rows are chosen; [`sessions()`], [`leases()`], [`items()`], [`tasks()`] and, with the server's help, [`executions()`] and
//! [`recovery()`] make an [`ActionPlan`] of them: targets, each with an identity, and refusals, each with a reason. While a
//! dialog is open [`ActionPlan::refreshed`] follows what becomes of them. What was confirmed is a [`ActionCommand`].

mod act;
mod action;
mod ask;
mod change;
mod confirm;
mod context;
mod executions;
mod rights;
mod rights_words;
mod rows;
mod seen;
mod signal;
#[cfg(test)]
mod tests;
mod verb;

pub use act::{
    ActionCommand, AdapterTarget, ItemTarget, LeaseTarget, Outcome, PublishedTarget, Report, Target,
    TargetKind, TargetResult, TaskTarget,
};
pub use action::{ActionPlan, Caution, CautionKind, Effect, LeaseHeld, PlannedTarget, Refused, Stake};
pub use ask::{Ask, Scope, SelectedRow};
pub use change::{Change, still_there};
pub use confirm::Confirm;
pub use context::PlanContext;
pub use executions::{Recovery, RecoveryFilter, RecoveryScope, executions, place, recovery};
pub use locktop_tasks::recovery::{
    AlsoEnded, Others, Planned, Reason, RecoveryOutcome, RecoveryPlan, RecoveryResult, Request, RunState,
    Running, Selection, Step,
};
pub use rights::{Lack, Needs};
pub use rows::{is_published, items, jobs, leases, other_leases, published, published_plan, tasks, toggle};
pub use seen::{Client, Seen, SessionTarget};
pub use signal::{sessions, with_offers};
pub use verb::Verb;

pub use super::rights::Rights;
