//! User tables that a poll reads: finds them with their columns and indexes, and reads them without blocking other
//! sessions.
//!
//! Tables are searched when connecting, again after an error, and at intervals; statements are built from the columns and
//! indexes that were found. If none were found, a poll sends nothing. A table of an untrusted owner is copied, never
//! queried (`copied`). Each table is read by a separate statement, which fails alone. A table that was locked at the last
//! poll is skipped, so that only the first poll waits for it, at most for `lock_timeout`.

mod copied;
mod found;
mod reading;

pub(super) use copied::Copying;
#[cfg(test)]
pub(super) use found::{Column, Index};
pub(super) use found::{ColumnKind, Columns, Named, Table, columns, guarded, locked, meant};
pub(super) use reading::{Reading, Refusal, blocker, has_changed, reason, records};

/// Largest number of polls skipped between two that read much.
const LONGEST: u32 = 10;

/// Polls to skip after reading this many rows, so that a poll reads about `each` of them on average.
pub(super) fn every(rows: usize, each: usize) -> u32 {
    u32::try_from(rows / each).unwrap_or(u32::MAX).min(LONGEST)
}
