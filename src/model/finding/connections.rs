use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::text::count;

/// The default of `superuser_reserved_connections`: not available to ordinary clients.
const RESERVED: u32 = 3;

/// A warning from the threshold on; critical if only the reserved connections are left.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let Some(server) = look.snapshot.server() else { return Vec::new() };
    if !look.snapshot.backends.is_known() {
        return Vec::new();
    }
    let (used, max) = (server.connections, server.max_connections);
    if max == 0 || f64::from(used) < f64::from(max) * look.thresholds.connections {
        return Vec::new();
    }
    let severity = if used.saturating_add(RESERVED) >= max { Severity::Critical } else { Severity::Warning };
    let summary = format!("{} of {} connections are in use", count(used.into()), count(max.into()));
    vec![Finding::new("connections", severity, summary, Subject::Server)]
}
