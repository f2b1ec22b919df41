use super::{Command, Definition, Verb};
use crate::model::plan::PlanContext;
use crate::model::plan::chosen::{Chosen, RowsOf, schedules};
use crate::model::plan::rows::{TaskVerb, has_schedule};
use crate::model::task::{Schedule, TaskId, TaskRow, TaskState};

pub(super) const COMMAND: Command = Command {
    name: "enable",
    keys: &["E"],
    short: "enable/disable",
    help: "enable or disable a task",
    purpose: "enables or disables a task",
    is_local: false,
    applies: has_schedule,
    choose: |context, rows| {
        let tasks = schedules(rows)?;
        Some((toggle(context, &tasks), Chosen::Rows(RowsOf::Tasks(tasks))))
    },
};

pub(super) const ENABLE: Definition = Definition {
    task: Some(&TaskVerb {
        column: "is_enabled",
        kinds: &[],
        shown: "is_enabled = true",
        set: "is_enabled = true",
        told: "enabled",
        refusal: |_, schedule, _| refusal(schedule, true),
        futile: |row, schedule| {
            let is_due_never =
                row.schedule_state == Some(TaskState::Disabled) && schedule.next_run_at.is_none();
            is_due_never.then_some("it has no due time: T makes it due")
        },
    }),
    ..Definition::of("enable", "enable", "enabled")
};

pub(super) const DISABLE: Definition = Definition {
    task: Some(&TaskVerb {
        column: "is_enabled",
        kinds: &[],
        shown: "is_enabled = false",
        set: "is_enabled = false",
        told: "disabled",
        refusal: |_, schedule, _| refusal(schedule, false),
        futile: |row, _| {
            row.execution.map(|_| match row.state {
                TaskState::Orphan => "it is recorded as running, but its session has ended: R recovers it",
                TaskState::Unknown => "if it is running, that run continues; only the next run is prevented",
                _ => "it is running, and that run continues; only the next run is prevented",
            })
        },
    }),
    ..Definition::of("disable", "disable", "disabled")
};

/// One key switches all chosen tasks: off if the first one that can be switched is on, else on.
fn toggle(context: &PlanContext<'_>, chosen: &[TaskId]) -> Verb {
    let Some(snapshot) = context.view.snapshot.as_deref() else { return Verb::Enable };
    let find = |id: &TaskId| context.view.tasks.rows.iter().find(|row| row.task == *id);
    let enabled = |row: &TaskRow| row.schedule(snapshot)?.enabled;
    let first = chosen.iter().filter_map(find).find_map(enabled);
    if first == Some(true) { Verb::Disable } else { Verb::Enable }
}

fn refusal(schedule: &Schedule, to: bool) -> Option<&'static str> {
    Some(match schedule.enabled {
        None => "its table has no column is_enabled: it cannot be enabled or disabled",
        Some(true) if to => "is enabled already",
        Some(false) if !to => "is disabled already",
        Some(_) => return None,
    })
}
