//! The executions to recover, and the recovery plan as an action plan.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::context::{PlanIndex, was_terminated};
use super::rows::not_running;
use super::{
    ActionPlan, Caution, CautionKind, Confirm, ExecutionTarget, PlanContext, Planned, PlannedTarget, Reason,
    RecoveryPlan, Refused, Request, Selection, Step, Target, TargetKind, Verb,
};
use crate::model::backend::BackendId;
use crate::model::finding::Subject;
use crate::model::task::{JobState, TaskId, TaskRow, TaskSet, also_of, evidence};
use crate::text;

const SCHEDULES: &str = ".scheduled_tasks";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryScope {
    /// Those of these tasks; if several executions of a task run, all but the newest have their own id.
    These(Vec<(TaskId, Option<i64>)>),
    Orphans(RecoveryFilter),
    Slow(RecoveryFilter),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryFilter {
    pub table: u32,
    /// Rows that the filter shows, by the table of their task and their own id; `None` without a filter.
    pub shown: Option<FxHashSet<(u32, i64)>>,
}

/// The request to the server, which plans the recovery ([`RecoveryPlan`]) from its own view of running executions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recovery {
    /// The schema of the tables, as in the catalog, and the request; `None` if nothing can be recovered.
    pub request: Option<(String, Request)>,
    pub refused: Vec<Refused>,
    pub hidden: usize,
}

/// The request to the server. A session that holds the key of a slow execution is terminated: the timeout was seen to be
/// exceeded, and the server checks again.
pub fn executions(context: &PlanContext<'_>, which: &RecoveryScope) -> Recovery {
    let mut recovery = Recovery::default();
    let index = PlanIndex::of(context).and_then(|index| index.writable().map(|()| index));
    let index = match index {
        Ok(index) => index,
        Err(refused) => return Recovery { refused: vec![refused], ..recovery },
    };
    match which {
        RecoveryScope::These(chosen) => these(&index, chosen, &mut recovery),
        RecoveryScope::Orphans(within) => all(&index, JobState::Orphan, within, &mut recovery),
        RecoveryScope::Slow(within) => all(&index, JobState::Slow, within, &mut recovery),
    }
    recovery
}

/// Without a filter the server finds the executions. With a filter only those shown are requested; other executions that
/// end with their sessions are reported as such.
fn all(index: &PlanIndex<'_>, state: JobState, within: &RecoveryFilter, recovery: &mut Recovery) {
    let terminate = state == JobState::Slow;
    let table = within.table;
    let set = index.snapshot.task_sets.iter().find(|set| set.tables.table == table);
    let Some(schema) = set.and_then(schema) else {
        recovery.refused.push(Refused::server(
            "these tables were not created by locktop schema install; only executions of those can be recovered",
        ));
        return;
    };
    let select = match &within.shown {
        None if terminate => Selection::Longer(None),
        None => Selection::Orphans,
        Some(shown) => {
            let rows = index.view.tasks.rows.iter();
            let all = rows.filter(|row| row.task.table == table && row.state == state);
            let ids = all.filter_map(|row| row.execution(index.snapshot)).map(|execution| execution.id);
            let (ids, hidden): (Vec<_>, Vec<_>) = ids.partition(|id| shown.contains(&(table, *id)));
            recovery.hidden = hidden.len();
            if ids.is_empty() {
                recovery.refused.push(Refused::server("the filter hides all of them"));
                return;
            }
            Selection::Executions(ids)
        }
    };
    recovery.request = Some((schema, Request { select, task: None, terminate }));
}

/// `None` for tables that are not locktop's own.
fn schema(set: &TaskSet) -> Option<String> {
    let schema = set.tables.schedules.strip_suffix(SCHEDULES)?;
    (set.tables.own_keys && set.tables.log.is_some()).then(|| schema.to_owned())
}

/// The schema of these tables, if several schemas have executions that can be recovered.
pub fn place(context: &PlanContext<'_>, table: u32) -> Option<String> {
    let sets = &context.view.snapshot.as_ref()?.task_sets;
    let several = sets.iter().filter_map(schema).nth(1).is_some();
    sets.iter().find(|set| several && set.tables.table == table).and_then(schema)
}

fn these(index: &PlanIndex<'_>, chosen: &[(TaskId, Option<i64>)], recovery: &mut Recovery) {
    let mut ids = Vec::new();
    let mut terminate = false;
    let mut place: Option<String> = None;
    for (task, again) in chosen {
        let row = index.view.task(*task, *again);
        let found = match row {
            None => Err((format!("task {}", task.id), "no longer exists".to_owned())),
            Some(row) => {
                let name = text::one_line(&row.name(index.snapshot)).into_owned();
                wanted(index, row).map_err(|reason| (name, reason))
            }
        };
        match found {
            Ok((schema, _)) if place.as_ref().is_some_and(|place| *place != schema) => {
                let reason = "is in other tables than the first: recover it alone";
                recovery.refused.push(Refused::new(
                    format!("task {}", task.id),
                    Subject::Task(*task),
                    reason,
                ));
            }
            Ok((schema, id)) => {
                terminate |= row.is_some_and(|row| row.state == JobState::Slow);
                place = Some(schema);
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
            Err((name, reason)) => recovery.refused.push(Refused::new(name, Subject::Task(*task), reason)),
        }
    }
    let request = Request { select: Selection::Executions(ids), task: None, terminate };
    recovery.request = place.map(|schema| (schema, request));
}

fn wanted(index: &PlanIndex<'_>, row: &TaskRow) -> Result<(String, i64), String> {
    let limit = text::duration(row.limit);
    let execution = match (row.state, row.execution(index.snapshot)) {
        (JobState::Leaked, _) | (_, None) => return Err(not_running(row)),
        (_, Some(execution)) => execution,
    };
    let also = |set: &TaskSet| also_of(&index.snapshot.task_sets, set, set.key(execution)?).cloned();
    let also = row.set(index.snapshot).and_then(also);
    let Some(schema) = row.set(index.snapshot).and_then(schema) else {
        return Err("its tables are not those of locktop schema install: recover it alone".to_owned());
    };
    match row.state {
        JobState::Orphan | JobState::Slow => Ok((schema, execution.id)),
        JobState::Settling if index.context.has_terminated(row.last_holder) => Ok((schema, execution.id)),
        JobState::Running => Err(format!("runs, within its timeout of {limit}")),
        _ => Err(match also.filter(|_| row.held) {
            Some(also) => {
                format!("its key is held, and is also the key of a task of {}", text::one_line(&also))
            }
            None => match row.orphan_in {
                Some(left) => {
                    let left = text::duration(left.max(0.0));
                    format!("not known yet whether its worker is alive; decided in {left}")
                }
                None => format!("not known whether it is running: {}", evidence(row, index.snapshot)),
            },
        }),
    }
}

pub fn recovery(context: &PlanContext<'_>, recovery: &Arc<RecoveryPlan>) -> ActionPlan {
    let mut plan = ActionPlan::new(Verb::Recover);
    let own = format!("{}{SCHEDULES}", recovery.schema);
    let snapshot = context.view.snapshot.as_deref();
    let mut sets = snapshot.into_iter().flat_map(|snapshot| snapshot.task_sets.iter());
    let table = sets.find(|set| *set.tables.schedules == *own).map_or(0, |set| set.tables.table);
    for row in &recovery.rows {
        let name = format!("{} (execution {})", row.seen.task_name, row.seen.execution_id);
        let name = text::one_line(&name).into_owned();
        let subject = Subject::Task(TaskId { table, id: row.seen.task_id });
        let effect = text::one_line(&row.effect(recovery.grace)).into_owned();
        if let Some(lack) = lack(context, row) {
            plan.refused.push(Refused::new(name, subject, lack));
        } else if row.acts() {
            plan.rows.push(planned(recovery, row, name, subject, effect));
        } else {
            plan.refused.push(Refused::new(name, subject, effect));
        }
    }
    let acting: Vec<_> = recovery.acts().filter(|row| lack(context, row).is_none()).collect();
    let owner = match acting.as_slice() {
        [row] => ended(row).map(|pid| pid.to_string()),
        _ => None,
    };
    plan.confirm = Confirm::of(plan.rows.len(), owner);
    plan
}

/// The same plan, without a grace period after the end of sessions that locktop terminated.
pub fn without_grace(mut plan: Arc<RecoveryPlan>, terminated: &[BackendId]) -> Arc<RecoveryPlan> {
    let is_ended = |row: &Planned| {
        let session =
            row.seen.backend_pid.map(|pid| BackendId { pid, backend_start: row.seen.backend_start });
        row.step == Step::Leave(Reason::Settling) && was_terminated(terminated, session)
    };
    if plan.rows.iter().any(is_ended) {
        let plan = Arc::make_mut(&mut plan);
        plan.rows.iter_mut().filter(|row| is_ended(row)).for_each(|row| row.step = Step::Recover);
    }
    plan
}

fn lack(context: &PlanContext<'_>, row: &Planned) -> Option<String> {
    let backend = context.backend(ended(row)?)?;
    let (user, kind) = (backend.user.as_deref(), backend.backend_type.as_deref());
    let lack = context.rights?.lacks(Verb::Terminate, user, kind)?;
    let remedy = if lack.grant.is_none() { "; or stop its worker, then R" } else { "" };
    Some(text::one_line(&format!("{lack}{remedy}")).into_owned())
}

fn ended(row: &Planned) -> Option<i32> {
    match row.step {
        Step::Terminate { pid, .. } => Some(pid),
        Step::Recover | Step::Leave(_) => None,
    }
}

fn planned(
    plan: &Arc<RecoveryPlan>,
    row: &Planned,
    name: String,
    subject: Subject,
    effect: String,
) -> PlannedTarget {
    let seen = &row.seen;
    let id = seen.execution_id;
    let mut facts = vec![format!("{}, run by {}", seen.state.as_str(), seen.worker_id)];
    if let Some(run) = seen.run_seconds {
        let of = seen.timeout_seconds.map(|limit| format!(" of {}", text::duration(limit)));
        facts.push(format!("has run for {}{}", text::duration(run), of.unwrap_or_default()));
    }
    facts.push(effect);
    let mut cautions = Vec::new();
    if let Some(pid) = ended(row) {
        let words = format!(
            "its worker is alive: its session {pid} will be terminated; its process must stop on its own"
        );
        cautions.push(Caution::new(CautionKind::Owner, words));
    } else {
        let words = "the worker may still be running; unfenced work may run twice";
        cautions.push(Caution::new(CautionKind::Owner, words));
    }
    if seen.gives_up() {
        let next = if seen.is_scheduled { "it runs next by its schedule" } else { "it is not run again" };
        cautions.push(Caution::new(
            CautionKind::GivesUp,
            format!("this was its last attempt: failed for good, and {next}"),
        ));
    }
    for also in &row.also_ended {
        let words = format!("{} ends with the same session and {}", also.task_name, also.effect);
        cautions.push(Caution::new(CautionKind::Task, text::one_line(&words)));
    }
    let does = match ended(row) {
        Some(pid) => format!("pg_terminate_backend({pid}), then recover_seen_execution({id})"),
        None => format!("recover_seen_execution({id})"),
    };
    let what = TargetKind::Execution(ExecutionTarget { id, plan: Arc::clone(plan) });
    let target = Target { what, name, subject };
    PlannedTarget::new(target, &does, facts, cautions)
}
