//! The plan of `locktop recover` for published tables, consistent with the screens and with `R`.

use super::rows;
use crate::model::plan::{
    AlsoEnded, Others, PlanContext, Planned, PublishedHolder, PublishedTarget, Reason, RecoveryPlan, Request,
    RunState, Running, SessionTarget, Step, TargetKind, Verb,
};
use crate::model::row_id::RowId;
use crate::model::snapshot::Snapshot;
use crate::model::task::{JobState, TaskKey, TaskRow};
use crate::order::Order;

/// `None` if this schema has no published tables.
pub fn published_plan(
    context: &PlanContext<'_>,
    schema: &str,
    request: &Request,
    grace: f64,
) -> Option<(RecoveryPlan, Vec<PublishedTarget>)> {
    let snapshot = context.view.snapshot.as_deref()?;
    let name = format!("{schema}.scheduled_tasks");
    let is_it = |set: &crate::model::task::TaskSet| !set.tables.own_keys && *set.tables.schedules == *name;
    let place = snapshot.task_sets.iter().position(is_it)?;
    let mut plan = RecoveryPlan {
        schema: schema.to_owned(),
        taken_at: snapshot.taken_at,
        grace,
        rows: Vec::new(),
        others: Others::default(),
    };
    let mut targets = Vec::new();
    let runs = || context.view.tasks.rows.iter().filter(|row| row.set == place);
    for row in runs() {
        let Some(seen) = running(row, snapshot) else { continue };
        if request.task.as_ref().is_some_and(|name| *name != seen.task_name) {
            continue;
        }
        // A guess is acted on only if the task is named.
        let is_guess = matches!(row.state, JobState::MaybeOrphan | JobState::LeftOver);
        let is_named = request.task.is_some() && is_guess;
        let seen = if is_named { Running { state: RunState::Orphan, ..seen } } else { seen };
        if request.select.takes(&seen) {
            let (row, target) = planned(context, row, seen, request.terminate);
            plan.rows.push(row);
            targets.extend(target);
        } else {
            plan.others.add(seen.state);
        }
    }
    plan.rows.order_by_key(|row| (row.seen.started_at, row.seen.execution_id));
    for at in 0..plan.rows.len() {
        let also =
            plan.rows.get(at).map_or_else(Vec::new, |row| also_ended(row, &plan.rows, runs(), snapshot));
        if let Some(row) = plan.rows.get_mut(at) {
            row.also_ended = also;
        }
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

fn planned(
    context: &PlanContext<'_>,
    row: &TaskRow,
    seen: Running,
    terminate: bool,
) -> (Planned, Option<PublishedTarget>) {
    let plan = rows(context, Verb::Recover, &[RowId::Task(row.task, row.again)]);
    let target = plan.rows.first().map(|row| &row.target.what);
    let leave = |reason| (Step::Leave(reason), None, None);
    let (step, effect, target) = match (target, plan.refused.first()) {
        (Some(TargetKind::Published(target)), _) => match &target.holder {
            PublishedHolder::Worker(_) if !terminate => leave(Reason::Held),
            PublishedHolder::Worker(SessionTarget { pid, backend_start, .. }) => {
                let effect = format!(
                    "the worker's session {pid} will be terminated; marked as failed, its task stays due"
                );
                let step = Step::Terminate { pid: *pid, start: *backend_start };
                (step, Some(effect), Some(target))
            }
            _ if seen.state != RunState::Orphan => {
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
            (Step::Leave(reason(seen.state)), Some(effect), None)
        }
        _ => leave(Reason::Unknown),
    };
    (Planned { seen, step, also_ended: Vec::new(), foreign_effect: effect }, target.cloned())
}

fn running(row: &TaskRow, snapshot: &Snapshot) -> Option<Running> {
    let execution = row.execution(snapshot)?;
    let key = row.set(snapshot)?.key(execution);
    let holder = row.holder.and_then(|pid| snapshot.backend(pid));
    Some(Running {
        execution_id: execution.id,
        task_id: execution.task_id,
        task_name: row.name(snapshot).to_string(),
        worker_id: execution.worker.as_deref().unwrap_or_default().to_owned(),
        state: state(row.state),
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

fn reason(state: RunState) -> Reason {
    match state {
        RunState::Running => Reason::InTime,
        RunState::Slow => Reason::Held,
        RunState::Settling => Reason::Settling,
        RunState::Orphan | RunState::Unknown => Reason::Unknown,
    }
}

/// A state that is a guess on a screen is unknown to a program.
fn state(state: JobState) -> RunState {
    match state {
        JobState::Orphan => RunState::Orphan,
        JobState::Slow => RunState::Slow,
        JobState::Running => RunState::Running,
        JobState::Settling => RunState::Settling,
        _ => RunState::Unknown,
    }
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
    fn a_guess_is_taken_only_by_name_and_what_is_held_never() {
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
