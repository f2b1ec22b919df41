use super::{Command, Definition, Verb, of_sessions};
use crate::model::backend::State;
use crate::model::plan::{PlanContext, SelectedRow, Signal};

pub(super) const COMMAND: Command = Command {
    name: "cancel",
    keys: &["C"],
    short: "cancel query",
    help: "cancel the query of a session; its transaction and its locks remain",
    purpose: "cancels the query of a session",
    is_local: false,
    applies: has_query,
    choose: |_, rows| of_sessions(Verb::Cancel, rows),
};

pub(super) const CANCEL: Definition = Definition {
    writes: false,
    signal: Some(Signal::Cancel),
    ..Definition::of("cancel", "cancel query", "cancelled")
};

fn has_query(context: &PlanContext<'_>, row: SelectedRow) -> bool {
    match row {
        SelectedRow::Group(..) => true,
        SelectedRow::Backend(id) | SelectedRow::Holder(id, ..) => {
            context.backend(id.pid).is_some_and(|backend| backend.state == Some(State::Active))
        }
        _ => false,
    }
}
