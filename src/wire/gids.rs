//! Names of prepared transactions.

use crate::model::lock::Prepared;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::wait_graph::Party;

/// The prepared transactions of a snapshot by the party they are.
#[derive(Debug, Clone)]
pub struct Gids<'a> {
    snapshot: &'a Snapshot,
    index: &'a SnapshotIndex,
}

impl<'a> Gids<'a> {
    /// Finds names in this snapshot, by the index that was made of it.
    pub fn of(snapshot: &'a Snapshot, index: &'a SnapshotIndex) -> Self {
        Self { snapshot, index }
    }

    /// The prepared transaction that `party` is.
    pub fn prepared(&self, party: Party) -> Option<&'a Prepared> {
        match party {
            Party::Backend(_) => None,
            Party::Prepared(virtualtransaction) => self.index.prepared(self.snapshot, virtualtransaction),
        }
    }

    /// The name given to PREPARE TRANSACTION; none for a session, and where its row was not read.
    pub fn gid(&self, party: Party) -> Option<&'a str> {
        self.prepared(party).map(|row| &*row.gid)
    }
}
