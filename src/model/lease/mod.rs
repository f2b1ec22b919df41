//! Leases: locks that expire. Only the server's clock decides whether one has ended.

mod board;
#[cfg(test)]
mod tests;

use super::table::TextId;
use super::{Text, Timestamp};

pub use board::{Board, LeaseRow, ObservedHold, REDIS, redis_id};

/// Where a lease is kept, and its id there.
pub type LeaseId = TextId;

/// The position of a row in its table: page and line.
pub type RowPosition = (u32, u16);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lease {
    pub id: Text,
    /// Of a lease that is requested by name.
    pub name: Option<Text>,
    /// The current or last owner.
    pub owner: Option<Text>,
    /// When it was acquired or renewed.
    pub renewed_at: Option<Timestamp>,
    /// Its duration from a renewal on, in seconds.
    pub term: Option<f64>,
    pub expires_at: Option<Timestamp>,
    pub token: Option<i64>,
    /// When its current owner acquired it. None in a published table.
    pub acquired_at: Option<Timestamp>,
    pub released_at: Option<Timestamp>,
    pub backend_pid: Option<i32>,
    pub backend_start: Option<Timestamp>,
    /// `ctid`: page and line of the row, as in a tuple lock. None if not read.
    pub place: Option<RowPosition>,
}

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
