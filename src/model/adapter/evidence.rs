//! What is known of a job: its state, and what proves it. Never more than the system lets anybody know.

use super::rows::{Job, Worker};
use super::{Adapter, Proof, State};
use crate::model::Timestamp;

/// The state of a job, and by what it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The state that is shown: it may be another one than the row says.
    pub state: State,
    /// What it is known by; of a job that does not run [`Proof::None`].
    pub proof: Proof,
    /// Since when: when a key was first seen free, the last sign of life, the end of a lease, the start of what runs too long.
    pub since: Option<Timestamp>,
    /// The process of the session that holds its key, or that is its own.
    pub pid: Option<i32>,
}

impl Judged {
    /// Whether its key is free, or no worker connected, and the time is not over after which that proves that its worker is lost.
    pub fn is_undecided(&self) -> bool {
        self.state == State::Unknown && matches!(self.proof, Proof::Lock | Proof::Presence)
    }
}

/// What is seen of an advisory lock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeySeen {
    /// There is none, or the locks could not be read.
    Unseen,
    /// Somebody holds it: the process, where that may be seen.
    Held(Option<i32>),
    /// Nobody has held it at any look since.
    Free(Timestamp),
}

/// What is seen beside the job itself.
#[derive(Debug, Clone, Copy)]
pub struct JobFacts<'a> {
    /// The server's clock when the snapshot was taken.
    pub now: Timestamp,
    /// When the jobs were read. What is renewed is judged by when it was read: later it is only old.
    pub read_at: Timestamp,
    /// When the workers were read, by the server's clock.
    pub workers_at: Timestamp,
    /// A standby: the locks and sessions of its primary are not there.
    pub in_recovery: bool,
    /// The key that the job's own run holds ([`Job::key`]).
    pub key: KeySeen,
    /// The key that its worker holds while it lives ([`Worker::key`]).
    pub worker_key: KeySeen,
    /// The row of the worker that it names; none where there is none, or it names nobody.
    pub worker: Option<&'a Worker>,
    /// All workers were read: who is not among them has no row.
    pub has_workers: bool,
    /// Its queue is among those that are paused.
    pub is_paused: bool,
    /// Whether its backend is there, where that can be told.
    pub session: Option<bool>,
    /// No snapshot since then has had a session of a worker; None where one has, or where that is not known.
    pub no_session: Option<Timestamp>,
    /// How long a key must have been free, in seconds.
    pub grace: f64,
    /// How long a job may have been due, in seconds.
    pub overdue: f64,
}

/// The state of one job: of one that runs by the surest proof that its system has.
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

/// A job that waits for something to end: by its term, where it has one that has ended.
fn blocked(job: &Job, seen: &JobFacts<'_>) -> Judged {
    let since = job.lease_until.filter(|end| *end <= seen.now);
    let proof = if since.is_some() { Proof::Lease } else { Proof::None };
    Judged { state: State::Blocked, proof, since, pid: None }
}

/// A job that runs by its row: the surest proof that its system has counts.
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
    // A key may be free for a moment while a job ends. Where its worker is on no list any more there is nobody who could be ending it.
    let is_named = job.worker.as_deref().is_some_and(|name| !name.is_empty());
    let is_gone =
        adapter.evidence.absent_is_lost && is_named && seen.worker.is_none() && is_absent(job, seen);
    let grace = if is_gone { 0.0 } else { seen.grace };
    of_key(seen.key, seen.in_recovery, seen.now, grace)
}

/// A key that is held or free. On a standby a free key proves nothing.
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

/// Whether its system names nobody as its worker, or somebody who is on no list.
fn is_absent(job: &Job, seen: &JobFacts<'_>) -> bool {
    job.worker.as_deref().is_some_and(|name| name.is_empty() || (seen.has_workers && was_there(job, seen)))
}

/// Whether a worker has had the time to be listed, and the job was not read before the workers: who has just begun, or has just ended, is
/// missing from a list for a moment.
fn was_there(job: &Job, seen: &JobFacts<'_>) -> bool {
    let ran = job.started_at.map(|started| (seen.workers_at - started).as_seconds_f64());
    seen.read_at >= seen.workers_at && ran.is_none_or(|ran| ran >= LISTED)
}

/// So long after the start of a job its worker is listed, in seconds.
const LISTED: f64 = 10.0;

fn by_beat(adapter: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    of_beat(job.beat_at, adapter.beat_limit(), seen.read_at)
}

/// A sign of life that is fresh, or older than the system's own limit.
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

/// No worker of its system is connected. Like a lock, a session may be missing for a moment: a worker that lost it connects again.
fn by_presence(adapter: &Adapter, _: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    let since = seen.no_session.filter(|_| adapter.evidence.has_presence)?;
    let is_long = (seen.now - since).as_seconds_f64() >= seen.grace;
    let state = if is_long { State::Lost } else { State::Unknown };
    Some(Judged { state, proof: Proof::Presence, since: Some(since), pid: None })
}

/// What runs for longer than its system lets anything run: its rescuer has not been there. Who is gone nobody knows.
fn by_age(adapter: &Adapter, job: &Job, seen: &JobFacts<'_>) -> Option<Judged> {
    let limit = adapter.evidence.age_limit.as_ref().and_then(|limit| adapter.seconds(limit))?;
    let started = job.started_at?;
    let is_late = (seen.read_at - started).as_seconds_f64() > limit;
    is_late.then_some(Judged { state: State::Late, proof: Proof::Age, since: Some(started), pid: None })
}

#[cfg(test)]
mod tests;
