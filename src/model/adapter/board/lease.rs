use super::BoardBuilder;
use crate::model::Text;
use crate::model::adapter::AdapterLease;
use crate::model::systems::TextId;

#[derive(Debug, Clone, PartialEq)]
pub struct OtherLeaseRow {
    pub id: TextId,
    /// The installation's label: `Liquibase`, with its schema if there are several.
    pub source: Text,
    /// Index of the installation in the snapshot, and of the lease in it.
    pub place: (usize, usize),
    pub lease: AdapterLease,
    pub state: TermState,
    /// Seconds until it ends, negative after that. None if it has no end, or is not held.
    pub left: Option<f64>,
    /// The process id of the session that holds its lock.
    pub pid: Option<i32>,
}

words! {
    pub enum TermState {
        /// Held according to its row, or by a term that has not ended.
        Held,
        /// Its row has neither an owner nor an end.
        Unknown,
        /// Its term has ended: the next request gets it.
        Over,
        Free,
    }
}

impl TermState {
    pub fn is_held(self) -> Option<bool> {
        (self != Self::Unknown).then_some(self == Self::Held)
    }
}

impl BoardBuilder<'_> {
    pub(super) fn leases(&self, place: usize) -> Vec<OtherLeaseRow> {
        let rows = self.rows.leases.last_rows().iter().enumerate();
        rows.map(|(at, lease)| self.lease_row((place, at), lease)).collect()
    }

    fn lease_row(&self, place: (usize, usize), lease: &AdapterLease) -> OtherLeaseRow {
        let left = lease.expires_at.map(|end| (end - self.snapshot.taken_at).as_seconds_f64());
        // A standby does not have the locks of the primary.
        let holders = self.holders.filter(|_| !self.facts().in_recovery);
        let holder = lease.key.zip(holders).map(|(key, holders)| holders.get(&key));
        let state = match (lease.is_held, left) {
            (None, None) if holder.is_some_and(|holder| holder.is_some()) => TermState::Held,
            (None, None) if holder.is_some() => TermState::Free,
            (Some(false), _) => TermState::Free,
            (_, Some(left)) if left <= 0.0 => TermState::Over,
            (Some(true), _) | (None, Some(_)) => TermState::Held,
            (None, None) => TermState::Unknown,
        };
        OtherLeaseRow {
            id: self.id(&format!("lease {}", lease.id)),
            source: self.source.clone(),
            place,
            lease: lease.clone(),
            state,
            left: left.filter(|_| state != TermState::Free),
            pid: holder.flatten().copied().flatten(),
        }
    }
}
