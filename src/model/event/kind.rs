#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    WaitBegun,
    /// A session no longer waits: it has the lock, or has disconnected, or neither is known.
    WaitEnded,
    /// A session or prepared transaction that does not wait began to block others.
    RootBegun,
    /// It no longer blocks any session, or waits itself.
    RootEnded,
    CycleBegun,
    CycleEnded,
    Deadlock,
    TaskStarted,
    TaskSlow,
    /// The session of an execution that is running according to the log has ended.
    TaskOrphaned,
    TaskEnded,
    /// An execution was closed for a worker that had disconnected.
    TaskRecovered,
    TaskOverdue,
    /// A task's key is held, but nothing runs.
    TaskLeaked,
    TaskSwitched,
    /// A free lease was acquired, or an expired one was renewed.
    LeaseTaken,
    /// A lease ended without being released.
    LeaseExpired,
    /// A lease was released, or its row no longer exists.
    LeaseReleased,
    LeaseChanged,
    ItemFailed,
    ItemLost,
    /// The connection was lost, or the server does not answer.
    LinkLost,
    LinkBack,
    /// The server was restarted, was promoted, or became a standby.
    Server,
    SectionStale,
    SectionFresh,
    /// The operator requested an action, and it was recorded.
    ActionAsked,
    ActionResult,
    Note,
}

impl Kind {
    pub const fn is_action(self) -> bool {
        matches!(self, Self::ActionAsked | Self::ActionResult | Self::Note)
    }

    /// Whether it reports an end: the subject was visible in the previous poll.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::WaitEnded | Self::RootEnded | Self::CycleEnded | Self::ActionResult)
    }

    /// The words for a column and for the filter: `kind:wait` finds both ends of a wait.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WaitBegun => "wait",
            Self::WaitEnded => "wait over",
            Self::RootBegun => "root",
            Self::RootEnded => "root over",
            Self::CycleBegun => "cycle",
            Self::CycleEnded => "cycle over",
            Self::Deadlock => "deadlock",
            Self::TaskStarted => "task start",
            Self::TaskSlow => "task slow",
            Self::TaskOrphaned => "task orphan",
            Self::TaskEnded => "task end",
            Self::TaskRecovered => "task recover",
            Self::TaskOverdue => "task overdue",
            Self::TaskLeaked => "task leak",
            Self::TaskSwitched => "task switch",
            Self::LeaseTaken => "lease",
            Self::LeaseExpired => "lease expired",
            Self::LeaseReleased => "lease over",
            Self::LeaseChanged => "lease owner",
            Self::ItemFailed => "item failed",
            Self::ItemLost => "item lost",
            Self::LinkLost => "link lost",
            Self::LinkBack => "link",
            Self::Server => "server",
            Self::SectionStale => "stale",
            Self::SectionFresh => "fresh",
            Self::ActionAsked => "action",
            Self::ActionResult => "action result",
            Self::Note => "note",
        }
    }

    pub const fn noun(self) -> &'static str {
        match self {
            Self::WaitBegun | Self::WaitEnded => "sessions",
            Self::RootBegun | Self::RootEnded => "roots",
            Self::CycleBegun | Self::CycleEnded | Self::Deadlock => "cycles",
            Self::TaskStarted
            | Self::TaskSlow
            | Self::TaskOrphaned
            | Self::TaskEnded
            | Self::TaskRecovered
            | Self::TaskOverdue
            | Self::TaskLeaked
            | Self::TaskSwitched => "tasks",
            Self::LeaseTaken | Self::LeaseExpired | Self::LeaseReleased | Self::LeaseChanged => "leases",
            Self::ItemFailed | Self::ItemLost => "queue items",
            Self::SectionStale | Self::SectionFresh => "sections",
            Self::LinkLost
            | Self::LinkBack
            | Self::Server
            | Self::ActionAsked
            | Self::ActionResult
            | Self::Note => "events",
        }
    }
}
