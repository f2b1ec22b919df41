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
    /// Episodes that begin.
    pub begun: Vec<Begun>,
    /// What each episode costs.
    pub costs: Vec<Cost>,
    /// Statements that were seen in the transactions of those who block.
    pub ran: Vec<Ran>,
    /// Episodes that are over.
    pub ended: Vec<Ended>,
}

impl Tick {
    /// Whether nothing is different after it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == Sums::default() && self.costs.is_empty() && self.ran.is_empty() && self.ended.is_empty()
    }
}

/// An episode that begins: see [`super::Episode`].
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// Its number.
    pub episode: u64,
    /// The process; 0 where there is none.
    pub pid: i32,
    /// When that started.
    pub backend_start: Option<Timestamp>,
    /// When its transaction began.
    pub xact_start: Option<Timestamp>,
    /// Who.
    pub who: Text,
    /// What is locked.
    pub lock: Text,
    /// Since when.
    pub at: Timestamp,
}

/// What an episode costs at a look.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Which.
    pub episode: u64,
    /// By what it is blamed at this look.
    pub key: Arc<Key>,
    /// How much.
    pub sums: Sums,
}

/// A statement that was seen in a transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// The episode of whose transaction it was.
    pub episode: u64,
    /// When it began; none where that is not known.
    pub at: Option<Timestamp>,
    /// The statement, as one harmless line.
    pub statement: Text,
}

/// The end of an episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Which.
    pub episode: u64,
    /// How.
    pub ending: Ending,
    /// What was done to it, in a harmless line; mostly empty.
    pub note: Text,
}
