use super::rows;
use super::{ActionPlan, Ask, Confirm, Known, PlanContext, RecoverySearch, Verb, signal};
use crate::model::row_id::RowId;

#[derive(Debug, Clone)]
pub enum Chosen {
    Sessions(Ask),
    /// Executions of tasks: the server must be queried for them.
    Executions(Box<RecoverySearch>),
    /// Rows of one kind, never empty: each is changed separately.
    Rows(Vec<RowId>),
    /// Expected blockers: nothing is sent to the server.
    Known(Box<Known>),
}

impl Chosen {
    /// The singular; the plural has an added `s`.
    pub fn one(&self, verb: Verb) -> &'static str {
        match self {
            Self::Sessions(_) => "session",
            Self::Executions(_) => "execution",
            Self::Rows(rows) => match rows.first() {
                Some(RowId::Lease(_) | RowId::OtherLease(_)) => "lease",
                Some(RowId::Item(_)) => "item",
                Some(RowId::Job(_)) => "job",
                _ if verb == Verb::Recover => "execution",
                _ => "task",
            },
            Self::Known(_) => "blocker",
        }
    }

    pub fn plan(&self, context: &PlanContext<'_>, verb: Verb) -> ActionPlan {
        match self {
            Self::Sessions(ask) => signal::sessions(context, ask),
            Self::Executions(search) => search.plan(context),
            Self::Rows(rows) => rows::rows(context, verb, rows),
            Self::Known(_) => ActionPlan { confirm: Confirm::Yes, ..ActionPlan::new(verb) },
        }
    }
}

/// Those of the rows to which a verb applies; `None` if it applies to none.
pub(super) fn only(rows: &[RowId], applies: impl Fn(&RowId) -> bool) -> Option<Vec<RowId>> {
    let rows: Vec<RowId> = rows.iter().copied().filter(applies).collect();
    (!rows.is_empty()).then_some(rows)
}

pub(super) fn sessions(rows: &[RowId]) -> Option<Vec<RowId>> {
    use RowId::{Awaited, Backend, Group, Item, Lease, Lock, Prepared, Task};
    let is_session = |row: &RowId| {
        matches!(row, Backend(_) | Lock(..) | Group(..) | Prepared(_) | Awaited(_))
            || matches!(row, Task(..) | Item(_) | Lease(_))
    };
    only(rows, is_session)
}

/// Each task once, whichever of its executions was chosen.
pub(super) fn schedules(rows: &[RowId]) -> Option<Vec<RowId>> {
    let tasks = only(rows, |row| matches!(row, RowId::Task(..)))?;
    let whole = |row| if let RowId::Task(task, _) = row { RowId::Task(task, None) } else { row };
    Some(tasks.into_iter().map(whole).collect())
}

pub(super) fn items(rows: &[RowId]) -> Option<Vec<RowId>> {
    only(rows, |row| matches!(row, RowId::Item(_)))
}
