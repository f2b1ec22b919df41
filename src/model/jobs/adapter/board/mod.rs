//! All installations with the states of their jobs, workers, queues, leases and schedules, from one snapshot and the
//! remembered earlier ones.

mod rows;

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use self::rows::{Count, QueueRow, QueueState, ScheduleRow, ScheduleState, WorkerRow, WorkerState};
use super::{InstallationRows, Job, JobState, Part, Proof, Worker};
use crate::model::judge::{Facts, Holder, Judged, KeyProof, Sign, judge};
use crate::model::lease::LeaseRow;
use crate::model::lock::Lock;
use crate::model::lock_key::LockKey;
use crate::model::snapshot::{Epoch, Server, Snapshot};
use crate::model::source_tables::NameHash;
use crate::model::thresholds::Thresholds;
use crate::model::{Text, Timestamp};

use crate::order::SortExt;

/// A backend may have started this many seconds after the recorded start of its job.
const STARTING: f64 = 10.0;

#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    pub id: NameHash,
    /// The installation's label: `GoodJob`, with its schema if there are several.
    pub source: Text,
    pub place: usize,
    pub part: Part,
    pub job: Job,
    pub judged: Judged,
    /// What its system does with it automatically, if its worker is lost.
    pub comes_back: Option<Text>,
    /// A command for its system's own console.
    pub advice: Option<Text>,
    /// Connected sessions of its worker. None if not known. If no worker of its system has a session, this is 0.
    pub sessions: Option<u64>,
    /// Display name of its worker: the name in the worker's row, otherwise the id in the job. None if no worker has it.
    pub worker: Option<Text>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AdapterBoard {
    pub rows: Vec<JobRow>,
    pub workers: Vec<WorkerRow>,
    pub queues: Vec<QueueRow>,
    pub leases: Vec<LeaseRow>,
    pub schedules: Vec<ScheduleRow>,
}

impl AdapterBoard {
    pub fn count(&self, state: JobState) -> usize {
        self.rows.iter().filter(|row| row.judged.state == state).count()
    }

    fn sort(&mut self) {
        let since = |row: &JobRow| row.job.started_at.or(row.job.due_at);
        self.rows.order_by(|one, other| {
            let order = |row: &JobRow| (row.judged.state, since(row).is_none(), since(row));
            order(one).cmp(&order(other)).then_with(|| one.job.id.cmp(&other.job.id))
        });
        // Within a state by `place`: the installation, and the order of its query.
        self.workers.order_by_key(|row| (row.state, row.place));
        self.queues.order_by_key(|row| row.state);
        self.leases.order_by_key(|row| (row.state, row.place));
        self.schedules.order_by_key(|row| (row.state, row.place));
    }

    /// Key, name and origin of the advisory locks of running jobs, workers and leases.
    pub fn key_names(&self, snapshot: &Snapshot) -> Vec<(LockKey, Text, Text)> {
        let runs = self.rows.iter().filter(|row| row.part == Part::Running);
        let jobs = runs.filter_map(|row| {
            let name = row.job.name.as_deref().unwrap_or("job");
            let origin = format!("the lock of a running job, according to the tables of {}", row.source);
            Some((row.job.key?, format!("{} {name} {}", row.source, row.job.id).into(), origin.into()))
        });
        let workers = snapshot.adapters.iter().flat_map(|rows| {
            let source = rows.installation.label();
            rows.workers.last_rows().iter().filter_map(move |worker| {
                let name = worker.name.as_deref().unwrap_or(&worker.id);
                let origin = format!("the lock of a process, according to the tables of {source}");
                Some((worker.key?, format!("{source} process {name}").into(), origin.into()))
            })
        });
        let leases = snapshot.adapters.iter().flat_map(|rows| {
            let source = rows.installation.label();
            rows.leases.last_rows().iter().filter_map(move |lease| {
                let origin = format!("a lock of the system itself, according to the tables of {source}");
                Some((lease.key?, format!("{source} {}", lease.id).into(), origin.into()))
            })
        });
        jobs.chain(workers).chain(leases).collect()
    }
}

/// Since when the key of a run or a worker was free in every snapshot, or no worker had a session.
pub(crate) type Marks = FxHashMap<(NameHash, Option<Timestamp>), Timestamp>;

/// State over several snapshots: which keys stay free. It is valid for one connection to one run of one server.
#[derive(Debug, Clone, Default)]
pub struct AdapterWatch {
    pub(crate) epoch: Option<Epoch>,
    pub(crate) free: Marks,
    /// The locks of the previous snapshot, if they were read. Not in recordings: there a job that is seen for the first time
    /// is not decided.
    pub(crate) locks: Option<Arc<Vec<Lock>>>,
}

impl AdapterWatch {
    pub fn evaluate(&mut self, snapshot: &Snapshot, thresholds: &Thresholds) -> AdapterBoard {
        let epoch = snapshot.server().map(Server::epoch);
        if self.epoch != epoch {
            *self = Self { epoch, ..Self::default() };
        }
        let before = std::mem::take(&mut self.free);
        let known = snapshot.locks.is_known().then(|| Arc::clone(snapshot.locks.last_rows()));
        let locks_before = std::mem::replace(&mut self.locks, known);
        if snapshot.adapters.is_empty() {
            return AdapterBoard::default();
        }
        let holders = snapshot.locks.is_known().then(|| snapshot.key_holders());
        let mut board = AdapterBoard::default();
        for (place, installation) in snapshot.adapters.iter().enumerate() {
            let builder = AdapterBoardBuilder {
                snapshot,
                thresholds,
                holders: holders.as_ref(),
                before: &before,
                locks_before: locks_before.as_deref().map(Vec::as_slice),
                up_since: snapshot.up_since(),
                source: installation.installation.label().into(),
                rows: installation,
            };
            let runs = installation.runs();
            let no_session = builder.no_session(&mut self.free);
            for (part, read) in &installation.jobs {
                // The parts are read one after the other, and in some systems a running job is still due by its row.
                let is_twice = |job: &&Job| *part != Part::Running && runs.contains(&job.id);
                for job in read.last_rows().iter().filter(|job| !is_twice(job)) {
                    board.rows.push(builder.row((place, *part), job, no_session, &mut self.free));
                }
            }
            let workers = builder.workers(place, &mut self.free);
            board.queues.extend(builder.queues(place, &workers));
            board.workers.extend(workers);
            board.leases.extend(builder.leases(place));
            board.schedules.extend(builder.schedules(place));
        }
        board.sort();
        board
    }
}

fn sessions(worker: &Worker) -> Option<u64> {
    worker.sessions.and_then(|sessions| u64::try_from(sessions).ok())
}

struct AdapterBoardBuilder<'a> {
    snapshot: &'a Snapshot,
    thresholds: &'a Thresholds,
    holders: Option<&'a FxHashMap<LockKey, Option<i32>>>,
    before: &'a Marks,
    locks_before: Option<&'a [Lock]>,
    /// The last start of the server: keys held by earlier sessions are released.
    up_since: Option<Timestamp>,
    source: Text,
    rows: &'a InstallationRows,
}

impl AdapterBoardBuilder<'_> {
    /// The id of a row of the installation by its kind and its own id.
    fn id(&self, row: &str) -> NameHash {
        let installation = &self.rows.installation;
        NameHash::of(&installation.adapter.name, &format!("{} {row}", installation.oid))
    }

    /// Since when no session of its workers was seen, tracked like a free lock.
    fn no_session(&self, free: &mut Marks) -> Option<Timestamp> {
        if self.rows.sessions != Some(0) {
            return None;
        }
        Some(self.free_since((self.id("sessions"), None), free))
    }

    fn free_since(&self, run: (NameHash, Option<Timestamp>), free: &mut Marks) -> Timestamp {
        let since = self.before.get(&run).copied().unwrap_or(self.snapshot.taken_at);
        free.insert(run, since);
        since
    }

    fn row(
        &self,
        (place, part): (usize, Part),
        job: &Job,
        no_session: Option<Timestamp>,
        free: &mut Marks,
    ) -> JobRow {
        let adapter = &self.rows.installation.adapter;
        let id = self.id(&format!("{} {}", part.as_str(), job.id));
        let worker = job.worker.as_deref().filter(|worker| !worker.is_empty()).and_then(|id| self.worker(id));
        let signs = [job.started_at, job.beat_at, worker.and_then(|worker| worker.beat_at)];
        let read_at = self.rows.jobs.get(&part).and_then(|read| read.taken_at);
        let facts = Facts {
            read_at: read_at.unwrap_or(self.snapshot.taken_at),
            key: self.key(job.key, (id, job.started_at), signs, free),
            session: self.session(job.backend_pid, job.started_at),
            worker_key: self.key(
                worker.and_then(|worker| worker.key),
                (id, worker.and_then(|worker| worker.started_at)),
                signs,
                free,
            ),
            worker,
            has_workers: self.has_workers(),
            is_paused: job.queue.as_ref().is_some_and(|queue| {
                self.rows.paused.last_rows().iter().any(|paused| paused.queue == *queue)
            }),
            no_session,
            ..self.facts()
        };
        let judged = judge(&adapter.evidence, job, &facts);
        // The blocking term has ended: this too resolves automatically, or not at all.
        let is_over = judged.state == JobState::Blocked && judged.proof == Proof::Lease;
        let is_lost = judged.state.is_lost() || is_over;
        // A job that waits for a live run needs no action.
        let needs_somebody = judged.state != JobState::Blocked || is_over || job.stuck.is_some();
        JobRow {
            id,
            source: self.source.clone(),
            place,
            part,
            job: job.clone(),
            comes_back: adapter.comes_back(judged.proof).filter(|_| is_lost).cloned(),
            advice: adapter.advice(judged.state, job).filter(|_| needs_somebody).map(Text::from),
            worker: worker
                .and_then(|worker| worker.name.clone())
                .or_else(|| job.worker.clone().filter(|worker| !worker.is_empty())),
            sessions: worker.and_then(sessions).or(self.rows.sessions.filter(|sessions| *sessions == 0)),
            judged,
        }
    }

    fn worker(&self, id: &str) -> Option<&Worker> {
        let workers = &self.rows.workers;
        workers.last_rows().iter().find(|worker| *worker.id == *id).filter(|_| workers.error.is_none())
    }

    /// The state of a key, and since when it was free. `signs` are times at which its holder was certainly alive.
    fn key(
        &self,
        key: Option<LockKey>,
        run: (NameHash, Option<Timestamp>),
        signs: [Option<Timestamp>; 3],
        free: &mut Marks,
    ) -> Sign {
        let (Some(key), Some(holders)) = (key, self.holders) else { return Sign::Unseen };
        if let Some(pid) = holders.get(&key) {
            return Sign::Held(*pid, Holder::Worker);
        }
        let now = self.snapshot.taken_at;
        let since = match self.before.get(&run) {
            Some(since) => *since,
            // Free in two snapshots, and never seen held by this process: then the recorded times count.
            None if self.was_free(key) => self.last_sign(signs).map_or(now, |sign| sign.min(now)),
            None => now,
        };
        free.insert(run, since);
        Sign::Free { since: Some(since), proof: Some(KeyProof::Config) }
    }

    fn was_free(&self, key: LockKey) -> bool {
        let datid = self.snapshot.server().map(|server| server.datid);
        let is_it = |lock: &Lock| {
            lock.granted && lock.tag.database() == datid && lock.tag.advisory_key() == Some(key)
        };
        self.locks_before.is_some_and(|locks| !locks.iter().any(is_it))
    }

    fn last_sign(&self, signs: [Option<Timestamp>; 3]) -> Option<Timestamp> {
        let last = signs.into_iter().flatten().max()?;
        Some(self.up_since?.max(last))
    }

    fn has_workers(&self) -> bool {
        let workers = &self.rows.workers;
        workers.taken_at.is_some() && workers.error.is_none() && !workers.is_cut
    }

    /// Whether the recorded backend still exists. A backend that started well after `started_at` is another one; not known if
    /// its start is hidden.
    fn session(&self, pid: Option<i32>, started_at: Option<Timestamp>) -> Sign {
        let Some(pid) = pid.filter(|_| self.snapshot.backends.is_known()) else { return Sign::Unseen };
        let is_it = match self.snapshot.backend(pid) {
            Some(backend) => backend
                .backend_start
                .zip(started_at)
                .map(|(began, started)| (began - started).as_seconds_f64() < STARTING),
            None => Some(false),
        };
        match is_it {
            Some(true) => Sign::Held(Some(pid), Holder::Worker),
            Some(false) => Sign::Free { since: None, proof: Some(KeyProof::Config) },
            None => Sign::Unseen,
        }
    }

    fn facts(&self) -> Facts<'_> {
        let adapter = &self.rows.installation.adapter;
        Facts {
            workers_at: self.rows.workers.taken_at.unwrap_or(self.snapshot.taken_at),
            beat_limit: adapter.beat_limit(),
            age_limit: adapter.age_limit(),
            grace: self.thresholds.orphan_grace,
            young: None,
            overdue: self.thresholds.task_overdue,
            ..Facts::of(self.snapshot)
        }
    }
}

#[cfg(test)]
mod tests;
