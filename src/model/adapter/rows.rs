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
    /// What its row is known by there, as text.
    pub id: Text,
    /// Its state as the query says it: `running`, `due`, `scheduled`, `retry`, `blocked`, `failed` or `done`.
    pub state: Text,
    /// What it runs: its class, function or kind, as its system names that.
    pub name: Option<Text>,
    /// The queue that it is in.
    pub queue: Option<Text>,
    /// Its priority, as its system counts that: with some a smaller number comes first.
    pub priority: Option<i64>,
    /// Which attempt this is, or was the last, as its system counts.
    pub attempt: Option<i64>,
    /// How often it may be tried in all.
    pub max_attempts: Option<i64>,
    /// The earliest time at which it may start.
    pub due_at: Option<Timestamp>,
    /// When the present run, or the last one, began.
    pub started_at: Option<Timestamp>,
    /// When it was done, or failed for good.
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
    /// Until when its worker has it, unless that is renewed.
    pub lease_until: Option<Timestamp>,
    /// What it waits for, in words: a key, another job, a semaphore.
    pub blocked_by: Option<Text>,
    /// The error of the last attempt; the queries cut it.
    pub error: Option<Text>,
    /// What else people should know of it, in a few words: `cancel asked`.
    pub note: Option<Text>,
    /// What only so many jobs may have at once, as words: `lock orders/7`. Of a job that runs what it has, else what it waits for.
    pub concurrency_key: Option<Text>,
    /// Why it will not continue without help.
    pub stuck: Option<Text>,
}

/// A process that works off jobs, as its row says. What a column does not say is None.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Worker {
    /// Its id, as jobs have it.
    pub id: Text,
    /// Its name for people, where that is another than its id.
    pub name: Option<Text>,
    /// The host that it runs on.
    pub host: Option<Text>,
    /// What kind of process it is, as its system names that: `Worker`, `Dispatcher`.
    pub kind: Option<Text>,
    /// The queues that it takes jobs from, in words.
    pub queues: Option<Text>,
    /// The process id on its host, which no backend of the server has.
    pub pid: Option<i64>,
    /// Jobs that it runs at once.
    pub capacity: Option<i64>,
    /// Jobs that it runs now, by its row.
    pub busy: Option<i64>,
    /// When the process was started.
    pub started_at: Option<Timestamp>,
    /// When it last renewed its row.
    pub beat_at: Option<Timestamp>,
    /// When it ended, where a row stays behind.
    pub stopped_at: Option<Timestamp>,
    /// How old a sign of life of it may be, in seconds.
    pub beat_limit: Option<f64>,
    /// The advisory lock that it holds while it lives.
    pub key: Option<LockKey>,
    /// Process id of the backend that it is connected by, where its row says so.
    pub backend_pid: Option<i32>,
    /// How many sessions are its own, where something of its row tells them.
    pub sessions: Option<i64>,
}

/// How many jobs of one state there are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Depth {
    /// Of one queue; none for all of them.
    pub queue: Option<Text>,
    /// The state that they are in: the words of [`Job::state`].
    pub state: Text,
    /// How many; no more than [`super::COUNTED`] and one are counted.
    pub number: i64,
    /// The number is the planner's, of its statistics, and counts nothing.
    pub is_estimate: bool,
    /// Since when the oldest of them could have been started.
    pub oldest_at: Option<Timestamp>,
}

/// A queue from which nothing is taken for now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Paused {
    /// The queue, by the name that jobs have.
    pub queue: Text,
    /// When it was paused; None where its system does not say it.
    pub since: Option<Timestamp>,
}

/// A lease: somebody may do something until then.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdapterLease {
    /// What it is known by there, as text: `leader`, the name of a lock.
    pub id: Text,
    /// Whoever has it, or had it last, as its system names that.
    pub owner: Option<Text>,
    /// Its fencing token, as text.
    pub token: Option<Text>,
    /// What else people should know of it: `rescues, schedules, cleans`.
    pub note: Option<Text>,
    /// When its owner got it.
    pub acquired_at: Option<Timestamp>,
    /// When it ends, or has ended.
    pub expires_at: Option<Timestamp>,
    /// Whether somebody has it; where that is not said, its lock or its end tells.
    pub is_held: Option<bool>,
    /// The advisory lock that whoever has it holds.
    pub key: Option<LockKey>,
}

/// What starts jobs by the clock.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdapterSchedule {
    /// What it is known by there, as text.
    pub id: Text,
    /// The job that it starts, or the command.
    pub name: Option<Text>,
    /// When, as its system writes that.
    pub schedule: Option<Text>,
    /// The queue that it puts jobs into.
    pub queue: Option<Text>,
    /// When it starts the next one.
    pub next_run_at: Option<Timestamp>,
    /// When it started the last one.
    pub last_run_at: Option<Timestamp>,
    /// Whether it starts any; None where its system cannot switch one off.
    pub is_enabled: Option<bool>,
}

/// The rows of a part of an installation.
#[derive(Debug, Clone)]
pub struct PartRows<T> {
    /// The rows, with when they were read and why they could not be read again.
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
    /// Where they were read, and by which queries.
    pub installation: Arc<Installation>,
    /// Processes that work off jobs.
    pub workers: PartRows<Worker>,
    /// The jobs by part; a part that was never read is not there.
    pub jobs: BTreeMap<Part, PartRows<Job>>,
    /// How many jobs there are of each state, by queue where the system has queues.
    pub depth: PartRows<Depth>,
    /// Queues from which nothing is taken.
    pub paused: PartRows<Paused>,
    /// Leaders, semaphores and locks that are kept in rows.
    pub leases: PartRows<AdapterLease>,
    /// What starts jobs by the clock.
    pub schedules: PartRows<AdapterSchedule>,
    /// Sessions of its workers in the same snapshot; None where that is not known ([`super::Presence::sessions`]).
    pub sessions: Option<u64>,
}

impl InstallationRows {
    /// An installation of which nothing was read yet.
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

    /// The ids of the jobs that run. Of some systems what runs is still due by its row.
    pub fn runs(&self) -> FxHashSet<&Text> {
        let running = self.jobs.get(&Part::Running);
        running.into_iter().flat_map(|read| read.section.last_rows().iter().map(|job| &job.id)).collect()
    }

    /// How many jobs of each state were counted in all queues together: beyond [`super::COUNTED`] no queue's number is whole.
    pub fn counted(&self) -> BTreeMap<&str, u64> {
        let mut counted = BTreeMap::new();
        for depth in self.depth.section.last_rows().iter().filter(|depth| !depth.is_estimate) {
            *counted.entry(&*depth.state).or_default() += u64::try_from(depth.number).unwrap_or_default();
        }
        counted
    }
}
