//! The purpose of the lock that sessions wait for, by the tags of their statements.

use crate::model::QueryText;
use crate::model::lock_key::LockKey;
use crate::model::statement::redacted::speaks_of_secret;
use crate::model::statement::tags::{Tag, Use, tags};

/// Shown instead of a name that resembles a secret or has been redacted.
const HIDDEN: &str = "(name hidden)";

/// The purpose of a wait in a call of [`locktop_locks`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// One of the permits of this semaphore.
    Permit(String),
    /// To be elected under this name.
    Leader(String),
}

/// The purpose that the statements of all waiters state for this key; None if one is missing or differs.
pub fn waited<'a>(
    key: LockKey,
    mut statements: impl Iterator<Item = Option<&'a QueryText>>,
) -> Option<Waited> {
    let first = statements.next()??;
    let tag = tag(first).filter(|tag| tag.number == key)?;
    let is_same = |other: Option<&QueryText>| other.and_then(self::tag) == Some(tag);
    if !statements.all(is_same) {
        return None;
    }
    let name = || tag.name.filter(|_| !speaks_of_secret(first.unredacted())).unwrap_or(HIDDEN).to_owned();
    match tag.purpose {
        Use::Election => Some(Waited::Leader(name())),
        Use::Queue => Some(Waited::Permit(name())),
        Use::Lock | Use::Permits => None,
    }
}

/// Whether the statement asks for a permit of the semaphore whose queue has this key. With many permits it has no tag.
pub fn asks_for_permit(key: LockKey, statement: &QueryText) -> bool {
    let asks = statement.unredacted().contains("CASE WHEN pg_catalog.pg_try_advisory_lock");
    asks && tag(statement).is_none_or(|tag| tag.purpose == Use::Permits && tag.number == key)
}

fn tag(statement: &QueryText) -> Option<Tag<'_>> {
    tags(statement.unredacted()).next()
}
