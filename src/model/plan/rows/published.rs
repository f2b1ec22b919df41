//! Fails executions that a published log has as running; for `locktop recover`, too, whose plan is made here as on the
//! screens and with `R`.
//!
//! Only the key shows whether a session works on a row. A free key is acquired; the session of a slow row is terminated
//! first; a row whose key is held for another execution is closed, and that session is not touched.

use super::{Found, GONE, change_in, old, rows};
use crate::model::plan::question::is_typable;
use crate::model::plan::signal::{changed as session_changed, of_execution};
use crate::model::plan::{
    AlsoEnded, Caution, Identity, PlanContext, PlanIndex, Planned, PublishedHolder, PublishedTarget, Reason,
    RecoveryPlan, Request, RowTarget, RunState, RunningExecution, SessionTarget, Step, TargetChange,
    TargetKind, Verb,
};
use crate::model::row_id::RowId;
use crate::model::snapshot::Snapshot;
use crate::model::task::{Execution, JobState, TaskKey, TaskRow, TaskSet, evidence};
use crate::order::SortExt;
use crate::text;

pub fn is_published(context: &PlanContext<'_>, table: u32) -> bool {
    let sets = context.view.snapshot.iter().flat_map(|snapshot| snapshot.task_sets.iter());
    sets.into_iter().any(|set| set.tables.table == table && !set.tables.own_keys)
}

pub(super) fn typed(target: &PublishedTarget) -> String {
    if let PublishedHolder::Worker(session) = &target.holder {
        return session.pid.to_string();
    }
    // The name may not be typable on every keyboard, as when ending a lease; a number would be mistaken for a pid.
    let is_word = |name: &&str| is_typable(name) && !name.bytes().all(|byte| byte.is_ascii_digit());
    target.name.as_deref().filter(is_word).unwrap_or("recover").to_owned()
}

pub(super) fn planned(index: &PlanIndex<'_>, row: Option<&TaskRow>) -> Found {
    let row = row.ok_or(GONE)?;
    let running = row.set(index.snapshot).zip(row.execution(index.snapshot));
    let (set, execution) = running.ok_or_else(|| not_running(row))?;
    refusal(index, row).map_or(Ok(()), Err)?;
    let log = set.tables.executions.clone().unwrap_or_default();
    set.tables.owner.refusal(&log).map_or(Ok(()), Err)?;
    let (holder, mut cautions) = holder(index, row)?;
    let target = target(set, execution, holder)
        .ok_or("its row has no worker and start, so nothing can be compared")?;
    cautions.extend(old(index, &set.executions));
    let update = format!("UPDATE {log} SET status = 'failed' WHERE id = {}", execution.id);
    let does = match &target.holder {
        PublishedHolder::None => format!("if pg_try_advisory_xact_lock({}): {update}", target.key),
        PublishedHolder::Worker(session) => format!("pg_terminate_backend({}), then {update}", session.pid),
        PublishedHolder::Other { .. } => update,
    };
    let facts = facts(index, row, execution, set);
    Ok((TargetKind::Published(target), does, facts, cautions))
}

pub(in crate::model::plan) fn not_running(row: &TaskRow) -> String {
    if row.state != JobState::Leaked {
        return "it is not running".to_owned();
    }
    let holder = row.holder.map_or_else(|| "a session".to_owned(), |pid| pid.to_string());
    format!("it is not running; {holder} holds its key without an execution: K terminates that session")
}

fn holder(index: &PlanIndex<'_>, row: &TaskRow) -> Result<(PublishedHolder, Vec<Caution>), String> {
    Ok(match row.state {
        JobState::Slow => {
            let (session, mut cautions) = of_execution(index, row)?;
            cautions.push(Caution::of_session(session.pid));
            (PublishedHolder::Worker(session), cautions)
        }
        JobState::LeftOver => {
            let (other, words) = other(index, row).ok_or_else(|| evidence(row, index.snapshot))?;
            (other, vec![Caution::owner(words)])
        }
        _ => (PublishedHolder::None, vec![Caution::of_worker()]),
    })
}

/// The session of another execution that holds the key, and the words for it.
fn other(index: &PlanIndex<'_>, row: &TaskRow) -> Option<(PublishedHolder, String)> {
    let holder = index.backend(row.holder?)?;
    let rows = index.view.tasks.rows.iter();
    let mut same = rows.filter(|other| other.set == row.set && other.tag == row.tag);
    let other = same.find(|other| other.execution.is_some() && other.state != JobState::LeftOver)?;
    let other = other.execution(index.snapshot)?;
    let (pid, execution) = (holder.pid, other.id);
    let words = format!("only this row is closed: session {pid} continues with execution {execution}");
    let (backend_start, worker) = (holder.backend_start?, other.worker.clone()?);
    Some((PublishedHolder::Other { pid, backend_start, execution, worker }, words))
}

fn target(set: &TaskSet, execution: &Execution, holder: PublishedHolder) -> Option<PublishedTarget> {
    let tables = &set.tables;
    execution.worker.as_ref().zip(execution.started_at)?;
    Some(PublishedTarget {
        execution: RowTarget::new(tables.log?, tables.executions.as_ref()?, tables.own_keys, execution),
        name: set.task(execution.task_id).and_then(|task| task.name.clone()),
        key: set.key(execution)?.number(),
        holder,
    })
}

fn refusal(index: &PlanIndex<'_>, row: &TaskRow) -> Option<String> {
    let why = evidence(row, index.snapshot);
    Some(match row.state {
        JobState::Orphan | JobState::MaybeOrphan | JobState::Slow | JobState::LeftOver => return None,
        JobState::Settling if index.context.has_terminated(row.last_holder) => return None,
        JobState::Running => format!("runs, within its timeout of {}: {why}", text::duration(row.limit)),
        JobState::MaybeSlow if row.holder.is_some() => {
            format!("runs past its timeout: {why}; if that session is its worker, K terminates it, then R")
        }
        JobState::Settling => {
            let left = row
                .orphan_in
                .map_or_else(String::new, |left| format!("; decided in {}", text::duration(left.max(0.0))));
            format!("not known yet whether its worker is alive{left}")
        }
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
    facts
}

pub(super) fn changed(index: &PlanIndex<'_>, target: &PublishedTarget) -> Option<TargetChange> {
    let seen = &target.execution;
    let set = index.snapshot.task_sets.iter().find(|set| set.tables.log == Some(seen.table))?;
    let is_it = |execution: &Execution| execution.id == seen.id;
    change_in(&set.executions, is_it, |execution| match &target.holder {
        _ if !execution.is_running() || execution.identity() != seen.identity() => {
            Some(TargetChange::OtherRow)
        }
        PublishedHolder::Worker(session) => session_changed(index, Verb::Terminate, session),
        _ => None,
    })
}

/// The plan of `locktop recover` for published tables; `None` if this schema has none.
pub fn published_plan(
    context: &PlanContext<'_>,
    schema: &str,
    request: &Request,
    grace: f64,
) -> Option<(RecoveryPlan, Vec<PublishedTarget>)> {
    let snapshot = context.view.snapshot.as_deref()?;
    let name = format!("{schema}.scheduled_tasks");
    let is_it = |set: &TaskSet| !set.tables.own_keys && *set.tables.schedules == *name;
    let place = snapshot.task_sets.iter().position(is_it)?;
    let runs = || context.view.tasks.rows.iter().filter(|row| row.set == place);
    let seen = runs().filter_map(|run| running(run, snapshot, request.task.is_some()));
    let mut plan = RecoveryPlan::of(schema, snapshot.taken_at, grace, &seen.collect::<Vec<_>>(), request);
    let mut targets = Vec::new();
    for row in &mut plan.rows {
        let is_it = |run: &Execution| run.id == row.seen.execution_id;
        let Some(run) = runs().find(|run| run.execution(snapshot).is_some_and(is_it)) else { continue };
        let (step, effect, target) = step(context, run, row.seen.state, request.terminate);
        (row.step, row.foreign_effect) = (step, effect);
        targets.extend(target);
    }
    plan.rows.order_by_key(|row| (row.seen.started_at, row.seen.execution_id));
    let also: Vec<_> = plan.rows.iter().map(|row| also_ended(row, &plan.rows, runs(), snapshot)).collect();
    for (row, also) in plan.rows.iter_mut().zip(also) {
        row.also_ended = also;
    }
    Some((plan, targets))
}

/// Other executions of the session that is terminated for a row, if the plan does not recover them.
fn also_ended<'a>(
    row: &Planned,
    planned: &[Planned],
    runs: impl Iterator<Item = &'a TaskRow>,
    snapshot: &Snapshot,
) -> Vec<AlsoEnded> {
    let Step::Terminate { pid, .. } = row.step else { return Vec::new() };
    let acted = |id: i64| planned.iter().any(|row| row.acts() && row.seen.execution_id == id);
    let same = runs.filter(|run| run.holder == Some(pid) && run.state != JobState::LeftOver);
    let others = same.filter_map(|run| Some((run, run.execution(snapshot)?.id)));
    let others = others.filter(|(_, id)| !acted(*id)).map(|(run, execution_id)| AlsoEnded {
        execution_id,
        task_name: run.name(snapshot).to_string(),
        effect: "loses this run".to_owned(),
    });
    others.collect()
}

/// The step, its effect in words, and the execution to fail.
fn step(
    context: &PlanContext<'_>,
    row: &TaskRow,
    state: RunState,
    terminate: bool,
) -> (Step, Option<String>, Option<PublishedTarget>) {
    let mut plan = rows(context, Verb::Recover, &[RowId::Task(row.task, row.again)]);
    let target = plan.rows.pop().map(|row| row.target.what);
    match (target, plan.refused.first()) {
        (Some(TargetKind::Published(target)), _) => match &target.holder {
            PublishedHolder::Worker(_) if !terminate => (Step::Leave(Reason::Held), None, None),
            PublishedHolder::Worker(SessionTarget { pid, backend_start, .. }) => {
                let effect = format!(
                    "the worker's session {pid} will be terminated; marked as failed, its task stays due"
                );
                let step = Step::Terminate { pid: *pid, start: *backend_start };
                (step, Some(effect), Some(target))
            }
            _ if state != RunState::Orphan => {
                let why = match target.holder {
                    PublishedHolder::None => "its key is only a guess",
                    _ => "its key is held for another execution",
                };
                let effect = format!("skipped: {why} (--task NAME to recover it)");
                (Step::Leave(Reason::Unknown), Some(effect), None)
            }
            PublishedHolder::None => {
                let effect = "marked as failed, if no session holds its key; its task stays due";
                (Step::Recover, Some(effect.to_owned()), Some(target))
            }
            PublishedHolder::Other { pid, execution, .. } => {
                let effect = format!("marked as failed; session {pid} continues with execution {execution}");
                (Step::Recover, Some(effect), Some(target))
            }
        },
        (_, Some(refused)) => {
            let effect = format!("skipped: {}", refused.reason);
            let reason = match state {
                RunState::Running => Reason::InTime,
                RunState::Slow => Reason::Held,
                RunState::Settling => Reason::Settling,
                RunState::Orphan | RunState::Unknown => Reason::Unknown,
            };
            (Step::Leave(reason), Some(effect), None)
        }
        _ => (Step::Leave(Reason::Unknown), None, None),
    }
}

fn running(row: &TaskRow, snapshot: &Snapshot, is_named: bool) -> Option<RunningExecution> {
    let execution = row.execution(snapshot)?;
    let key = row.set(snapshot)?.key(execution);
    let holder = row.holder.and_then(|pid| snapshot.backend(pid));
    Some(RunningExecution {
        execution_id: execution.id,
        task_id: execution.task_id,
        task_name: row.name(snapshot).to_string(),
        worker_id: execution.worker.as_deref().unwrap_or_default().to_owned(),
        state: match row.state {
            // A guess on a screen is unknown to a program, unless the task is named.
            JobState::MaybeOrphan | JobState::LeftOver if is_named => RunState::Orphan,
            JobState::Orphan => RunState::Orphan,
            JobState::Slow => RunState::Slow,
            JobState::Running => RunState::Running,
            JobState::Settling => RunState::Settling,
            _ => RunState::Unknown,
        },
        started_at: execution.started_at,
        heartbeat_at: execution.heartbeat_at,
        run_seconds: row.age(snapshot),
        timeout_seconds: Some(row.limit),
        attempt: 1,
        max_attempts: 1,
        retry_seconds: None,
        is_scheduled: row.schedule(snapshot).is_some_and(|task| task.cron.is_some()),
        is_enabled: row.schedule(snapshot).and_then(|task| task.enabled).unwrap_or(true),
        lock_id: key.map(TaskKey::number),
        holder_pid: row.holder,
        holder_start: holder.and_then(|backend| backend.backend_start),
        held_by_prepared: row.held && row.holder.is_none(),
        backend_pid: execution.backend_pid,
        backend_start: execution.backend_start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::{Rights, Selection};
    use crate::model::task::TaskTables;
    use crate::model::view::View;
    use crate::sample::{self, Builder};

    /// Three executions exceed their timeout; this session holds the key of the last one.
    fn view(holder: &str) -> View {
        let mut b = Builder::default();
        for (id, name) in [(1, "sure"), (2, "guess"), (3, "held")] {
            b.task(id, name, "sql", 1800.0, -60.0);
            let row = b.execution(id, "w-1", "running", 3000.0, None);
            (row.lock_id, row.heartbeat_at) = (Some(if id == 2 { 77 } else { id }), None);
        }
        b.session(7, holder, crate::model::backend::State::Idle, 5.0, "");
        b.lock(7, sample::advisory(3), crate::model::lock::LockMode::Exclusive, None);
        let mut snapshot = b.snapshot();
        let set = snapshot.task_sets[0].clone();
        let tables = TaskTables {
            own_keys: false,
            schedules: "public.scheduled_tasks".into(),
            ..TaskTables::clone(&set.tables)
        };
        let set = crate::model::task::TaskSet::new(tables.into(), set.tasks, set.executions);
        snapshot.task_sets = vec![set].into();
        sample::view(snapshot, 1)
    }

    #[test]
    fn the_session_of_a_slow_one_is_terminated_if_the_role_is_permitted_to() {
        let view = view("app@w-1");
        let rights = Rights {
            role: "ops".into(),
            version_num: 170_000,
            read_all_stats: true,
            signal_backend: true,
            superusers: vec!["app".into()],
            ..Rights::default()
        };
        let plan = |rights, terminate| {
            let context = PlanContext { view: &view, rights, own_pids: &[], terminated: &[] };
            let request =
                Request { select: Selection::Longer(None), task: Some("held".to_owned()), terminate };
            published_plan(&context, "public", &request, 30.0).unwrap().0.rows.remove(0)
        };
        assert!(matches!(plan(None, true).step, Step::Terminate { pid: 7, .. }));
        assert_eq!(plan(None, false).step, Step::Leave(Reason::Held));
        let refused = plan(Some(&rights), true);
        assert_eq!(refused.step, Step::Leave(Reason::Held));
        assert!(refused.effect(30.0).contains("only a superuser is"), "{}", refused.effect(30.0));
    }

    #[test]
    fn a_guessed_orphan_is_recovered_only_by_name_and_a_held_one_never() {
        let view = view("app@psql");
        let context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
        let plan = |select: Selection, task: Option<&str>| {
            let request = Request { select, task: task.map(str::to_owned), terminate: false };
            let (plan, targets) = published_plan(&context, "public", &request, 30.0).unwrap();
            assert_eq!(targets.len(), plan.acts().count());
            plan.rows.iter().map(|row| (row.seen.task_name.clone(), row.acts())).collect::<Vec<_>>()
        };
        let row = |name: &str, acts| (name.to_owned(), acts);
        assert_eq!(plan(Selection::Orphans, None), [row("sure", true)]);
        assert_eq!(plan(Selection::Orphans, Some("guess")), [row("guess", true)]);
        let all = [row("sure", true), row("guess", false), row("held", false)];
        assert_eq!(plan(Selection::Longer(None), None), all);
        let request = Request { select: Selection::Orphans, task: None, terminate: false };
        assert!(published_plan(&context, "locktop", &request, 30.0).is_none());
    }
}
