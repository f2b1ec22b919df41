use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::WorkerConfig;
use crate::process::{Paused, Process};
use locktop_base::clock;

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

    pub(crate) fn is_gone(&mut self) -> bool {
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
