//! The executions to recover, and the recovery plan as an action plan. Only the server can tell what would be done to
//! them, after another query.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::context::was_terminated;
use super::rows::not_running;
use super::{
    ActionPlan, Caution, CautionKind, Choice, Confirm, ExecutionTarget, PlanContext, PlanIndex, Planned,
    PlannedTarget, Reason, RecoveryPlan, Refused, Request, Selection, Step, Target, TargetKind, Verb,
};
use crate::model::backend::BackendId;
use crate::model::finding::Subject;
use crate::model::task::{JobState, TaskId, TaskRow, TaskSet, also_of, evidence};
use crate::text;

const SCHEDULES: &str = ".scheduled_tasks";
const END: char = 'e';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecoveryScope {
    /// The chosen tasks.
    These,
    Orphans,
    Slow,
}

/// The request to the server, which plans the recovery ([`RecoveryPlan`]) from its own view of running executions.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Recovery {
    /// The schema of the tables, as in the catalog, and the request; `None` if nothing can be recovered.
    pub(super) request: Option<(String, Request)>,
    pub(super) refused: Vec<Refused>,
    pub(super) hidden: usize,
}

#[derive(Debug, Clone)]
pub struct RecoverySearch {
    /// The selected tasks; if several executions of a task run, all but the newest have their own id.
    chosen: Vec<(TaskId, Option<i64>)>,
    /// The table of the first of them: a search for all is limited to it.
    table: u32,
    which: RecoveryScope,
    /// The executions that the filter shows, each with the table of its task, to which a search for all is limited; `None`
    /// without a filter.
    pub(crate) shown: Option<FxHashSet<(u32, i64)>>,
    place: Option<String>,
    /// Whether sessions of slow executions are terminated; `None` until the user chooses.
    terminate: Option<bool>,
    found: Recovery,
    /// The plan that the server made, or why it made none; `None` before its answer.
    answer: Option<Result<Arc<RecoveryPlan>, String>>,
    asked: Option<u64>,
    at: Option<u64>,
}

impl RecoverySearch {
    pub(super) fn new(chosen: Vec<(TaskId, Option<i64>)>) -> Self {
        Self {
            table: chosen.first().map_or(0, |(task, _)| task.table),
            chosen,
            which: RecoveryScope::These,
            shown: None,
            place: None,
            terminate: None,
            found: Recovery::default(),
            answer: None,
            asked: None,
            at: None,
        }
    }

    /// Why nothing can be recovered, here or elsewhere; `None` if something may be.
    pub(crate) fn why_nothing(&self, plan_context: &PlanContext<'_>) -> Option<String> {
        let tasks = &plan_context.view.tasks;
        if self.found.request.is_some() || tasks.count(JobState::Orphan) + tasks.count(JobState::Slow) > 0 {
            return None;
        }
        let first = self.found.refused.first();
        first.map(|refused| format!("{}: {}", refused.name, refused.reason))
    }

    pub(crate) fn refresh(&mut self, plan_context: &PlanContext<'_>) {
        self.place = place(plan_context, self.table);
        let mut found = self.executions(plan_context);
        if let (Some((_, request)), Some(terminate)) = (&mut found.request, self.terminate) {
            request.terminate = terminate;
        }
        if found.request != self.found.request {
            self.forget();
        }
        self.found = found;
    }

    pub(crate) fn plan(&self, plan_context: &PlanContext<'_>) -> ActionPlan {
        let mut plan = match &self.answer {
            Some(Ok(answer)) => recovery(plan_context, answer),
            Some(Err(_)) | None => ActionPlan::new(Verb::Recover),
        };
        plan.hidden = self.found.hidden;
        plan.refused.splice(0..0, self.found.refused.iter().cloned());
        plan
    }

    /// Why nothing is known yet, and whether that is an error.
    pub(crate) fn word(&self) -> Option<(String, bool)> {
        match &self.answer {
            Some(Ok(plan)) if plan.rows.is_empty() => Some(("nothing to recover".to_owned(), false)),
            Some(Err(why)) => Some((text::one_line(why).into_owned(), true)),
            None if self.found.request.is_some() => {
                Some(("searching for tasks to recover…".to_owned(), false))
            }
            Some(Ok(_)) | None => None,
        }
    }

    pub(crate) fn choices(&self) -> Vec<Choice> {
        let this = if self.chosen.len() > 1 { "these" } else { "this execution" };
        let place = self.place.as_deref().map(text::one_line);
        let all = |what: &str| match &place {
            Some(place) => format!("all {what} of {place}"),
            None => format!("all {what}"),
        };
        let mut choices = vec![
            Choice::one_of('t', this, self.which == RecoveryScope::These),
            Choice::one_of('o', all("orphans"), self.which == RecoveryScope::Orphans),
            Choice::one_of('p', all("past their timeout"), self.which == RecoveryScope::Slow),
        ];
        let answered = self.answer.as_ref().and_then(|answer| answer.as_ref().ok());
        let has_session =
            answered.is_some_and(|plan| plan.rows.iter().any(|row| row.seen.holder_pid.is_some()));
        if let Some((_, request)) = &self.found.request
            && has_session
            && self.which != RecoveryScope::Orphans
        {
            let title = "terminate their sessions".to_owned();
            choices.push(Choice { letter: END, title, taken: request.terminate, is_switch: true });
        }
        choices
    }

    /// Selects a choice; false if nothing changes.
    pub(crate) fn choose(&mut self, letter: char) -> bool {
        let which = match letter {
            't' => RecoveryScope::These,
            'o' => RecoveryScope::Orphans,
            'p' => RecoveryScope::Slow,
            END => {
                let before = self.found.request.as_ref().is_some_and(|(_, request)| request.terminate);
                self.terminate = Some(!before);
                self.forget();
                return true;
            }
            _ => return false,
        };
        if which == self.which {
            return false;
        }
        (self.which, self.terminate) = (which, None);
        self.forget();
        true
    }

    fn forget(&mut self) {
        (self.answer, self.asked, self.at) = (None, None, None);
    }

    /// The request to send, unless one was already sent for this view.
    pub(crate) fn ask(&mut self, number: u64, view: u64) -> Option<(String, Request)> {
        let request = self.found.request.clone()?;
        if self.asked.is_some() || self.at == Some(view) {
            return None;
        }
        (self.asked, self.at) = (Some(number), Some(view));
        Some(request)
    }

    /// Takes an answer; false if it belongs to an older request.
    pub(crate) fn answered(&mut self, number: u64, answer: Result<Arc<RecoveryPlan>, String>) -> bool {
        if self.asked != Some(number) {
            return false;
        }
        self.asked = None;
        self.answer = Some(answer);
        true
    }

    /// The request to the server. A session that holds the key of a slow execution is terminated: the timeout was seen to be
    /// exceeded, and the server checks again.
    pub(super) fn executions(&self, context: &PlanContext<'_>) -> Recovery {
        let mut recovery = Recovery::default();
        let index = PlanIndex::of(context).and_then(|index| index.writable().map(|()| index));
        let request = index.and_then(|index| match self.which {
            RecoveryScope::These => Ok(self.these(&index, &mut recovery.refused)),
            RecoveryScope::Orphans => self.all(&index, JobState::Orphan, &mut recovery.hidden).map(Some),
            RecoveryScope::Slow => self.all(&index, JobState::Slow, &mut recovery.hidden).map(Some),
        });
        match request {
            Ok(request) => recovery.request = request,
            Err(refused) => recovery.refused.push(refused),
        }
        recovery
    }

    /// Without a filter the server finds the executions. With a filter only those shown are requested; other executions that
    /// end with their sessions are reported as such.
    fn all(
        &self,
        index: &PlanIndex<'_>,
        state: JobState,
        hidden: &mut usize,
    ) -> Result<(String, Request), Refused> {
        let terminate = state == JobState::Slow;
        let table = self.table;
        let set = index.snapshot.task_sets.iter().find(|set| set.tables.table == table);
        let foreign = "these tables were not created by locktop schema install; \
                       only executions of those can be recovered";
        let schema = set.and_then(schema).ok_or_else(|| Refused::server(foreign))?;
        let select = match &self.shown {
            None if terminate => Selection::Longer(None),
            None => Selection::Orphans,
            Some(shown) => {
                let rows = index.view.tasks.rows.iter();
                let all = rows.filter(|row| row.task.table == table && row.state == state);
                let ids = all.filter_map(|row| row.execution(index.snapshot)).map(|execution| execution.id);
                let (ids, others): (Vec<_>, Vec<_>) = ids.partition(|id| shown.contains(&(table, *id)));
                *hidden = others.len();
                if ids.is_empty() {
                    return Err(Refused::server("the filter hides all of them"));
                }
                Selection::Executions(ids)
            }
        };
        Ok((schema, Request { select, task: None, terminate }))
    }

    fn these(&self, index: &PlanIndex<'_>, refused: &mut Vec<Refused>) -> Option<(String, Request)> {
        let mut ids = Vec::new();
        let mut terminate = false;
        let mut place: Option<String> = None;
        for (task, again) in &self.chosen {
            let row = index.view.task(*task, *again);
            let mut name = format!("task {}", task.id);
            let found = row.ok_or_else(|| "no longer exists".to_owned()).and_then(|row| wanted(index, row));
            let reason = match found {
                Ok((schema, _)) if place.as_ref().is_some_and(|place| *place != schema) => {
                    "is in other tables than the first: recover it alone".to_owned()
                }
                Ok((schema, id)) => {
                    terminate |= row.is_some_and(|row| row.state == JobState::Slow);
                    place = Some(schema);
                    if !ids.contains(&id) {
                        ids.push(id);
                    }
                    continue;
                }
                Err(reason) => {
                    name = row.map_or(name, |row| text::one_line(&row.name(index.snapshot)).into_owned());
                    reason
                }
            };
            refused.push(Refused::new(name, Subject::Task(*task), reason));
        }
        let request = Request { select: Selection::Executions(ids), task: None, terminate };
        place.map(|schema| (schema, request))
    }
}

/// `None` for tables that are not locktop's own.
fn schema(set: &TaskSet) -> Option<String> {
    let schema = set.tables.schedules.strip_suffix(SCHEDULES)?;
    (set.tables.own_keys && set.tables.log.is_some()).then(|| schema.to_owned())
}

/// The schema of these tables, if several schemas have executions that can be recovered.
pub(super) fn place(context: &PlanContext<'_>, table: u32) -> Option<String> {
    let sets = &context.view.snapshot.as_ref()?.task_sets;
    let several = sets.iter().filter_map(schema).nth(1).is_some();
    sets.iter().find(|set| several && set.tables.table == table).and_then(schema)
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
        match lack(context, row) {
            None if row.acts() => plan.rows.push(planned(recovery, row, (name, subject), effect)),
            lack => plan.refused.push(Refused::new(name, subject, lack.unwrap_or(effect))),
        }
    }
    plan.confirm = Confirm::of(&plan.rows, |row| match &row.target.what {
        TargetKind::Execution(target) => ended(&target.row).map(|pid| pid.to_string()),
        _ => None,
    });
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
    Some(text::one_line(&format!("{}{remedy}", lack.words)).into_owned())
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
    (name, subject): (String, Subject),
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
    let mut cautions = vec![ended(row).map_or_else(Caution::of_worker, Caution::of_session)];
    if seen.gives_up() {
        let next = if seen.is_scheduled { "it runs next by its schedule" } else { "it is not run again" };
        let words = format!("this was its last attempt: failed for good, and {next}");
        cautions.push(Caution::new(CautionKind::GivesUp, words));
    }
    for also in &row.also_ended {
        let words = format!("{} ends with the same session and {}", also.task_name, also.effect);
        cautions.push(Caution::new(CautionKind::Task, text::one_line(&words)));
    }
    let does = match ended(row) {
        Some(pid) => format!("pg_terminate_backend({pid}), then recover_seen_execution({id})"),
        None => format!("recover_seen_execution({id})"),
    };
    let what = TargetKind::Execution(ExecutionTarget { plan: Arc::clone(plan), row: row.clone() });
    let target = Target { what, name, subject };
    PlannedTarget::new(target, &does, facts, cautions)
}
