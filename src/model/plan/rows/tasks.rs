//! Switching tasks on and off, and making them due.

use super::{each, harmless, old};
use crate::model::finding::Subject;
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{
    ActionPlan, Caution, CautionKind, Change, PlanContext, PlannedTarget, Refused, Target, TargetKind,
    TaskTarget, Verb,
};
use crate::model::task::{Schedule, TaskId, TaskRow, TaskSet, TaskState};
use crate::text;

/// What these tasks are switched to by one key: off when the first that can be switched is on, else on.
#[must_use]
pub fn toggle(context: &PlanContext<'_>, chosen: &[TaskId]) -> Verb {
    let Some(snapshot) = context.view.snapshot.as_deref() else { return Verb::Enable };
    let find = |id: &TaskId| context.view.tasks.rows.iter().find(|row| row.task == *id);
    let enabled = |row: &TaskRow| row.schedule(snapshot)?.enabled;
    let first = chosen.iter().filter_map(find).find_map(enabled);
    if first == Some(true) { Verb::Disable } else { Verb::Enable }
}

/// What [`Verb::Enable`], [`Verb::Disable`] or [`Verb::MakeDue`] does to these tasks, in the order given.
#[must_use]
pub fn tasks(context: &PlanContext<'_>, verb: Verb, chosen: &[TaskId]) -> ActionPlan {
    each(context, verb, chosen, |index, id| match context.view.tasks.rows.iter().find(|row| row.task == id) {
        None => Err(Refused::new(format!("task {}", id.id), Subject::Task(id), "is gone")),
        Some(row) => planned(index, verb, row),
    })
}

fn planned(index: &PlanIndex<'_>, verb: Verb, row: &TaskRow) -> Result<PlannedTarget, Refused> {
    let name = harmless(&row.name(index.snapshot));
    let subject = Subject::Task(row.task);
    let refused = |reason: &str| Refused::new(name.clone(), subject.clone(), reason);
    let (Some(set), Some(schedule)) = (row.set(index.snapshot), row.schedule(index.snapshot)) else {
        return Err(refused("has no schedule: there is nothing to change"));
    };
    if let Some(reason) = refusal(index, verb, row, schedule) {
        return Err(refused(reason));
    }
    if let Some(reason) = set.tables.owner.refusal(&set.tables.schedules) {
        return Err(refused(&harmless(&reason)));
    }
    let mut cautions: Vec<Caution> =
        old(index, set.tasks.error.as_ref(), set.tasks.taken_at).into_iter().collect();
    cautions.extend(futile(verb, row, schedule));
    cautions.sort_by_key(|caution| caution.kind);
    let set_to = match verb {
        Verb::Enable => "is_enabled = true",
        Verb::Disable => "is_enabled = false",
        _ => "next_run_at = now",
    };
    let does = format!("UPDATE {} SET {set_to} WHERE id = {}", set.tables.schedules, row.task.id);
    let target = Target { what: TargetKind::Task(target(set, schedule)), name, subject };
    let mut facts = facts(index, row, schedule);
    facts.extend(set.tables.owner.fact(&set.tables.schedules).map(|fact| harmless(&fact)));
    Ok(PlannedTarget {
        target,
        does: harmless(&does),
        facts,
        effect: None,
        cautions,
        lease: None,
        work: None,
        change: None,
    })
}

fn target(set: &TaskSet, schedule: &Schedule) -> TaskTarget {
    TaskTarget {
        table: set.tables.table,
        source: set.tables.schedules.clone(),
        is_own: set.tables.own_keys,
        id: schedule.id,
        name: schedule.name.clone(),
        enabled: schedule.enabled,
        next_run_at: schedule.next_run_at,
    }
}

fn refusal(index: &PlanIndex<'_>, verb: Verb, row: &TaskRow, schedule: &Schedule) -> Option<&'static str> {
    let is_due = schedule.next_run_at.is_some_and(|next| next <= index.snapshot.taken_at);
    Some(match verb {
        Verb::Enable | Verb::Disable if schedule.enabled.is_none() => {
            "its table has no column is_enabled: it can be neither switched on nor off"
        }
        Verb::Enable if schedule.enabled == Some(true) => "is enabled already",
        Verb::Disable if schedule.enabled == Some(false) => "is disabled already",
        Verb::MakeDue if row.execution.is_some() => match row.state {
            TaskState::Orphan => {
                "runs in the log, and its worker is gone: R recovers it, and it is due again"
            }
            TaskState::Unknown => "runs in the log, though perhaps nowhere else: due is what does not run",
            _ => "runs: when it is due next is set when it ends",
        },
        Verb::MakeDue if is_due => "is due already",
        _ => return None,
    })
}

/// What does not come of it.
fn futile(verb: Verb, row: &TaskRow, schedule: &Schedule) -> Option<Caution> {
    let words = match verb {
        Verb::Disable if row.execution.is_some() => match row.state {
            TaskState::Orphan => "it runs in the log, and its worker is gone: R recovers it",
            TaskState::Unknown => "if it runs, it goes on until it ends; only the next run is stopped",
            _ => "it runs, and goes on until it ends; only the next run is stopped",
        },
        Verb::MakeDue if schedule.enabled == Some(false) => "it is disabled: nobody takes it; E enables it",
        Verb::Enable if row.schedule_state == Some(TaskState::Disabled) && schedule.next_run_at.is_none() => {
            "it is due at no time: T makes it due"
        }
        _ => return None,
    };
    Some(Caution::new(CautionKind::Futile, words))
}

fn facts(index: &PlanIndex<'_>, row: &TaskRow, schedule: &Schedule) -> Vec<String> {
    let mut facts = vec![row.state.as_str().to_owned()];
    facts.extend(schedule.kind.as_deref().map(|kind| harmless(&format!("of type {kind}"))));
    facts.extend(schedule.cron.as_deref().map(|cron| harmless(&format!("by schedule {cron}"))));
    facts.push(match row.due_in(index.snapshot) {
        None => "due at no time".to_owned(),
        Some(seconds) if seconds <= 0.0 => format!("due since {}", text::duration(-seconds)),
        Some(seconds) => format!("due in {}", text::duration(seconds)),
    });
    let last = schedule.last_run_at.map(|at| format!("last began {} ago", index.age_text(at)));
    facts.extend(last);
    facts
}

pub(super) fn changed(index: &PlanIndex<'_>, target: &TaskTarget) -> Option<Change> {
    let sets = &index.snapshot.task_sets;
    let set = sets.iter().find(|set| set.tables.table == target.table)?;
    if set.tasks.error.is_some() {
        return None;
    }
    let Some(schedule) = set.task(target.id) else { return (!set.tasks_cut).then_some(Change::Gone) };
    let same = schedule.name == target.name
        && schedule.enabled == target.enabled
        && schedule.next_run_at == target.next_run_at;
    (!same).then_some(Change::OtherRow)
}
