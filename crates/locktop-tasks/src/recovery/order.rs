//! What is said when tasks are to be recovered.

use std::time::Duration;

use crate::actor::Actor;

/// On whose behalf, why, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Who wants it.
    pub actor: Actor,
    /// Why; for the audit.
    pub reason: Option<String>,
    /// How long to wait for a session that was told to end.
    pub wait: Duration,
}
