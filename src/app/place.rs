//! The target of a finding, an event or a row, and the screens that show it.

use super::panes::{Pane, RowId};
use super::screens::Screen;
use crate::model::backend::BackendId;
use crate::model::finding::Subject;
use crate::model::lock::LockTag;
use crate::model::wait_graph::Party;

/// Something that has rows, possibly on several screens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A session; if its start is unknown, any session with this process id.
    Backend(BackendId),
    Row(RowId),
    /// A lock, whichever session holds it or waits for it.
    Lock(LockTag),
    Queue,
}

impl Place {
    /// `None` if the subject is the whole server.
    pub fn of(subject: &Subject) -> Option<Self> {
        Some(match *subject {
            Subject::Backend(id) => Self::Backend(id),
            Subject::Party(Party::Backend(pid)) => Self::Backend(BackendId { pid, backend_start: None }),
            Subject::Party(Party::Prepared(xact)) => Self::Row(RowId::Prepared(xact)),
            Subject::Lock(tag) => Self::Lock(tag),
            Subject::Task(task) => Self::Row(RowId::Task(task, None)),
            Subject::Lease(id) => Self::Row(RowId::Lease(id)),
            Subject::Item(id) => Self::Row(RowId::Item(id)),
            Subject::Job(id) => Self::Row(RowId::Job(id)),
            Subject::JobQueue(id) => Self::Row(RowId::JobQueue(id)),
            Subject::JobLease(id) => Self::Row(RowId::OtherLease(id)),
            Subject::Limit(id) => Self::Row(RowId::Limit(id)),
            Subject::Generator(id) => Self::Row(RowId::Generator(id)),
            Subject::Queue => Self::Queue,
            Subject::Server | Subject::Section(_) => return None,
        })
    }

    pub fn is(&self, row: RowId) -> bool {
        match (self, row) {
            (Self::Backend(wanted), RowId::Backend(id)) => {
                id.pid == wanted.pid && (wanted.backend_start.is_none() || id == *wanted)
            }
            (Self::Row(wanted), row) => *wanted == row,
            (Self::Queue, RowId::Item(_)) => true,
            (Self::Lock(tag), RowId::Lock(other, ..) | RowId::Awaited(other)) => *tag == other,
            _ => false,
        }
    }

    /// The screens where it may be, the best first.
    pub fn screens(&self) -> Vec<Screen> {
        match self {
            // The Chains screen shows a backend in the forest best.
            Self::Backend(_) => vec![Screen::Chains, Screen::Backends],
            Self::Row(row) => Screen::with(row.home()).collect(),
            Self::Queue => Screen::with(Pane::Queue).collect(),
            Self::Lock(_) => Screen::with(Pane::Locks).collect(),
        }
    }

    pub fn tag(&self) -> Option<LockTag> {
        match self {
            Self::Lock(tag) => Some(*tag),
            _ => None,
        }
    }
}
