//! The state of a job, and its proof. The state never claims more than the system's data show.

use super::rows::{Job, Worker};
use super::{Adapter, Proof, State};
use crate::model::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The shown state, which may differ from that of the row.
    pub state: State,
    /// [`Proof::None`] for a job that does not run.
    pub proof: Proof,
    /// When a key was first seen free, the last sign of life, the end of a lease, or the start of a run that takes too long.
    pub since: Option<Timestamp>,
    /// The process id of the session that holds its key, or of its own session.
    pub pid: Option<i32>,
}

impl Judged {
    /// Whether its key is free, or no worker is connected, but not yet long enough to prove that its worker is lost.
    pub fn is_undecided(&self) -> bool {
        self.state == State::Unknown && matches!(self.proof, Proof::Lock | Proof::Presence)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeySeen {
    /// There is no key, or the locks could not be read.
    Unseen,
    /// Held. The process id, if visible.
    Held(Option<i32>),
    /// Free in every snapshot since then.
    Free(Timestamp),
}

#[derive(Debug, Clone, Copy)]
pub struct JobFacts<'a> {
    /// The server's time of the snapshot.
    pub now: Timestamp,
    /// When the jobs were read. Renewed values are judged at this time: later they are only old.
    pub read_at: Timestamp,
    pub workers_at: Timestamp,
    /// On a standby: the locks and sessions of its primary are not visible.
    pub in_recovery: bool,
    /// The key that the job's own run holds ([`Job::key`]).
    pub key: KeySeen,
    /// The key that its worker holds while it is alive ([`Worker::key`]).
    pub worker_key: KeySeen,
    /// The row of its worker. None if there is no such row, or the job names no worker.
    pub worker: Option<&'a Worker>,
    /// All workers were read: a worker that is not among them has no row.
    pub has_workers: bool,
    pub is_paused: bool,
    /// Whether its backend exists. None if that cannot be determined.
    pub session: Option<bool>,
    /// No worker session was seen in any snapshot since then. None if one was seen, or that is not known.
    pub no_session: Option<Timestamp>,
    /// How long a key must have been free, in seconds.
    pub grace: f64,
    /// How long a job may be due, in seconds.
    pub overdue: f64,
}

/// The state of one job; for a running job, by the strongest proof of its system.
pub fn judge(adapter: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Judged {
    let plain = |state| Judged { state, proof: Proof::None, since: None, pid: None };
    match &*job.state {
        "running" => running(adapter, job, seen),
        "blocked" => blocked(job, seen),
        "failed" => Judged { since: job.finished_at, ..plain(State::Failed) },
        "done" => Judged { since: job.finished_at, ..plain(State::Done) },
        waiting => {
            let late = job.due_at.map(|due| (seen.now - due).as_seconds_f64());
            let state = match waiting {
                "retry" => State::Retry,
                _ if late.is_some_and(|late| late < 0.0) => State::Scheduled,
                "scheduled" if late.is_none() => State::Scheduled,
                _ => State::Due,
            };
            let state = if late.is_some_and(|late| late > seen.overdue) { State::Overdue } else { state };
            let is_ready = matches!(state, State::Due | State::Overdue);
            let state = if seen.is_paused && is_ready { State::Paused } else { state };
            Judged { since: job.due_at, ..plain(state) }
        }
    }
}

fn blocked(job: &Job, seen: &JobFacts<'_>) -> Judged {
    let since = job.lease_until.filter(|end| *end <= seen.now);
    let proof = if since.is_some() { Proof::Lease } else { Proof::None };
    Judged { state: State::Blocked, proof, since, pid: None }
}

fn running(adapter: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Judged {
    let proofs = [by_key, by_session, by_worker, by_beat, by_lease, by_presence];
    let found = proofs.iter().find_map(|proof| proof(adapter, job, seen));
    let found = found.unwrap_or(Judged { state: State::Unknown, proof: Proof::None, since: None, pid: None });
    match found.state {
        State::Unknown => by_age(adapter, job, seen).unwrap_or(found),
        State::Running if is_slow(job, seen) => Judged { state: State::Slow, since: job.started_at, ..found },
        _ => found,
    }
}

fn is_slow(job: &Job, seen: &JobFacts<'_>) -> bool {
    let runs = job.started_at.map(|started| (seen.read_at - started).as_seconds_f64());
    job.limit.zip(runs).is_some_and(|(limit, runs)| runs > limit)
}

fn by_key(adapter: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    if !adapter.evidence.has_key {
        return None;
    }
    // A key may be free for a moment while a job ends. If its worker is no longer listed, no process can be ending it.
    let is_named = job.worker.as_deref().is_some_and(|name| !name.is_empty());
    let is_gone =
        adapter.evidence.absent_is_lost && is_named && seen.worker.is_none() && is_absent(job, seen);
    let grace = if is_gone { 0.0 } else { seen.grace };
    of_key(seen.key, seen.in_recovery, seen.now, grace)
}

/// On a standby a free key proves nothing.
pub(super) fn of_key(key: KeySeen, in_recovery: bool, now: Timestamp, grace: f64) -> Option<Judged> {
    let judged = |state, since, pid| Some(Judged { state, proof: Proof::Lock, since, pid });
    match key {
        KeySeen::Unseen => None,
        KeySeen::Held(pid) => judged(State::Running, None, pid),
        KeySeen::Free(_) if in_recovery => None,
        KeySeen::Free(since) if (now - since).as_seconds_f64() >= grace => {
            judged(State::Orphan, Some(since), None)
        }
        KeySeen::Free(since) => judged(State::Unknown, Some(since), None),
    }
}

fn by_session(adapter: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    if !adapter.evidence.has_session || seen.in_recovery {
        return None;
    }
    let state = if seen.session? { State::Running } else { State::Orphan };
    let pid = job.backend_pid.filter(|_| state == State::Running);
    Some(Judged { state, proof: Proof::Session, since: None, pid })
}

fn by_worker(adapter: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    let Some(worker) = seen.worker else {
        let lost = Judged { state: State::Lost, proof: Proof::Absent, since: None, pid: None };
        return Some(lost).filter(|_| is_absent(job, seen) && adapter.evidence.absent_is_lost);
    };
    if let Some(judged) = of_key(seen.worker_key, seen.in_recovery, seen.now, seen.grace) {
        return Some(judged);
    }
    let limit = worker.beat_limit.or_else(|| adapter.beat_limit());
    let state =
        if worker.stopped_at.is_some_and(|stopped| stopped <= seen.now) { Some(State::Lost) } else { None };
    of_beat(worker.beat_at, limit, seen.workers_at)
        .map(|judged| Judged { state: state.unwrap_or(judged.state), ..judged })
}

/// Whether the job's row has an empty worker, or a worker that is not listed.
fn is_absent(job: &Job, seen: &JobFacts<'_>) -> bool {
    job.worker.as_deref().is_some_and(|name| name.is_empty() || (seen.has_workers && was_there(job, seen)))
}

/// Whether the worker had time to be listed, and the job was not read before the workers: a worker that has just started
/// or ended is missing from the list for a moment.
fn was_there(job: &Job, seen: &JobFacts<'_>) -> bool {
    let ran = job.started_at.map(|started| (seen.workers_at - started).as_seconds_f64());
    seen.read_at >= seen.workers_at && ran.is_none_or(|ran| ran >= LISTED)
}

/// Seconds after the start of a job within which its worker is listed.
const LISTED: f64 = 10.0;

fn by_beat(adapter: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    of_beat(job.beat_at, adapter.beat_limit(), seen.read_at)
}

fn of_beat(beat_at: Option<Timestamp>, limit: Option<f64>, read_at: Timestamp) -> Option<Judged> {
    let (beat, limit) = beat_at.zip(limit)?;
    let is_old = (read_at - beat).as_seconds_f64() > limit;
    let state = if is_old { State::Lost } else { State::Running };
    Some(Judged { state, proof: Proof::Heartbeat, since: Some(beat).filter(|_| is_old), pid: None })
}

fn by_lease(_: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    let end = job.lease_until?;
    let is_over = end <= seen.read_at;
    let state = if is_over { State::Lost } else { State::Running };
    Some(Judged { state, proof: Proof::Lease, since: Some(end).filter(|_| is_over), pid: None })
}

/// No worker of its system is connected. Like a lock, a session may be missing for a moment: the worker reconnects.
fn by_presence(adapter: &Adapter, _: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    let since = seen.no_session.filter(|_| adapter.evidence.has_presence)?;
    let is_long = (seen.now - since).as_seconds_f64() >= seen.grace;
    let state = if is_long { State::Lost } else { State::Unknown };
    Some(Judged { state, proof: Proof::Presence, since: Some(since), pid: None })
}

/// A job that runs for longer than its system allows: the rescuer did not run. Which worker was lost is not known.
fn by_age(adapter: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    let limit = adapter.evidence.age_limit.as_ref().and_then(|limit| adapter.seconds(limit))?;
    let started = job.started_at?;
    let is_late = (seen.read_at - started).as_seconds_f64() > limit;
    is_late.then_some(Judged { state: State::Late, proof: Proof::Age, since: Some(started), pid: None })
}

#[cfg(test)]
mod tests;
