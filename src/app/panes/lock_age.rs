//! How long a lock has been held.

use crate::app::context::Context;
use crate::model::lock::Lock;

/// How certain the age of a lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// The server says when it began, or what runs on it does.
    Exactly,
    /// It may be longer, and is not shorter.
    AtLeast,
    /// Seen in every snapshot for that long; it may have been released and taken again in between.
    Seen,
}

/// How long a lock is held, and how that is known.
pub(super) fn lock_age(context: &Context<'_>, lock: &Lock) -> Option<(f64, Known)> {
    let key = (lock.pid?, lock.tag);
    if let Some(began) = context.view.runs_since.get(&key) {
        return context.age(Some(*began)).map(|age| (age, Known::Exactly));
    }
    let since = context.view.held_since.get(&key)?;
    if since.proved <= since.seen {
        return context.age(Some(since.proved)).map(|age| (age, Known::AtLeast));
    }
    context.age(Some(since.seen)).map(|age| (age, Known::Seen))
}

/// The duration with its sign: `7s`, `≥41s`, `seen 12s`.
pub(super) fn age_words((seconds, known): (f64, Known)) -> String {
    let age = crate::text::age(seconds);
    match known {
        Known::Exactly => age,
        Known::AtLeast if seconds < 1.0 => "≥0s".to_owned(),
        Known::AtLeast => format!("≥{age}"),
        Known::Seen => format!("seen {age}"),
    }
}
