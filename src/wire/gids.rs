use crate::model::lock::Prepared;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::wait_graph::Party;

#[derive(Debug, Clone)]
pub struct Gids<'a> {
    snapshot: &'a Snapshot,
    index: &'a SnapshotIndex,
}

impl<'a> Gids<'a> {
    pub fn of(snapshot: &'a Snapshot, index: &'a SnapshotIndex) -> Self {
        Self { snapshot, index }
    }

    pub fn prepared(&self, party: Party) -> Option<&'a Prepared> {
        match party {
            Party::Backend(_) => None,
            Party::Prepared(virtualtransaction) => self.index.prepared(self.snapshot, virtualtransaction),
        }
    }

    /// The name given to PREPARE TRANSACTION; `None` for a session, or if its row was not read.
    pub fn gid(&self, party: Party) -> Option<&'a str> {
        self.prepared(party).map(|row| &*row.gid)
    }
}
