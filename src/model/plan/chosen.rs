use super::rows;
use super::{ActionPlan, Ask, Confirm, Known, PlanContext, RecoverySearch, SelectedRow, Verb, signal};
use crate::model::lease::LeaseId;
use crate::model::systems::TextId;
use crate::model::task::TaskId;
use crate::model::work_queue::ItemId;

#[derive(Debug, Clone)]
pub enum Chosen {
    Sessions(Ask),
    /// Executions of tasks: the server must be queried for them.
    Executions(Box<RecoverySearch>),
    /// Rows of one kind: each is changed separately.
    Rows(RowsOf),
    /// Expected blockers: nothing is sent to the server.
    Known(Box<Known>),
}

impl Chosen {
    /// The singular; the plural has an added `s`.
    pub const fn one(&self) -> &'static str {
        match self {
            Self::Sessions(_) => "session",
            Self::Executions(_) => "execution",
            Self::Rows(rows) => rows.one(),
            Self::Known(_) => "blocker",
        }
    }

    pub fn plan(&self, context: &PlanContext<'_>, verb: Verb) -> ActionPlan {
        match self {
            Self::Sessions(ask) => signal::sessions(context, ask),
            Self::Executions(search) => search.plan(context),
            Self::Rows(rows) => rows.plan(context, verb),
            Self::Known(_) => ActionPlan { confirm: Confirm::Yes, ..ActionPlan::new(verb) },
        }
    }
}

/// Rows of one kind, by identity; never empty.
#[derive(Debug, Clone)]
pub enum RowsOf {
    /// Executions in a published log.
    Published(Vec<(TaskId, Option<i64>)>),
    Leases(Vec<LeaseId>),
    Tasks(Vec<TaskId>),
    Items(Vec<ItemId>),
    Jobs(Vec<TextId>),
    OtherLeases(Vec<TextId>),
}

impl RowsOf {
    fn plan(&self, context: &PlanContext<'_>, verb: Verb) -> ActionPlan {
        match self {
            Self::Published(tasks) => rows::published(context, tasks),
            Self::Leases(leases) => rows::leases(context, leases),
            Self::Tasks(tasks) => rows::tasks(context, verb, tasks),
            Self::Items(items) => rows::items(context, verb, items),
            Self::Jobs(jobs) => rows::jobs(context, jobs),
            Self::OtherLeases(leases) => rows::other_leases(context, leases),
        }
    }

    const fn one(&self) -> &'static str {
        match self {
            Self::Published(_) => "execution",
            Self::Leases(_) | Self::OtherLeases(_) => "lease",
            Self::Tasks(_) => "task",
            Self::Items(_) => "item",
            Self::Jobs(_) => "job",
        }
    }
}

fn some<T>(rows: &[SelectedRow], of: impl Fn(SelectedRow) -> Option<T>) -> Option<Vec<T>> {
    let rows: Vec<T> = rows.iter().filter_map(|row| of(*row)).collect();
    (!rows.is_empty()).then_some(rows)
}

pub(super) fn sessions(rows: &[SelectedRow]) -> Option<Vec<SelectedRow>> {
    use SelectedRow::{Job, Other, OtherLease};
    some(rows, |row| (!matches!(row, Other | Job(_) | OtherLease(_))).then_some(row))
}

pub(super) fn tasks(rows: &[SelectedRow]) -> Option<Vec<(TaskId, Option<i64>)>> {
    some(rows, |row| if let SelectedRow::Task(task, again) = row { Some((task, again)) } else { None })
}

pub(super) fn schedules(rows: &[SelectedRow]) -> Option<Vec<TaskId>> {
    some(rows, |row| if let SelectedRow::Task(task, _) = row { Some(task) } else { None })
}

pub(super) fn items(rows: &[SelectedRow]) -> Option<Vec<ItemId>> {
    some(rows, |row| if let SelectedRow::Item(id) = row { Some(id) } else { None })
}

pub(super) fn leases(rows: &[SelectedRow]) -> Option<Vec<LeaseId>> {
    some(rows, |row| if let SelectedRow::Lease(id) = row { Some(id) } else { None })
}

pub(super) fn jobs(rows: &[SelectedRow]) -> Option<Vec<TextId>> {
    some(rows, |row| if let SelectedRow::Job(id) = row { Some(id) } else { None })
}

pub(super) fn other_leases(rows: &[SelectedRow]) -> Option<Vec<TextId>> {
    some(rows, |row| if let SelectedRow::OtherLease(id) = row { Some(id) } else { None })
}
