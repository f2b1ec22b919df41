//! Rows of the parts and their columns.

use crate::model::adapter::{AdapterLease, AdapterSchedule, Depth, Job, Part, Paused, Worker, part_rows};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};
use crate::pg::decode::rows::{DecodedRow, decoded};
use crate::pg::tables::Columns;

part_rows!(decoded);

pub(super) fn columns(part: Part) -> Columns {
    match part {
        Part::Workers => Worker::COLUMNS,
        Part::Depth => Depth::COLUMNS,
        Part::Paused => Paused::COLUMNS,
        Part::Leases => AdapterLease::COLUMNS,
        Part::Schedules => AdapterSchedule::COLUMNS,
        Part::Running | Part::Due | Part::Scheduled | Part::Blocked | Part::Failed => Job::COLUMNS,
    }
}
