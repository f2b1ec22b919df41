//! Sessions: cancelled, terminated or expected.

use super::{Command, Definition, Verb, of_sessions};
use crate::model::backend::State;
use crate::model::plan::known::{self, Known};
use crate::model::plan::question::Chosen;
use crate::model::plan::{PlanContext, Signal};
use crate::model::row_id::{Owner, RowId};

pub(super) const CANCEL_COMMAND: Command = Command {
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

fn has_query(context: &PlanContext<'_>, row: RowId) -> bool {
    match row {
        RowId::Group(..) => true,
        RowId::Backend(id) | RowId::Lock(_, Owner::Backend(id), _) => {
            context.backend(id.pid).is_some_and(|backend| backend.state == Some(State::Active))
        }
        _ => false,
    }
}

pub(super) const TERMINATE_COMMAND: Command = Command {
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

fn has_session(context: &PlanContext<'_>, row: RowId) -> bool {
    let view = context.view;
    match row {
        RowId::Group(..) | RowId::Backend(_) | RowId::Lock(..) => true,
        RowId::Task(task, again) => context.view.task(task, again).is_some_and(|row| row.holder.is_some()),
        RowId::Item(id) => view.queue.rows.iter().any(|row| row.id == id && row.pid.is_some()),
        RowId::Lease(id) => {
            let mut leases = view.leases.rows.iter();
            leases.any(|row| row.id == id && row.owner_alive == Some(true) && row.owner_pid.is_some())
        }
        _ => false,
    }
}

pub(super) const EXPECT_COMMAND: Command = Command {
    name: "expect",
    keys: &["I"],
    short: "expect",
    help: "mark a blocker as expected: an info finding in this run; again to undo",
    purpose: "marks a blocker as expected",
    is_local: true,
    // A finding shows this for every blocker: the keys of a row are those that help against it.
    applies: |context, row| {
        known::finding(context.view, row).is_some_and(|finding| finding.expected.is_some())
    },
    choose: |context, rows| {
        Known::of(context.view, rows).map(|known| (known.verb(), Chosen::Known(Box::new(known))))
    },
};

pub(super) const EXPECT: Definition =
    Definition { writes: false, ..Definition::of("expect", "expect", "expected") };

pub(super) const EXPECT_NO_MORE: Definition = Definition {
    writes: false,
    ..Definition::of("expect_no_more", "no longer expect", "no longer expected")
};
