//! What an action is going to do, before it does it, and what came of it: the same for the command line and the dashboard.

mod act;
mod outcome;
mod recovery;
mod rights;
mod running;
mod session;
#[cfg(test)]
mod tests;

pub use act::{
    Deed, Fate, ItemTarget, LeaseTarget, Report, Rights, Seen, SessionTarget, Target, TargetResult,
    TaskTarget, Verb, What,
};
pub use outcome::{Outcome, RecoveryResult};
pub use recovery::{Others, Planned, Reason, RecoveryPlan, Request, Selection, Step};
pub use rights::{Lack, Needs};
pub use running::{RunState, Running};
pub use session::AlsoEnded;
