//! The keys that act: words, rows and effect. The keymap, the footer, the help, the dialog, the executor and
//! the record read the list below.

mod recover;
mod schedule;
mod sessions;
mod unlock;

use super::rows::{ItemVerb, RowChange, TaskVerb};
use super::{Ask, LeaseTarget, PlanContext, Signal};
use super::{question, question::Chosen};
use crate::model::row_id::RowId;

type ChosenVerb = (Verb, Chosen);

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
pub struct Definition {
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
    pub(crate) lease: Option<fn(&LeaseTarget) -> RowChange<'_>>,
}

impl Definition {
    const fn of(word: &'static str, does: &'static str, done: &'static str) -> Self {
        Self { word, does, done, writes: true, signal: None, task: None, item: None, lease: None }
    }
}

/// The list, in the order of the help and the footer: each key with its command and what can be done by it.
macro_rules! commands {
    ($($id:ident = $file:ident::$command:ident { $($verb:ident = $definition:ident,)* })*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum CommandId {
            $($id,)*
        }

        impl CommandId {
            /// Every key that acts, in the order of the help and the footer.
            pub const ALL: [Self; [$(stringify!($id)),*].len()] = [$(Self::$id),*];

            pub fn definition(self) -> &'static Command {
                match self {
                    $(Self::$id => const { &$file::$command },)*
                }
            }
        }

        /// What can be done to a target. A key may choose between several by the row that it is pressed on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Verb {
            $($($verb,)*)*
        }

        impl Verb {
            pub fn definition(self) -> &'static Definition {
                match self {
                    $($(Self::$verb => const { &$file::$definition },)*)*
                }
            }
        }
    };
}

commands! {
    Cancel = sessions::CANCEL_COMMAND {
        Cancel = CANCEL,
    }
    Terminate = sessions::TERMINATE_COMMAND {
        Terminate = TERMINATE,
    }
    Recover = recover::RECOVER_COMMAND {
        Recover = RECOVER,
        Requeue = REQUEUE,
    }
    Unlock = unlock::UNLOCK_COMMAND {
        Unlock = UNLOCK,
    }
    Enable = schedule::ENABLE_COMMAND {
        Enable = ENABLE,
        Disable = DISABLE,
    }
    MakeDue = schedule::MAKE_DUE_COMMAND {
        MakeDue = MAKE_DUE,
    }
    PutOff = schedule::PUT_OFF_COMMAND {
        PutOff = PUT_OFF,
    }
    SetAside = recover::SET_ASIDE_COMMAND {
        SetAside = SET_ASIDE,
    }
    Expect = sessions::EXPECT_COMMAND {
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
    question::sessions(rows).map(|rows| (verb, Chosen::Sessions(Ask::new(verb, rows))))
}
