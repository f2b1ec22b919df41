use std::sync::Arc;

use super::{Ending, Key, Sums};
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tick {
    /// When the locks were read, by the server's clock.
    pub at: Timestamp,
    /// Seconds since the previous poll that were not counted.
    pub missing: f64,
    /// All waits together: a wait behind two roots counts once.
    pub total: Sums,
    pub begun: Vec<Begun>,
    pub costs: Vec<Cost>,
    pub ran: Vec<Ran>,
    pub ended: Vec<Ended>,
}

impl Tick {
    pub fn is_empty(&self) -> bool {
        self.total == Sums::default() && self.costs.is_empty() && self.ran.is_empty() && self.ended.is_empty()
    }
}

/// The start of an episode: see [`super::Episode`].
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    pub episode: u64,
    /// The process id; 0 if there is none.
    pub pid: i32,
    pub backend_start: Option<Timestamp>,
    pub xact_start: Option<Timestamp>,
    pub who: Text,
    pub lock: Text,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    pub episode: u64,
    pub key: Arc<Key>,
    pub sums: Sums,
}

/// A statement of a blocker's transaction, or of a waiter in line that holds up others.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    pub episode: u64,
    pub at: Option<Timestamp>,
    /// One printable line.
    pub statement: Text,
    /// The process id of the waiter in line behind the root; 0 for a statement of the root itself.
    pub in_line: i32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub episode: u64,
    /// Never [`Ending::GoesOn`].
    pub ending: Ending,
    /// The action on it, in one printable line; usually empty.
    pub note: Text,
}
