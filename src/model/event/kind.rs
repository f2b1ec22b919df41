//! The kinds of events.

/// What an event is about: its words stand in the column and in the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A session began to wait for a lock.
    WaitBegun,
    /// A session waits no longer: it has the lock, or is gone, or neither can be told.
    WaitEnded,
    /// A session or prepared transaction that waits for nobody began to block others.
    RootBegun,
    /// It blocks no session any more, or waits itself.
    RootEnded,
    /// Sessions began to wait for each other.
    CycleBegun,
    /// They do not wait for each other any more.
    CycleEnded,
    /// The server's count of deadlocks rose.
    Deadlock,
    /// An execution of a task began.
    TaskStarted,
    /// It takes longer than it may.
    TaskSlow,
    /// The session of an execution that runs in the log is gone.
    TaskOrphaned,
    /// An execution completed or failed.
    TaskEnded,
    /// Somebody closed it for a worker that was gone.
    TaskRecovered,
    /// A task was not started when it was due.
    TaskOverdue,
    /// A task's key is held and nothing runs.
    TaskLeaked,
    /// A task was switched on or off.
    TaskSwitched,
    /// Somebody got a lease that nobody had, or renewed one that had run out.
    LeaseTaken,
    /// A lease ended without having been given back.
    LeaseExpired,
    /// A lease was given back, or its row no longer exists.
    LeaseReleased,
    /// A lease went from one owner to another.
    LeaseChanged,
    /// An item of the work queue was set aside.
    ItemFailed,
    /// The session that worked on an item is gone.
    ItemLost,
    /// The connection was lost, or the server does not answer.
    LinkLost,
    /// There is a connection, for the first time or again.
    LinkBack,
    /// The server was started anew, was promoted, or became a standby.
    Server,
    /// A section of the snapshot could not be read.
    SectionStale,
    /// A section that could not be read can be read again.
    SectionFresh,
    /// The operator asked for an action, and it was put on record.
    ActionAsked,
    /// What came of it, for one target.
    ActionResult,
    /// A note in the operator's own words.
    Note,
}

impl Kind {
    /// Whether somebody did that with locktop, or noted it.
    pub const fn is_action(self) -> bool {
        matches!(self, Self::ActionAsked | Self::ActionResult | Self::Note)
    }

    /// Whether it tells an end: what it is about was to be seen at the look before.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::WaitEnded | Self::RootEnded | Self::CycleEnded | Self::ActionResult)
    }

    /// Its words, for a column and for the filter: `kind:wait` finds both ends of a wait.
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

    /// What several of them happen to.
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
