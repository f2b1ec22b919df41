//! Recovery of executions whose session has ended and, on request, of those whose session is stuck.
//!
//! [`plan`] reads and locks nothing. [`execute`] carries a plan out, each execution alone, each step a transaction of its
//! own:
//! 1. if the holder of a key is to be terminated, "asked" is committed to the audit, then the server terminates that
//!    session if it is still the one that was seen and still holds the key, then locktop waits for the key;
//! 2. the server closes the execution if it is still the one that was seen and no session holds its key.
//!
//! Dropping a future midway leaves nothing half done: what was sent happens completely or not at all.

mod error;
mod execute;
mod find;
mod plan;
mod running;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::actor::Actor;

pub use error::{RecoverError, RecoveryNeed, grants, record_grants};
pub use execute::{execute, execute_one, not_tried};
pub use find::plan;
pub use plan::{Others, Planned, Reason, RecoveryPlan, Request, Selection, Step};
pub use running::{AlsoEnded, RecoveryOutcome, RecoveryResult, RunState, RunningExecution};

/// The initiator, the reason and the time limit of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryOrder {
    /// The initiator to be recorded.
    pub actor: Actor,
    /// The reason, as written to the audit; `None` if none was given.
    pub reason: Option<String>,
    /// How long to wait for a session to end after its termination was requested, before it counts as still present.
    pub wait: Duration,
}
