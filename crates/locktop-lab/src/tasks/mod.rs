//! Workers that compete for tasks: processes of their own, tasks of a second to ten minutes in scaled time, workers that are killed,
//! stopped and cut off, a recovery beside them, and witnesses of what really ran when.

pub mod child;
mod contest;
mod count;
mod prepared;
mod recovery;
mod running;
mod shared;
mod summary;
mod tables;
mod witness;

pub use prepared::PreparedContests;
pub use running::RunningContests;
pub use summary::{Outcome, Summary};
pub use tables::TASKS_SCHEMA;

use std::path::PathBuf;

use super::contest::Contest;
use super::workers::Plan;
pub use super::workers::TasksError;
use super::{Language, OpenQuestion};

/// Seconds that an execution whose key is free is left alone, before they are scaled; and the least that is left of them.
const GRACE: f64 = 30.0;
const SHORTEST_GRACE: f64 = 1.0;
/// Workers wait longer than the recovery before they take an orphan over, so that there is something to recover.
const WORKERS_GRACE: f64 = 3.0;
/// Seconds for which trouble is left to the operator of the dashboard, before the demo mends it by itself; and the
/// least that workers wait beyond that.
const MANUAL_GRACE: f64 = 30.0;
const WORKERS_BEYOND: f64 = 15.0;
/// Seconds after which a due task counts as overdue on the screens of a demo, before they are scaled.
const OVERDUE: f64 = 60.0;
const SHORTEST_OVERDUE: f64 = 2.0;

/// Which tasks and contests run, and how.
#[derive(Debug, Clone)]
pub struct TasksOptions {
    /// The program whose `demo-worker` is a worker: locktop.
    pub program: PathBuf,
    /// Workers are killed, stopped and cut off all the time, and not now and then.
    pub crash: bool,
    /// One of thirty tasks never expires.
    pub stall: bool,
    /// Worker processes that run at once; 0 runs no task.
    pub workers: usize,
    /// How many rows `scheduled_tasks` has.
    pub tasks: usize,
    /// How many times faster than real.
    pub time_scale: f64,
    /// While it is open nothing is recovered and no fault is injected.
    pub question: OpenQuestion,
    /// The language of the names of tasks and queue items.
    pub language: Language,
    /// Determines the tasks and what is done to the workers.
    pub seed: u64,
    /// Without a dashboard: nothing that was witnessed is deleted, and faults come more often.
    pub headless: bool,
    /// Statements that make other tables and functions, under the names of the published recipe, in place of locktop's.
    pub recipe: Option<String>,
    /// What runs beside the tasks, or in place of them; not with a recipe, whose schema has nothing for it.
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
            question: OpenQuestion::default(),
            language: Language::default(),
            seed: 1,
            headless: false,
            recipe: None,
            contests: Vec::new(),
        }
    }

    /// Seconds after which an execution is an orphan when its key is free.
    #[must_use]
    pub fn orphan_grace(&self) -> f64 {
        (GRACE / self.time_scale).max(SHORTEST_GRACE)
    }

    /// Seconds for which trouble is left alone; 0 without a dashboard.
    fn manual_grace(&self) -> f64 {
        if self.headless { 0.0 } else { MANUAL_GRACE }
    }

    /// Seconds after which a worker takes an orphan over.
    fn takeover(&self) -> f64 {
        let least = if self.headless { 0.0 } else { MANUAL_GRACE + WORKERS_BEYOND };
        (self.orphan_grace() * WORKERS_GRACE).max(least)
    }

    /// Seconds after which a due task is overdue.
    #[must_use]
    pub fn overdue(&self) -> f64 {
        (OVERDUE / self.time_scale).max(SHORTEST_OVERDUE)
    }

    fn plan(&self) -> Plan {
        Plan {
            seed: self.seed,
            count: self.tasks,
            hanging: self.stall,
            language: self.language,
            time_scale: self.time_scale,
        }
    }
}
