//! Shared by both sources of the work queue, its counts and its items: `task_queue`.
//!
//! A queue may have millions of rows. Each status is counted up to ten thousand only, and counted and read by an index
//! that is known to find it; statuses without an index are searched among the newest rows.

use crate::model::Text;
use crate::pg::tables::{ColumnKind, Table};

pub(super) const TABLE: &str = "task_queue";
pub(super) const LACKS: &str = "has no columns id and status: not a work queue";
/// A status is counted up to this number.
pub(super) const MOST: usize = 10_000;

pub(super) fn is_one(table: &Table) -> bool {
    table.is("id", ColumnKind::Int) && table.is("status", ColumnKind::Text)
}

/// The statuses that an index finds and, if the newest rows may be read, those that none finds.
pub(super) fn split(
    table: &Table,
    statuses: &[&'static str],
) -> Result<(Vec<&'static str>, Vec<&'static str>), Text> {
    let (indexed, mut rest): (Vec<_>, Vec<_>) =
        statuses.iter().partition(|status| table.index_where("status", status, &[]).is_some());
    if !table.has_index(&["id"]) {
        rest.clear();
    }
    if indexed.is_empty() && rest.is_empty() {
        let name = table.label();
        return Err(format!(
            "{name} has no index on status nor on id, and is not read: it would be a sequential scan"
        )
        .into());
    }
    Ok((indexed, rest))
}

pub(super) fn array(statuses: &[&str]) -> String {
    format!("'{{{}}}'", statuses.join(","))
}
