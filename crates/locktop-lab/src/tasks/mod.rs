//! Workers that compete for tasks: separate processes, tasks of a second to ten minutes in scaled time, workers that are
//! killed, stopped and cut off, a recovery, and witnesses of what really ran when.

pub mod child;
mod contest;
mod running;
mod summary;
mod tables;
mod witness;

pub use running::{PreparedContests, RunningContests};
pub use summary::{Outcome, Summary};
pub use tables::TASKS_SCHEMA;

use std::path::PathBuf;

use tokio_postgres::Client;

use super::contest::Contest;
use super::workers::Plan;
pub use super::workers::TasksError;
use super::{Language, OpenQuestion};
use pg_connect::connect::connect;
use tables::TaskTables;

/// Seconds that an execution with a free key is left alone, before scaling; and the minimum after scaling.
const GRACE: f64 = 30.0;
const SHORTEST_GRACE: f64 = 1.0;
/// Workers wait longer than the recovery before they take over an orphan, so that there is something to recover.
const WORKERS_GRACE: f64 = 3.0;
/// Seconds for which trouble is left to the operator of the dashboard, before the demo repairs it automatically; and the
/// minimum that workers wait beyond that.
const MANUAL_GRACE: f64 = 30.0;
const WORKERS_BEYOND: f64 = 15.0;
/// Seconds after which a due task counts as overdue on the screens of a demo, before scaling.
const OVERDUE: f64 = 60.0;
const SHORTEST_OVERDUE: f64 = 2.0;

#[derive(Debug, Clone)]
pub struct TasksOptions {
    /// The program that provides `demo-worker`: locktop.
    pub program: PathBuf,
    /// Workers are killed, stopped and cut off continuously, instead of now and then.
    pub crash: bool,
    /// One of thirty tasks never ends.
    pub stall: bool,
    pub workers: usize,
    pub tasks: usize,
    /// How many times faster than real time.
    pub time_scale: f64,
    pub question: OpenQuestion,
    pub language: Language,
    pub seed: u64,
    /// Without a dashboard: no witness records are deleted, and faults come more often.
    pub headless: bool,
    /// Statements that create other tables and functions, with the names of the published recipe, in place of locktop's.
    pub recipe: Option<String>,
    /// Contests that run in addition to the tasks, or in place of them; not with a recipe, whose schema has nothing for them.
    pub contests: Vec<Contest>,
}

impl TasksOptions {
    /// Ten workers and a hundred tasks, at a minute in a second.
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

    /// Seconds after which an execution with a free key is an orphan.
    #[must_use]
    pub fn orphan_grace(&self) -> f64 {
        (GRACE / self.time_scale).max(SHORTEST_GRACE)
    }

    fn manual_grace(&self) -> f64 {
        if self.headless { 0.0 } else { MANUAL_GRACE }
    }

    /// Seconds after which a worker takes over an orphan.
    fn takeover(&self) -> f64 {
        let least = if self.headless { 0.0 } else { MANUAL_GRACE + WORKERS_BEYOND };
        (self.orphan_grace() * WORKERS_GRACE).max(least)
    }

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

/// Shared by the loops of the contest of tasks.
#[derive(Debug)]
struct TaskContest {
    tables: TaskTables,
    options: TasksOptions,
    plan: Plan,
}

impl TaskContest {
    async fn connect(&self, purpose: &str) -> Option<Client> {
        let info = self.tables.info.clone().with_application_name(&format!("locktop demo {purpose}"));
        Some(connect(&info).await.ok()?.client)
    }
}
