//! The workers of all installations: which of them live, and what proves it.

use strum::{IntoStaticStr, VariantArray};

use super::{BoardBuilder, KeySeen, Marks, Proof};
use crate::model::adapter::evidence::of_key;
use crate::model::adapter::{Adapter, Part, State, Worker};
use crate::model::systems::TextId;
use crate::model::{Text, Timestamp};

/// A worker of an installation, with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRow {
    /// What identifies it: the installation and its id.
    pub id: TextId,
    /// What its installation is called: `GoodJob`, with its schema where there are several.
    pub source: Text,
    /// Place of the installation in the snapshot, and of the worker in it.
    pub place: (usize, usize),
    /// Whether it lives, or what speaks against it.
    pub state: WorkerState,
    /// By what the state is known.
    pub proof: Proof,
    /// Since when: when its lock was first seen free, its last sign of life, its end.
    pub since: Option<Timestamp>,
    /// The process of the session that holds its lock, or that is its own.
    pub pid: Option<i32>,
    /// Jobs that it runs: by its row, or else those of it that were read; None where some that run name no worker.
    pub busy: Option<i64>,
}

/// How a worker is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum WorkerState {
    /// Its lock or its session ended, and its row is still there.
    Gone,
    /// Its last sign of life is older than its system allows.
    Silent,
    /// Nothing that its system stores tells whether it lives.
    Unknown,
    /// Its lock is held, its session is there, or its last sign of life is fresh.
    Live,
    /// It has ended, and said so.
    Stopped,
}

impl WorkerState {
    /// Every state, worst first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word on the screens and in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether it takes no more jobs.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Gone | Self::Silent | Self::Stopped)
    }
}

impl BoardBuilder<'_> {
    /// Its workers, in the order in which they were read.
    pub(super) fn workers(&self, place: usize, free: &mut Marks) -> Vec<WorkerRow> {
        let rows = self.rows.workers.section.last_rows().iter().enumerate();
        rows.map(|(at, worker)| self.worker_row((place, at), worker, free)).collect()
    }

    fn worker_row(&self, place: (usize, usize), worker: &Worker, free: &mut Marks) -> WorkerRow {
        let installation = &self.rows.installation;
        let id =
            TextId::of(&installation.adapter.name, &format!("{} worker {}", installation.oid, worker.id));
        let key =
            self.key(worker.key, (id, worker.started_at), [worker.started_at, worker.beat_at, None], free);
        let session = worker.backend_pid.map(|pid| (pid, self.session_of(pid, worker.started_at)));
        let (state, proof, since, pid) = self.judge_worker(&installation.adapter, worker, key, session);
        WorkerRow {
            id,
            source: installation.label().into(),
            place,
            state,
            proof,
            since,
            pid,
            busy: worker.busy.or_else(|| self.runs(worker)),
        }
    }

    fn judge_worker(
        &self,
        adapter: &Adapter,
        worker: &Worker,
        key: KeySeen,
        session: Option<(i32, Option<bool>)>,
    ) -> (WorkerState, Proof, Option<Timestamp>, Option<i32>) {
        let (now, read_at) = (self.snapshot.taken_at, self.workers_at());
        if let Some(stopped) = worker.stopped_at.filter(|stopped| *stopped <= now) {
            return (WorkerState::Stopped, Proof::None, Some(stopped), None);
        }
        if let Some(judged) = of_key(key, self.in_recovery(), now, self.thresholds.orphan_grace) {
            let state = match judged.state {
                State::Orphan => WorkerState::Gone,
                State::Running => WorkerState::Live,
                _ => WorkerState::Unknown,
            };
            return (state, Proof::Lock, judged.since, judged.pid);
        }
        match session.filter(|_| !self.in_recovery()) {
            Some((pid, Some(true))) => return (WorkerState::Live, Proof::Session, None, Some(pid)),
            Some((_, Some(false))) => return (WorkerState::Gone, Proof::Session, None, None),
            _ => {}
        }
        let limit = worker.beat_limit.or_else(|| adapter.beat_limit());
        match worker.beat_at.zip(limit) {
            Some((beat, limit)) if (read_at - beat).as_seconds_f64() > limit => {
                // A process that is only stopped keeps its sessions.
                let is_away = worker.sessions == Some(0)
                    || (adapter.evidence.has_presence && self.rows.sessions == Some(0));
                if is_away {
                    (WorkerState::Gone, Proof::Presence, Some(beat), None)
                } else {
                    (WorkerState::Silent, Proof::Heartbeat, Some(beat), None)
                }
            }
            Some(_) => (WorkerState::Live, Proof::Heartbeat, None, None),
            None => (WorkerState::Unknown, Proof::None, None, None),
        }
    }

    /// How many of the jobs that were read it runs; none where not all were, or one of them may be its.
    fn runs(&self, worker: &Worker) -> Option<i64> {
        let running = self.rows.jobs.get(&Part::Running).filter(|read| !read.is_cut)?;
        // One that names nobody may be its.
        if running.section.last_rows().iter().any(|job| job.worker.is_none()) {
            return None;
        }
        let jobs = running.section.last_rows().iter();
        i64::try_from(jobs.filter(|job| job.worker.as_deref() == Some(&*worker.id)).count()).ok()
    }
}
