//! Tables of users that a poll reads: which there are, what columns and indexes they have, and reading them without ever
//! being in anybody's way.
//!
//! What there is, is looked up when a connection is made, again after an error, and now and then, because tables come
//! and go; statements are made of the columns and indexes that were found. Where nothing was found a poll sends
//! nothing. What a table of somebody untrusted has is copied, never queried (`copied`). Each table is read by a statement of its own, which fails alone; one that was locked at the last look is
//! left in peace, so that only the first poll ever waits for it, and that for `lock_timeout`.

mod access;
mod columns;
mod copied;
mod found;
mod named;
mod offsets;
mod reading;
mod rows;

pub(super) use access::{Refusal, blocker, has_changed, reason};
pub(super) use columns::{ColumnKind, Columns, KEY, LOCKER, columns};
pub(super) use copied::Copying;
#[cfg(test)]
pub(super) use found::{Column, Index};
pub(super) use found::{Table, meant};
pub(super) use named::{Named, guarded, locked};
pub(super) use reading::{Plan, Reading, records};

/// Polls that are let pass at most between two that read much.
const LONGEST: u32 = 10;

/// How many polls to let pass after so many rows, so that a poll has about `each` of them to read.
pub(super) fn every(rows: usize, each: usize) -> u32 {
    u32::try_from(rows / each).unwrap_or(u32::MAX).min(LONGEST)
}
