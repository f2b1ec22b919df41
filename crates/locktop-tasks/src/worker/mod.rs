//! A worker: takes scheduled tasks and items of the work queue, does them, and says how they ended.
//!
//! One connection holds the locks of all that it runs ([`WorkSession`](crate::work_session::WorkSession)); what a job does is a [`Work`], on connections of its own.
//! Tasks and items share the worker's places; where both wait, they take turns. The worker fetches as many as it has places for, sends
//! heartbeats while anything runs, and one statement every half minute while nothing does (unless it is to observe the locks): then it sleeps until it is notified, or until the next
//! task is due (the module `idle`). Now and then it removes what is past its retention (the module `upkeep`). Items whose session is gone are brought back by workers that find nothing else in the queue, and
//! now and then by all.
//!
//! # What it guarantees
//!
//! - **Work stops when its lock is lost.** When the connection ends, or a heartbeat does not list a job, the work is told
//!   at once ([`Stop`]), has five seconds to put things in order, and is then dropped. Nothing new is taken before all of that
//!   has ended, and nothing of it is recorded as finished.
//! - **After a suspension nothing is done in good faith.** A process that was stopped for longer than two heartbeats does nothing
//!   of its work when it wakes, until the server has confirmed that the lock is still held ([`gate`]).
//! - **A finish is fenced**: one that did not count is told, and counts as nothing.
//!
//! That bounds for how long two may do one job; it cannot exclude it, since a lost connection is noticed by both sides at
//! different times. Only effects that are fenced in the database happen once.

mod builtin;
mod connected;
mod event;
mod idle;
mod log;
mod look;
mod pollers;
mod purges;
mod running;
mod settle;
mod stop;
mod supervisor;
mod unwritten;
mod upkeep;
mod work;
mod work_loop;

use std::time::Duration;

use tokio::sync::watch;

pub use crate::work_session::{Job, Source, Types, WorkerId};
pub use event::{Event, JobEvent, Level, Name, Report};
pub use log::{Format, line};
pub use stop::{Stop, StopReason, gate};
pub use work::{Work, WorkError};

pub use builtin::{Builtin, HTTP_REMOVED};

use crate::trust::TrustedOwners;
use crate::work_session::OpenError;
use locktop_locks::SchemaName;
use pg_connect::conninfo::ConnInfo;

/// What a worker takes, how much at once, and what it does beside its jobs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the tables are. [`Options::new`] gives the connection an `application_name` that names the worker.
    pub info: ConnInfo,
    /// The schema that they are in.
    pub schema: SchemaName,
    /// Who may own it, beside superusers and the role that is connected.
    pub trusted_owners: TrustedOwners,
    /// The worker's name in the log, which no other worker on the schema has at the same time.
    pub id: WorkerId,
    /// The tables that it takes work from.
    pub sources: Vec<Source>,
    /// Of which types; work of others is left alone.
    pub types: Types,
    /// How many jobs it runs at once; at least one.
    pub concurrency: usize,
    /// Between two heartbeats while something runs. Work is held up when none was confirmed for twice as long.
    pub heartbeat: Duration,
    /// Between two looks at who waits for which lock of the server, for the view `lock_contention`; none: it does not look, so that it
    /// sends nothing while it is idle. One such worker is enough for a server; several count nothing twice.
    pub observe_locks: Option<Duration>,
    /// Between two looks for rows that are past their retention; none: it never removes any. Where the database has no retention set, nothing is
    /// removed.
    pub purge: Option<Duration>,
    /// How long running work may go on after the worker was told to quit.
    pub grace: Duration,
    /// The function that is told what happens.
    pub report: Report,
}

impl Options {
    /// The usual: the schema `locktop`, tasks and items of any type, one at a time, a heartbeat every five seconds, ten seconds of grace, and nobody who is told.
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

/// What a worker did from its start to its end, over all of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Jobs whose work was done, and whose end the server has.
    pub completed: u64,
    /// Jobs that failed, in this attempt or for good.
    pub failed: u64,
    /// Jobs that it stopped because they were not its own any more.
    pub stopped: u64,
    /// Jobs that it gave back when it was shut down.
    pub given_back: u64,
    /// Jobs whose end did not count, or could not be written.
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

/// Why a worker did not begin.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// There is no session that it could work in.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Works until `quit` becomes true, or its sender is dropped: then nothing more is taken, what runs may go on for
/// [`Options::grace`], and the rest is stopped and given back. A connection that is lost later is made again, for ever.
///
/// # Errors
/// When it could not begin. A server without a free connection, or that is starting up, is waited for.
pub async fn run<W: Work>(
    options: Options,
    work: W,
    quit: watch::Receiver<bool>,
) -> Result<Summary, WorkerError> {
    supervisor::Supervisor::new(options, work, quit).run().await
}
