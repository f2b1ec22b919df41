//! What a worker has to tell.

use std::fmt;
use std::sync::Arc;

use super::stop::StopReason;
use crate::locks::work_session::{Job, Requeued, Source};
use crate::text;

/// Something that whoever looks after a worker should know. It prints as one line; text of the server's is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// There is no connection to be had yet, and why.
    Waiting(String),
    /// There is one; the process id of the server's side.
    Connected {
        /// The process id.
        pid: i32,
    },
    /// It has ended, with so many jobs running.
    Lost {
        /// Why.
        reason: String,
        /// Jobs that are being stopped for it.
        running: usize,
    },
    /// A job was told to stop.
    Stopped {
        /// Which.
        job: Name,
        /// Why.
        reason: StopReason,
    },
    /// The end of a job did not count: it was not ours any more.
    NotCounted {
        /// Which.
        job: Name,
    },
    /// The server refused to write the end of a job; it is tried again while the session lasts.
    NotWritten {
        /// Which.
        job: Name,
        /// Why.
        reason: String,
    },
    /// The session ended before it said whether it wrote the end of a job.
    NotKnown {
        /// Which.
        job: Name,
        /// Why.
        reason: String,
    },
    /// The server refused something; it will be tried again.
    Refused {
        /// What.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Nothing new is taken; so many are running.
    ShuttingDown {
        /// How many.
        running: usize,
    },
    /// A job was given back, for others to run.
    GivenBack {
        /// Which.
        job: Name,
    },
    /// An item of the queue was taken from a session that is gone.
    Requeued(Requeued),
    /// The end, and what was done until then.
    Ended(super::Summary),
}

/// A job, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    title: String,
    source: Source,
    id: i64,
}

impl From<&Job> for Name {
    fn from(job: &Job) -> Self {
        let title = text::fit(&text::one_line(&job.name), 60).into_owned();
        Self { title, source: job.source, id: job.id }
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

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(reason) => write!(f, "{reason}; waiting"),
            Self::Connected { pid } => write!(f, "connected, served by process {pid}"),
            Self::Lost { reason, running: 0 } => write!(f, "connection lost: {reason}"),
            Self::Lost { reason, running } => {
                write!(f, "connection lost: {reason}; stopping what runs ({running})")
            }
            Self::Stopped { job, reason } => write!(f, "stopped {job}: {reason}"),
            Self::NotCounted { job } => {
                write!(f, "the end of {job} did not count: it is not run by this session any more")
            }
            Self::NotWritten { job, reason } => {
                write!(f, "the end of {job} was not recorded: {reason}")
            }
            Self::NotKnown { job, reason } => {
                write!(f, "it is not known whether the end of {job} was recorded: {reason}")
            }
            Self::Refused { what, reason } => write!(f, "{what} was refused: {reason}; trying again"),
            Self::ShuttingDown { running } => {
                write!(f, "shutting down: nothing new is taken, {running} running")
            }
            Self::GivenBack { job } => write!(f, "gave back {job}"),
            Self::Requeued(Requeued { id, again, detail }) => {
                let done = if *again { "is pending again" } else { "was set aside" };
                write!(f, "item {id} of the queue {done}: {}", text::fit(detail, 200))
            }
            Self::Ended(summary) => write!(f, "ended: {summary}"),
        }
    }
}

/// Where events go.
#[derive(Clone)]
pub struct Report(Arc<dyn Fn(&Event) + Send + Sync>);

impl Report {
    /// To this function, which should not wait for anything.
    pub fn to(tell: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// To nobody.
    #[must_use]
    pub fn nowhere() -> Self {
        Self::to(|_| {})
    }

    pub(super) fn tell(&self, event: &Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}
