use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use strum::IntoStaticStr;

use super::stop::StopReason;
use crate::schema::{Log, SchemaName};
use crate::work_session::{Job, Requeued, Source, Types};
use locktop_base::text;

/// The severity of an event. Log lines show its name in capitals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Level {
    /// All goes as planned.
    Info,
    /// Something did not go as planned, and the worker handles it.
    Warn,
    /// Something is lost, or failed for good.
    Error,
}

/// An event for the operator of a worker. It prints as one line, and contains text from the server.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Event {
    /// No connection is available yet, for this reason.
    Waiting(String),
    /// The worker has a session and begins to take work.
    Connected {
        /// The process id of its backend.
        pid: i32,
        /// The types of work that it takes.
        types: Types,
    },
    /// The connection has ended, and with it the locks of all running jobs.
    #[strum(serialize = "connection_lost")]
    Lost {
        /// The known cause.
        reason: String,
        /// Jobs that were running, and are stopped because of it.
        running: usize,
    },
    /// Something happened to this job.
    Job(Name, JobEvent),
    /// The server refused a request, which will be retried.
    Refused {
        /// The request, in words.
        what: &'static str,
        /// The server's refusal, in one line.
        reason: String,
    },
    /// The worker was told to quit, and takes nothing new.
    ShuttingDown {
        /// Jobs that still run.
        running: usize,
    },
    /// An item of the queue was taken from a session that has ended.
    Requeued(Requeued),
    /// Rows past their retention were removed.
    Purged {
        /// The log that they were removed from.
        log: Log,
        /// Rows that were removed.
        rows: i64,
        /// The retention, as formatted by the server.
        keep: String,
    },
    /// A retention is set, but the worker's role may not remove rows.
    NotPurged {
        /// The log that has a retention.
        log: Log,
        /// The schema of its table.
        schema: SchemaName,
    },
    /// The worker has ended on request, with its totals.
    Ended(super::Summary),
    /// The worker has ended because it cannot continue, for this reason.
    GaveUp(String),
}

/// An event of a job.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum JobEvent {
    /// The job was taken, and its work begins.
    #[strum(serialize = "started")]
    Began,
    /// The work succeeded, with the end of its output.
    Output(String),
    /// The work is done after this time, and the server has recorded it.
    Completed(Duration),
    /// The work failed, and the server has recorded it.
    Failed {
        /// How long its work took.
        took: Duration,
        /// Whether it is retried; false after its last attempt.
        again: bool,
        /// The error, in the words of the work.
        reason: String,
    },
    /// The work was told to stop.
    Stopped {
        /// How long its work had run.
        took: Duration,
        /// Why it is stopped.
        reason: StopReason,
    },
    /// The result did not count: the job no longer belonged to this session.
    NotCounted,
    /// The server refused to record the result, with this error; it is retried while the session lasts.
    #[strum(serialize = "not_recorded")]
    NotWritten(String),
    /// The session ended before it confirmed the result, with the known cause.
    NotKnown(String),
    /// The job was returned, for other workers to run: the attempt does not count.
    GivenBack,
}

/// A job as events name it: short, and safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Its name, in one short line.
    pub title: String,
    /// The table that it comes from.
    pub source: Source,
    /// The row in `task_execution_log` or in `task_queue`.
    pub id: i64,
    /// The task; for an item, the item itself.
    pub task_id: i64,
    /// The kind of work, in one short line.
    pub kind: String,
    /// The number of the attempt, from 1.
    pub attempt: i32,
    /// The maximum number of attempts.
    pub max_attempts: i32,
}

impl From<&Job> for Name {
    fn from(job: &Job) -> Self {
        let short = |name: &str| text::fit(&text::one_line(name), 60).into_owned();
        Self {
            title: short(&job.name),
            source: job.source,
            id: job.id,
            task_id: job.task_id,
            kind: short(&job.kind),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = match self.source {
            Source::Tasks => "execution",
            Source::Queue => "item",
        };
        write!(f, "\"{}\" ({row} {})", self.title, self.id)
    }
}

impl Event {
    /// The severity: `Info` when all goes as planned, `Error` when something is lost or failed for good.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::Connected { .. }
            | Self::ShuttingDown { .. }
            | Self::Purged { .. }
            | Self::NotPurged { .. }
            | Self::Ended(_) => Level::Info,
            Self::Requeued(Requeued { again: true, .. }) | Self::Waiting(_) | Self::Refused { .. } => {
                Level::Warn
            }
            Self::Requeued(_) | Self::Lost { .. } | Self::GaveUp(_) => Level::Error,
            Self::Job(_, event) => event.level(),
        }
    }

    /// A one-word name for machine-readable logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Job(_, event) => event.into(),
            _ => self.into(),
        }
    }

    /// The job that it is about; `None` for events of the worker itself.
    #[must_use]
    pub fn job(&self) -> Option<&Name> {
        match self {
            Self::Job(job, _) => Some(job),
            _ => None,
        }
    }

    /// How long the job's work took; `None` for events that end no work.
    #[must_use]
    pub fn took(&self) -> Option<Duration> {
        use JobEvent::{Completed, Failed, Stopped};
        match self {
            Self::Job(_, Completed(took) | Failed { took, .. } | Stopped { took, .. }) => Some(*took),
            _ => None,
        }
    }

    /// The error in one line; `None` if there is none.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        use JobEvent::{Failed, NotKnown, NotWritten, Stopped};
        match self {
            Self::Waiting(reason)
            | Self::GaveUp(reason)
            | Self::Lost { reason, .. }
            | Self::Refused { reason, .. }
            | Self::Job(_, Failed { reason, .. } | NotWritten(reason) | NotKnown(reason)) => {
                Some(reason.clone())
            }
            Self::Job(_, Stopped { reason, .. }) => Some(reason.to_string()),
            Self::Requeued(requeued) => Some(requeued.detail.clone()),
            _ => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(reason) => write!(f, "{reason}; waiting"),
            Self::Connected { pid, types } => {
                write!(f, "connected, served by process {pid}; takes ")?;
                match types.names() {
                    None => f.write_str("work of all types"),
                    Some(names) => f.write_str(&names.join(", ")),
                }
            }
            Self::Lost { reason, running: 0 } => write!(f, "connection lost: {reason}"),
            Self::Lost { reason, running } => {
                write!(f, "connection lost: {reason}; stopping what runs ({running})")
            }
            Self::Job(job, event) => event.write(job, f),
            Self::Refused { what, reason } => write!(f, "{what} was refused: {reason}; trying again"),
            Self::ShuttingDown { running } => {
                write!(f, "shutting down: no new work, {running} running")
            }
            Self::Requeued(Requeued { id, again, detail }) => {
                let done = if *again { "is pending again" } else { "was set aside" };
                write!(f, "item {id} of the queue {done}: {}", text::fit(detail, 200))
            }
            Self::Purged { log, rows, keep } => {
                let (s, were) = if *rows == 1 { ("", "was") } else { ("s", "were") };
                write!(f, "removed {rows} row{s} of {} that {were} older than {keep}", log.table())
            }
            Self::NotPurged { log, schema } => {
                let (table, schema) = (log.table(), schema.quoted());
                write!(
                    f,
                    "old rows of {table} are kept: this role is not permitted to delete them; GRANT DELETE ON {schema}.{table}"
                )
            }
            Self::Ended(summary) => write!(f, "ended: {summary}"),
            Self::GaveUp(reason) => write!(f, "gave up: {reason}"),
        }
    }
}

impl JobEvent {
    fn level(&self) -> Level {
        match self {
            Self::Began | Self::Output(_) | Self::Completed(_) | Self::GivenBack => Level::Info,
            Self::Failed { again: true, .. } | Self::Stopped { .. } | Self::NotWritten(_) => Level::Warn,
            Self::Failed { .. } | Self::NotCounted | Self::NotKnown(_) => Level::Error,
        }
    }

    fn write(&self, job: &Name, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began => {
                let Name { task_id, kind, attempt, max_attempts, .. } = job;
                write!(f, "started {job}: ")?;
                if job.source == Source::Tasks {
                    write!(f, "task {task_id}, type {kind}, ")?;
                }
                write!(f, "attempt {attempt} of {max_attempts}")
            }
            Self::Output(text) => write!(f, "{job} reported: {text}"),
            Self::Completed(took) => write!(f, "completed {job} after {}", seconds(*took)),
            Self::Failed { took, again, reason } => {
                let again = if *again { "" } else { ", for good" };
                write!(f, "failed {job} after {}{again}: {reason}", seconds(*took))
            }
            Self::Stopped { took, reason } => write!(f, "stopped {job} after {}: {reason}", seconds(*took)),
            Self::NotCounted => {
                write!(f, "the end of {job} was not accepted: this session no longer runs it")
            }
            Self::NotWritten(reason) => write!(f, "the end of {job} was not recorded: {reason}"),
            Self::NotKnown(reason) => {
                write!(f, "not known whether the end of {job} was recorded: {reason}")
            }
            Self::GivenBack => write!(f, "released {job}"),
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// The function that receives each event of a worker.
#[derive(Clone)]
pub struct Report(Arc<dyn Fn(&Event) + Send + Sync>);

impl Report {
    /// Reports to this function, which should not block.
    pub fn to(tell: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Drops all events.
    #[must_use]
    pub fn nowhere() -> Self {
        Self::to(|_| {})
    }

    pub(super) fn send(&self, event: &Event) {
        (self.0)(event);
    }

    pub(super) fn send_of(&self, job: &Job, event: JobEvent) {
        self.send(&Event::Job(Name::from(job), event));
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}
