//! The keys that act: words, rows and effect. The keymap, the footer, the help, the dialog, the executor and
//! the record read the list below. Here are those for sessions, in `rows` those for rows of tables.

mod rows;

use super::question::{self, ChosenTargets, KnownBlockers, only};
use super::rows::{ItemVerb, RowChange, TaskVerb};
use super::{Ask, PlanContext, RowTarget, Signal};
use crate::model::backend::State;
use crate::model::lease;
use crate::model::row_id::{LockOwner, RowId};

type ChosenVerb = (Verb, ChosenTargets);

#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Name in `[keys]` of the config.
    pub name: &'static str,
    /// Default keys, as [`crate::keys::Key::parse`] reads them.
    pub keys: &'static [&'static str],
    pub short: &'static str,
    pub help: &'static str,
    /// `terminates a session`: the purpose of the key, shown if it does nothing for a row.
    pub purpose: &'static str,
    /// No request is sent to the server: the key is available in read-only mode.
    pub is_local: bool,
    /// Whether the key does something for a row in its current state; the footer then shows it.
    pub applies: fn(&PlanContext<'_>, RowId) -> bool,
    /// The verb, and those of the rows it applies to; `None` if it applies to none.
    pub choose: fn(&PlanContext<'_>, &[RowId]) -> Option<ChosenVerb>,
}

#[derive(Debug, Clone, Copy)]
pub struct VerbDefinition {
    /// The word for records: `cancel`, `terminate`, …
    pub word: &'static str,
    pub does: &'static str,
    /// `cancelled`: the completed action, for reports and events.
    pub done: &'static str,
    /// Whether it only changes tables, which is impossible on a standby.
    pub writes: bool,
    /// The signal for a session; `None` if the verb does not apply to sessions.
    pub signal: Option<Signal>,
    /// `None` if the verb does not apply to tasks.
    pub task: Option<&'static TaskVerb>,
    /// `None` if the verb does not apply to items of the work queue.
    pub item: Option<&'static ItemVerb>,
    /// The change of a lease in a table; `None` if the verb does not apply to leases.
    pub(crate) lease: Option<fn(&RowTarget<lease::Lease>) -> RowChange<'_>>,
}

impl VerbDefinition {
    const fn of(word: &'static str, does: &'static str, done: &'static str) -> Self {
        Self { word, does, done, writes: true, signal: None, task: None, item: None, lease: None }
    }
}

/// The list, in the order of the help and the footer: each key with its command and what can be done by it.
macro_rules! commands {
    ($($id:ident = $command:expr => { $($verb:ident = $definition:expr,)* })*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum CommandId {
            $($id,)*
        }

        impl CommandId {
            /// Every key that acts, in the order of the help and the footer.
            pub const ALL: [Self; [$(stringify!($id)),*].len()] = [$(Self::$id),*];

            pub fn definition(self) -> &'static Command {
                match self {
                    $(Self::$id => const { &$command },)*
                }
            }
        }

        /// What can be done to a target. A key may choose between several by the row that it is pressed on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Verb {
            $($($verb,)*)*
        }

        impl Verb {
            pub fn definition(self) -> &'static VerbDefinition {
                match self {
                    $($(Self::$verb => const { &$definition },)*)*
                }
            }
        }
    };
}

commands! {
    Cancel = CANCEL_COMMAND => { Cancel = CANCEL, }
    Terminate = TERMINATE_COMMAND => { Terminate = TERMINATE, }
    Recover = rows::RECOVER_COMMAND => {
        Recover = rows::RECOVER,
        Requeue = rows::REQUEUE,
    }
    Unlock = rows::UNLOCK_COMMAND => { Unlock = rows::UNLOCK, }
    Enable = rows::ENABLE_COMMAND => {
        Enable = rows::ENABLE,
        Disable = rows::DISABLE,
    }
    MakeDue = rows::MAKE_DUE_COMMAND => { MakeDue = rows::MAKE_DUE, }
    PutOff = rows::PUT_OFF_COMMAND => { PutOff = rows::PUT_OFF, }
    SetAside = rows::SET_ASIDE_COMMAND => { SetAside = rows::SET_ASIDE, }
    Expect = EXPECT_COMMAND => {
        Expect = EXPECT,
        ExpectNoMore = EXPECT_NO_MORE,
    }
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        self.definition().word
    }

    pub fn does(self) -> &'static str {
        self.definition().does
    }

    pub fn done(self) -> &'static str {
        self.definition().done
    }
}

/// `None` if no row has a session.
fn of_sessions(verb: Verb, rows: &[RowId]) -> Option<ChosenVerb> {
    use RowId::{Awaited, Backend, Group, Item, Lease, Lock, Prepared, Task};
    let rows = only(rows, |row| {
        matches!(
            row,
            Backend(_) | Lock(..) | Group(..) | Prepared(_) | Awaited(_) | Task(..) | Item(_) | Lease(_)
        )
    })?;
    Some((verb, ChosenTargets::Sessions(Ask::new(verb, rows))))
}

const CANCEL_COMMAND: Command = Command {
    name: "cancel",
    keys: &["C"],
    short: "cancel query",
    help: "cancel the query of a session; its transaction and its locks remain",
    purpose: "cancels the query of a session",
    is_local: false,
    applies: has_query,
    choose: |_, rows| of_sessions(Verb::Cancel, rows),
};

const CANCEL: VerbDefinition = VerbDefinition {
    writes: false,
    signal: Some(Signal::Cancel),
    ..VerbDefinition::of("cancel", "cancel query", "cancelled")
};

fn has_query(context: &PlanContext<'_>, row: RowId) -> bool {
    match row {
        RowId::Group(..) => true,
        RowId::Backend(id) | RowId::Lock(_, LockOwner::Backend(id), _) => {
            context.backend(id.pid).is_some_and(|backend| backend.state == Some(State::Active))
        }
        _ => false,
    }
}

const TERMINATE_COMMAND: Command = Command {
    name: "terminate",
    keys: &["K"],
    short: "terminate",
    help: "terminate a session: the selected one, its root, or all that wait behind it",
    purpose: "terminates a session",
    is_local: false,
    applies: has_session,
    choose: |_, rows| of_sessions(Verb::Terminate, rows),
};

const TERMINATE: VerbDefinition = VerbDefinition {
    writes: false,
    signal: Some(Signal::Terminate),
    ..VerbDefinition::of("terminate", "terminate", "terminated")
};

fn has_session(context: &PlanContext<'_>, row: RowId) -> bool {
    let view = context.view;
    match row {
        RowId::Group(..) | RowId::Backend(_) | RowId::Lock(..) => true,
        RowId::Task(task, again) => view.task(task, again).is_some_and(|row| row.holder.is_some()),
        RowId::Item(id) => view.item(id).is_some_and(|row| row.pid.is_some()),
        RowId::Lease(id) => {
            view.lease(id).is_some_and(|row| row.owner_alive == Some(true) && row.owner_pid.is_some())
        }
        _ => false,
    }
}

const EXPECT_COMMAND: Command = Command {
    name: "expect",
    keys: &["I"],
    short: "expect",
    help: "mark a blocker as expected: an info finding in this run; again to undo",
    purpose: "marks a blocker as expected",
    is_local: true,
    // A finding shows this for every blocker: the keys of a row are those that help against it.
    applies: |context, row| {
        question::finding(context.view, row).is_some_and(|finding| finding.expected.is_some())
    },
    choose: |context, rows| {
        KnownBlockers::of(context.view, rows)
            .map(|known| (known.verb(), ChosenTargets::Known(Box::new(known))))
    },
};

const EXPECT: VerbDefinition =
    VerbDefinition { writes: false, ..VerbDefinition::of("expect", "expect", "expected") };

const EXPECT_NO_MORE: VerbDefinition = VerbDefinition {
    writes: false,
    ..VerbDefinition::of("expect_no_more", "no longer expect", "no longer expected")
};
