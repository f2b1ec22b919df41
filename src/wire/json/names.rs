//! Names that identify a row, in place of the numbers that the screens use.

use crate::model::lease::LeaseId;
use crate::model::rate_limit::{self, LimitId};
use crate::model::snapshot::Snapshot;
use crate::model::view::View;

pub(super) fn lease(view: &View, id: LeaseId) -> Option<(&str, &str)> {
    let row = view.leases.rows.iter().find(|row| row.id == id)?;
    Some((&row.source, &row.name))
}

pub(super) fn limit(snapshot: &Snapshot, id: LimitId) -> Option<(&str, &str)> {
    let row = rate_limit::rows(snapshot).find(|row| row.id == id)?;
    Some((row.source, &row.limit.key))
}
