//! What a worker process is told, in one line on its standard input. A connection string may hold a password, so none of it is on
//! a command line.

use serde::{Deserialize, Serialize};

use super::plan::{Chore, Ends, chores};

/// One line of JSON.
#[derive(Clone, Serialize, Deserialize)]
pub(in crate::demo) struct Orders {
    /// Where to connect, with everything.
    pub(in crate::demo) conninfo: String,
    /// The schema of the task tables.
    pub(in crate::demo) schema: String,
    /// Its name; where there are to be several, what their names begin with.
    pub(in crate::demo) worker: String,
    /// Its number, of all processes of the kind that the demo started.
    pub(in crate::demo) process: i32,
    /// What it is to do.
    pub(in crate::demo) part: Part,
    /// Whether the schema has somebody else's functions in it.
    pub(super) recipe: bool,
    pub(super) plan: Plan,
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // There may be a password in the rest.
        f.debug_struct("Orders").field("worker", &self.worker).finish_non_exhaustive()
    }
}

/// What a process does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::demo) enum Part {
    /// It runs tasks.
    Tasks,
    /// It competes for so many leases, with a term of so many milliseconds.
    Leases { leases: i32, term: u64, seed: u64 },
    /// It works off the queue.
    Queue,
    /// It uses locks with a term of so many milliseconds in these servers, of which the first stands alone.
    Redis { urls: Vec<String>, term: u64, seed: u64 },
}

/// What the tasks were made from.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) count: usize,
    pub(super) hanging: bool,
    pub(super) time_scale: f64,
}

impl Plan {
    pub(super) fn chores(&self) -> Vec<Chore> {
        chores(self.seed, self.count, self.hanging)
    }

    /// What the row of a task says of its work.
    pub(super) fn payload(&self, chore: &Chore) -> String {
        let payload = Payload { seconds: self.scaled(chore.work), ends: chore.ends };
        serde_json::to_string(&payload).unwrap_or_default()
    }

    /// A duration as it is played, in seconds.
    pub(super) fn scaled(&self, seconds: f64) -> f64 {
        seconds / self.time_scale
    }
}

/// What a task's row says of the work, for the worker that gets it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Payload {
    /// How long it takes.
    pub(super) seconds: f64,
    pub(super) ends: Ends,
}
