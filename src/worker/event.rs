//! What a worker has to tell.

use std::fmt;
use std::sync::Arc;

use super::stop::StopReason;
use crate::locks::scheduled_task::Execution;
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
    /// It has ended, with so many tasks running.
    Lost {
        /// Why.
        reason: String,
        /// Tasks that are being stopped for it.
        running: usize,
    },
    /// A task was told to stop.
    Stopped {
        /// Which execution.
        task: Name,
        /// Why.
        reason: StopReason,
    },
    /// The end of an execution did not count: it was not ours any more.
    NotCounted {
        /// Which execution.
        task: Name,
    },
    /// The server refused to write the end of an execution; it is tried again while the session lasts.
    NotWritten {
        /// Which execution.
        task: Name,
        /// Why.
        reason: String,
    },
    /// The session ended before it said whether it wrote the end of an execution.
    NotKnown {
        /// Which execution.
        task: Name,
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
    /// No new tasks are taken; so many are running.
    ShuttingDown {
        /// How many.
        running: usize,
    },
    /// A task was given back, for others to run.
    GivenBack {
        /// Which execution.
        task: Name,
    },
    /// The end, and what was done until then.
    Ended(super::Summary),
}

/// A task and its execution, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    task: String,
    execution: i64,
}

impl From<&Execution> for Name {
    fn from(execution: &Execution) -> Self {
        let task = text::fit(&text::one_line(&execution.task_name), 60).into_owned();
        Self { task, execution: execution.id }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" (execution {})", self.task, self.execution)
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
            Self::Stopped { task, reason } => write!(f, "stopped {task}: {reason}"),
            Self::NotCounted { task } => {
                write!(f, "the end of {task} did not count: it is not run by this session any more")
            }
            Self::NotWritten { task, reason } => {
                write!(f, "the end of {task} was not recorded: {reason}")
            }
            Self::NotKnown { task, reason } => {
                write!(f, "it is not known whether the end of {task} was recorded: {reason}")
            }
            Self::Refused { what, reason } => write!(f, "{what} was refused: {reason}; trying again"),
            Self::ShuttingDown { running } => {
                write!(f, "shutting down: no new tasks, {running} running")
            }
            Self::GivenBack { task } => write!(f, "gave back {task}"),
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
