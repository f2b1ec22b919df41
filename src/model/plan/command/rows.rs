//! Keys for rows of tables: work left behind by a worker, the schedule of tasks, and leases.

use super::{ChosenVerb, Command, Verb, VerbDefinition};
use crate::model::lease::LeaseState;
use crate::model::plan::question::{ChosenTargets, items, only, schedules};
use crate::model::plan::rows::{
    self, ItemVerb, NEXT_RUN, Noted, PlanColumnKind, RowAct, TableShape, TaskVerb, can_give_back, can_unlock,
    has_schedule, is_published, item_state, runs, while_free,
};
use crate::model::plan::{PlanContext, RecoverySearch, RowTarget};
use crate::model::row_id::RowId;
use crate::model::task::JobState::{self, Failed, Lost, MaybeLost, Pending, Resting};
use crate::model::task::{Schedule, TaskRow};
use crate::model::work_queue::Item;

pub(super) const RECOVER_COMMAND: Command = Command {
    name: "recover",
    keys: &["R"],
    short: "recover",
    help: "recover tasks and jobs that lost their worker; requeue a queue item",
    purpose: "recovers a task or job, or requeues an item",
    is_local: false,
    applies: is_left_behind,
    choose,
};

pub(super) const RECOVER: VerbDefinition = VerbDefinition::of("recover", "recover", "recovered");

pub(super) const REQUEUE: VerbDefinition = VerbDefinition {
    item: Some(&ItemVerb {
        shown: |RowTarget { source, is_own, row: Item { id, .. }, .. }| {
            if *is_own {
                format!("requeue_queue_item({id})")
            } else {
                format!("UPDATE {source} SET status = 'pending'")
            }
        },
        act: put_back,
        result: "pending again",
        refusal: |state, _| match state {
            JobState::Pending => Some("it is pending already"),
            JobState::Resting => Some("is pending already, and is retried automatically"),
            _ => None,
        },
    }),
    ..VerbDefinition::of("requeue", "requeue", "requeued")
};

fn put_back(item: &RowTarget<Item>, table: &TableShape) -> Option<RowAct> {
    let function = match item.status.as_deref()? {
        "processing" => "requeue_queue_item",
        "failed" => "retry_queue_item",
        _ => return None,
    };
    if item.is_own {
        return Some(RowAct::Call(function));
    }
    let cleared = ["worker_id", "started_at"].into_iter().filter(|column| table.has(column));
    let cleared = cleared.map(|column| format!(", {column} = NULL"));
    Some(while_free(item, format!("status = 'pending'{}", cleared.collect::<String>())))
}

/// Whether the task, job or item has no worker any more, or has run too long.
fn is_left_behind(context: &PlanContext<'_>, row: RowId) -> bool {
    match row {
        RowId::Job(id) => can_give_back(context, id),
        RowId::Task(task, again) => context.view.task(task, again).is_some_and(|row| {
            use JobState::{LeftOver, MaybeOrphan, Orphan, Settling, Slow};
            matches!(row.state, Orphan | MaybeOrphan | LeftOver | Slow)
                || row.state == Settling && context.has_terminated(row.last_holder)
        }),
        row => matches!(item_state(context, row), Some(Lost | MaybeLost | Failed)),
    }
}

fn choose(context: &PlanContext<'_>, chosen: &[RowId]) -> Option<ChosenVerb> {
    let execution =
        |row: &RowId| if let RowId::Task(task, again) = *row { Some((task, again)) } else { None };
    let tasks: Vec<_> = chosen.iter().filter_map(execution).collect();
    if !tasks.is_empty() && !tasks.iter().all(|(task, _)| is_published(context, task.table)) {
        return Some((Verb::Recover, ChosenTargets::Executions(Box::new(RecoverySearch::new(tasks)))));
    }
    let recovered = only(chosen, |row| execution(row).is_some());
    match recovered.or_else(|| only(chosen, |row| matches!(row, RowId::Job(_)))) {
        Some(rows) => Some((Verb::Recover, ChosenTargets::Rows(rows))),
        None => Some((Verb::Requeue, ChosenTargets::Rows(items(chosen)?))),
    }
}

pub(super) const SET_ASIDE_COMMAND: Command = Command {
    name: "set_aside",
    keys: &["X"],
    short: "set aside",
    help: "set a queue item aside: no worker takes it",
    purpose: "sets a queue item aside",
    is_local: false,
    applies: |context, row| matches!(item_state(context, row), Some(Lost | MaybeLost | Pending | Resting)),
    choose: |_, rows| items(rows).map(|items| (Verb::SetAside, ChosenTargets::Rows(items))),
};

pub(super) const SET_ASIDE: VerbDefinition = VerbDefinition {
    item: Some(&ItemVerb {
        shown: |RowTarget { source, is_own, row: Item { id, .. }, .. }| {
            if *is_own {
                format!("set_aside_queue_item({id})")
            } else {
                format!("UPDATE {source} SET status = 'failed'")
            }
        },
        act: |item, _| match item.status.as_deref()? {
            "processing" | "pending" if item.is_own => Some(RowAct::Call("set_aside_queue_item")),
            "processing" | "pending" => Some(while_free(item, "status = 'failed'")),
            _ => None,
        },
        result: "set aside as failed",
        refusal: |state, _| (state == Failed).then_some("has been set aside already; R requeues it"),
    }),
    ..VerbDefinition::of("set_aside", "set aside", "set aside")
};

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
        Some((toggle(context, &tasks), ChosenTargets::Rows(tasks)))
    },
};

pub(super) const ENABLE: VerbDefinition = VerbDefinition {
    task: Some(&TaskVerb {
        column: "is_enabled",
        kinds: &[],
        shown: "is_enabled = true",
        set: "is_enabled = true",
        result: "enabled",
        refusal: |_, schedule, _| refusal(schedule, true),
        futile: |row, schedule| {
            let is_due_never =
                row.schedule_state == Some(JobState::Disabled) && schedule.next_run_at.is_none();
            is_due_never.then_some("it has no due time: T makes it due")
        },
    }),
    ..VerbDefinition::of("enable", "enable", "enabled")
};

pub(super) const DISABLE: VerbDefinition = VerbDefinition {
    task: Some(&TaskVerb {
        column: "is_enabled",
        kinds: &[],
        shown: "is_enabled = false",
        set: "is_enabled = false",
        result: "disabled",
        refusal: |_, schedule, _| refusal(schedule, false),
        futile: |row, _| {
            row.execution.map(|_| match row.state {
                JobState::Orphan => "it is recorded as running, but its session has ended: R recovers it",
                JobState::Unknown => "if it is running, that run continues; only the next run is prevented",
                _ => "it is running, and that run continues; only the next run is prevented",
            })
        },
    }),
    ..VerbDefinition::of("disable", "disable", "disabled")
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
    choose: |_, rows| schedules(rows).map(|tasks| (Verb::MakeDue, ChosenTargets::Rows(tasks))),
};

pub(super) const MAKE_DUE: VerbDefinition = VerbDefinition {
    task: Some(&TaskVerb {
        column: NEXT_RUN,
        kinds: &[PlanColumnKind::Zoned, PlanColumnKind::Time, PlanColumnKind::Date],
        shown: "next_run_at = now",
        set: "next_run_at = clock_timestamp()",
        result: "due now",
        refusal: |row, schedule, now| {
            let is_due = schedule.next_run_at.is_some_and(|next| next <= now);
            runs(row).or_else(|| is_due.then_some("is due already"))
        },
        futile: |_, schedule| {
            let is_off = schedule.enabled == Some(false);
            is_off.then_some("it is disabled, so no worker takes it; E enables it")
        },
    }),
    ..VerbDefinition::of("make_due", "make due", "made due")
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
    choose: |_, rows| Some((Verb::PutOff, ChosenTargets::Rows(schedules(rows).or_else(|| items(rows))?))),
};

const LATER: &str = "due an hour later";

pub(super) const PUT_OFF: VerbDefinition = VerbDefinition {
    task: Some(&TaskVerb {
        column: NEXT_RUN,
        // A date has no time of day.
        kinds: &[PlanColumnKind::Zoned, PlanColumnKind::Time],
        shown: "next_run_at = greatest(next_run_at, now) + 1 hour",
        set: "next_run_at = greatest(t.next_run_at, clock_timestamp()) + interval '1 hour'",
        result: LATER,
        refusal: |row, schedule, _| {
            runs(row).or_else(|| schedule.next_run_at.is_none().then_some("has no due time"))
        },
        futile: |_, schedule| {
            let is_off = schedule.enabled == Some(false);
            is_off.then_some("it is disabled, so no worker takes it")
        },
    }),
    item: Some(&ItemVerb {
        shown: |RowTarget { source, row: Item { id, .. }, .. }| {
            format!("UPDATE {source} SET not_before = greatest(not_before, now) + 1 hour WHERE id = {id}")
        },
        act: later,
        result: LATER,
        refusal: |state, is_own| match state {
            JobState::Pending | JobState::Resting if is_own => None,
            JobState::Pending | JobState::Resting => {
                Some("its table has no due time of items: X sets the item aside")
            }
            JobState::Failed => Some("is set aside: no worker takes it"),
            _ => Some("its worker's session has ended: R returns it first"),
        },
    }),
    ..VerbDefinition::of("put_off", "postpone 1h", "postponed")
};

fn later(item: &RowTarget<Item>, table: &TableShape) -> Option<RowAct> {
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
            let table = snapshot.sources.items.get(row.table);
            matches!(row.state, JobState::Pending | JobState::Resting)
                && table.is_some_and(|table| table.source.own_keys)
        }),
        _ => false,
    }
}

/// `U`: end a lease of another owner by compare-and-set on the owner as seen. The holder may keep renewing it meanwhile.
///
/// The row stays, with its owner. The holder is not notified: it finds out when it renews, or when a fenced write is
/// rejected. In a table without tokens, a holder that renews by name gets the lease back.
pub(super) const UNLOCK_COMMAND: Command = Command {
    name: "unlock",
    keys: &["U"],
    short: "end lease",
    help: "end a lease, even if its owner is alive",
    purpose: "ends a lease",
    is_local: false,
    applies: is_held,
    choose: |_, rows| leases(rows),
};

// A lease may be in Redis, so a standby is not a reason to refuse.
pub(super) const UNLOCK: VerbDefinition =
    VerbDefinition { writes: false, lease: Some(rows::end), ..VerbDefinition::of("unlock", "end", "ended") };

fn is_held(context: &PlanContext<'_>, row: RowId) -> bool {
    match row {
        RowId::Lease(id) => context.view.lease(id).is_some_and(|row| row.state == LeaseState::Held),
        RowId::OtherLease(id) => can_unlock(context, id),
        _ => false,
    }
}

fn leases(rows: &[RowId]) -> Option<ChosenVerb> {
    let leases = only(rows, |row| matches!(row, RowId::Lease(_)));
    let rows = leases.or_else(|| only(rows, |row| matches!(row, RowId::OtherLease(_))))?;
    Some((Verb::Unlock, ChosenTargets::Rows(rows)))
}
