use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};

/// Names the grant that would show the activity of other roles (`pg_read_all_stats`; "Predefined Roles" in the
/// documentation).
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let Some(server) = look.snapshot.server().filter(|server| !server.sees_all) else {
        return Vec::new();
    };
    let role = server.user.replace('"', "\"\"");
    let summary = format!("other roles' activity is hidden: GRANT pg_read_all_stats TO \"{role}\"");
    let finding = Finding::new("hidden_activity", Severity::Info, summary, Subject::Server);
    vec![finding.short("other roles' activity is hidden: needs pg_read_all_stats")]
}
