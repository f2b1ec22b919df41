//! A worker: takes scheduled tasks and items of the work queue, runs them, and records how they ended.
//!
//! One connection holds the locks of all running jobs ([`WorkSession`](crate::work_session::WorkSession)); a job is a
//! [`Work`], on connections of its own. Tasks and items share the worker's slots and take turns. The worker sends
//! heartbeats while jobs run. While idle, it sends one statement every half minute (unless it also observes locks) and
//! sleeps until a notification or the next due time. Now and then it removes rows past their retention and takes back
//! items of ended sessions.
//!
//! # Guarantees
//!
//! - **Work stops when its lock is lost.** When the connection ends, or a heartbeat does not list a job, the work is
//!   told to stop at once ([`Stop`]), has five seconds to clean up, and is then dropped. No new work is taken before
//!   that, and nothing of it is recorded as finished.
//! - **After a suspension the work waits.** If the process was stopped for longer than two heartbeats, the work does
//!   not continue until the server has confirmed that the lock is still held ([`gate`]).
//! - **A finish is fenced**: one that did not count is reported, and has no effect.
//!
//! This limits how long two workers can run the same job, but cannot exclude it, because the two sides notice a lost
//! connection at different times. Only effects that are fenced in the database happen once.

mod builtin;
mod connected;
mod event;
mod idle;
mod log;
mod polls;
mod purges;
mod running;
mod settle;
mod stop;
mod supervisor;
mod work_loop;

use std::time::Duration;

use tokio::sync::watch;

pub use crate::work_session::{Job, Source, Types, WorkerId};
pub use event::{Event, JobEvent, Level, Name, Report};
pub use log::{Format, line};
pub use stop::{Stop, StopReason, Work, WorkError, gate};

pub use builtin::{Builtin, HTTP_REMOVED};

use crate::trust::TrustedOwners;
use crate::work_session::OpenError;
use locktop_locks::SchemaName;
use pg_connect::conninfo::ConnInfo;

/// Which work a worker takes, how much at once, and its other duties.
#[derive(Debug, Clone)]
pub struct Options {
    /// How to connect. [`Options::new`] sets an `application_name` that names the worker.
    pub info: ConnInfo,
    /// The schema of the tables.
    pub schema: SchemaName,
    /// Roles that may own the schema, in addition to superusers and the connected role.
    pub trusted_owners: TrustedOwners,
    /// The worker's name in the log, unique among the workers of the schema at one time.
    pub id: WorkerId,
    /// The tables that it takes work from.
    pub sources: Vec<Source>,
    /// The types of work to take; other work is left alone.
    pub types: Types,
    /// How many jobs it runs at once; at least one.
    pub concurrency: usize,
    /// Interval of heartbeats while something runs. Work is paused when none was confirmed for twice as long.
    pub heartbeat: Duration,
    /// Interval between records of lock waits, for the view `lock_contention`; `None` records none, so that an idle worker
    /// sends nothing for it. One such worker is enough for a server; several count nothing twice.
    pub observe_locks: Option<Duration>,
    /// Interval between removals of rows past their retention; `None` never removes any. If the database has no retention
    /// set, nothing is removed.
    pub purge: Option<Duration>,
    /// How long running work may continue after the worker was told to quit.
    pub grace: Duration,
    /// The function that receives the events.
    pub report: Report,
}

impl Options {
    /// The defaults: the schema `locktop`, tasks and items of any type, one job at a time, a heartbeat every five seconds,
    /// ten seconds of grace, and no report.
    #[must_use]
    pub fn new(info: ConnInfo, id: WorkerId) -> Self {
        Self {
            info: info.with_application_name(&format!("locktop worker {id}")),
            schema: SchemaName::default(),
            trusted_owners: TrustedOwners::default(),
            id,
            sources: Source::ALL.to_vec(),
            types: Types::all(),
            concurrency: 1,
            heartbeat: Duration::from_secs(5),
            observe_locks: None,
            purge: Some(purges::EVERY),
            grace: Duration::from_secs(10),
            report: Report::nowhere(),
        }
    }
}

/// The totals of a worker from start to end, over all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Jobs whose work was done and recorded by the server.
    pub completed: u64,
    /// Jobs that failed, in this attempt or for good.
    pub failed: u64,
    /// Jobs that it stopped because they no longer belonged to it.
    pub stopped: u64,
    /// Jobs that it returned when it was shut down.
    pub given_back: u64,
    /// Jobs whose result did not count, or could not be written.
    pub not_counted: u64,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { completed, failed, stopped, given_back, not_counted } = self;
        write!(
            f,
            "{completed} completed, {failed} failed, {stopped} stopped, {given_back} released, {not_counted} not recorded"
        )
    }
}

/// Why a worker did not start.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// No session could be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Runs until `quit` becomes true, or its sender is dropped. Then nothing more is taken, running work may continue for
/// [`Options::grace`], and the rest is stopped and returned. A connection that is lost later is reopened, with no limit
/// on attempts.
///
/// # Errors
/// If the worker could not start. A server without a free connection, or that is starting up, is waited for.
pub async fn run<W: Work>(
    options: Options,
    work: W,
    quit: watch::Receiver<bool>,
) -> Result<Summary, WorkerError> {
    supervisor::Supervisor::new(options, work, quit).run().await
}
