//! The leases of all installations.

use strum::{IntoStaticStr, VariantArray};

use super::Look;
use crate::model::Text;
use crate::model::adapter::AdapterLease;
use crate::model::systems::TextId;

/// A lease of an installation.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherLeaseRow {
    /// What identifies it: the installation and its id.
    pub id: TextId,
    /// `Liquibase`, or with its schema.
    pub source: Text,
    /// Place of the installation in the snapshot, and of the lease in it.
    pub place: (usize, usize),
    /// How it is.
    pub state: TermState,
    /// Seconds until it ends, below 0 since; none where it has no end, or where nobody has it.
    pub left: Option<f64>,
}

/// How a lease is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum TermState {
    /// Somebody has it.
    Held,
    /// Nothing tells.
    Unknown,
    /// Its term is over: whoever comes next may take it.
    Over,
    /// Nobody has it.
    Free,
}

impl TermState {
    /// All of them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl TermState {
    /// Whether somebody has it; none where nothing tells.
    #[must_use]
    pub fn is_held(self) -> Option<bool> {
        (self != Self::Unknown).then_some(self == Self::Held)
    }
}

impl Look<'_> {
    /// Its leases, in the order in which they were read.
    pub(super) fn leases(&self, place: usize) -> Vec<OtherLeaseRow> {
        let rows = self.rows.leases.section.rows.iter().enumerate();
        rows.map(|(at, lease)| self.lease_row((place, at), lease)).collect()
    }

    fn lease_row(&self, place: (usize, usize), lease: &AdapterLease) -> OtherLeaseRow {
        let installation = &self.rows.installation;
        let left = lease.expires_at.map(|end| (end - self.snapshot.taken_at).as_seconds_f64());
        let state = match (lease.is_held, left) {
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
        }
    }
}
