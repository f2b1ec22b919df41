use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Installation, Part};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::Section;
use crate::model::{Text, Timestamp};

/// A job, as its system stores it. None: the column has no value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Job {
    pub id: Text,
    /// The state returned by the query: `running`, `due`, `scheduled`, `retry`, `blocked`, `failed` or `done`.
    pub state: Text,
    /// What it runs: a class, function or kind, as its system names it.
    pub name: Option<Text>,
    pub queue: Option<Text>,
    /// Its priority, as its system counts it: in some systems a smaller number comes first.
    pub priority: Option<i64>,
    /// The number of the current or last attempt, as its system counts.
    pub attempt: Option<i64>,
    pub max_attempts: Option<i64>,
    pub due_at: Option<Timestamp>,
    /// The start of the current or last run.
    pub started_at: Option<Timestamp>,
    /// When it was done, or failed for good.
    pub finished_at: Option<Timestamp>,
    /// How long it may run, in seconds.
    pub limit: Option<f64>,
    /// The id of its worker; empty if its system records that no worker has it.
    pub worker: Option<Text>,
    pub key: Option<LockKey>,
    pub backend_pid: Option<i32>,
    /// The last sign of life of this job alone.
    pub beat_at: Option<Timestamp>,
    /// Until when its worker has it, unless renewed.
    pub lease_until: Option<Timestamp>,
    /// What it waits for, in words: a key, another job, a semaphore.
    pub blocked_by: Option<Text>,
    /// The error of the last attempt; the queries truncate it.
    pub error: Option<Text>,
    /// A further note for the user, in a few words: `cancel asked`.
    pub note: Option<Text>,
    /// A resource with limited concurrency, in words: `lock orders/7`. For a running job what it has, otherwise what it waits
    /// for.
    pub concurrency_key: Option<Text>,
    /// Why it will not continue without help.
    pub stuck: Option<Text>,
}

/// A process that runs jobs, according to its row. None: the column has no value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Worker {
    pub id: Text,
    pub name: Option<Text>,
    pub host: Option<Text>,
    /// The kind of process, as its system names it: `Worker`, `Dispatcher`.
    pub kind: Option<Text>,
    pub queues: Option<Text>,
    /// The process id on its host, not that of a backend.
    pub pid: Option<i64>,
    pub capacity: Option<i64>,
    pub busy: Option<i64>,
    pub started_at: Option<Timestamp>,
    pub beat_at: Option<Timestamp>,
    /// When it ended, if its row stays.
    pub stopped_at: Option<Timestamp>,
    /// How old its sign of life may be, in seconds.
    pub beat_limit: Option<f64>,
    pub key: Option<LockKey>,
    /// Process id of its backend, if its row has it.
    pub backend_pid: Option<i32>,
    /// The number of its own sessions, if its row identifies them.
    pub sessions: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Depth {
    /// None: all queues.
    pub queue: Option<Text>,
    /// One of the words of [`Job::state`].
    pub state: Text,
    /// At most [`super::COUNTED`] plus one are counted.
    pub number: i64,
    pub is_estimate: bool,
    /// Since when the oldest of them could have been started.
    pub oldest_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Paused {
    pub queue: Text,
    /// When it was paused. None if its system does not record it.
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdapterLease {
    /// The id there, as text: `leader`, the name of a lock.
    pub id: Text,
    /// The current or last owner, as its system names it.
    pub owner: Option<Text>,
    pub token: Option<Text>,
    /// A further note for the user: `rescues, schedules, cleans`.
    pub note: Option<Text>,
    pub acquired_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    /// Whether it is held. None: its lock or its end decides.
    pub is_held: Option<bool>,
    pub key: Option<LockKey>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdapterSchedule {
    pub id: Text,
    /// The job or command that it starts.
    pub name: Option<Text>,
    /// The schedule in its system's notation.
    pub schedule: Option<Text>,
    pub queue: Option<Text>,
    pub next_run_at: Option<Timestamp>,
    pub last_run_at: Option<Timestamp>,
    /// None if its system cannot disable a schedule.
    pub is_enabled: Option<bool>,
}

#[derive(Debug, Clone)]
pub struct PartRows<T> {
    pub section: Section<T>,
    /// There are more rows than were read.
    pub is_cut: bool,
}

impl<T> Default for PartRows<T> {
    fn default() -> Self {
        Self { section: Section::default(), is_cut: false }
    }
}

/// The rows of an installation. A part that it does not have, or that was not read yet, has no time and no error.
#[derive(Debug, Clone)]
pub struct InstallationRows {
    pub installation: Arc<Installation>,
    pub workers: PartRows<Worker>,
    /// The jobs by part; a part that was never read is missing.
    pub jobs: BTreeMap<Part, PartRows<Job>>,
    pub depth: PartRows<Depth>,
    pub paused: PartRows<Paused>,
    pub leases: PartRows<AdapterLease>,
    pub schedules: PartRows<AdapterSchedule>,
    /// Sessions of its workers in the same snapshot. None if not known ([`super::Presence::sessions`]).
    pub sessions: Option<u64>,
}

impl InstallationRows {
    pub fn new(installation: Arc<Installation>) -> Self {
        Self {
            installation,
            workers: PartRows::default(),
            jobs: BTreeMap::new(),
            depth: PartRows::default(),
            paused: PartRows::default(),
            leases: PartRows::default(),
            schedules: PartRows::default(),
            sessions: None,
        }
    }

    /// The ids of the running jobs. In some systems a running job is still due by its row.
    pub fn runs(&self) -> FxHashSet<&Text> {
        let running = self.jobs.get(&Part::Running);
        running.into_iter().flat_map(|read| read.section.last_rows().iter().map(|job| &job.id)).collect()
    }

    /// The number of jobs of each state in all queues together: beyond [`super::COUNTED`] the number of a single queue is
    /// incomplete.
    pub fn counted(&self) -> BTreeMap<&str, u64> {
        let mut counted = BTreeMap::new();
        for depth in self.depth.section.last_rows().iter().filter(|depth| !depth.is_estimate) {
            *counted.entry(&*depth.state).or_default() += u64::try_from(depth.number).unwrap_or_default();
        }
        counted
    }
}
