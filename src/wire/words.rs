use crate::model::lease::LeaseId;
use crate::model::lock::Prepared;
use crate::model::rate_limit::{self, LimitId};
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::view::View;
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

pub(super) fn lease(view: &View, id: LeaseId) -> Option<(&str, &str)> {
    let row = view.leases.rows.iter().find(|row| row.id == id)?;
    Some((&row.source, &row.key))
}

pub(super) fn limit(snapshot: &Snapshot, id: LimitId) -> Option<(&str, &str)> {
    let row = rate_limit::rows(snapshot).find(|row| row.id == id)?;
    Some((row.source, &row.limit.key))
}
