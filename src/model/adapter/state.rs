use strum::{EnumString, IntoStaticStr, VariantArray};

/// The state of a job, worst first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray, EnumString,
)]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// Running according to its row, but the lock or session of its worker no longer exists.
    Orphan,
    /// Running according to its row, but its worker is silent for longer than its system allows, or not listed, or its lease
    /// has ended.
    Lost,
    /// Running according to its row for so long that its system should have requeued it by now.
    Late,
    /// Its worker is alive, and it runs for longer than its limit.
    Slow,
    /// It has been due for longer than `[thresholds] task_overdue`.
    Overdue,
    Blocked,
    /// Running according to its row, but nothing shows whether a worker is alive.
    Unknown,
    Running,
    Due,
    Retry,
    Scheduled,
    /// It may be started, but its queue is paused.
    Paused,
    /// It failed and will not be retried.
    Failed,
    /// It was completed, and its row still exists.
    Done,
}

impl State {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether its worker has disconnected, or should have.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Orphan | Self::Lost | Self::Late)
    }
}

/// How the state of a job's worker is known.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray, EnumString,
)]
#[strum(serialize_all = "snake_case")]
pub enum Proof {
    Lock,
    Session,
    /// A row that its owner renews is recent, or older than the system's own limit.
    Heartbeat,
    Absent,
    Lease,
    Presence,
    /// Older than the limit of the system's rescuer; which worker was lost is not known.
    Age,
    None,
}

impl Proof {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
