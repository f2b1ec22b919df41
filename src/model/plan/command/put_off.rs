//! `D`: put off a task or an item of the work queue by an hour, for example if it keeps failing and others need the
//! capacity. It stays enabled, or pending, and becomes due again automatically.

use super::{Command, Definition, Verb};
use crate::model::plan::chosen::{Chosen, RowsOf, items, schedules};
use crate::model::plan::row_change::{ColumnKind, FoundTable, Noted, RowAct};
use crate::model::plan::rows::{self, ItemVerb, NEXT_RUN, TaskVerb, runs};
use crate::model::plan::{ItemTarget, PlanContext, SelectedRow};
use crate::model::work_queue::ItemState;

pub(super) const COMMAND: Command = Command {
    name: "put_off",
    keys: &["D"],
    short: "put off",
    help: "postpone a task or a queue item by an hour",
    purpose: "postpones a task or a queue item",
    is_local: false,
    applies: waits,
    choose: |_, rows| {
        let tasks = schedules(rows).map(RowsOf::Tasks);
        let rows = tasks.or_else(|| items(rows).map(RowsOf::Items))?;
        Some((Verb::PutOff, Chosen::Rows(rows)))
    },
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
            ItemState::Pending | ItemState::Resting if is_own => None,
            ItemState::Pending | ItemState::Resting => {
                Some("its table has no due time of items: X sets the item aside")
            }
            ItemState::Failed => Some("is set aside: no worker takes it"),
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
fn waits(context: &PlanContext<'_>, row: SelectedRow) -> bool {
    let Some(snapshot) = context.view.snapshot.as_deref() else { return false };
    match row {
        SelectedRow::Task(task, again) => rows::task(context, task, again).is_some_and(|row| {
            let next = row.schedule(snapshot).and_then(|task| task.next_run_at);
            next.is_some() && runs(row).is_none()
        }),
        SelectedRow::Item(id) => context.view.queue.rows.iter().find(|row| row.id == id).is_some_and(|row| {
            let table = snapshot.systems.items.get(row.table);
            matches!(row.state, ItemState::Pending | ItemState::Resting)
                && table.is_some_and(|table| table.source.own_keys)
        }),
        _ => false,
    }
}
