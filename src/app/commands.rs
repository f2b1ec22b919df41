//! The keys that act: one value each. The keymap, the footer, the help, the question and the words about it read this list.
//!
//! What is sent to the server, and compared there, is in `src/action`, by the [`Verb`] that a command chooses.

use super::context::Context;
use super::dialog::{Kind, Known, Search, known};
use super::panes::{Owner, Pane, RowId};
use super::subject;
use crate::model::adapter::{ActionKind, Installation, TermState};
use crate::model::backend::State;
use crate::model::lease::{LeaseId, LeaseState};
use crate::model::plan::{self, Ask, PlanContext, SelectedRow, Verb};
use crate::model::systems::TextId;
use crate::model::task::{TaskId, TaskState};
use crate::model::work_queue::{ItemId, ItemState};

/// What is done, and to which rows.
pub type Choice = (Verb, Kind);

/// A key that acts.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Name in the config.
    pub name: &'static str,
    /// Default keys, as [`crate::keys::Key::parse`] reads them.
    pub keys: &'static [&'static str],
    /// One word for the footer.
    pub short: &'static str,
    /// A line for the help.
    pub help: &'static str,
    /// `ends a session`: what the key is for, where it does nothing to a row.
    pub purpose: &'static str,
    /// Nothing is asked of the server: it is there in read-only mode, too.
    pub is_local: bool,
    /// Whether it does something to a row as it is now: then the footer has it.
    pub applies: fn(&Context<'_>, RowId) -> bool,
    /// What it does to rows like these, and to which of them; none where it does nothing to any. The plan, with the targets and
    /// the refusals, is made of that.
    pub choose: fn(&PlanContext<'_>, Pane, &[RowId]) -> Option<Choice>,
}

/// The list, in the order of the help and the footer: a name for the code, and the value.
macro_rules! commands {
    ($($(#[$doc:meta])* $id:ident = $value:expr,)*) => {
        /// A key that acts, by its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum CommandId {
            $($(#[$doc])* $id,)*
        }

        impl CommandId {
            /// Every one.
            pub const ALL: [Self; [$(stringify!($id)),*].len()] = [$(Self::$id),*];

            /// What it is.
            #[must_use]
            pub fn definition(self) -> &'static Command {
                match self {
                    $(Self::$id => {
                        static VALUE: Command = $value;
                        &VALUE
                    })*
                }
            }
        }
    };
}

commands! {
    /// Cancel the query of a session.
    Cancel = Command {
        name: "cancel",
        keys: &["C"],
        short: "cancel query",
        help: "cancel the query of a session; its transaction and its locks stay",
        purpose: "cancels the query of a session",
        is_local: false,
        applies: has_query,
        choose: |_, pane, rows| sessions(Verb::Cancel, pane, rows),
    },
    /// End a session.
    Terminate = Command {
        name: "terminate",
        keys: &["K"],
        short: "terminate",
        help: "terminate a session; of a chain: its root, or all behind it",
        purpose: "ends a session",
        is_local: false,
        applies: has_session,
        choose: |_, pane, rows| sessions(Verb::Terminate, pane, rows),
    },
    /// Recover a task; put an item of the work queue back.
    Recover = Command {
        name: "recover",
        keys: &["R"],
        short: "recover",
        help: "recover tasks and jobs whose worker is gone; put a queue item back",
        purpose: "recovers a task or job, or puts a queue item back",
        is_local: false,
        applies: is_left_behind,
        choose: |context, _, rows| recovery(context, rows),
    },
    /// Unlock a lease.
    Unlock = Command {
        name: "unlock",
        keys: &["U"],
        short: "unlock",
        help: "end a lease, whoever has it",
        purpose: "ends a lease",
        is_local: false,
        applies: |context, row| match row {
            RowId::Lease(id) => context.lease(id).is_some_and(|row| row.state == LeaseState::Held),
            RowId::OtherLease(id) => can_unlock(context, id),
            _ => false,
        },
        choose: |_, _, rows| unlocking(rows),
    },
    /// Enable or disable a task.
    Enable = Command {
        name: "enable",
        keys: &["E"],
        short: "enable/disable",
        help: "enable or disable a task",
        purpose: "enables or disables a task",
        is_local: false,
        applies: has_schedule,
        choose: |context, _, rows| some(schedules(rows)).map(|tasks| (plan::toggle(context, &tasks), Kind::Tasks(tasks))),
    },
    /// Make a task due.
    MakeDue = Command {
        name: "make_due",
        keys: &["T"],
        short: "make due",
        help: "make a task due now",
        purpose: "makes a task due",
        is_local: false,
        applies: has_schedule,
        choose: |_, _, rows| some(schedules(rows)).map(|tasks| (Verb::MakeDue, Kind::Tasks(tasks))),
    },
    /// Set an item of the work queue aside.
    SetAside = Command {
        name: "set_aside",
        keys: &["X"],
        short: "set aside",
        help: "set a queue item aside: nobody takes it any more",
        purpose: "sets a queue item aside",
        is_local: false,
        applies: |context, row| {
            use ItemState::{Lost, MaybeLost, Pending, Resting};
            matches!(item_state(context, row), Some(Lost | MaybeLost | Pending | Resting))
        },
        choose: |_, _, rows| some(items(rows)).map(|items| (Verb::SetAside, Kind::Items(items))),
    },
    /// Expect a blocker that is known, or expect it no more.
    Expect = Command {
        name: "expect",
        keys: &["I"],
        short: "ignore",
        help: "ignore a known blocker: what it causes is no warning from then on; again takes that back",
        purpose: "ignores a known blocker",
        is_local: true,
        // The findings say so of every blocker: a row's keys are those that help against it.
        applies: |context, row| known::finding(context.view, row).is_some_and(|finding| finding.expected.is_some()),
        choose: |context, _, rows| {
            Known::of(context.view, rows).map(|known| (known.verb(), Kind::Known(Box::new(known))))
        },
    },
}

fn has_query(context: &Context<'_>, row: RowId) -> bool {
    match row {
        RowId::Group(..) => true,
        RowId::Backend(_) | RowId::Lock(..) => {
            let backend = subject::pid_of(row).and_then(|pid| context.backend(pid));
            backend.is_some_and(|backend| backend.state == Some(State::Active))
        }
        _ => false,
    }
}

fn has_session(context: &Context<'_>, row: RowId) -> bool {
    match row {
        RowId::Group(..) | RowId::Backend(_) | RowId::Lock(_, Owner::Backend(_), ..) => true,
        _ => subject::holder_of(context, row).is_some(),
    }
}

/// Whether nobody works on a task or an item any more, or for too long.
fn is_left_behind(context: &Context<'_>, row: RowId) -> bool {
    let task_state = match row {
        RowId::Job(id) => return can_recover(context, id),
        RowId::Task(task, again) => context.task(task, again).map(|row| row.state),
        _ => None,
    };
    matches!(task_state, Some(TaskState::Orphan | TaskState::MaybeOrphan | TaskState::Slow))
        || matches!(
            item_state(context, row),
            Some(ItemState::Lost | ItemState::MaybeLost | ItemState::Failed)
        )
}

fn has_schedule(context: &Context<'_>, row: RowId) -> bool {
    match row {
        RowId::Task(task, again) => context.task(task, again).is_some_and(|row| row.schedule.is_some()),
        _ => false,
    }
}

fn item_state(context: &Context<'_>, row: RowId) -> Option<ItemState> {
    match row {
        RowId::Item(id) => context.item(id).map(|row| row.state),
        _ => None,
    }
}

fn sessions(verb: Verb, pane: Pane, rows: &[RowId]) -> Option<Choice> {
    let known = rows.iter().map(|row| chosen(*row)).filter(|row| !matches!(row, SelectedRow::Other));
    let known = some(known.collect())?;
    Some((verb, Kind::Sessions(Ask { from_chains: pane == Pane::Chains, ..Ask::new(verb, known) })))
}

fn recovery(context: &PlanContext<'_>, rows: &[RowId]) -> Option<Choice> {
    let Some(tasks) = some(tasks(rows)) else {
        let items = || some(items(rows)).map(|items| (Verb::Requeue, Kind::Items(items)));
        return some(jobs(rows)).map(|jobs| (Verb::Recover, Kind::Jobs(jobs))).or_else(items);
    };
    let is_published = tasks.iter().all(|(task, _)| plan::is_published(context, task.table));
    let executions = |tasks| Kind::Executions(Box::new(Search::new(tasks)));
    Some((Verb::Recover, if is_published { Kind::Published(tasks) } else { executions(tasks) }))
}

/// A row as the plans know it.
fn chosen(row: RowId) -> SelectedRow {
    match row {
        RowId::Backend(id) | RowId::Lock(_, Owner::Backend(id), _, false) => SelectedRow::Backend(id),
        RowId::Lock(tag, Owner::Backend(id), mode, true) => SelectedRow::Holder(id, tag, mode),
        RowId::Prepared(xact) | RowId::Lock(_, Owner::Prepared(xact), ..) => SelectedRow::Prepared(xact),
        RowId::Group(parent, tag, mode) => SelectedRow::Group(parent, tag, mode),
        RowId::Task(task, again) => SelectedRow::Task(task, again),
        RowId::Lease(id) => SelectedRow::Lease(id),
        RowId::Item(id) => SelectedRow::Item(id),
        _ => SelectedRow::Other,
    }
}

fn tasks(rows: &[RowId]) -> Vec<(TaskId, Option<i64>)> {
    let task = |row: &RowId| match row {
        RowId::Task(task, again) => Some((*task, *again)),
        _ => None,
    };
    rows.iter().filter_map(task).collect()
}

fn schedules(rows: &[RowId]) -> Vec<TaskId> {
    tasks(rows).into_iter().map(|(task, _)| task).collect()
}

fn items(rows: &[RowId]) -> Vec<ItemId> {
    let item = |row: &RowId| match row {
        RowId::Item(id) => Some(*id),
        _ => None,
    };
    rows.iter().filter_map(item).collect()
}

fn leases(rows: &[RowId]) -> Vec<LeaseId> {
    let lease = |row: &RowId| match row {
        RowId::Lease(id) => Some(*id),
        _ => None,
    };
    rows.iter().filter_map(lease).collect()
}

fn jobs(rows: &[RowId]) -> Vec<TextId> {
    let job = |row: &RowId| match row {
        RowId::Job(id) => Some(*id),
        _ => None,
    };
    rows.iter().filter_map(job).collect()
}

fn unlocking(rows: &[RowId]) -> Option<Choice> {
    let other = |row: &RowId| match row {
        RowId::OtherLease(id) => Some(*id),
        _ => None,
    };
    let others = || some(rows.iter().filter_map(other).collect());
    let ours = some(leases(rows)).map(|leases| (Verb::Unlock, Kind::Leases(leases)));
    ours.or_else(|| others().map(|leases| (Verb::Unlock, Kind::OtherLeases(leases))))
}

/// Whether a job has lost its worker, and the config allows to give it back.
fn can_recover(context: &Context<'_>, id: TextId) -> bool {
    let row = context.view.adapters.rows.iter().find(|row| row.id == id);
    row.filter(|row| row.judged.state.is_lost()).is_some_and(|row| {
        let installation = installation_at(context, row.place);
        installation.is_some_and(|one| one.action(ActionKind::Recover, Some(row.judged.proof)).is_some())
    })
}

fn can_unlock(context: &Context<'_>, id: TextId) -> bool {
    let row = context.view.adapters.leases.iter().find(|row| row.id == id);
    row.filter(|row| row.state == TermState::Held).is_some_and(|row| {
        let installation = installation_at(context, row.place.0);
        installation.is_some_and(|one| one.action(ActionKind::Unlock, None).is_some())
    })
}

/// An installation, where the config allows to act on it.
fn installation_at<'a>(context: &Context<'a>, place: usize) -> Option<&'a Installation> {
    let installation = &*context.snapshot.adapters.get(place)?.installation;
    Some(installation).filter(|one| one.adapter.allows_actions)
}

/// None where there are none.
fn some<T>(rows: Vec<T>) -> Option<Vec<T>> {
    (!rows.is_empty()).then_some(rows)
}
