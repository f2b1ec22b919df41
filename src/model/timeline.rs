use std::sync::Arc;

use super::Timestamp;
use super::event::{Events, Kind};
use super::view::View;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    Action,
    /// The server did not answer for a while after the snapshot.
    NoAnswer,
    /// A session began to block others, sessions waited for each other, or the session of a task ended.
    Begun,
    Deadlock,
}

impl Trouble {
    /// None for an event that is no trouble.
    pub const fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::RootBegun | Kind::CycleBegun | Kind::TaskOrphaned => Some(Self::Begun),
            Kind::Deadlock => Some(Self::Deadlock),
            Kind::LinkLost => Some(Self::NoAnswer),
            Kind::ActionAsked => Some(Self::Action),
            _ => None,
        }
    }

    pub fn since(events: &Events, from: u64) -> impl Iterator<Item = Self> {
        let end = events.dropped() + events.len() as u64;
        (from..end).filter_map(|number| Self::of(events.get(number)?.kind))
    }

    pub const fn sign(self) -> char {
        match self {
            Self::Action => 'a',
            Self::NoAnswer => '~',
            Self::Begun => '!',
            Self::Deadlock => 'x',
        }
    }
}

/// A kept snapshot, reduced to what the time line needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// [`View::id`] of its view, used to fetch it.
    pub id: u64,
    /// By the server's clock.
    pub at: Timestamp,
    /// Waiting sessions, each counted once with its parallel workers, and prepared transactions.
    pub waiting: u32,
    /// The worst trouble since the previous snapshot.
    pub trouble: Option<Trouble>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Number of snapshots forward, or back if negative.
    Looks(i32),
    /// Number of seconds forward, or back if negative.
    Seconds(i32),
    NextTrouble,
    TroubleBefore,
    /// The snapshot at this time, or the last one before it.
    Time(Timestamp),
    /// The snapshot that saw an event, by the time when it was seen.
    Seen(Timestamp),
    /// The last snapshot before the one that saw an event: it still shows what ended.
    Before(Timestamp),
    /// The snapshot with the most waiters.
    Worst,
}

#[derive(Debug, Clone)]
pub struct PastView {
    /// The view, recomputed from what was kept.
    pub view: Arc<View>,
    /// Index among the snapshots, from 0.
    pub place: usize,
    /// All kept snapshots, oldest first.
    pub moments: Arc<[Moment]>,
}
