use super::check_input::CheckInput;
use crate::model::adapter::{InstallationRows, TermState};
use crate::text;

/// `no leader: its lease expired 5m ago`, if the leader has a lease.
pub(super) fn leaderless(look: &CheckInput<'_>, place: usize, rows: &InstallationRows) -> Option<String> {
    if !rows.installation.adapter.evidence.leads_by_lease || !rows.leases.section.is_known() {
        return None;
    }
    let mut leases = look.adapters.leases.iter().filter(|row| row.place.0 == place);
    if leases.clone().any(|row| row.state == TermState::Held) {
        return None;
    }
    let left = leases.find_map(|row| row.left);
    let ended = left.map(|left| format!(": its lease expired {} ago", text::duration(-left)));
    Some(format!("no leader{}", ended.unwrap_or_default()))
}
