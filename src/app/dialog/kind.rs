//! To what something is to be done.

use super::known::Known;
use super::search::Search;
use crate::model::lease::LeaseId;
use crate::model::plan::Ask;
use crate::model::systems::TextId;
use crate::model::task::TaskId;
use crate::model::work_queue::ItemId;

/// To what something is to be done.
#[derive(Debug, Clone)]
pub enum Kind {
    /// To sessions.
    Sessions(Ask),
    /// To executions of tasks.
    Executions(Box<Search>),
    /// To executions in a published log.
    Published(Vec<(TaskId, Option<i64>)>),
    /// To leases.
    Leases(Vec<LeaseId>),
    /// To tasks.
    Tasks(Vec<TaskId>),
    /// To items of the work queue.
    Items(Vec<ItemId>),
    /// To jobs of other systems.
    Jobs(Vec<TextId>),
    /// To leases of other systems.
    OtherLeases(Vec<TextId>),
    /// To blockers that are known: nothing is asked of the server.
    Known(Box<Known>),
}

impl Kind {
    /// What one is called.
    pub(super) const fn one(&self) -> &'static str {
        match self {
            Self::Sessions(_) => "session",
            Self::Executions(_) | Self::Published(_) => "execution",
            Self::Leases(_) | Self::OtherLeases(_) => "lease",
            Self::Tasks(_) => "task",
            Self::Items(_) => "item",
            Self::Jobs(_) => "job",
            Self::Known(_) => "blocker",
        }
    }

    /// What several are called.
    pub(super) const fn noun(&self) -> &'static str {
        match self {
            Self::Sessions(_) => "sessions",
            Self::Executions(_) | Self::Published(_) => "executions",
            Self::Leases(_) | Self::OtherLeases(_) => "leases",
            Self::Tasks(_) => "tasks",
            Self::Items(_) => "items",
            Self::Jobs(_) => "jobs",
            Self::Known(_) => "blockers",
        }
    }
}
