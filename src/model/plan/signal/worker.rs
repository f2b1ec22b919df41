use super::selected::SelectedSession;
use super::{caution, refuse};
use crate::model::lock::LockMode;
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{Caution, SessionTarget, Stake, Verb};
use crate::model::task::TaskRow;

/// The session that works on an execution of a published log, and what else ends with it. It works on the row as long as
/// the row is as seen and the session holds the key, whatever it runs meanwhile.
pub(in crate::model::plan) fn of_execution(
    index: &PlanIndex<'_>,
    row: &TaskRow,
) -> Result<(SessionTarget, Vec<Caution>), String> {
    let (Some(pid), Some(tag)) = (row.holder, row.tag) else {
        return Err("a prepared transaction holds its key, not a session".to_owned());
    };
    let pick = SelectedSession::new(pid, None);
    let backend = refuse::check(index, Verb::Terminate, &pick)?;
    let start = backend.backend_start.ok_or("its start is not known")?;
    let target = SessionTarget::by_lock(backend, start, (tag, LockMode::Exclusive));
    let execution = row.execution(index.snapshot).map(|execution| execution.id);
    let itself = [Stake::Execution(row.task, execution)];
    let cautions = caution::of(index, Verb::Terminate, &pick).into_iter();
    Ok((target, cautions.filter(|caution| caution.about != itself).collect()))
}
