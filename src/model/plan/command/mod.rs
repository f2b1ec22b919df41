//! The keys that act, a file each: its words, the rows it is for, and what it does to them. The keymap, the footer, the help, the question,
//! the executor and the record read the list below.

mod cancel;
mod enable;
mod expect;
mod make_due;
mod put_off;
mod recover;
mod set_aside;
mod terminate;
mod unlock;

use super::chosen::{self, Chosen};
use super::row_change::RowChange;
use super::rows::{ItemVerb, TaskVerb};
use super::{Ask, LeaseTarget, PlanContext, SelectedRow, Signal};

/// What is done, and to what.
pub type Choice = (Verb, Chosen);

/// A key that acts: its words, the rows it is for, and what it does.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Its name in `[keys]` of the config.
    pub name: &'static str,
    /// Default keys, as [`crate::keys::Key::parse`] reads them.
    pub keys: &'static [&'static str],
    /// One word for the footer, beside its key.
    pub short: &'static str,
    /// A line for the help.
    pub help: &'static str,
    /// `terminates a session`: what the key is for, where it does nothing to a row.
    pub purpose: &'static str,
    /// Nothing is asked of the server: it is there in read-only mode, too.
    pub is_local: bool,
    /// Whether it does something to a row as it is now: then the footer has it.
    pub applies: fn(&PlanContext<'_>, SelectedRow) -> bool,
    /// What it does to rows like these, and to which of them; none where it does nothing to any.
    pub choose: fn(&PlanContext<'_>, &[SelectedRow]) -> Option<Choice>,
}

/// What is done by a key: its words, and how.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// Its word, for records: `cancel`, `terminate`, …
    pub word: &'static str,
    /// `cancel query`: what is going to be done.
    pub does: &'static str,
    /// `cancelled`: what was done, for reports and events.
    pub done: &'static str,
    /// Whether it changes tables alone, which nobody may on a standby.
    pub writes: bool,
    /// What a session is sent; none where it is not about sessions.
    pub signal: Option<Signal>,
    /// What is done to a task; none where it is not about tasks.
    pub task: Option<&'static TaskVerb>,
    /// What is done to an item of the work queue; none where it is not about items.
    pub item: Option<&'static ItemVerb>,
    /// The change of a lease in a table; none where it is not about leases.
    pub(crate) lease: Option<fn(&LeaseTarget) -> RowChange<'_>>,
}

impl Definition {
    /// One that changes tables, with its words.
    const fn of(word: &'static str, does: &'static str, done: &'static str) -> Self {
        Self { word, does, done, writes: true, signal: None, task: None, item: None, lease: None }
    }
}

/// The list, in the order of the help and the footer: each key with its file and what can be done by it.
macro_rules! commands {
    ($($id:ident = $file:ident { $($(#[$does:meta])* $verb:ident = $definition:ident,)* })*) => {
        /// A key that acts, by its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum CommandId {
            $(#[doc = concat!("The key of the file `", stringify!($file), "`.")] $id,)*
        }

        impl CommandId {
            /// Every key that acts, in the order of the help and the footer.
            pub const ALL: [Self; [$(stringify!($id)),*].len()] = [$(Self::$id),*];

            /// Its words, its rows and what it does to them.
            pub fn definition(self) -> &'static Command {
                match self {
                    $(Self::$id => const { &$file::COMMAND },)*
                }
            }
        }

        /// What can be done to a target. A key may choose between several by the row that it is pressed on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Verb {
            $($($(#[$does])* $verb,)*)*
        }

        impl Verb {
            /// Its words, and how it is done.
            pub fn definition(self) -> &'static Definition {
                match self {
                    $($(Self::$verb => const { &$file::$definition },)*)*
                }
            }
        }
    };
}

commands! {
    Cancel = cancel {
        /// Cancel the query of a session.
        Cancel = CANCEL,
    }
    Terminate = terminate {
        /// End the session itself.
        Terminate = TERMINATE,
    }
    Recover = recover {
        /// Recover executions of tasks whose worker is gone or slow.
        Recover = RECOVER,
        /// Put an item of the work queue back.
        Requeue = REQUEUE,
    }
    Unlock = unlock {
        /// End a lease of somebody else.
        Unlock = UNLOCK,
    }
    Enable = enable {
        /// Let a task be taken again.
        Enable = ENABLE,
        /// Let a task not be taken any more.
        Disable = DISABLE,
    }
    MakeDue = make_due {
        /// Make a task due now.
        MakeDue = MAKE_DUE,
    }
    PutOff = put_off {
        /// Have a task or an item be due later.
        PutOff = PUT_OFF,
    }
    SetAside = set_aside {
        /// Set an item of the work queue aside.
        SetAside = SET_ASIDE,
    }
    Expect = expect {
        /// Expect a blocker: locktop alone, and no server, hears of it.
        Expect = EXPECT,
        /// Expect a blocker no more, by taking its entry away.
        ExpectNoMore = EXPECT_NO_MORE,
    }
}

impl Verb {
    /// Its word, for records: `cancel`, `terminate`, …
    pub fn as_str(self) -> &'static str {
        self.definition().word
    }

    /// `cancel query`: what is going to be done.
    pub fn does(self) -> &'static str {
        self.definition().does
    }

    /// `cancelled`: what was done, for reports and events.
    pub fn done(self) -> &'static str {
        self.definition().done
    }
}

/// To the sessions behind these rows; none where there are none.
fn of_sessions(verb: Verb, rows: &[SelectedRow]) -> Option<Choice> {
    chosen::sessions(rows).map(|rows| (verb, Chosen::Sessions(Ask::new(verb, rows))))
}
