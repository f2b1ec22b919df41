//! Leases: locks that expire. Only the server's clock decides whether one has ended.

mod board;
#[cfg(test)]
mod tests;

use super::Timestamp;
use super::table::TextId;
pub use super::table_rows::Lease;

pub use board::{Board, LeaseRow, ObservedHold, REDIS, redis_id};

/// Where a lease is kept, and its id there.
pub type LeaseId = TextId;

/// The position of a row in its table: page and line.
pub type RowPosition = (u32, u16);

words! {
    /// The state of a lease, the most urgent first.
    pub enum LeaseState {
        /// Its term has ended, and its owner has not released it.
        Expired,
        Held,
        Released,
        /// Its row names no owner, as after a release by the published functions.
        Free,
    }
}

impl Lease {
    /// The state at `now`. A release empties the owner (published tables) or the term (locktop's own). A lease without an end
    /// never expires: the published condition `now() > ts + expired_time` is NULL then, and no other owner gets it.
    pub fn state(&self, now: Timestamp) -> LeaseState {
        let is_released = self.released_at.is_some() || self.term.is_some_and(|term| term <= 0.0);
        match self.expires_at {
            _ if self.owner.is_none() => LeaseState::Free,
            Some(end) if end <= now && is_released => LeaseState::Released,
            Some(end) if end <= now => LeaseState::Expired,
            Some(_) | None => LeaseState::Held,
        }
    }
}
