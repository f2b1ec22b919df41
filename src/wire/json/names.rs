//! What identifies a row by name, of which the screens know a number.

use crate::model::lease::LeaseId;
use crate::model::rate_limit::{self, LimitId};
use crate::model::snapshot::Snapshot;
use crate::model::view::View;

/// Where a lease is kept, and its id there.
pub(super) fn lease(view: &View, id: LeaseId) -> Option<(&str, &str)> {
    let row = view.leases.rows.iter().find(|row| row.id == id)?;
    Some((&row.source, &row.name))
}

/// The table and the key of a rate limit.
pub(super) fn limit(snapshot: &Snapshot, id: LimitId) -> Option<(&str, &str)> {
    let row = rate_limit::rows(snapshot).find(|row| row.id == id)?;
    Some((row.source, &row.limit.key))
}
