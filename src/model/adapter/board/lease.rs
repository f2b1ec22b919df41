//! The leases of all installations.

use strum::{IntoStaticStr, VariantArray};

use super::BoardBuilder;
use crate::model::Text;
use crate::model::adapter::AdapterLease;
use crate::model::systems::TextId;

/// A lease of an installation, with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherLeaseRow {
    /// What identifies it: the installation and its id.
    pub id: TextId,
    /// What its installation is called: `Liquibase`, with its schema where there are several.
    pub source: Text,
    /// Place of the installation in the snapshot, and of the lease in it.
    pub place: (usize, usize),
    /// Whether somebody has it, or its term is over.
    pub state: TermState,
    /// Seconds until it ends, below 0 since; none where it has no end, or where nobody has it.
    pub left: Option<f64>,
    /// The process of the session that holds its lock.
    pub pid: Option<i32>,
}

/// Whether somebody has a lease of another system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum TermState {
    /// Somebody has it: its row says so, or has a term that lasts.
    Held,
    /// Its row says neither that somebody has it nor when it ends.
    Unknown,
    /// Its term is over: the next request gets it.
    Over,
    /// Nobody has it: its row says so.
    Free,
}

impl TermState {
    /// Every state, in the order of the screens.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word on the screens and in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl TermState {
    /// Whether somebody has it; none where nothing tells.
    pub fn is_held(self) -> Option<bool> {
        (self != Self::Unknown).then_some(self == Self::Held)
    }
}

impl BoardBuilder<'_> {
    /// Its leases, in the order in which they were read.
    pub(super) fn leases(&self, place: usize) -> Vec<OtherLeaseRow> {
        let rows = self.rows.leases.section.last_rows().iter().enumerate();
        rows.map(|(at, lease)| self.lease_row((place, at), lease)).collect()
    }

    fn lease_row(&self, place: (usize, usize), lease: &AdapterLease) -> OtherLeaseRow {
        let installation = &self.rows.installation;
        let left = lease.expires_at.map(|end| (end - self.snapshot.taken_at).as_seconds_f64());
        let holder = lease.key.zip(self.holders).map(|(key, holders)| holders.get(&key));
        let state = match (lease.is_held, left) {
            (None, None) if holder.is_some_and(|holder| holder.is_some()) => TermState::Held,
            // On a standby the locks of the primary are not there.
            (None, None) if holder.is_some() && !self.in_recovery() => TermState::Free,
            (Some(false), _) => TermState::Free,
            (_, Some(left)) if left <= 0.0 => TermState::Over,
            (Some(true), _) | (None, Some(_)) => TermState::Held,
            (None, None) => TermState::Unknown,
        };
        let name = format!("{} lease {}", installation.oid, lease.id);
        OtherLeaseRow {
            id: TextId::of(&installation.adapter.name, &name),
            source: installation.label().into(),
            place,
            state,
            left: left.filter(|_| state != TermState::Free),
            pid: holder.flatten().copied().flatten(),
        }
    }
}
