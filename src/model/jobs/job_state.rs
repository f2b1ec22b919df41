//! The states of jobs of all kinds, and how the state of a running one is known.

words! {
    /// The state of a task, a queue item or a job of another system, worst first; a guess has a question mark.
    #[derive(Default)]
    pub enum JobState {
        /// Running according to its row, but its key is free, or the session of its worker has ended.
        Orphan,
        /// The same, but it is a guess that its worker took that key.
        #[strum(serialize = "orphan?")]
        MaybeOrphan,
        /// Running according to its row, but its worker is silent for longer than its system allows, or not listed, or its lease
        /// has ended. For a queue item: its session ended, or its key has been free, for so long that its worker has stopped.
        Lost,
        /// The same, but it is a guess that its worker took that key.
        #[strum(serialize = "lost?")]
        MaybeLost,
        /// Running according to its row for so long that its system should have requeued it by now.
        Late,
        /// Its worker is alive, and it runs for longer than its limit.
        Slow,
        /// The same, but nothing links the holder of its key to its worker.
        #[strum(serialize = "slow?")]
        MaybeSlow,
        /// A task whose last attempts failed, and that nothing starts again.
        #[strum(serialize = "failed")]
        GivenUp,
        /// It has been due for longer than `[thresholds] task_overdue`.
        Overdue,
        /// The key of a task is held, but nothing runs.
        Leaked,
        /// Stale: a task runs according to its log, but its key is held for a newer row or another worker.
        #[strum(serialize = "leftover")]
        LeftOver,
        Blocked,
        /// The key of a running task has been free for less than the grace period. It becomes an orphan unless it ends first.
        Settling,
        /// Running according to its row, but whether it really runs cannot be determined.
        #[default]
        Unknown,
        /// The session of a queue item has ended, or its key is free: its worker may not know that yet.
        #[strum(serialize = "settling")]
        Stopping,
        /// Running according to its row; nothing links the holder of its key to its worker.
        #[strum(serialize = "running?")]
        MaybeRunning,
        /// Its worker is alive and it is within its limit, or it began a moment ago.
        Running,
        /// A session holds its key in an open transaction: its changes are not visible before it commits.
        #[strum(serialize = "running (uncommitted)")]
        Uncommitted,
        /// The same, but the key is a guess.
        #[strum(serialize = "running? (uncommitted)")]
        MaybeUncommitted,
        /// Due, but not for longer than a worker should need.
        Due,
        Retry,
        Scheduled,
        /// It may be started, but its queue is paused.
        Paused,
        /// It failed and will not be retried; a queue item may also have been set aside manually.
        Failed,
        /// A queue item that the next free worker may take.
        Pending,
        /// A queue item that is not yet due: postponed for a retry, or added for later.
        Resting,
        Idle,
        /// A disabled task (`is_enabled`): no worker takes it.
        Disabled,
        /// It was completed, and its row still exists.
        Done,
    }
}

impl JobState {
    /// The states of jobs of other systems.
    pub const OF_ADAPTERS: &'static [Self] = &[
        Self::Orphan,
        Self::Lost,
        Self::Late,
        Self::Slow,
        Self::Overdue,
        Self::Blocked,
        Self::Unknown,
        Self::Running,
        Self::Due,
        Self::Retry,
        Self::Scheduled,
        Self::Paused,
        Self::Failed,
        Self::Done,
    ];

    pub fn of_adapter(word: &str) -> Option<Self> {
        Self::OF_ADAPTERS.iter().copied().find(|state| state.as_str() == word)
    }

    /// Whether the worker of a job of another system has disconnected, or should have.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Orphan | Self::Lost | Self::Late)
    }

    pub const fn is_uncommitted(self) -> bool {
        matches!(self, Self::Uncommitted | Self::MaybeUncommitted)
    }

    /// The word in JSON: a guess is reported as unknown, with the guess in a separate field.
    pub fn certain(self) -> &'static str {
        match self {
            Self::Uncommitted => Self::Running.as_str(),
            Self::MaybeLost => Self::Unknown.as_str(),
            _ if self.guess().is_some() => Self::Unknown.as_str(),
            _ => self.as_str(),
        }
    }

    /// The most likely state of a task, if the state is not certain.
    pub const fn guess(self) -> Option<&'static str> {
        match self {
            Self::MaybeOrphan | Self::LeftOver => Some("orphan"),
            Self::MaybeSlow => Some("slow"),
            Self::MaybeRunning | Self::MaybeUncommitted => Some("running"),
            _ => None,
        }
    }
}

words! {
    /// How the state of a job's worker is known.
    #[derive(strum::EnumString)]
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
}
