use crate::app::context::Context;
use crate::model::lock::Lock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// The start is known: from the server, or from the execution that holds the lock.
    Exactly,
    /// It may be longer, but not shorter.
    AtLeast,
    /// Seen in every snapshot for that long; it may have been released and taken again between snapshots.
    Seen,
}

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

/// The duration with its prefix: `7s`, `≥41s`, `seen 12s`.
pub(super) fn age_words((seconds, known): (f64, Known)) -> String {
    let age = crate::text::age(seconds);
    match known {
        Known::Exactly => age,
        Known::AtLeast if seconds < 1.0 => "≥0s".to_owned(),
        Known::AtLeast => format!("≥{age}"),
        Known::Seen => format!("seen {age}"),
    }
}
