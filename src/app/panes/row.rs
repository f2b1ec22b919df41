use super::Pane;
use super::forest::ChainRow;
pub use crate::model::row_id::{Owner, RowId};

/// The position of a row in the view; its pane knows in which list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row {
    At(u32),
    /// Index of a table in the snapshot, and of the row in that table.
    In(u32, u32),
    /// A line of the forest, with its level.
    Chain(ChainRow),
    /// Position of an event among those that are kept, and the number of events in the line.
    Events(u32, u32),
}

/// There is one row for each lock, and a server may have tens of thousands.
const _: () = assert!(size_of::<Row>() == 16, "a row of a pane has 16 bytes");

impl Row {
    pub fn all(count: usize) -> Vec<Self> {
        (0..u32::try_from(count).unwrap_or(u32::MAX)).map(Self::At).collect()
    }

    /// One for each row of several tables, in order; `counts` has their lengths.
    pub fn all_of(counts: impl Iterator<Item = usize>) -> Vec<Self> {
        let of = |(table, count): (u32, usize)| {
            (0..u32::try_from(count).unwrap_or(u32::MAX)).map(move |at| Self::In(table, at))
        };
        (0u32..).zip(counts).flat_map(of).collect()
    }

    pub fn at(self) -> Option<usize> {
        match self {
            Self::At(at) => Some(at as usize),
            _ => None,
        }
    }

    /// The indexes of its table and of the row in it; `None` for a row of another kind.
    pub fn within(self) -> Option<(usize, usize)> {
        match self {
            Self::In(table, at) => Some((table as usize, at as usize)),
            _ => None,
        }
    }
}

impl RowId {
    /// The pane with the name and the detail page for it.
    pub fn home(self) -> Pane {
        match self {
            Self::Finding(..) => Pane::Findings,
            Self::Backend(_) => Pane::Backends,
            Self::Prepared(_) | Self::Group(..) | Self::Run(_) => Pane::Chains,
            Self::Lock(..) => Pane::Held,
            Self::Awaited(_) => Pane::Locks,
            Self::Waits(_) => Pane::Waits,
            Self::Task(..) => Pane::Tasks,
            Self::Lease(_) => Pane::Leases,
            Self::Job(_) => Pane::Jobs,
            Self::Schedule(_) => Pane::Schedules,
            Self::OtherLease(_) => Pane::OtherLeases,
            Self::JobQueue(_) => Pane::JobQueues,
            Self::Worker(_) => Pane::Workers,
            Self::Item(_) => Pane::Queue,
            Self::Limit(_) => Pane::Limits,
            Self::Generator(_) => Pane::Generators,
            Self::Event(..) | Self::Routine(_) => Pane::Events,
            Self::Blamed(_) => Pane::Blame,
            Self::Episode(_) => Pane::Episodes,
        }
    }
}
