//! The looks that are kept, as a line to go along.

use std::sync::Arc;

use super::Timestamp;
use super::event::{Events, Kind};
use super::view::View;

/// Why one wants to see a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The operator asked for an action: a cancel, a termination, a change of a row.
    Action,
    /// Nobody answered after it for a while.
    NoAnswer,
    /// Somebody began to block others, or sessions waited for each other, or the session of a task was gone.
    Begun,
    /// The server's count of deadlocks rose.
    Deadlock,
}

impl Trouble {
    /// What kind of trouble an event is; none for one that is no trouble.
    pub const fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::RootBegun | Kind::CycleBegun | Kind::TaskOrphaned => Some(Self::Begun),
            Kind::Deadlock => Some(Self::Deadlock),
            Kind::LinkLost => Some(Self::NoAnswer),
            Kind::ActionAsked => Some(Self::Action),
            _ => None,
        }
    }

    /// Those of the events from a number on.
    pub fn since(events: &Events, from: u64) -> impl Iterator<Item = Self> {
        let end = events.dropped() + events.len() as u64;
        (from..end).filter_map(|number| Self::of(events.get(number)?.kind))
    }

    /// Its sign on a time line.
    pub const fn sign(self) -> char {
        match self {
            Self::Action => 'a',
            Self::NoAnswer => '~',
            Self::Begun => '!',
            Self::Deadlock => 'x',
        }
    }
}

/// A look that is kept, as far as the time line has to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// [`View::id`] of its view, by which it is fetched.
    pub id: u64,
    /// When it was taken, by the server's clock.
    pub at: Timestamp,
    /// Sessions, with their parallel workers counted as one, and prepared transactions that waited.
    pub waiting: u32,
    /// The worst that happened up to it, since the look before.
    pub trouble: Option<Trouble>,
}

/// Where to go from a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many looks on, or back.
    Looks(i32),
    /// So many seconds on, or back.
    Seconds(i32),
    /// To the next look with trouble.
    NextTrouble,
    /// To the last look with trouble before this one.
    TroubleBefore,
    /// To the look at this time, or the last before it.
    Time(Timestamp),
    /// To the look that saw an event, by the time at which it was seen.
    Seen(Timestamp),
    /// To the last look before the one that saw an event: what came to an end is there.
    Before(Timestamp),
    /// To the look at which most waited.
    Worst,
}

/// A look that was kept, as it was when it was live.
#[derive(Debug, Clone)]
pub struct PastView {
    /// The view, worked out anew of what was kept.
    pub view: Arc<View>,
    /// Its place among the looks, from 0 on.
    pub place: usize,
    /// All looks there are, oldest first.
    pub moments: Arc<[Moment]>,
}
