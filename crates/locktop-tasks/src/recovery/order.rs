use std::time::Duration;

use crate::actor::Actor;

/// The initiator, the reason and the time limit of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The initiator to be recorded.
    pub actor: Actor,
    /// The reason, as written to the audit; `None` if none was given.
    pub reason: Option<String>,
    /// How long to wait for a session to end after its termination was requested, before it counts as still present.
    pub wait: Duration,
}
