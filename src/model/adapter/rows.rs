//! What was read of an installation.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Installation, Part};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::Section;
use crate::model::{Text, Timestamp};

/// A job, as its system has it. What a column does not say is None.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Job {
    /// Its id there.
    pub id: Text,
    /// Its state as the query says it: `running`, `due`, `scheduled`, `retry`, `blocked`, `failed` or `done`.
    pub state: Text,
    /// What it does.
    pub name: Option<Text>,
    /// Where it waits.
    pub queue: Option<Text>,
    /// As its system counts priorities.
    pub priority: Option<i64>,
    /// Which attempt this is.
    pub attempt: Option<i64>,
    /// How many there are.
    pub max_attempts: Option<i64>,
    /// When it may start.
    pub due_at: Option<Timestamp>,
    /// When it did.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How long it may run, in seconds.
    pub limit: Option<f64>,
    /// The id of its worker; empty where its system says that nobody has it.
    pub worker: Option<Text>,
    /// The advisory lock of its run.
    pub key: Option<LockKey>,
    /// The backend that works on it.
    pub backend_pid: Option<i32>,
    /// The last sign of life of this job alone.
    pub beat_at: Option<Timestamp>,
    /// Until when it is somebody's.
    pub lease_until: Option<Timestamp>,
    /// What has to end first.
    pub blocked_by: Option<Text>,
    /// What went wrong last.
    pub error: Option<Text>,
    /// Anything else.
    pub note: Option<Text>,
    /// What only so many jobs may have at once, as words: `lock orders/7`. Of a job that runs what it has, else what it waits for.
    pub concurrency_key: Option<Text>,
    /// Why it goes no further by itself.
    pub stuck: Option<Text>,
}

/// Somebody who works.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Worker {
    /// Its id, as jobs have it.
    pub id: Text,
    /// Its name for people.
    pub name: Option<Text>,
    /// Where it is.
    pub host: Option<Text>,
    /// What it is.
    pub kind: Option<Text>,
    /// What it serves.
    pub queues: Option<Text>,
    /// Its process there.
    pub pid: Option<i64>,
    /// Jobs that it runs at once.
    pub capacity: Option<i64>,
    /// Jobs that it runs now.
    pub busy: Option<i64>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// Its last sign of life.
    pub beat_at: Option<Timestamp>,
    /// When it ended.
    pub stopped_at: Option<Timestamp>,
    /// How old a sign of life of it may be, in seconds.
    pub beat_limit: Option<f64>,
    /// The advisory lock that it holds while it lives.
    pub key: Option<LockKey>,
    /// Its session.
    pub backend_pid: Option<i32>,
}

/// How many jobs there are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Depth {
    /// Of one queue; none for all of them.
    pub queue: Option<Text>,
    /// In which state.
    pub state: Text,
    /// How many; no more than [`super::COUNTED`] and one are counted.
    pub number: i64,
    /// By the planner's statistics.
    pub is_estimate: bool,
    /// The oldest of them.
    pub oldest_at: Option<Timestamp>,
}

/// A queue that is paused.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Paused {
    /// Its name.
    pub queue: Text,
    /// Since when.
    pub since: Option<Timestamp>,
}

/// A lease: somebody may do something until then.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdapterLease {
    /// Its name.
    pub id: Text,
    /// Who has it.
    pub owner: Option<Text>,
    /// Its fencing token.
    pub token: Option<Text>,
    /// Anything else.
    pub note: Option<Text>,
    /// Since when.
    pub acquired_at: Option<Timestamp>,
    /// Until when.
    pub expires_at: Option<Timestamp>,
    /// Whether somebody has it; where that is not said, its end tells.
    pub is_held: Option<bool>,
}

/// What starts jobs by the clock.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdapterSchedule {
    /// Its id.
    pub id: Text,
    /// What it starts.
    pub name: Option<Text>,
    /// When, as its system writes that.
    pub schedule: Option<Text>,
    /// Into which queue.
    pub queue: Option<Text>,
    /// The next time.
    pub next_run_at: Option<Timestamp>,
    /// The last time.
    pub last_run_at: Option<Timestamp>,
    /// Whether it does.
    pub is_enabled: Option<bool>,
}

/// The rows of a part.
#[derive(Debug, Clone)]
pub struct PartRows<T> {
    /// The rows.
    pub section: Section<T>,
    /// There are more of them than were read.
    pub is_cut: bool,
}

impl<T> Default for PartRows<T> {
    fn default() -> Self {
        Self { section: Section::default(), is_cut: false }
    }
}

/// What was read of an installation. A part that it does not have, or that was not read yet, has no time and no error.
#[derive(Debug, Clone)]
pub struct InstallationRows {
    /// Of which.
    pub installation: Arc<Installation>,
    /// Who works.
    pub workers: PartRows<Worker>,
    /// The jobs, by part.
    pub jobs: BTreeMap<Part, PartRows<Job>>,
    /// How many there are.
    pub depth: PartRows<Depth>,
    /// What is paused.
    pub paused: PartRows<Paused>,
    /// Its leases.
    pub leases: PartRows<AdapterLease>,
    /// Its schedules.
    pub schedules: PartRows<AdapterSchedule>,
}

impl InstallationRows {
    /// Nothing yet.
    #[must_use]
    pub fn new(installation: Arc<Installation>) -> Self {
        Self {
            installation,
            workers: PartRows::default(),
            jobs: BTreeMap::new(),
            depth: PartRows::default(),
            paused: PartRows::default(),
            leases: PartRows::default(),
            schedules: PartRows::default(),
        }
    }

    /// The ids of the jobs that run. Of some systems what runs is still due by its row.
    #[must_use]
    pub fn runs(&self) -> FxHashSet<&Text> {
        let running = self.jobs.get(&Part::Running);
        running.into_iter().flat_map(|read| read.section.rows.iter().map(|job| &job.id)).collect()
    }

    /// How many jobs of each state were counted in all queues together: beyond [`super::COUNTED`] no queue's number is whole.
    #[must_use]
    pub fn counted(&self) -> BTreeMap<&str, u64> {
        let mut counted = BTreeMap::new();
        for depth in self.depth.section.rows.iter().filter(|depth| !depth.is_estimate) {
            *counted.entry(&*depth.state).or_default() += u64::try_from(depth.number).unwrap_or_default();
        }
        counted
    }
}
