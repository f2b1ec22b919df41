//! What one look adds.

use std::sync::Arc;

use super::{Ending, Key, Sums};
use crate::model::{Text, Timestamp};

/// What one look adds to what was waited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tick {
    /// When the locks were read, by the server's clock.
    pub at: Timestamp,
    /// Seconds since the look before that were not counted.
    pub missing: f64,
    /// All waits together: a wait behind two roots is one.
    pub total: Sums,
    /// Episodes that begin with this look.
    pub begun: Vec<Begun>,
    /// What each episode costs that somebody waits behind.
    pub costs: Vec<Cost>,
    /// Statements that were seen in the transactions of those who block.
    pub ran: Vec<Ran>,
    /// Episodes that are over since the look before.
    pub ended: Vec<Ended>,
}

impl Tick {
    /// Whether nothing is different after it.
    pub fn is_empty(&self) -> bool {
        self.total == Sums::default() && self.costs.is_empty() && self.ran.is_empty() && self.ended.is_empty()
    }
}

/// An episode that begins: see [`super::Episode`].
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// Its number, counted up from 1 on ([`super::Episode::number`]).
    pub episode: u64,
    /// The process; 0 where there is none.
    pub pid: i32,
    /// When that process started; none where the role may not see it.
    pub backend_start: Option<Timestamp>,
    /// When its transaction began; none for a lock that is the session's.
    pub xact_start: Option<Timestamp>,
    /// Who it is, in a harmless line.
    pub who: Text,
    /// What others wait for, in a harmless line.
    pub lock: Text,
    /// When it began to block, as far as that is known.
    pub at: Timestamp,
}

/// What an episode costs at a look.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The number of the episode.
    pub episode: u64,
    /// By what it is blamed at this look.
    pub key: Arc<Key>,
    /// What is added to its sums.
    pub sums: Sums,
}

/// A statement that was seen in a transaction, or that waited in line and held up others by that.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// The episode of whose transaction it was.
    pub episode: u64,
    /// When it began; none where that is not known.
    pub at: Option<Timestamp>,
    /// The statement, as one harmless line.
    pub statement: Text,
    /// The process that waited in line with it behind the root; 0 where it is the root's own.
    pub in_line: i32,
}

/// The end of an episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The number of the episode.
    pub episode: u64,
    /// How its blocking ended; never [`Ending::GoesOn`].
    pub ending: Ending,
    /// What was done to it, in a harmless line; mostly empty.
    pub note: Text,
}
