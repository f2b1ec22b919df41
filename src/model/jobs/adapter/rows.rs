use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use rustc_hash::FxHashSet;

use super::Installation;
use crate::model::lock_key::LockKey;
use crate::model::snapshot::Section;
use crate::model::{Text, Timestamp};

words! {
    /// A kind of rows of an installation, with its own queries.
    #[derive(strum::EnumString)]
    pub enum Part {
        Workers,
        Running,
        /// `[[jobs.due]]`: the next jobs that may be started now.
        Due,
        /// `[[jobs.scheduled]]`: jobs that are not due yet, including retries.
        Scheduled,
        /// `[[jobs.blocked]]`: jobs that wait for something to end.
        Blocked,
        /// `[[jobs.failed]]`: jobs that are not retried.
        Failed,
        Depth,
        Paused,
        /// `[[leases]]`: a leader, a semaphore, a lock in a row.
        Leases,
        /// `[[schedules]]`: what starts jobs by the clock.
        Schedules,
    }
}

impl Part {
    pub const JOBS: [Self; 5] = [Self::Running, Self::Due, Self::Scheduled, Self::Blocked, Self::Failed];
    /// All parts but those of jobs.
    pub const OTHERS: [Self; 5] = [Self::Workers, Self::Depth, Self::Paused, Self::Leases, Self::Schedules];

    /// Whether its rows have a state, in the second column.
    pub fn has_states(self) -> bool {
        self == Self::Depth || Self::JOBS.contains(&self)
    }

    /// Seconds between two readings, if no query is expensive. A part that no screen shows is read less often: findings, lock
    /// names and the history still need it.
    pub fn interval(self, is_shown: bool) -> f64 {
        match (self, is_shown) {
            (Self::Workers | Self::Running | Self::Leases, true) => 2.0,
            (Self::Depth, true) => 10.0,
            (Self::Workers | Self::Running, false) | (_, true) => 5.0,
            (_, false) => 30.0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts(u16);

impl Parts {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self::of(Part::ALL);

    #[expect(clippy::indexing_slicing, reason = "below its length, and nothing else is const")]
    pub const fn of(parts: &[Part]) -> Self {
        let (mut all, mut at) = (0, 0);
        while at < parts.len() {
            all |= 1 << parts[at] as u16;
            at += 1;
        }
        Self(all)
    }

    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub const fn has(self, part: Part) -> bool {
        self.0 & (1 << part as u16) != 0
    }
}

rows! {
    as part_rows;

    /// A job, as its system stores it. None: the column has no value.
    #[derive(Default)]
    pub struct Job in Jobs {
        1 id: Text = "id",
        /// The state returned by the query: `running`, `due`, `scheduled`, `retry`, `blocked`, `failed` or `done`.
        2 state: Text = "state",
        /// What it runs: a class, function or kind, as its system names it.
        3 name: Option<Text> = "name",
        4 queue: Option<Text> = "queue",
        /// Its priority, as its system counts it: in some systems a smaller number comes first.
        5 priority: Option<i64> = "priority",
        /// The number of the current or last attempt, as its system counts.
        6 attempt: Option<i64> = "attempt",
        7 max_attempts: Option<i64> = "max_attempts",
        8 due_at: Option<Timestamp> = "due_at",
        /// The start of the current or last run.
        9 started_at: Option<Timestamp> = "started_at",
        /// When it was done, or failed for good.
        10 finished_at: Option<Timestamp> = "finished_at",
        /// How long it may run, in seconds.
        11 limit: Option<f64> = "limit_s",
        /// The id of its worker; empty if its system records that no worker has it.
        12 worker: Option<Text> = "worker",
        13 key: Option<LockKey> = "lock_key" "lock_class" "lock_obj",
        14 backend_pid: Option<i32> = "backend_pid",
        /// The last sign of life of this job alone.
        15 beat_at: Option<Timestamp> = "beat_at",
        /// Until when its worker has it, unless renewed.
        16 lease_until: Option<Timestamp> = "lease_until",
        /// What it waits for, in words: a key, another job, a semaphore.
        17 blocked_by: Option<Text> = "blocked_by",
        /// The error of the last attempt; the queries truncate it.
        18 error: Option<Text> = "error",
        /// A further note for the user, in a few words: `cancel asked`.
        19 note: Option<Text> = "note",
        /// A resource with limited concurrency, in words: `lock orders/7`. For a running job what it has, otherwise what it waits
        /// for.
        20 concurrency_key: Option<Text> = "concurrency_key",
        /// Why it will not continue without help.
        21 stuck: Option<Text> = "stuck",
    }

    /// A process that runs jobs, according to its row. None: the column has no value.
    #[derive(Default)]
    pub struct Worker in Workers {
        1 id: Text = "id",
        2 name: Option<Text> = "name",
        3 host: Option<Text> = "host",
        /// The kind of process, as its system names it: `Worker`, `Dispatcher`.
        4 kind: Option<Text> = "kind",
        5 queues: Option<Text> = "queues",
        /// The process id on its host, not that of a backend.
        6 pid: Option<i64> = "pid",
        7 capacity: Option<i64> = "capacity",
        8 busy: Option<i64> = "busy",
        9 started_at: Option<Timestamp> = "started_at",
        10 beat_at: Option<Timestamp> = "beat_at",
        /// When it ended, if its row stays.
        11 stopped_at: Option<Timestamp> = "stopped_at",
        /// How old its sign of life may be, in seconds.
        12 beat_limit: Option<f64> = "beat_limit_s",
        13 key: Option<LockKey> = "lock_key",
        /// Process id of its backend, if its row has it.
        14 backend_pid: Option<i32> = "backend_pid",
        /// The number of its own sessions, if its row identifies them.
        15 sessions: Option<i64> = "sessions",
    }

    #[derive(Default)]
    pub struct Depth in Depths {
        /// None: all queues.
        1 queue: Option<Text> = "queue",
        /// One of the words of [`Job::state`].
        2 state: Text = "state",
        /// At most [`super::COUNTED`] plus one are counted.
        3 number: u64 = "number",
        4 is_estimate: bool = "is_estimate",
        /// Since when the oldest of them could have been started.
        5 oldest_at: Option<Timestamp> = "oldest_at",
    }

    #[derive(Default)]
    pub struct Paused in PausedRows {
        1 queue: Text = "queue",
        /// When it was paused. None if its system does not record it.
        2 since: Option<Timestamp> = "since",
    }

    #[derive(Default)]
    pub struct AdapterLease in AdapterLeases {
        /// The id there, as text: `leader`, the name of a lock.
        1 id: Text = "id",
        /// The current or last owner, as its system names it.
        2 owner: Option<Text> = "owner",
        3 token: Option<Text> = "token",
        /// A further note for the user: `rescues, schedules, cleans`.
        4 note: Option<Text> = "note",
        5 acquired_at: Option<Timestamp> = "acquired_at",
        6 expires_at: Option<Timestamp> = "expires_at",
        /// Whether it is held. None: its lock or its end decides.
        7 is_held: Option<bool> = "is_held",
        8 key: Option<LockKey> = "lock_key",
    }

    #[derive(Default)]
    pub struct AdapterSchedule in AdapterSchedules {
        1 id: Text = "id",
        /// The job or command that it starts.
        2 name: Option<Text> = "name",
        /// The schedule in its system's notation.
        3 schedule: Option<Text> = "schedule",
        4 queue: Option<Text> = "queue",
        5 next_run_at: Option<Timestamp> = "next_run_at",
        6 last_run_at: Option<Timestamp> = "last_run_at",
        /// None if its system cannot disable a schedule.
        7 is_enabled: Option<bool> = "is_enabled",
    }
}

/// The rows of an installation. A part that it does not have, or that was not read yet, has no time and no error.
#[derive(Debug, Clone, Default)]
pub struct InstallationRows {
    pub installation: Arc<Installation>,
    pub workers: Section<Worker>,
    /// The jobs by part; a part that was never read is missing.
    pub jobs: BTreeMap<Part, Section<Job>>,
    pub depth: Section<Depth>,
    pub paused: Section<Paused>,
    pub leases: Section<AdapterLease>,
    pub schedules: Section<AdapterSchedule>,
    /// Sessions of its workers in the same snapshot. None if not known ([`super::Presence::sessions`]).
    pub sessions: Option<u64>,
}

impl InstallationRows {
    pub fn new(installation: Arc<Installation>) -> Self {
        Self { installation, ..Self::default() }
    }

    /// The ids of the running jobs. In some systems a running job is still due by its row.
    pub fn runs(&self) -> FxHashSet<&Text> {
        let running = self.jobs.get(&Part::Running);
        running.into_iter().flat_map(|read| read.last_rows().iter().map(|job| &job.id)).collect()
    }

    /// When a part was read, why it could not be read again, and whether there are more rows; a part that was never read has
    /// neither a time nor an error.
    pub fn read_of(&self, part: Part) -> (Option<Timestamp>, Option<&Text>, bool) {
        fn of<T>(rows: &Section<T>) -> (Option<Timestamp>, Option<&Text>, bool) {
            (rows.taken_at, rows.error.as_ref(), rows.is_cut)
        }
        match part {
            Part::Workers => of(&self.workers),
            Part::Depth => of(&self.depth),
            Part::Paused => of(&self.paused),
            Part::Leases => of(&self.leases),
            Part::Schedules => of(&self.schedules),
            jobs => self.jobs.get(&jobs).map_or((None, None, false), of),
        }
    }

    /// The number of jobs of each state in all queues together: beyond [`super::COUNTED`] the number of a single queue is
    /// incomplete.
    pub fn counted(&self) -> BTreeMap<&str, u64> {
        let mut counted = BTreeMap::new();
        for depth in self.depth.last_rows().iter().filter(|depth| !depth.is_estimate) {
            *counted.entry(&*depth.state).or_default() += depth.number;
        }
        counted
    }
}

/// Time zones differ by multiples of this, with few exceptions. In seconds.
const STEP: i64 = 1800;
/// Maximum age of a live worker's last sign of life, in seconds, even if its system allows more.
const FRESH: f64 = 120.0;

/// By how much the times of its workers are behind or ahead of the server's: if the last sign of life of each worker
/// differs by the same multiple of half an hour, plus at most the age allowed for a live worker. For a dead worker this may
/// be chance.
pub fn offset(rows: &InstallationRows) -> Option<TimeDelta> {
    let section = &rows.workers;
    let read_at = section.taken_at.filter(|_| section.error.is_none())?;
    let of_all = rows.installation.adapter.beat_limit();
    let mut found = None;
    for worker in section.last_rows().iter().filter(|worker| worker.stopped_at.is_none()) {
        let Some((beat, limit)) = worker.beat_at.zip(worker.beat_limit.or(of_all)) else { continue };
        let age = read_at - beat;
        let offset = TimeDelta::seconds(age.num_seconds().div_euclid(STEP) * STEP);
        let is_off = !offset.is_zero() && (age - offset).as_seconds_f64() <= limit.min(FRESH);
        if !is_off || *found.get_or_insert(offset) != offset {
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::adapter::sample;

    #[test]
    fn timestamps_off_by_whole_half_hours_may_be_in_another_zone() {
        let start = crate::sample::at(0.0);
        for (ages, expected) in [
            (&[5 * 3600 + 20][..], Some(18000)),
            (&[5 * 3600 + 20, 5 * 3600 + 100], Some(18000)),
            (&[-2 * 3600 + 20], Some(-7200)),
            (&[1800], Some(1800)),
            (&[], None),
            (&[20], None),
            (&[5 * 3600 + 121], None),
            (&[5 * 3600 - 20], None),
            (&[5 * 3600 + 20, 20], None),
            (&[5 * 3600 + 20, 6 * 3600 + 20], None),
        ] {
            let mut rows = sample::beating(start);
            let worker = rows.workers.last_rows()[0].clone();
            let of = |age: &i64| super::super::Worker {
                beat_at: Some(start - TimeDelta::seconds(*age)),
                stopped_at: None,
                ..worker.clone()
            };
            rows.workers.set(ages.iter().map(of).collect::<Vec<_>>());
            assert_eq!(offset(&rows), expected.map(TimeDelta::seconds), "{ages:?}");
        }
    }
}
