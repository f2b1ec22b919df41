//! The worker processes: started, watched, replaced when they end, and ended.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::orders::Orders;
use super::waker::Sleeper;
use locktop_base::clock;

/// A worker that ended by itself is replaced after this long, so that one that cannot start does not start all the time.
const PAUSE: Duration = Duration::from_secs(1);

/// All places for workers, and who has them.
#[derive(Debug)]
pub(crate) struct Crew {
    program: PathBuf,
    orders: Orders,
    places: Vec<Place>,
    started: i32,
    /// How many ended without being told to.
    pub(crate) lost: u64,
    /// What the first of these said.
    pub(crate) complaint: Option<String>,
}

/// Where one worker after the other works.
#[derive(Debug)]
struct Place {
    /// How many were there before.
    generation: u32,
    worker: Option<Worker>,
    /// Not to be filled before.
    not_before: Option<Instant>,
}

#[derive(Debug)]
struct Worker {
    child: Child,
    name: String,
    process: i32,
    sleeper: Option<Sleeper>,
    killed: bool,
}

impl Worker {
    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }
}

impl Crew {
    /// A crew with places for so many workers; [`Self::fill`] starts them.
    pub(crate) fn new(program: PathBuf, orders: Orders, workers: usize) -> Self {
        let place = || Place { generation: 0, worker: None, not_before: None };
        Self {
            program,
            orders,
            places: std::iter::repeat_with(place).take(workers).collect(),
            started: 0,
            lost: 0,
            complaint: None,
        }
    }

    /// Starts a worker at each place where there is none, and notes those that have ended.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        for index in 0..self.places.len() {
            self.reap(index)?;
            let now = clock::monotonic();
            let Some(place) = self.places.get(index) else { continue };
            if place.worker.is_none() && place.not_before.is_none_or(|at| at <= now) {
                self.start(index)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, index: usize) -> io::Result<()> {
        self.started += 1;
        let Some(place) = self.places.get_mut(index) else { return Ok(()) };
        let number = index + 1;
        let name = match place.generation {
            0 => format!("{}-{number}", self.orders.worker),
            generation => format!("{}-{number}.{generation}", self.orders.worker),
        };
        place.generation += 1;
        let orders = Orders { worker: name.clone(), process: self.started, ..self.orders.clone() };
        let mut command = Command::new(&self.program);
        command.arg("demo-worker").arg(&name);
        // A process group of its own: Ctrl-C at the terminal is for us to hear.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let line = serde_json::to_string(&orders).map_err(io::Error::other)? + "\n";
        if let Some(pipe) = child.stdin.as_mut() {
            // One that has ended already is found so later.
            let _ = pipe.write_all(line.as_bytes());
        }
        place.worker = Some(Worker { child, name, process: self.started, sleeper: None, killed: false });
        Ok(())
    }

    /// Takes leave of a worker that has ended.
    fn reap(&mut self, index: usize) -> io::Result<()> {
        let Some(place) = self.places.get_mut(index) else { return Ok(()) };
        let Some(worker) = place.worker.as_mut() else { return Ok(()) };
        let Some(status) = worker.child.try_wait()? else { return Ok(()) };
        let mut said = String::new();
        if let Some(pipe) = worker.child.stderr.as_mut() {
            let _ = pipe.read_to_string(&mut said);
        }
        if !worker.killed {
            self.lost += 1;
            place.not_before = Some(clock::monotonic() + PAUSE);
            let said = said.trim().lines().next_back().unwrap_or_default();
            self.complaint.get_or_insert_with(|| format!("a worker ended by itself ({status}): {said}"));
        }
        place.worker = None;
        Ok(())
    }

    /// The numbers of the processes that work, in the order of their places. One that stands still does not.
    pub(crate) fn at_work(&self) -> Vec<i32> {
        let workers = self.places.iter().filter_map(|place| place.worker.as_ref());
        workers
            .filter(|worker| worker.sleeper.is_none() && !worker.killed)
            .map(|worker| worker.process)
            .collect()
    }

    /// The number of a process that works under this name.
    pub(crate) fn at_work_as(&self, name: &str) -> Option<i32> {
        let mut workers = self.places.iter().filter_map(|place| place.worker.as_ref());
        let found = workers.find(|worker| worker.name == name && worker.sleeper.is_none() && !worker.killed);
        found.map(|worker| worker.process)
    }

    fn find(&mut self, process: i32) -> Option<&mut Worker> {
        let mut workers = self.places.iter_mut().filter_map(|place| place.worker.as_mut());
        workers.find(|worker| worker.process == process && !worker.killed)
    }

    /// How many processes were started.
    pub(crate) fn started(&self) -> u64 {
        u64::try_from(self.started).unwrap_or_default()
    }

    /// Kills a worker with SIGKILL; false when it has ended by now.
    pub(crate) fn kill(&mut self, process: i32) -> bool {
        let Some(worker) = self.find(process) else { return false };
        if worker.child.try_wait().is_ok_and(|status| status.is_some()) {
            return false;
        }
        worker.killed = true;
        worker.child.kill().is_ok()
    }

    /// Stops a worker with SIGSTOP.
    pub(crate) fn stop(&mut self, process: i32) -> Option<Pid> {
        let worker = self.find(process)?;
        let pid = worker.pid()?;
        worker.sleeper = Some(Sleeper::stop(pid).ok()?);
        Some(pid)
    }

    /// Wakes a worker with SIGCONT.
    pub(crate) fn wake(&mut self, process: i32) {
        if let Some(worker) = self.find(process) {
            worker.sleeper = None;
        }
    }

    /// Wakes all, and tells them to end by ending their standard input.
    pub(crate) fn dismiss(&mut self) {
        for worker in self.places.iter_mut().filter_map(|place| place.worker.as_mut()) {
            worker.sleeper = None;
            drop(worker.child.stdin.take());
        }
    }

    /// Whether all have ended.
    pub(crate) fn is_gone(&mut self) -> bool {
        let mut workers = self.places.iter_mut().filter_map(|place| place.worker.as_mut());
        workers.all(|worker| worker.child.try_wait().is_ok_and(|status| status.is_some()))
    }

    /// Kills what is left.
    pub(crate) fn end(&mut self) {
        for worker in self.places.iter_mut().filter_map(|place| place.worker.as_mut()) {
            worker.sleeper = None;
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.end();
    }
}
