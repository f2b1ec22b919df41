//! Workers, leases, schedules and queues with their states.

use std::collections::BTreeMap;

use super::{AdapterBoardBuilder, Marks, Proof};
use crate::model::adapter::{AdapterLease, AdapterSchedule, COUNTED, Job, JobState, Part, Worker};
use crate::model::judge::{Facts, judge_worker};
use crate::model::lease::{LeaseRow, LeaseState};
use crate::model::source_tables::NameHash;
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRow {
    pub id: NameHash,
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

impl AdapterBoardBuilder<'_> {
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

impl AdapterBoardBuilder<'_> {
    pub(super) fn leases(&self, place: usize) -> Vec<LeaseRow> {
        let rows = self.rows.leases.last_rows().iter().enumerate();
        rows.map(|(at, lease)| self.lease_row((place, at), lease)).collect()
    }

    fn lease_row(&self, place: (usize, usize), lease: &AdapterLease) -> LeaseRow {
        let left = lease.expires_at.map(|end| (end - self.snapshot.taken_at).as_seconds_f64());
        // A standby does not have the locks of the primary.
        let holders = self.holders.filter(|_| !self.facts().in_recovery);
        let holder = lease.key.zip(holders).map(|(key, holders)| holders.get(&key));
        let state = match (lease.is_held, left) {
            (None, None) if holder.is_some_and(|holder| holder.is_some()) => LeaseState::Held,
            (None, None) if holder.is_some() => LeaseState::Free,
            (Some(false), _) => LeaseState::Free,
            (_, Some(left)) if left <= 0.0 => LeaseState::Over,
            (Some(true), _) | (None, Some(_)) => LeaseState::Held,
            (None, None) => LeaseState::Unknown,
        };
        LeaseRow {
            id: self.id(&format!("lease {}", lease.id)),
            source: self.source.clone(),
            place,
            key: lease.id.clone(),
            name: lease.id.clone(),
            owner: lease.owner.clone(),
            acquired_at: lease.acquired_at,
            expires_at: lease.expires_at,
            token_text: lease.token.clone(),
            note: lease.note.clone(),
            state,
            left: left.filter(|_| state != LeaseState::Free),
            owner_pid: holder.flatten().copied().flatten(),
            queue: lease.key,
            ..LeaseRow::default()
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRow {
    pub id: NameHash,
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

impl AdapterBoardBuilder<'_> {
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

#[derive(Debug, Clone, PartialEq)]
pub struct QueueRow {
    pub id: NameHash,
    pub source: Text,
    pub place: usize,
    /// None: all queues of the installation.
    pub queue: Option<Text>,
    pub state: QueueState,
    /// Jobs by the word for their state (`due`, `running`, …).
    pub counts: BTreeMap<Text, Count>,
    /// Since when the oldest job could have been started.
    pub oldest_at: Option<Timestamp>,
    /// None if it is not paused, or its system does not record the time.
    pub paused_at: Option<Timestamp>,
}

words! {
    /// The state of a queue, worst first.
    pub enum QueueState {
        /// Jobs are due, and no worker of this installation is alive, or none is connected.
        Unserved,
        /// A job has been due for longer than `[thresholds] task_overdue`.
        Overdue,
        Paused,
        Open,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    pub number: u64,
    /// A lower bound: counting stops at a limit.
    pub is_least: bool,
    /// An estimate from the planner's statistics.
    pub is_estimate: bool,
}

/// `1,204`; `10,000+` if there may be more; `~120,000` for an estimate.
impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (about, more) = (if self.is_estimate { "~" } else { "" }, if self.is_least { "+" } else { "" });
        write!(f, "{about}{}{more}", crate::text::count(self.number))
    }
}

impl AdapterBoardBuilder<'_> {
    /// Its queues by name, after a row for all of them if something was read for all.
    pub(super) fn queues(&self, place: usize, workers: &[WorkerRow]) -> Vec<QueueRow> {
        let rows = self.rows;
        let mut queues: BTreeMap<Option<Text>, QueueRow> = BTreeMap::new();
        let counted = rows.counted();
        for depth in rows.depth.last_rows().iter() {
            let row = self.queue_of(&mut queues, place, depth.queue.as_ref());
            let is_least = !depth.is_estimate && counted.get(&*depth.state).is_some_and(|all| *all > COUNTED);
            let number = if depth.is_estimate { depth.number } else { depth.number.min(COUNTED) };
            row.counts
                .insert(depth.state.clone(), Count { number, is_least, is_estimate: depth.is_estimate });
            row.oldest_at = earliest(row.oldest_at, depth.oldest_at);
        }
        let runs = rows.runs();
        // If due jobs are counted for all queues together, the oldest job is that of all.
        let is_due_of_all = queues.get(&None).is_some_and(|row| row.counts.contains_key("due"));
        for (part, word) in [(Part::Running, "running"), (Part::Due, "due")] {
            let Some(read) = rows.jobs.get(&part) else { continue };
            let is_twice = |job: &&Job| part != Part::Running && runs.contains(&job.id);
            // In the part `due`, a job to be retried counts as due.
            let is_so = |job: &&Job| *job.state == *word || part == Part::Due && &*job.state == "retry";
            let mut listed: BTreeMap<Option<&Text>, u64> = BTreeMap::new();
            for job in read.last_rows().iter().filter(|job| is_so(job) && !is_twice(job)) {
                let row = self.queue_of(&mut queues, place, job.queue.as_ref());
                if part == Part::Due {
                    row.oldest_at = earliest(row.oldest_at, job.due_at);
                    if is_due_of_all && job.queue.is_some() {
                        let all = self.queue_of(&mut queues, place, None);
                        all.oldest_at = earliest(all.oldest_at, job.due_at);
                    }
                }
                *listed.entry(job.queue.as_ref()).or_default() += 1;
            }
            for (queue, number) in listed.into_iter().filter(|_| !counted.contains_key(word)) {
                let row = self.queue_of(&mut queues, place, queue);
                // An estimate includes the listed jobs. A query of due jobs may return only the first few.
                if row.counts.get(word).is_none_or(|estimate| estimate.number < number) {
                    let is_least = read.is_cut || part == Part::Due;
                    row.counts.insert(word.into(), Count { number, is_least, is_estimate: false });
                }
            }
        }
        for paused in rows.paused.last_rows().iter() {
            let row = self.queue_of(&mut queues, place, Some(&paused.queue));
            (row.state, row.paused_at) = (QueueState::Paused, paused.since);
        }
        let evidence = &rows.installation.adapter.evidence;
        let is_away = evidence.has_presence && rows.sessions == Some(0);
        let unserved_after = if workers.is_empty() {
            // Workers may be about to start.
            let is_nobody = (evidence.lists_workers && self.has_workers()) || is_away;
            is_nobody.then_some(self.thresholds.task_overdue)
        } else {
            (self.has_workers() && workers.iter().all(|worker| worker.state.is_over())).then_some(0.0)
        };
        let mut queues: Vec<QueueRow> = queues.into_values().collect();
        for row in &mut queues {
            row.state = self.queue_state(row, unserved_after);
        }
        queues
    }

    fn queue_state(&self, row: &QueueRow, unserved_after: Option<f64>) -> QueueState {
        let waits = row.oldest_at.map(|oldest| (self.snapshot.taken_at - oldest).as_seconds_f64());
        let has_due = row.counts.get("due").is_some_and(|count| count.number > 0);
        if row.state == QueueState::Paused {
            QueueState::Paused
        } else if has_due
            && unserved_after.is_some_and(|after| after == 0.0 || waits.is_some_and(|waits| waits > after))
        {
            QueueState::Unserved
        } else if waits.is_some_and(|waits| waits > self.thresholds.task_overdue) {
            QueueState::Overdue
        } else {
            QueueState::Open
        }
    }

    fn queue_of<'a>(
        &self,
        queues: &'a mut BTreeMap<Option<Text>, QueueRow>,
        place: usize,
        queue: Option<&Text>,
    ) -> &'a mut QueueRow {
        queues.entry(queue.cloned()).or_insert_with(|| {
            // A queue may have any name, also an empty one.
            let name = queue.map_or_else(|| "queues".to_owned(), |queue| format!("queue {queue}"));
            QueueRow {
                id: self.id(&name),
                source: self.source.clone(),
                place,
                queue: queue.cloned(),
                state: QueueState::Open,
                counts: BTreeMap::new(),
                oldest_at: None,
                paused_at: None,
            }
        })
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
