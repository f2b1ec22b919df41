//! The target of a finding, an event or a row, and the screens that show it.

use super::panes::{Pane, RowId};
use super::screens::Screen;
use crate::model::finding::Subject;
use crate::model::lock::LockTag;

/// Something that has rows, possibly on several screens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A session without a start is any session with this process id; an awaited lock has rows whichever session holds it or
    /// waits for it.
    Row(RowId),
    Queue,
}

impl Place {
    /// `None` if the subject is the whole server.
    pub fn of(subject: Subject) -> Option<Self> {
        match subject {
            Subject::Queue => Some(Self::Queue),
            subject => RowId::of(subject).map(Self::Row),
        }
    }

    pub fn is(self, row: RowId) -> bool {
        match (self, row) {
            (Self::Row(RowId::Backend(wanted)), RowId::Backend(id)) => {
                id.pid == wanted.pid && (wanted.backend_start.is_none() || id == wanted)
            }
            (Self::Row(RowId::Awaited(tag)), RowId::Lock(other, ..) | RowId::Awaited(other)) => tag == other,
            (Self::Row(wanted), row) => wanted == row,
            (Self::Queue, row) => matches!(row, RowId::Item(_)),
        }
    }

    /// The screens where it may be, the best first.
    pub fn screens(self) -> Vec<Screen> {
        match self {
            // The Chains screen shows a backend in the forest best.
            Self::Row(RowId::Backend(_)) => vec![Screen::Chains, Screen::Backends],
            Self::Row(row) => Screen::with(row.home()).collect(),
            Self::Queue => Screen::with(Pane::Queue).collect(),
        }
    }

    pub fn tag(self) -> Option<LockTag> {
        match self {
            Self::Row(RowId::Awaited(tag)) => Some(tag),
            _ => None,
        }
    }
}
