use strum::{IntoStaticStr, VariantArray};

use super::{BoardBuilder, KeySeen, Marks, Proof};
use crate::model::adapter::evidence::of_key;
use crate::model::adapter::{Adapter, Part, State, Worker};
use crate::model::systems::TextId;
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRow {
    pub id: TextId,
    pub source: Text,
    pub place: (usize, usize),
    pub state: WorkerState,
    pub proof: Proof,
    /// When its lock was first seen free, its last sign of life, or its end.
    pub since: Option<Timestamp>,
    /// The process id of the session that holds its lock, or of its own session.
    pub pid: Option<i32>,
    /// Jobs that it runs: the number in its row, otherwise counted from the jobs read. None if a running job names no worker.
    pub busy: Option<i64>,
}

/// The state of a worker, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
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

impl WorkerState {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn is_over(self) -> bool {
        matches!(self, Self::Gone | Self::Silent | Self::Stopped)
    }
}

impl BoardBuilder<'_> {
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

    /// The number of its running jobs. None if not all jobs were read, or one without a worker may be its own.
    fn runs(&self, worker: &Worker) -> Option<i64> {
        let running = self.rows.jobs.get(&Part::Running).filter(|read| !read.is_cut)?;
        // A job without a worker may be its own.
        if running.section.last_rows().iter().any(|job| job.worker.is_none()) {
            return None;
        }
        let jobs = running.section.last_rows().iter();
        i64::try_from(jobs.filter(|job| job.worker.as_deref() == Some(&*worker.id)).count()).ok()
    }
}
