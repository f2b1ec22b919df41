//! Work left behind by a worker: recovered, requeued or set aside.

use super::{ChosenVerb, Command, Definition, Verb};
use crate::model::plan::question::{Chosen, items, only};
use crate::model::plan::rows::{self, FoundTable, ItemVerb, RowAct, item_state, while_free};
use crate::model::plan::{ItemTarget, PlanContext, RecoverySearch};
use crate::model::row_id::RowId;
use crate::model::task::JobState;
use crate::model::task::JobState::{Failed, Lost, MaybeLost, Pending, Resting};

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

pub(super) const RECOVER: Definition = Definition::of("recover", "recover", "recovered");

pub(super) const REQUEUE: Definition = Definition {
    item: Some(&ItemVerb {
        shown: |ItemTarget { id, source, is_own, .. }| {
            if *is_own {
                format!("requeue_queue_item({id})")
            } else {
                format!("UPDATE {source} SET status = 'pending'")
            }
        },
        act: put_back,
        told: "pending again",
        refusal: |state, _| match state {
            JobState::Pending => Some("it is pending already"),
            JobState::Resting => Some("is pending already, and is retried automatically"),
            _ => None,
        },
    }),
    ..Definition::of("requeue", "requeue", "requeued")
};

fn put_back(item: &ItemTarget, table: &FoundTable) -> Option<RowAct> {
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
    use JobState::{Failed, Lost, MaybeLost};
    match row {
        RowId::Job(id) => rows::can_give_back(context, id),
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
    if !tasks.is_empty() && !tasks.iter().all(|(task, _)| rows::is_published(context, task.table)) {
        return Some((Verb::Recover, Chosen::Executions(Box::new(RecoverySearch::new(tasks)))));
    }
    let recovered = only(chosen, |row| execution(row).is_some());
    match recovered.or_else(|| only(chosen, |row| matches!(row, RowId::Job(_)))) {
        Some(rows) => Some((Verb::Recover, Chosen::Rows(rows))),
        None => Some((Verb::Requeue, Chosen::Rows(items(chosen)?))),
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
    choose: |_, rows| items(rows).map(|items| (Verb::SetAside, Chosen::Rows(items))),
};

pub(super) const SET_ASIDE: Definition = Definition {
    item: Some(&ItemVerb {
        shown: |ItemTarget { id, source, is_own, .. }| {
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
        told: "set aside as failed",
        refusal: |state, _| (state == Failed).then_some("has been set aside already; R requeues it"),
    }),
    ..Definition::of("set_aside", "set aside", "set aside")
};
