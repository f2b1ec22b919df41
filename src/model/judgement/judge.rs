//! Whether the worker of a run is alive: one rule for tasks, queue items, and the jobs and workers of other systems. A
//! state never claims more than the system's data show.

use crate::model::Timestamp;
use crate::model::adapter::{Evidence, Job, Worker};
use crate::model::job_state::{JobState, Proof};
use crate::model::snapshot::Snapshot;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The shown state, which may differ from that of the row.
    pub state: JobState,
    /// [`Proof::None`] for a job that does not run.
    pub proof: Proof,
    /// When a key was first seen free, the last sign of life, the end of a lease, or the start of a run that takes too long.
    pub since: Option<Timestamp>,
    /// The process id of the session that holds its key, or of its own session.
    pub pid: Option<i32>,
}

impl Judged {
    const fn of(state: JobState, proof: Proof) -> Self {
        Self { state, proof, since: None, pid: None }
    }

    fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    /// Whether its key is free, its session has ended, or no worker is connected, but not yet long enough to prove that its
    /// worker is lost.
    pub fn is_undecided(&self) -> bool {
        self.state == JobState::Unknown
            && matches!(self.proof, Proof::Lock | Proof::Session | Proof::Presence)
    }

    /// The state of a task or an item, for which an undecided one is shown as `undecided`.
    pub fn shown(&self, undecided: JobState) -> JobState {
        if self.is_undecided() { undecided } else { self.state }
    }
}

/// A key or a session, and what it proves about a worker.
///
/// If a key is free, the worker does not hold it: the only doubt is whether the worker ever took that number. If it is
/// held, any session may hold it: it is evidence for the worker only if something links the holder to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Sign {
    /// It is not known, or the locks or sessions could not be read.
    #[default]
    Unseen,
    /// Held or connected, with the process id if visible.
    Held(Option<i32>, Holder),
    /// Free or ended.
    Free {
        /// Since when, as far as known. None: for longer than any grace period.
        since: Option<Timestamp>,
        /// The proof that it belongs to this run; None if it is a guess.
        proof: Option<KeyProof>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Worker,
    /// Nothing links the holder to the worker.
    Unlinked,
    /// A session other than the recorded one.
    OtherSession,
    /// A session that works on another execution, which is newer or whose worker holds the key.
    OtherRun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyProof {
    /// The number is in the namespace of tasks, with the id of this task.
    Namespace,
    /// The config, the adapter or the row defines it.
    Config,
    /// The row stores it as `lock_id`, and it is the id of the task, as in the published functions.
    Row,
    /// A function in the schema of the tables locks it.
    Function,
    /// The session seen to hold it while this execution ran has ended.
    SeenEnding,
}

/// Durations are in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The server's time of the snapshot.
    pub now: Timestamp,
    /// When the jobs were read. Renewed values are judged at this time: later they are only old.
    pub read_at: Timestamp,
    pub workers_at: Timestamp,
    /// On a standby: the locks and sessions of its primary are not visible.
    pub in_recovery: bool,
    /// The key that the run itself holds.
    pub key: Sign,
    /// The session that the row of the run names.
    pub session: Sign,
    /// The key that its worker holds while it is alive ([`Worker::key`]).
    pub worker_key: Sign,
    /// The session that the row of a worker names; only for the row of a worker.
    pub worker_session: Sign,
    /// The row of its worker. None if there is no such row, or the job names no worker.
    pub worker: Option<&'a Worker>,
    /// All workers were read: a worker that is not among them has no row.
    pub has_workers: bool,
    pub is_paused: bool,
    /// No worker session was seen in any snapshot since then. None if one was seen, or that is not known.
    pub no_session: Option<Timestamp>,
    pub beat_limit: Option<f64>,
    pub age_limit: Option<f64>,
    /// How long a key must have been free, or a session have ended.
    pub grace: f64,
    /// A younger run may have begun after the locks and sessions were read. None for rows that were read before the locks and sessions.
    pub young: Option<f64>,
    /// How long a job may be due.
    pub overdue: f64,
}

/// See [`Facts::young`].
const YOUNG: f64 = 2.0;

impl Facts<'_> {
    /// For rows that were read together with the snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let now = snapshot.taken_at;
        Self {
            now,
            read_at: now,
            workers_at: now,
            in_recovery: snapshot.server().is_none_or(|server| server.in_recovery),
            young: Some(YOUNG.max(snapshot.poll_seconds)),
            ..Self::default()
        }
    }

    fn since(&self, at: Timestamp) -> f64 {
        (self.now - at).as_seconds_f64()
    }
}

/// The state of one job; for a running job, by the strongest proof of its system.
pub fn judge(evidence: &Evidence, job: &Job, facts: &Facts<'_>) -> Judged {
    let plain = |state| Judged::of(state, Proof::None);
    match &*job.state {
        "running" => judge_run(evidence, job, facts),
        "blocked" => match job.lease_until.filter(|end| *end <= facts.now) {
            Some(end) => Judged::of(JobState::Blocked, Proof::Lease).since(Some(end)),
            None => plain(JobState::Blocked),
        },
        "failed" => plain(JobState::Failed).since(job.finished_at),
        "done" => plain(JobState::Done).since(job.finished_at),
        waiting => {
            let late = job.due_at.map(|due| facts.since(due));
            let state = match waiting {
                _ if late.is_some_and(|late| late > facts.overdue) => JobState::Overdue,
                "retry" => JobState::Retry,
                _ if late.is_some_and(|late| late < 0.0) => JobState::Scheduled,
                "scheduled" if late.is_none() => JobState::Scheduled,
                _ => JobState::Due,
            };
            let is_ready = matches!(state, JobState::Due | JobState::Overdue);
            plain(if facts.is_paused && is_ready { JobState::Paused } else { state }).since(job.due_at)
        }
    }
}

/// The state of a job that runs by its row: the only rule for it, used by the screens, the findings, `snapshot` and the
/// actions.
pub fn judge_run(evidence: &Evidence, job: &Job, facts: &Facts<'_>) -> Judged {
    let proofs = [by_key, by_session, by_worker, by_beat, by_lease, by_presence];
    let found = proofs.iter().find_map(|proof| proof(evidence, job, facts));
    let found = found.unwrap_or(Judged::of(JobState::Unknown, Proof::None));
    let runs = job.started_at.map(|started| (facts.read_at - started).as_seconds_f64());
    let is_slow = job.limit.zip(runs).is_some_and(|(limit, runs)| runs > limit);
    let slow = match found.state {
        JobState::Unknown => return by_age(job, facts).unwrap_or(found),
        JobState::Running => JobState::Slow,
        JobState::MaybeRunning => JobState::MaybeSlow,
        _ => return found,
    };
    let is_slow = is_slow && found.proof != Proof::None;
    if is_slow { Judged { state: slow, since: job.started_at, ..found } } else { found }
}

fn by_key(evidence: &Evidence, job: &Job, facts: &Facts<'_>) -> Option<Judged> {
    // A key may be free for a moment while a job ends. If its worker is no longer listed, no process can be ending it.
    let is_named = job.worker.as_deref().is_some_and(|name| !name.is_empty());
    let is_gone = evidence.absent_is_lost && is_named && facts.worker.is_none() && is_absent(job, facts);
    let grace = if is_gone { 0.0 } else { facts.grace };
    let facts = Facts { grace, ..*facts };
    of_sign(facts.key, Proof::Lock, job.started_at, &facts).filter(|_| evidence.has_key)
}

fn by_session(evidence: &Evidence, job: &Job, facts: &Facts<'_>) -> Option<Judged> {
    of_sign(facts.session, Proof::Session, job.started_at, facts).filter(|_| evidence.has_session)
}

/// On a standby neither a free key nor a held one proves anything: the workers are connected to the primary.
fn of_sign(sign: Sign, proof: Proof, started_at: Option<Timestamp>, facts: &Facts<'_>) -> Option<Judged> {
    let is_young = started_at.zip(facts.young).is_some_and(|(started, young)| facts.since(started) < young);
    Some(match sign {
        _ if facts.in_recovery => return None,
        Sign::Unseen | Sign::Held(_, Holder::OtherSession) => return None,
        Sign::Held(_, Holder::OtherRun) => Judged::of(JobState::LeftOver, Proof::None),
        Sign::Held(pid, Holder::Unlinked) => Judged { pid, ..Judged::of(JobState::MaybeRunning, proof) },
        Sign::Held(pid, Holder::Worker) => Judged { pid, ..Judged::of(JobState::Running, proof) },
        Sign::Free { .. } if is_young => Judged::of(JobState::Running, Proof::None),
        Sign::Free { since, .. } if since.is_some_and(|since| facts.since(since) < facts.grace) => {
            Judged::of(JobState::Unknown, proof).since(since)
        }
        Sign::Free { since, proof: Some(_) } => Judged::of(JobState::Orphan, proof).since(since),
        Sign::Free { since, proof: None } => Judged::of(JobState::MaybeOrphan, proof).since(since),
    })
}

fn by_worker(evidence: &Evidence, job: &Job, facts: &Facts<'_>) -> Option<Judged> {
    let Some(worker) = facts.worker else {
        let is_lost = evidence.absent_is_lost && is_absent(job, facts);
        return is_lost.then_some(Judged::of(JobState::Lost, Proof::Absent));
    };
    let judged = judge_worker(worker, facts)?;
    let has_stopped = worker.stopped_at.is_some_and(|stopped| stopped <= facts.now);
    let is_lost = has_stopped && judged.proof == Proof::Heartbeat;
    Some(Judged { state: if is_lost { JobState::Lost } else { judged.state }, ..judged })
}

/// The state of a process that has not recorded its end; None if nothing shows whether it is alive.
pub fn judge_worker(worker: &Worker, facts: &Facts<'_>) -> Option<Judged> {
    of_sign(facts.worker_key, Proof::Lock, None, facts)
        .or_else(|| of_sign(facts.worker_session, Proof::Session, None, facts))
        .or_else(|| of_beat(worker.beat_at, worker.beat_limit.or(facts.beat_limit), facts.workers_at))
        .or_else(|| of_own_sessions(worker, facts))
}

/// A listed worker of which sessions were connected; without any it is not judged: it may be reconnecting.
fn of_own_sessions(worker: &Worker, facts: &Facts<'_>) -> Option<Judged> {
    let is_connected = !facts.in_recovery && worker.sessions.is_some_and(|sessions| sessions > 0);
    is_connected.then_some(Judged::of(JobState::Running, Proof::Session))
}

/// Whether the job's row has an empty worker, or a worker that is not listed.
fn is_absent(job: &Job, facts: &Facts<'_>) -> bool {
    job.worker.as_deref().is_some_and(|name| name.is_empty() || (facts.has_workers && was_there(job, facts)))
}

/// Whether the worker had time to be listed, and the job was not read before the workers: a worker that has just started
/// or ended is missing from the list for a moment.
fn was_there(job: &Job, facts: &Facts<'_>) -> bool {
    let ran = job.started_at.map(|started| (facts.workers_at - started).as_seconds_f64());
    facts.read_at >= facts.workers_at && ran.is_none_or(|ran| ran >= LISTED)
}

/// Seconds after the start of a job within which its worker is listed.
const LISTED: f64 = 10.0;

fn by_beat(_: &Evidence, job: &Job, facts: &Facts<'_>) -> Option<Judged> {
    of_beat(job.beat_at, facts.beat_limit, facts.read_at)
}

fn of_beat(beat_at: Option<Timestamp>, limit: Option<f64>, read_at: Timestamp) -> Option<Judged> {
    let (beat, limit) = beat_at.zip(limit)?;
    let is_old = (read_at - beat).as_seconds_f64() > limit;
    let state = if is_old { JobState::Lost } else { JobState::Running };
    Some(Judged::of(state, Proof::Heartbeat).since(Some(beat).filter(|_| is_old)))
}

fn by_lease(_: &Evidence, job: &Job, facts: &Facts<'_>) -> Option<Judged> {
    let end = job.lease_until?;
    let is_over = end <= facts.read_at;
    let state = if is_over { JobState::Lost } else { JobState::Running };
    Some(Judged::of(state, Proof::Lease).since(Some(end).filter(|_| is_over)))
}

/// No worker of its system is connected. Like a lock, a session may be missing for a moment: the worker reconnects.
fn by_presence(evidence: &Evidence, _: &Job, facts: &Facts<'_>) -> Option<Judged> {
    let since = facts.no_session.filter(|_| evidence.has_presence)?;
    let state = if facts.since(since) >= facts.grace { JobState::Lost } else { JobState::Unknown };
    Some(Judged::of(state, Proof::Presence).since(Some(since)))
}

/// A job that runs for longer than its system allows: the rescuer did not run. Which worker was lost is not known.
fn by_age(job: &Job, facts: &Facts<'_>) -> Option<Judged> {
    let (limit, started) = facts.age_limit.zip(job.started_at)?;
    let is_late = (facts.read_at - started).as_seconds_f64() > limit;
    is_late.then_some(Judged::of(JobState::Late, Proof::Age).since(Some(started)))
}

#[cfg(test)]
mod tests;
