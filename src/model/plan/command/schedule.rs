//! The schedule of tasks, and when an item is due.

use super::{Command, Definition, Verb};
use crate::model::plan::question::{Chosen, items, schedules};
use crate::model::plan::rows::{
    ColumnKind, FoundTable, ItemVerb, NEXT_RUN, Noted, RowAct, TaskVerb, has_schedule, runs,
};
use crate::model::plan::{ItemTarget, PlanContext};
use crate::model::row_id::RowId;
use crate::model::task::{JobState, Schedule, TaskRow};

pub(super) const ENABLE_COMMAND: Command = Command {
    name: "enable",
    keys: &["E"],
    short: "enable/disable",
    help: "enable or disable a task",
    purpose: "enables or disables a task",
    is_local: false,
    applies: has_schedule,
    choose: |context, rows| {
        let tasks = schedules(rows)?;
        Some((toggle(context, &tasks), Chosen::Rows(tasks)))
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
                row.schedule_state == Some(JobState::Disabled) && schedule.next_run_at.is_none();
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
                JobState::Orphan => "it is recorded as running, but its session has ended: R recovers it",
                JobState::Unknown => "if it is running, that run continues; only the next run is prevented",
                _ => "it is running, and that run continues; only the next run is prevented",
            })
        },
    }),
    ..Definition::of("disable", "disable", "disabled")
};

/// One key switches all chosen tasks: off if the first one that can be switched is on, else on.
fn toggle(context: &PlanContext<'_>, chosen: &[RowId]) -> Verb {
    let Some(snapshot) = context.view.snapshot.as_deref() else { return Verb::Enable };
    let find = |id: &RowId| {
        let mut rows = context.view.tasks.rows.iter();
        rows.find(|row| matches!(id, RowId::Task(task, _) if row.task == *task))
    };
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

pub(super) const MAKE_DUE_COMMAND: Command = Command {
    name: "make_due",
    keys: &["T"],
    short: "make due",
    help: "make a task due now",
    purpose: "makes a task due",
    is_local: false,
    applies: has_schedule,
    choose: |_, rows| schedules(rows).map(|tasks| (Verb::MakeDue, Chosen::Rows(tasks))),
};

pub(super) const MAKE_DUE: Definition = Definition {
    task: Some(&TaskVerb {
        column: NEXT_RUN,
        kinds: &[ColumnKind::Zoned, ColumnKind::Time, ColumnKind::Date],
        shown: "next_run_at = now",
        set: "next_run_at = clock_timestamp()",
        told: "due now",
        refusal: |row, schedule, now| {
            let is_due = schedule.next_run_at.is_some_and(|next| next <= now);
            runs(row).or_else(|| is_due.then_some("is due already"))
        },
        futile: |_, schedule| {
            let is_off = schedule.enabled == Some(false);
            is_off.then_some("it is disabled, so no worker takes it; E enables it")
        },
    }),
    ..Definition::of("make_due", "make due", "made due")
};

/// `D`: put off a task or an item of the work queue by an hour, for example if it keeps failing and others need the
/// capacity. It stays enabled, or pending, and becomes due again automatically.
pub(super) const PUT_OFF_COMMAND: Command = Command {
    name: "put_off",
    keys: &["D"],
    short: "put off",
    help: "postpone a task or a queue item by an hour",
    purpose: "postpones a task or a queue item",
    is_local: false,
    applies: waits,
    choose: |_, rows| Some((Verb::PutOff, Chosen::Rows(schedules(rows).or_else(|| items(rows))?))),
};

const LATER: &str = "due an hour later";

pub(super) const PUT_OFF: Definition = Definition {
    task: Some(&TaskVerb {
        column: NEXT_RUN,
        // A date has no time of day.
        kinds: &[ColumnKind::Zoned, ColumnKind::Time],
        shown: "next_run_at = greatest(next_run_at, now) + 1 hour",
        set: "next_run_at = greatest(t.next_run_at, clock_timestamp()) + interval '1 hour'",
        told: LATER,
        refusal: |row, schedule, _| {
            runs(row).or_else(|| schedule.next_run_at.is_none().then_some("has no due time"))
        },
        futile: |_, schedule| {
            let is_off = schedule.enabled == Some(false);
            is_off.then_some("it is disabled, so no worker takes it")
        },
    }),
    item: Some(&ItemVerb {
        shown: |ItemTarget { id, source, .. }| {
            format!("UPDATE {source} SET not_before = greatest(not_before, now) + 1 hour WHERE id = {id}")
        },
        act: later,
        told: LATER,
        refusal: |state, is_own| match state {
            JobState::Pending | JobState::Resting if is_own => None,
            JobState::Pending | JobState::Resting => {
                Some("its table has no due time of items: X sets the item aside")
            }
            JobState::Failed => Some("is set aside: no worker takes it"),
            _ => Some("its worker's session has ended: R returns it first"),
        },
    }),
    ..Definition::of("put_off", "postpone 1h", "postponed")
};

fn later(item: &ItemTarget, table: &FoundTable) -> Option<RowAct> {
    (item.is_own && item.status.as_deref() == Some("pending")).then(|| RowAct::Set {
        set: "not_before = greatest(t.not_before, clock_timestamp()) + interval '1 hour'".to_owned(),
        returning: format!(
            "{}.queue_lock_key(t.id) AS key, 'item ' || t.id || ' of the work queue: {LATER}' AS detail",
            table.schema
        ),
        noted: Some(Noted { action: "put_off", columns: "lock_id, detail", values: "d.key, d.detail" }),
    })
}

/// Whether the row can be taken, now or later.
fn waits(context: &PlanContext<'_>, row: RowId) -> bool {
    let Some(snapshot) = context.view.snapshot.as_deref() else { return false };
    match row {
        RowId::Task(task, again) => context.view.task(task, again).is_some_and(|row| {
            let next = row.schedule(snapshot).and_then(|task| task.next_run_at);
            next.is_some() && runs(row).is_none()
        }),
        RowId::Item(id) => context.view.item(id).is_some_and(|row| {
            let table = snapshot.systems.items.get(row.table);
            matches!(row.state, JobState::Pending | JobState::Resting)
                && table.is_some_and(|table| table.source.own_keys)
        }),
        _ => false,
    }
}
