use super::{Command, Definition, Verb, of_sessions};
use crate::model::plan::{PlanContext, SelectedRow, Signal, rows};

pub(super) const COMMAND: Command = Command {
    name: "terminate",
    keys: &["K"],
    short: "terminate",
    help: "terminate a session: the selected one, its root, or all that wait behind it",
    purpose: "terminates a session",
    is_local: false,
    applies: has_session,
    choose: |_, rows| of_sessions(Verb::Terminate, rows),
};

pub(super) const TERMINATE: Definition = Definition {
    writes: false,
    signal: Some(Signal::Terminate),
    ..Definition::of("terminate", "terminate", "terminated")
};

fn has_session(context: &PlanContext<'_>, row: SelectedRow) -> bool {
    let view = context.view;
    match row {
        SelectedRow::Group(..) | SelectedRow::Backend(_) | SelectedRow::Holder(..) => true,
        SelectedRow::Task(task, again) => {
            rows::task(context, task, again).is_some_and(|row| row.holder.is_some())
        }
        SelectedRow::Item(id) => view.queue.rows.iter().any(|row| row.id == id && row.pid.is_some()),
        SelectedRow::Lease(id) => {
            let mut leases = view.leases.rows.iter();
            leases.any(|row| row.id == id && row.owner_alive == Some(true) && row.owner_pid.is_some())
        }
        _ => false,
    }
}
