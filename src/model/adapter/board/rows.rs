//! Workers, leases and schedules with their states.

use super::{BoardBuilder, Marks, Proof};
use crate::model::adapter::{AdapterLease, AdapterSchedule, JobState, Part, Worker};
use crate::model::judge::{Facts, judge_worker};
use crate::model::systems::TextId;
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRow {
    pub id: TextId,
    pub source: Text,
    pub place: (usize, usize),
    pub worker: Worker,
    pub state: WorkerState,
    pub proof: Proof,
    /// When its lock was first seen free, its last sign of life, or its end.
    pub since: Option<Timestamp>,
    /// The process id of the session that holds its lock, or of its own session.
    pub pid: Option<i32>,
    /// Jobs that it runs: the number in its row, otherwise counted from the jobs read. None if a running job names no worker.
    pub busy: Option<i64>,
}

words! {
    /// The state of a worker, worst first.
    pub enum WorkerState {
        /// Its lock or its session ended, but its row still exists.
        Gone,
        /// Its last sign of life is older than its system allows.
        Silent,
        /// Nothing that its system stores shows whether it is alive.
        Unknown,
        /// Its lock is held, its session is connected, or its last sign of life is recent.
        Live,
        /// It has ended, and recorded its end.
        Stopped,
    }
}

impl WorkerState {
    pub fn is_over(self) -> bool {
        matches!(self, Self::Gone | Self::Silent | Self::Stopped)
    }
}

impl BoardBuilder<'_> {
    pub(super) fn workers(&self, place: usize, free: &mut Marks) -> Vec<WorkerRow> {
        let rows = self.rows.workers.last_rows().iter().enumerate();
        rows.map(|(at, worker)| self.worker_row((place, at), worker, free)).collect()
    }

    fn worker_row(&self, place: (usize, usize), worker: &Worker, free: &mut Marks) -> WorkerRow {
        let id = self.id(&format!("worker {}", worker.id));
        let signs = [worker.started_at, worker.beat_at, None];
        let facts = Facts {
            worker_key: self.key(worker.key, (id, worker.started_at), signs, free),
            worker_session: self.session(worker.backend_pid, worker.started_at),
            ..self.facts()
        };
        let judged = judge_worker(worker, &facts);
        // A process that is only stopped keeps its sessions.
        let has_presence = self.rows.installation.adapter.evidence.has_presence;
        let is_away = worker.sessions == Some(0) || (has_presence && self.rows.sessions == Some(0));
        let stopped = worker.stopped_at.filter(|stopped| *stopped <= facts.now);
        let (state, proof) = match judged.map(|judged| (judged.state, judged.proof)) {
            _ if stopped.is_some() => (WorkerState::Stopped, Proof::None),
            Some((JobState::Lost, _)) if is_away => (WorkerState::Gone, Proof::Presence),
            Some((JobState::Orphan, proof)) => (WorkerState::Gone, proof),
            Some((JobState::Lost, proof)) => (WorkerState::Silent, proof),
            Some((JobState::Running, proof)) => (WorkerState::Live, proof),
            Some((_, proof)) => (WorkerState::Unknown, proof),
            None => (WorkerState::Unknown, Proof::None),
        };
        WorkerRow {
            id,
            source: self.source.clone(),
            place,
            worker: worker.clone(),
            state,
            proof,
            since: stopped.or(judged.and_then(|judged| judged.since)),
            pid: judged.filter(|_| stopped.is_none()).and_then(|judged| judged.pid),
            busy: worker.busy.or_else(|| self.runs(worker)),
        }
    }

    /// The number of its running jobs. None if not all jobs were read, or one without a worker may be its own.
    fn runs(&self, worker: &Worker) -> Option<i64> {
        let running = self.rows.jobs.get(&Part::Running).filter(|read| !read.is_cut)?;
        // A job without a worker may be its own.
        if running.last_rows().iter().any(|job| job.worker.is_none()) {
            return None;
        }
        let jobs = running.last_rows().iter();
        i64::try_from(jobs.filter(|job| job.worker.as_deref() == Some(&*worker.id)).count()).ok()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct OtherLeaseRow {
    pub id: TextId,
    /// The installation's label: `Liquibase`, with its schema if there are several.
    pub source: Text,
    /// Index of the installation in the snapshot, and of the lease in it.
    pub place: (usize, usize),
    pub lease: AdapterLease,
    pub state: TermState,
    /// Seconds until it ends, negative after that. None if it has no end, or is not held.
    pub left: Option<f64>,
    /// The process id of the session that holds its lock.
    pub pid: Option<i32>,
}

words! {
    pub enum TermState {
        /// Held according to its row, or by a term that has not ended.
        Held,
        /// Its row has neither an owner nor an end.
        Unknown,
        /// Its term has ended: the next request gets it.
        Over,
        Free,
    }
}

impl TermState {
    pub fn is_held(self) -> Option<bool> {
        (self != Self::Unknown).then_some(self == Self::Held)
    }
}

impl BoardBuilder<'_> {
    pub(super) fn leases(&self, place: usize) -> Vec<OtherLeaseRow> {
        let rows = self.rows.leases.last_rows().iter().enumerate();
        rows.map(|(at, lease)| self.lease_row((place, at), lease)).collect()
    }

    fn lease_row(&self, place: (usize, usize), lease: &AdapterLease) -> OtherLeaseRow {
        let left = lease.expires_at.map(|end| (end - self.snapshot.taken_at).as_seconds_f64());
        // A standby does not have the locks of the primary.
        let holders = self.holders.filter(|_| !self.facts().in_recovery);
        let holder = lease.key.zip(holders).map(|(key, holders)| holders.get(&key));
        let state = match (lease.is_held, left) {
            (None, None) if holder.is_some_and(|holder| holder.is_some()) => TermState::Held,
            (None, None) if holder.is_some() => TermState::Free,
            (Some(false), _) => TermState::Free,
            (_, Some(left)) if left <= 0.0 => TermState::Over,
            (Some(true), _) | (None, Some(_)) => TermState::Held,
            (None, None) => TermState::Unknown,
        };
        OtherLeaseRow {
            id: self.id(&format!("lease {}", lease.id)),
            source: self.source.clone(),
            place,
            lease: lease.clone(),
            state,
            left: left.filter(|_| state != TermState::Free),
            pid: holder.flatten().copied().flatten(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRow {
    pub id: TextId,
    pub source: Text,
    pub place: (usize, usize),
    pub schedule: AdapterSchedule,
    pub state: ScheduleState,
}

words! {
    /// The state of a schedule, worst first.
    pub enum ScheduleState {
        /// It was due longer than `[thresholds] task_overdue` ago, and was not started.
        Overdue,
        On,
        Off,
    }
}

impl BoardBuilder<'_> {
    pub(super) fn schedules(&self, place: usize) -> Vec<ScheduleRow> {
        let rows = self.rows.schedules.last_rows().iter().enumerate();
        rows.map(|(at, schedule)| self.schedule_row((place, at), schedule)).collect()
    }

    fn schedule_row(&self, place: (usize, usize), schedule: &AdapterSchedule) -> ScheduleRow {
        // Rows that were read some time ago may have been started since.
        let read_at = self.rows.schedules.taken_at.unwrap_or(self.snapshot.taken_at);
        let late = schedule.next_run_at.map(|next| (read_at - next).as_seconds_f64());
        let state = match late {
            _ if schedule.is_enabled == Some(false) => ScheduleState::Off,
            Some(late) if late > self.thresholds.task_overdue => ScheduleState::Overdue,
            _ => ScheduleState::On,
        };
        ScheduleRow {
            id: self.id(&format!("schedule {}", schedule.id)),
            source: self.source.clone(),
            place,
            schedule: schedule.clone(),
            state,
        }
    }
}
