//! Failing executions that a published log has as running, and nobody holds the key of.
//!
//! Published tables name no session, so nothing is ended there: whether somebody works on a row only its key can say.

use super::{each, harmless, old};
use crate::model::finding::Subject;
use crate::model::plan::confirm::is_typable;
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{
    ActionPlan, Caution, CautionKind, Change, Confirm, PlanContext, PlannedTarget, PublishedTarget, Refused,
    Target, TargetKind, Verb,
};
use crate::model::task::{Execution, TaskId, TaskRow, TaskSet, TaskState, evidence};
use crate::text;

/// Whether the executions of this table are in a published log, and not in one of locktop's own.
pub fn is_published(context: &PlanContext<'_>, table: u32) -> bool {
    let sets = context.view.snapshot.iter().flat_map(|snapshot| snapshot.task_sets.iter());
    sets.into_iter().any(|set| set.tables.table == table && !set.tables.own_keys)
}

/// What failing the running executions of these tasks does, in the order given.
pub fn published(context: &PlanContext<'_>, chosen: &[(TaskId, Option<i64>)]) -> ActionPlan {
    let mut plan = each(context, Verb::Recover, chosen, |index, (task, again)| {
        let gone = || Refused::new(format!("task {}", task.id), Subject::Task(task), "no longer exists");
        planned(index, super::task(context, task, again).ok_or_else(gone)?)
    });
    if let [row] = plan.rows.as_slice()
        && let TargetKind::Published(target) = &row.target.what
    {
        // A name that not every keyboard has, as `unlock` of such a lease; a number would be taken for a pid.
        let is_word = |name: &&str| is_typable(name) && !name.bytes().all(|byte| byte.is_ascii_digit());
        let name = target.name.as_deref().filter(is_word);
        plan.confirm = Confirm::of(1, Some(name.unwrap_or("recover").to_owned()));
    }
    plan
}

fn planned(index: &PlanIndex<'_>, row: &TaskRow) -> Result<PlannedTarget, Refused> {
    let name = harmless(&row.name(index.snapshot));
    let subject = Subject::Task(row.task);
    let refused = |reason: String| Refused::new(name.clone(), subject, harmless(&reason));
    let (Some(set), Some(execution)) = (row.set(index.snapshot), row.execution(index.snapshot)) else {
        return Err(refused("it is not running".to_owned()));
    };
    if let Some(reason) = refusal(index, row) {
        return Err(refused(reason));
    }
    let log = set.tables.executions.clone().unwrap_or_default();
    if let Some(reason) = set.tables.owner.refusal(&log) {
        return Err(refused(reason));
    }
    let target = target(set, execution)
        .ok_or_else(|| refused("its row has no worker and start, so nothing can be compared".to_owned()))?;
    let mut cautions: Vec<Caution> =
        old(index, set.executions.error.as_ref(), set.executions.taken_at).into_iter().collect();
    cautions.push(Caution::new(
        CautionKind::Owner,
        "the worker may still be running; unfenced work may run twice",
    ));
    cautions.sort_by_key(|caution| caution.kind);
    let does = format!(
        "if pg_try_advisory_xact_lock({}): UPDATE {log} SET status = 'failed' WHERE id = {}",
        target.key, target.id
    );
    let facts = facts(index, row, execution, set);
    let target = Target { what: TargetKind::Published(target), name, subject };
    Ok(PlannedTarget::new(target, &does, facts, cautions))
}

fn target(set: &TaskSet, execution: &Execution) -> Option<PublishedTarget> {
    Some(PublishedTarget {
        table: set.tables.log?,
        source: set.tables.executions.clone()?,
        id: execution.id,
        task_id: execution.task_id,
        name: set.task(execution.task_id).and_then(|task| task.name.clone()),
        worker: execution.worker.clone()?,
        started_at: execution.started_at?,
        key: set.key(execution)?.number(),
    })
}

/// Why that cannot be done to an execution that is like this.
fn refusal(index: &PlanIndex<'_>, row: &TaskRow) -> Option<String> {
    let why = evidence(row, index.snapshot);
    Some(match row.state {
        TaskState::Orphan | TaskState::MaybeOrphan => return None,
        TaskState::Running => format!("runs: {why}"),
        TaskState::Slow => format!("runs past its limit: {why}; K to terminate that session, then R"),
        TaskState::Settling => format!("{why}: wait a moment"),
        _ => why,
    })
}

fn facts(index: &PlanIndex<'_>, row: &TaskRow, execution: &Execution, set: &TaskSet) -> Vec<String> {
    let mut facts = vec![format!("{}: {}", row.state.as_str(), evidence(row, index.snapshot))];
    if let Some(worker) = execution.worker.as_deref() {
        let age = row.age(index.snapshot).map_or_else(String::new, |age| {
            format!(" for {} of {}", text::duration(age), text::duration(row.limit))
        });
        facts.push(format!("recorded as running on {worker}{age}"));
    }
    match row.schedule(index.snapshot).and_then(|task| task.next_run_at) {
        Some(next) if next <= index.snapshot.taken_at => facts.push("its task is due".to_owned()),
        Some(next) => {
            let seconds = (next - index.snapshot.taken_at).as_seconds_f64();
            facts.push(format!("its task is due in {}", text::duration(seconds)));
        }
        None => facts.push("its task has no due time: T makes it due".to_owned()),
    }
    let log = set.tables.executions.clone().unwrap_or_default();
    facts.extend(set.tables.owner.fact(&log));
    facts.iter().map(|fact| harmless(fact)).collect()
}

pub(super) fn changed(index: &PlanIndex<'_>, target: &PublishedTarget) -> Option<Change> {
    let set = index.snapshot.task_sets.iter().find(|set| set.tables.log == Some(target.table))?;
    if !set.executions.is_known() {
        return None;
    }
    let Some(execution) = set.executions.last_rows().iter().find(|execution| execution.id == target.id)
    else {
        return (!set.running_cut).then_some(Change::Gone);
    };
    let is_same = execution.is_running()
        && execution.worker.as_ref() == Some(&target.worker)
        && execution.started_at == Some(target.started_at);
    (!is_same).then_some(Change::OtherRow)
}
