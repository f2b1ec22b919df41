//! Workers that compete for tasks: processes of their own, tasks of a second to ten minutes in scaled time, workers that are killed,
//! stopped and cut off, a recovery beside them, and witnesses of what really ran when.

pub mod child;
mod claim;
mod contest;
mod count;
mod ground;
mod play;
mod recovery;
mod shared;
mod summary;
mod witness;

pub use claim::Claim;
pub use ground::TASKS_SCHEMA;
pub use play::Play;
pub use summary::{Outcome, Summary};

use std::path::PathBuf;

use super::Audience;
use super::contest::Contest;
use super::workers::Plan;
pub use super::workers::TasksError;

/// Seconds that an execution whose key is free is left alone, before they are scaled; and the least that is left of them.
const GRACE: f64 = 30.0;
const SHORTEST_GRACE: f64 = 1.0;
/// Workers wait longer than the recovery before they take an orphan over, so that there is something to recover.
const WORKERS_GRACE: f64 = 3.0;
/// Seconds for which trouble is left to whoever looks on, before the demo mends it by itself; and the least that workers wait beyond
/// that.
const LEFT: f64 = 30.0;
const LEFT_BEYOND: f64 = 15.0;
/// Seconds after which a due task counts as overdue on the screens of a demo, before they are scaled.
const OVERDUE: f64 = 60.0;
const SHORTEST_OVERDUE: f64 = 2.0;

/// What to play.
#[derive(Debug, Clone)]
pub struct TasksOptions {
    /// The program whose `demo-worker` is a worker: locktop.
    pub program: PathBuf,
    /// Workers are killed, stopped and cut off all the time, and not now and then.
    pub crash: bool,
    /// Some work hangs.
    pub stall: bool,
    /// Places for workers. Without any no task is played.
    pub workers: usize,
    /// Number of tasks.
    pub tasks: usize,
    /// How many times faster than real.
    pub time_scale: f64,
    /// Who looks on.
    pub audience: Audience,
    /// Determines the tasks and what is done to the workers.
    pub seed: u64,
    /// Somebody is going to ask for the numbers: nothing that was witnessed is forgotten.
    pub counted: bool,
    /// Statements that make other tables and functions, under the names of the published recipe, in place of locktop's.
    pub recipe: Option<String>,
    /// What is played beside the tasks, or in place of them; not with a recipe, whose schema has nothing for it.
    pub contests: Vec<Contest>,
}

impl TasksOptions {
    /// Ten workers and a hundred tasks, a minute in a second.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            crash: false,
            stall: false,
            workers: 10,
            tasks: 100,
            time_scale: 60.0,
            audience: Audience::default(),
            seed: 1,
            counted: false,
            recipe: None,
            contests: Vec::new(),
        }
    }

    /// Seconds after which an execution is an orphan when its key is free.
    #[must_use]
    pub fn orphan_grace(&self) -> f64 {
        (GRACE / self.time_scale).max(SHORTEST_GRACE)
    }

    /// Seconds for which trouble is left alone; none where nobody looks on.
    fn left(&self) -> f64 {
        if self.counted { 0.0 } else { LEFT }
    }

    /// Seconds after which a worker takes an orphan over.
    fn takeover(&self) -> f64 {
        let least = if self.counted { 0.0 } else { LEFT + LEFT_BEYOND };
        (self.orphan_grace() * WORKERS_GRACE).max(least)
    }

    /// Seconds after which a due task is overdue.
    #[must_use]
    pub fn overdue(&self) -> f64 {
        (OVERDUE / self.time_scale).max(SHORTEST_OVERDUE)
    }

    fn plan(&self) -> Plan {
        Plan { seed: self.seed, count: self.tasks, hanging: self.stall, time_scale: self.time_scale }
    }
}
