//! Actions on tasks: a compare-and-set on exactly the row that was seen.

use super::{
    Condition, Found, GONE, Noted, PlanColumnKind, RowAct, RowChange, RowStatement, TableShape, old,
};
use crate::model::Timestamp;
use crate::model::plan::{Caution, CautionKind, PlanContext, PlanIndex, RowTarget, TargetKind, Verb};
use crate::model::row_id::RowId;
use crate::model::task::{JobState, Schedule, TaskRow, TaskTables};
use crate::text;
use locktop_tasks::message::moment;

#[derive(Debug)]
pub struct TaskVerb {
    pub(in crate::model::plan) column: &'static str,
    /// Allowed types of the column; empty if any type is allowed.
    pub(in crate::model::plan) kinds: &'static [PlanColumnKind],
    /// `next_run_at = now`, as shown in the dialog.
    pub(in crate::model::plan) shown: &'static str,
    /// `next_run_at = clock_timestamp()`, as sent, for the row `t`.
    pub(in crate::model::plan) set: &'static str,
    pub(in crate::model::plan) result: &'static str,
    /// Why it is impossible for a task in this state at this time; `None` if it is possible.
    pub(in crate::model::plan) refusal: fn(&TaskRow, &Schedule, Timestamp) -> Option<&'static str>,
    /// What the action does not achieve.
    pub(in crate::model::plan) futile: fn(&TaskRow, &Schedule) -> Option<&'static str>,
}

pub(in crate::model::plan) const NEXT_RUN: &str = "next_run_at";

pub(in crate::model::plan) fn has_schedule(context: &PlanContext<'_>, row: RowId) -> bool {
    let RowId::Task(task, again) = row else { return false };
    context.view.task(task, again).is_some_and(|row| row.schedule.is_some())
}

/// Why the due time of a running task is not changed: the end of the run sets it again.
pub(in crate::model::plan) fn runs(row: &TaskRow) -> Option<&'static str> {
    row.execution.map(|_| match row.state {
        JobState::Orphan => {
            "is recorded as running, but its session has ended: R recovers it, and it is due again"
        }
        JobState::Unknown => "is recorded as running: only a task that is not running can be due",
        _ => "is running: its next due time is set when it ends",
    })
}

pub(super) fn planned(index: &PlanIndex<'_>, verb: Verb, row: Option<&TaskRow>) -> Found {
    let row = row.ok_or(GONE)?;
    let verb = verb.definition().task.ok_or("is a task")?;
    let (set, schedule) = row
        .set(index.snapshot)
        .zip(row.schedule(index.snapshot))
        .ok_or("has no schedule: nothing to change")?;
    (verb.refusal)(row, schedule, index.snapshot.taken_at).map_or(Ok(()), Err)?;
    set.tables.owner.refusal(&set.tables.schedules).map_or(Ok(()), Err)?;
    let mut cautions: Vec<Caution> = old(index, &set.tasks).into_iter().collect();
    cautions.extend((verb.futile)(row, schedule).map(|words| Caution::new(CautionKind::Futile, words)));
    let does = format!("UPDATE {} SET {} WHERE id = {}", set.tables.schedules, verb.shown, row.task.id);
    let TaskTables { table, schedules, own_keys, .. } = &*set.tables;
    let target = RowTarget::new(*table, schedules, *own_keys, schedule);
    let mut facts = facts(index, row, schedule);
    facts.extend(set.tables.owner.fact(&set.tables.schedules));
    Ok((TargetKind::Task(target), does, facts, cautions))
}

fn facts(index: &PlanIndex<'_>, row: &TaskRow, schedule: &Schedule) -> Vec<String> {
    let mut facts = vec![row.state.as_str().to_owned()];
    facts.extend(schedule.kind.as_deref().map(|kind| format!("of type {kind}")));
    facts.extend(schedule.cron.as_deref().map(|cron| format!("by schedule {cron}")));
    facts.push(match row.due_in(index.snapshot) {
        None => "no due time".to_owned(),
        Some(seconds) if seconds <= 0.0 => format!("due for {}", text::duration(-seconds)),
        Some(seconds) => format!("due in {}", text::duration(seconds)),
    });
    let last = schedule.last_run_at.map(|at| format!("last run began {} ago", index.age_text(at)));
    facts.extend(last);
    facts
}

impl TaskVerb {
    pub(in crate::model::plan) fn change<'a>(
        &'static self,
        verb: Verb,
        task: &'a RowTarget<Schedule>,
    ) -> RowChange<'a> {
        let Schedule { id, enabled, next_run_at, .. } = &task.row;
        let enabled = enabled.map_or_else(|| "?".to_owned(), |enabled| enabled.to_string());
        let (source, set, due) = (&task.source, self.set, moment(*next_run_at));
        let short = format!(
            "UPDATE {source} SET {set} WHERE id = {id} if is_enabled = {enabled} and next_run_at = {due}"
        );
        let statement = Box::new(move |table: &TableShape| self.statement(verb, task, table));
        RowChange { table: task.table, is_own: task.is_own, short, statement }
    }

    fn statement(
        &self,
        verb: Verb,
        task: &RowTarget<Schedule>,
        table: &TableShape,
    ) -> Result<RowStatement, String> {
        let Self { column, kinds, set, .. } = self;
        if !table.has(column) {
            return Err(format!("{} has no column {column}", task.source));
        }
        if !kinds.is_empty() && !table.kind(column).is_some_and(|kind| kinds.contains(&kind)) {
            return Err(format!("{column} of {} is not a time", task.source));
        }
        let mut conditions = conditions(table, task);
        if task.is_own && *column == NEXT_RUN {
            // The end of a run sets the next due time, whatever is set meanwhile.
            let log = format!("{}.task_execution_log", table.schema);
            let is_idle = format!(
                "NOT EXISTS (SELECT FROM {log} AS e WHERE e.task_id = t.id AND e.status = 'running')"
            );
            conditions.push(Condition::new("it is running now", is_idle));
        }
        let name = if table.has("task_name") { "t.task_name::text" } else { "NULL" };
        let detail = text::literal(&format!(": {set}"));
        let noted = Noted { action: verb.as_str(), columns: "task_id, detail", values: "d.id, d.detail" };
        let act = RowAct::Set {
            set: (*set).to_owned(),
            returning: format!("t.id, coalesce({name}, 'a task') || {detail} AS detail"),
            noted: task.is_own.then_some(noted),
        };
        let id = format!("t.id = {}", task.id);
        Ok(RowStatement { id, conditions, act, done: self.result.to_owned() })
    }
}

fn conditions(table: &TableShape, task: &RowTarget<Schedule>) -> Vec<Condition> {
    let mut all = Vec::new();
    if let (true, Some(enabled)) = (table.has("is_enabled"), task.enabled) {
        let column = "coalesce(t.is_enabled, false)";
        all.push(Condition::same("it was enabled or disabled", column, &enabled.to_string()));
    }
    if table.has(NEXT_RUN) {
        let column = "t.next_run_at::timestamptz";
        all.push(Condition::same("its due time has changed", column, &moment(task.next_run_at)));
    }
    if task.name.is_some() && table.has("task_name") {
        all.push(Condition::cut("its name has changed", "t.task_name::text", task.name.as_ref()));
    }
    all
}
