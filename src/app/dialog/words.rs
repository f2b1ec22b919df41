//! What is done, in words.

use crate::app::keymap::Action;
use crate::model::plan::Verb;

/// `terminate`: what is going to be done.
#[must_use]
pub const fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Cancel => "cancel query",
        Verb::Terminate => "terminate",
        Verb::Recover => "recover",
        Verb::Requeue => "put back",
        Verb::SetAside => "set aside",
        Verb::Unlock => "unlock",
        Verb::Enable => "enable",
        Verb::Disable => "disable",
        Verb::MakeDue => "make due",
    }
}

/// `terminated`: what was done.
#[must_use]
pub(super) const fn done(verb: Verb) -> &'static str {
    match verb {
        Verb::Cancel => "cancelled",
        Verb::Terminate => "terminated",
        Verb::Recover => "recovered",
        Verb::Requeue => "put back",
        Verb::SetAside => "set aside",
        Verb::Unlock => "unlocked",
        Verb::Enable => "enabled",
        Verb::Disable => "disabled",
        Verb::MakeDue => "made due",
    }
}

/// What a key is for.
pub(super) const fn purpose(action: Action) -> &'static str {
    match action {
        Action::Cancel => "cancels the query of a session",
        Action::Terminate => "ends a session",
        Action::Recover => "recovers a task, or puts a queue item back",
        Action::Unlock => "ends a lease",
        Action::Enable => "enables or disables a task",
        Action::MakeDue => "makes a task due",
        Action::SetAside => "sets a queue item aside",
        _ => "does nothing here",
    }
}
