mod plan;

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use locktop_tasks::schema::SchemaName;
use locktop_tasks::worker::{Options, Source, WorkerId};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

pub(crate) use plan::TaskEnd;
use plan::{PlannedTask, planned_tasks};

use crate::process::{Paused, Process};
use locktop_base::clock;

/// The language of the names that a demo gives to tasks, queue items and locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    #[must_use]
    pub fn of<T>(self, (english, chinese): (T, T)) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

const POLL: Duration = Duration::from_millis(500);

/// Whether the dashboard of a demo has a question open: while one is open, nothing is repaired and nothing proceeds
/// automatically. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct OpenQuestion(Arc<AtomicBool>);

impl OpenQuestion {
    /// True when a question is opened, false once it is closed and all that was confirmed is done.
    pub fn set_open(&self, is_open: bool) {
        self.0.store(is_open, Ordering::Relaxed);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) async fn closed(&self) {
        while self.is_open() {
            tokio::time::sleep(POLL).await;
        }
    }
}

const RETRY: Duration = Duration::from_millis(200);
/// Work of minutes takes seconds here, so the heartbeat is shorter than usual, too.
const HEARTBEAT: Duration = Duration::from_millis(300);

/// The configuration of a worker process, in one line on its standard input. A connection string may contain a password,
/// so none of it is on a command line.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorkerConfig {
    pub(crate) conninfo: String,
    pub(crate) schema: String,
    /// The worker's name; for several workers, the prefix of their names.
    pub(crate) worker: String,
    /// Its number among all processes of the kind that the demo started.
    pub(crate) process: i32,
    pub(crate) role: WorkerRole,
    /// Whether the schema contains a recipe's functions.
    pub(crate) recipe: bool,
    pub(crate) plan: Plan,
}

impl WorkerConfig {
    /// Connection parameters, with the worker's name and a suffix as the name of the application.
    pub(crate) fn info(&self, suffix: &str) -> Result<ConnInfo, String> {
        let info = ConnInfo::parse(&self.conninfo).map_err(|error| error.to_string())?;
        Ok(info.with_application_name(&format!("{}{suffix}", self.worker)))
    }

    /// The connection over which this process records what it does, independent of its other sessions.
    pub(crate) async fn witness(&self) -> Result<Arc<Client>, String> {
        let connection = connect(&self.info(" witness")?).await;
        connection.map(|connection| Arc::new(connection.client)).map_err(|error| error.to_string())
    }

    /// Random choices of this process.
    pub(crate) fn random(&self) -> Rng {
        Rng::with_seed(self.plan.seed ^ u64::from(self.process.unsigned_abs()) << 32)
    }

    pub(crate) fn options(&self, source: Source) -> Result<Options, String> {
        let info = self.info("")?;
        let id: WorkerId = self.worker.parse().map_err(|error| format!("{error}"))?;
        Ok(Options {
            schema: SchemaName::new(&self.schema).map_err(|error| error.to_string())?,
            sources: vec![source],
            heartbeat: HEARTBEAT,
            // The demo is over: nothing waits for what still runs.
            grace: Duration::ZERO,
            info: info.clone(),
            ..Options::new(info, id)
        })
    }
}

/// Works as long as the connection of its witness lasts: nothing can be witnessed without it.
pub(crate) async fn witnessed<T, E: Display>(
    witness: &Client,
    work: impl Future<Output = Result<T, E>>,
) -> Result<(), String> {
    let lost = async {
        while !witness.is_closed() {
            tokio::time::sleep(RETRY).await;
        }
    };
    tokio::select! {
        outcome = work => outcome.map(drop).map_err(|error| error.to_string()),
        () = lost => Err("the witness's connection was lost".to_owned()),
    }
}

impl std::fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The rest may contain a password.
        f.debug_struct("WorkerConfig").field("worker", &self.worker).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerRole {
    Tasks,
    /// Competes for leases, with a term in milliseconds.
    Leases {
        term: u64,
    },
    Queue,
    /// Uses locks with a term in milliseconds on these servers, of which the first is used on its own.
    #[cfg(feature = "redis")]
    Redis {
        urls: Vec<String>,
        term: u64,
    },
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) count: usize,
    pub(crate) hanging: bool,
    pub(crate) language: Language,
    pub(crate) time_scale: f64,
}

impl Plan {
    pub(crate) fn tasks(&self) -> Vec<PlannedTask> {
        planned_tasks(self.seed, self.count, (self.hanging, self.language))
    }

    pub(crate) fn payload(&self, task: &PlannedTask) -> String {
        let payload = TaskPayload { seconds: self.scaled(task.work), ends: task.ends };
        serde_json::to_string(&payload).unwrap_or_default()
    }

    pub(crate) fn scaled(&self, seconds: f64) -> f64 {
        seconds / self.time_scale
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskPayload {
    pub(crate) seconds: f64,
    pub(crate) ends: TaskEnd,
}

/// A worker that ended unexpectedly is replaced after this delay, so that one that cannot start is not restarted
/// constantly.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct WorkerPool {
    program: PathBuf,
    config: WorkerConfig,
    slots: Vec<Slot>,
    started: i32,
    pub(crate) lost: u64,
    /// The output of the first of these.
    pub(crate) first_error: Option<String>,
}

#[derive(Debug)]
struct Slot {
    /// The number of earlier workers in this slot.
    generation: u32,
    worker: Option<Worker>,
    not_before: Option<Instant>,
}

#[derive(Debug)]
struct Worker {
    child: Process,
    name: String,
    /// Its number among all processes of the pool.
    number: i32,
    paused: Option<Paused>,
    killed: bool,
}

impl WorkerPool {
    /// A pool with empty slots; [`Self::fill`] starts the workers.
    pub(crate) fn new(program: PathBuf, config: WorkerConfig, workers: usize) -> Self {
        let slot = || Slot { generation: 0, worker: None, not_before: None };
        Self {
            program,
            config,
            slots: std::iter::repeat_with(slot).take(workers).collect(),
            started: 0,
            lost: 0,
            first_error: None,
        }
    }

    pub(crate) fn fill(&mut self) -> io::Result<()> {
        for index in 0..self.slots.len() {
            self.reap(index);
            let now = clock::monotonic();
            let Some(slot) = self.slots.get(index) else { continue };
            if slot.worker.is_none() && slot.not_before.is_none_or(|at| at <= now) {
                self.start(index)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, index: usize) -> io::Result<()> {
        self.started += 1;
        let Some(slot) = self.slots.get_mut(index) else { return Ok(()) };
        let number = index + 1;
        let name = match slot.generation {
            0 => format!("{}-{number}", self.config.worker),
            generation => format!("{}-{number}.{generation}", self.config.worker),
        };
        slot.generation += 1;
        let config = WorkerConfig { worker: name.clone(), process: self.started, ..self.config.clone() };
        let mut command = Command::new(&self.program);
        command.arg("demo-worker").arg(&name);
        let mut child = Process::start(&mut command)?;
        // If it has ended already, that is found later.
        let _ = child.write_line(&serde_json::to_string(&config).map_err(io::Error::other)?);
        slot.worker = Some(Worker { child, name, number: self.started, paused: None, killed: false });
        Ok(())
    }

    fn reap(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Some(worker) = slot.worker.as_mut() else { return };
        let Some(status) = worker.child.status() else { return };
        if !worker.killed {
            self.lost += 1;
            slot.not_before = Some(clock::monotonic() + PAUSE);
            let stderr = worker.child.stderr();
            let stderr = stderr.lines().next_back().unwrap_or_default();
            self.first_error
                .get_or_insert_with(|| format!("a worker exited unexpectedly ({status}): {stderr}"));
        }
        slot.worker = None;
    }

    fn workers(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.slots.iter_mut().filter_map(|slot| slot.worker.as_mut())
    }

    fn find(&mut self, number: i32) -> Option<&mut Worker> {
        self.workers().find(|worker| worker.number == number && !worker.killed)
    }

    /// The number of the process that works under this name. A paused process does not count.
    pub(crate) fn at_work(&mut self, name: &str) -> Option<i32> {
        let found = self.workers().find(|worker| worker.name == name)?;
        (found.paused.is_none() && !found.killed).then_some(found.number)
    }

    pub(crate) fn started(&self) -> u64 {
        u64::try_from(self.started).unwrap_or_default()
    }

    pub(crate) fn kill(&mut self, number: i32) -> bool {
        let Some(worker) = self.find(number) else { return false };
        if worker.child.status().is_some() {
            return false;
        }
        worker.killed = true;
        worker.child.kill()
    }

    pub(crate) fn pause(&mut self, number: i32) -> Option<Pid> {
        let worker = self.find(number)?;
        let pid = worker.child.pid()?;
        worker.paused = Some(Paused::new(pid).ok()?);
        Some(pid)
    }

    pub(crate) fn wake(&mut self, number: i32) {
        if let Some(worker) = self.find(number) {
            worker.paused = None;
        }
    }

    pub(crate) fn wake_all(&mut self) {
        self.workers().for_each(|worker| worker.paused = None);
    }

    pub(crate) fn shut_down(&mut self) {
        self.wake_all();
        self.workers().for_each(|worker| worker.child.close_stdin());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.workers().all(|worker| worker.child.status().is_some())
    }

    pub(crate) fn end(&mut self) {
        self.wake_all();
        for worker in self.workers() {
            worker.child.kill();
            worker.child.wait();
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.end();
    }
}
