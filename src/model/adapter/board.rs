//! The jobs of all installations with their states, from one snapshot and what was seen before.

use rustc_hash::{FxHashMap, FxHashSet};

use super::evidence::{Judged, KeySeen, Seen, judge};
use super::rows::{InstallationRows, Job, Worker};
use super::{Part, State};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::Snapshot;
use crate::model::systems::TextId;
use crate::model::thresholds::Thresholds;
use crate::model::{Text, Timestamp};

/// A process may be a little younger than the start that was written down for what it does, in seconds.
const STARTING: f64 = 10.0;

/// A job of an installation.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    /// What identifies it: the installation, the part and its id.
    pub id: TextId,
    /// `GoodJob`, or with its schema.
    pub source: Text,
    /// Place of the installation in the snapshot.
    pub place: usize,
    /// Where it was read.
    pub part: Part,
    /// As its system has it.
    pub job: Job,
    /// What is known of it.
    pub judged: Judged,
    /// What becomes of it by itself, where its worker is lost.
    pub comes_back: Option<Text>,
    /// What to type in its system's own console.
    pub advice: Option<Text>,
    /// Its worker for people.
    pub worker: Option<Text>,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Board {
    /// Worst first, and then those that are longest so.
    pub rows: Vec<JobRow>,
}

impl Board {
    /// How many are in a state.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.rows.iter().filter(|row| row.judged.state == state).count()
    }

    /// What the advisory locks of jobs that run and of workers are called, and how that is known.
    #[must_use]
    pub fn key_names(&self, snapshot: &Snapshot) -> Vec<(LockKey, Text, Text)> {
        let runs = self.rows.iter().filter(|row| row.part == Part::Running);
        let jobs = runs.filter_map(|row| {
            let name = row.job.name.as_deref().unwrap_or("job");
            let origin = format!("the lock of a job that runs, by the tables of {}", row.source);
            Some((row.job.key?, format!("{} {name} {}", row.source, row.job.id).into(), origin.into()))
        });
        let workers = snapshot.adapters.iter().flat_map(|rows| {
            let source = rows.installation.label();
            rows.workers.section.rows.iter().filter_map(move |worker| {
                let name = worker.name.as_deref().unwrap_or(&worker.id);
                let origin = format!("the lock of a process, by the tables of {source}");
                Some((worker.key?, format!("{source} process {name}").into(), origin.into()))
            })
        });
        jobs.chain(workers).collect()
    }
}

/// What has to be seen more than once: a key that stays free. It counts only for one connection to one run of one server.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    pub(crate) epoch: Option<(i32, Option<Timestamp>, bool)>,
    /// Since when the key of a run was free at every look.
    pub(crate) free: FxHashMap<(TextId, Option<Timestamp>), Timestamp>,
}

impl Watch {
    /// Looks at the next snapshot.
    #[must_use]
    pub fn look(&mut self, snapshot: &Snapshot, thresholds: &Thresholds) -> Board {
        if snapshot.adapters.is_empty() {
            *self = Self::default();
            return Board::default();
        }
        let epoch =
            snapshot.server().map(|server| (server.lasting_pid(), server.started_at, server.in_recovery));
        if self.epoch != epoch {
            *self = Self { epoch, ..Self::default() };
        }
        let before = std::mem::take(&mut self.free);
        let holders = holders(snapshot);
        let mut rows = Vec::new();
        for (place, installation) in snapshot.adapters.iter().enumerate() {
            let look =
                Look { snapshot, thresholds, holders: holders.as_ref(), before: &before, rows: installation };
            let running = installation.jobs.get(&Part::Running);
            let runs: FxHashSet<&Text> =
                running.into_iter().flat_map(|read| read.section.rows.iter().map(|job| &job.id)).collect();
            for (part, read) in &installation.jobs {
                // Parts are read one after the other, and of some systems what runs is still due by its row.
                let is_twice = |job: &&Job| *part != Part::Running && runs.contains(&job.id);
                for job in read.section.rows.iter().filter(|job| !is_twice(job)) {
                    rows.push(look.row(place, *part, job, &mut self.free));
                }
            }
        }
        let since = |row: &JobRow| row.job.started_at.or(row.job.due_at);
        rows.sort_by(|one, other| {
            let order = |row: &JobRow| (row.judged.state, since(row).is_none(), since(row));
            order(one).cmp(&order(other)).then_with(|| one.job.id.cmp(&other.job.id))
        });
        Board { rows }
    }
}

/// Who holds which advisory lock of our own database; none where the locks could not be read.
fn holders(snapshot: &Snapshot) -> Option<FxHashMap<LockKey, Option<i32>>> {
    let datid = snapshot.server()?.datid;
    if snapshot.locks.error.is_some() {
        return None;
    }
    let held = snapshot.locks.rows.iter().filter(|lock| lock.granted && lock.tag.database == Some(datid));
    Some(held.filter_map(|lock| Some((lock.tag.advisory_key()?, lock.pid))).collect())
}

struct Look<'a> {
    snapshot: &'a Snapshot,
    thresholds: &'a Thresholds,
    holders: Option<&'a FxHashMap<LockKey, Option<i32>>>,
    before: &'a FxHashMap<(TextId, Option<Timestamp>), Timestamp>,
    rows: &'a InstallationRows,
}

impl Look<'_> {
    fn row(
        &self,
        place: usize,
        part: Part,
        job: &Job,
        free: &mut FxHashMap<(TextId, Option<Timestamp>), Timestamp>,
    ) -> JobRow {
        let installation = &self.rows.installation;
        let adapter = &installation.adapter;
        let name = format!("{} {} {}", installation.oid, part.as_str(), job.id);
        let id = TextId::of(&adapter.name, &name);
        let worker = job.worker.as_deref().filter(|worker| !worker.is_empty()).and_then(|id| self.worker(id));
        let seen = Seen {
            now: self.snapshot.taken_at,
            in_recovery: self.snapshot.server().is_none_or(|server| server.in_recovery),
            key: self.key(job.key, (id, job.started_at), free),
            worker_key: self.key(
                worker.and_then(|worker| worker.key),
                (id, worker.and_then(|worker| worker.started_at)),
                free,
            ),
            worker,
            has_workers: self.rows.workers.section.taken_at.is_some()
                && self.rows.workers.section.error.is_none()
                && !self.rows.workers.is_cut,
            is_paused: job.queue.as_ref().is_some_and(|queue| {
                self.rows.paused.section.rows.iter().any(|paused| paused.queue == *queue)
            }),
            session: self.session(job),
            grace: self.thresholds.orphan_grace,
            overdue: self.thresholds.task_overdue,
        };
        let judged = judge(adapter, job, &seen);
        let is_lost = judged.state.is_lost();
        JobRow {
            id,
            source: installation.label().into(),
            place,
            part,
            job: job.clone(),
            comes_back: adapter.comes_back(judged.proof).filter(|_| is_lost).cloned(),
            advice: adapter.advice(judged.state, &job.id).map(Text::from),
            worker: worker
                .and_then(|worker| worker.name.clone())
                .or_else(|| job.worker.clone().filter(|worker| !worker.is_empty())),
            judged,
        }
    }

    fn worker(&self, id: &str) -> Option<&Worker> {
        self.rows.workers.section.rows.iter().find(|worker| *worker.id == *id)
    }

    /// What is seen of a key, and since when it was free.
    fn key(
        &self,
        key: Option<LockKey>,
        run: (TextId, Option<Timestamp>),
        free: &mut FxHashMap<(TextId, Option<Timestamp>), Timestamp>,
    ) -> KeySeen {
        let (Some(key), Some(holders)) = (key, self.holders) else { return KeySeen::Unseen };
        if let Some(pid) = holders.get(&key) {
            return KeySeen::Held(*pid);
        }
        let since = self.before.get(&run).copied().unwrap_or(self.snapshot.taken_at);
        free.insert(run, since);
        KeySeen::Free(since)
    }

    /// Whether the backend of a job is there. One that began well after the job is somebody else's; of one whose start may not be seen nobody knows.
    fn session(&self, job: &Job) -> Option<bool> {
        let pid = job.backend_pid?;
        if self.snapshot.backends.error.is_some() {
            return None;
        }
        let Some(backend) = self.snapshot.backend(pid) else { return Some(false) };
        match (backend.backend_start, job.started_at) {
            (Some(began), Some(started)) => Some((began - started).as_seconds_f64() < STARTING),
            _ => None,
        }
    }
}
