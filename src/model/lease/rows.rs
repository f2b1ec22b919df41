//! A row of `distlock`, and how a lease is.

use strum::{IntoStaticStr, VariantArray};

use crate::model::systems::TextId;
use crate::model::{Text, Timestamp};

/// What identifies a lease: where it is kept, and its id there.
pub type LeaseId = TextId;

/// Where a row is in its table: page and line.
pub type RowPosition = (u32, u16);

/// A row of `distlock`: a lease in a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lease {
    /// `id`, cast to text.
    pub id: Text,
    /// Who has it, or had it last.
    pub owner: Option<Text>,
    /// When it was taken or renewed.
    pub renewed_at: Option<Timestamp>,
    /// How long it lives from then on, in seconds.
    pub term: Option<f64>,
    /// When it ends or has ended; none where that is not said.
    pub expires_at: Option<Timestamp>,
    /// Grows with every change of owner.
    pub token: Option<i64>,
    /// When its present owner got it; none in a published table.
    pub acquired_at: Option<Timestamp>,
    /// When its owner gave it back.
    pub released_at: Option<Timestamp>,
    /// Process id of the owner's session, where a table says so.
    pub backend_pid: Option<i32>,
    /// `backend_start` of that session; none where the table does not say it.
    pub backend_start: Option<Timestamp>,
    /// `ctid`: page and line of the row, which a tuple lock names; none where it was not read.
    pub place: Option<RowPosition>,
}

/// How a lease is. The order is that of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum LeaseState {
    /// Its time is over, and its owner has not given it back.
    Expired,
    /// Somebody has it, and its time is not over.
    Held,
    /// Its owner gave it back.
    Released,
    /// Nobody has it: its row names no owner, as a release of the published functions leaves it.
    Free,
}

impl LeaseState {
    /// Every state, the most urgent first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word on the screens and in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Lease {
    /// How it is at `now`. A release empties the owner (as published) or the term (locktop's own). A lease without an end
    /// is never over: the published condition `now() > ts + expired_time` is NULL then, and nobody else gets it.
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
