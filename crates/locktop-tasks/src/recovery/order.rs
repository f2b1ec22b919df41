//! What is said when tasks are to be recovered.

use std::time::Duration;

use crate::actor::Actor;

/// On whose behalf, why, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// In whose name it is recorded.
    pub actor: Actor,
    /// Why, as it is written to the audit; none where nobody said.
    pub reason: Option<String>,
    /// How long to wait for a session that was told to end, before it counts as still there.
    pub wait: Duration,
}
