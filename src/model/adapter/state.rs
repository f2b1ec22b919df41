//! States of jobs, and what proves them.

use strum::{EnumString, IntoStaticStr, VariantArray};

/// The state of a job, worst first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray, EnumString,
)]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// It runs by its row, and the lock or session that its worker held is gone.
    Orphan,
    /// It runs by its row, and its worker is silent for longer than its system allows, or not listed, or its lease is over.
    Lost,
    /// It runs by its row for so long that its system should have put it back by now.
    Late,
    /// Its worker is there, and it runs for longer than it may.
    Slow,
    /// It is due for longer than `[thresholds] task_overdue`.
    Overdue,
    /// Something has to end before it may start.
    Blocked,
    /// It runs by its row, and nothing tells whether anybody works on it.
    Unknown,
    /// It runs by its row, and its worker is known to live.
    Running,
    /// It may be started now.
    Due,
    /// It failed and is going to be tried again.
    Retry,
    /// Its time to start has not come.
    Scheduled,
    /// It may be started, and nothing is taken from its queue for now.
    Paused,
    /// It failed and is not tried again.
    Failed,
    /// It was completed, and its row is still there.
    Done,
}

impl State {
    /// Every state, worst first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word on the screens, in JSON and in `[advise]`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether its worker has disconnected, or should be.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Orphan | Self::Lost | Self::Late)
    }
}

/// What is known of the worker of a job, and by what.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray, EnumString,
)]
#[strum(serialize_all = "snake_case")]
pub enum Proof {
    /// An advisory key is held, or free.
    Lock,
    /// A stored backend is there, or is not.
    Session,
    /// A row that its owner renews is fresh, or older than the system's own limit.
    Heartbeat,
    /// The owner has no row in the list of workers.
    Absent,
    /// A term lasts, or has ended.
    Lease,
    /// Sessions of its workers are connected, or none is.
    Presence,
    /// Older than the limit of the system's rescuer: who is gone nobody knows.
    Age,
    /// Nothing that the system stores tells whether it lives.
    None,
}

impl Proof {
    /// Every proof, in the order of the documentation.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word on the screens, in JSON and in files of adapters.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
