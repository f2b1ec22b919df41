//! To what something is to be done.

use super::rows;
use super::{ActionPlan, Ask, Known, PlanContext, SelectedRow, Verb};
use crate::model::lease::LeaseId;
use crate::model::systems::TextId;
use crate::model::task::TaskId;
use crate::model::work_queue::ItemId;

/// To what something is to be done.
#[derive(Debug, Clone)]
pub enum Chosen {
    /// To sessions: a signal is sent.
    Sessions(Ask),
    /// To executions of tasks: the server has to be asked which.
    Executions(Vec<(TaskId, Option<i64>)>),
    /// To rows of one kind: a statement changes each.
    Rows(RowsOf),
    /// To blockers that are known: nothing is asked of the server.
    Known(Known),
}

/// Rows of one kind, by what identifies them; never empty.
#[derive(Debug, Clone)]
pub enum RowsOf {
    /// Executions in a published log.
    Published(Vec<(TaskId, Option<i64>)>),
    /// Leases in tables or in Redis.
    Leases(Vec<LeaseId>),
    /// Tasks, of whatever table.
    Tasks(Vec<TaskId>),
    /// Items of the work queue.
    Items(Vec<ItemId>),
    /// Jobs of other systems.
    Jobs(Vec<TextId>),
    /// Leases of other systems.
    OtherLeases(Vec<TextId>),
}

impl RowsOf {
    /// What a verb would do to them, as a question shows it; nothing is asked of the server yet.
    pub fn plan(&self, context: &PlanContext<'_>, verb: Verb) -> ActionPlan {
        match self {
            Self::Published(tasks) => rows::published(context, tasks),
            Self::Leases(leases) => rows::leases(context, leases),
            Self::Tasks(tasks) => rows::tasks(context, verb, tasks),
            Self::Items(items) => rows::items(context, verb, items),
            Self::Jobs(jobs) => rows::jobs(context, jobs),
            Self::OtherLeases(leases) => rows::other_leases(context, leases),
        }
    }

    /// What one of them is called in a sentence.
    pub const fn one(&self) -> &'static str {
        match self {
            Self::Published(_) => "execution",
            Self::Leases(_) | Self::OtherLeases(_) => "lease",
            Self::Tasks(_) => "task",
            Self::Items(_) => "item",
            Self::Jobs(_) => "job",
        }
    }
}

/// What these rows give; none where none of them gives anything.
fn some<T>(rows: &[SelectedRow], of: impl Fn(SelectedRow) -> Option<T>) -> Option<Vec<T>> {
    let rows: Vec<T> = rows.iter().filter_map(|row| of(*row)).collect();
    (!rows.is_empty()).then_some(rows)
}

/// The rows that have a session, or may have one.
pub(super) fn sessions(rows: &[SelectedRow]) -> Option<Vec<SelectedRow>> {
    use SelectedRow::{Job, Other, OtherLease};
    some(rows, |row| (!matches!(row, Other | Job(_) | OtherLease(_))).then_some(row))
}

/// The tasks among the rows, with their executions.
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
