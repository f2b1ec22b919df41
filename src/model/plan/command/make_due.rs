use super::{Command, Definition, Verb};
use crate::model::plan::chosen::{Chosen, RowsOf, schedules};
use crate::model::plan::row_change::ColumnKind;
use crate::model::plan::rows::{NEXT_RUN, TaskVerb, has_schedule, runs};

pub(super) const COMMAND: Command = Command {
    name: "make_due",
    keys: &["T"],
    short: "make due",
    help: "make a task due now",
    purpose: "makes a task due",
    is_local: false,
    applies: has_schedule,
    choose: |_, rows| schedules(rows).map(|tasks| (Verb::MakeDue, Chosen::Rows(RowsOf::Tasks(tasks)))),
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
