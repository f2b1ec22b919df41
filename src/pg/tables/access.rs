//! Why a table was not read.

use tokio_postgres::error::SqlState;

use crate::model::Text;
use crate::model::lock::{Lock, LockMode, LockModes, LockType};
use crate::model::snapshot::Section;
use crate::pg::section_error::SectionError;

/// Why a table was not read.
#[derive(Debug)]
pub(in crate::pg) enum Refusal {
    /// The server or the connection.
    Section(SectionError),
    /// Somebody held it at the last look.
    Locked,
    /// It cannot be read as it is.
    Unreadable(Text),
    /// More than is copied: why, to follow its name.
    TooLarge(Text),
    /// It is not, or no longer, one that we read: why, to follow its name.
    Guarded(Text),
}

impl Refusal {
    /// The error of the connection, where it is not only a statement that failed.
    pub(in crate::pg) fn fatal(&self) -> Option<&SectionError> {
        match self {
            Self::Section(error) if error.is_fatal() => Some(error),
            _ => None,
        }
    }
}

/// Whether the tables should be looked for again. One that is locked is what it was.
pub(in crate::pg) fn has_changed(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Locked | Refusal::TooLarge(_) => false,
        Refusal::Unreadable(_) | Refusal::Guarded(_) => true,
        Refusal::Section(error) => error.code() != Some(&SqlState::LOCK_NOT_AVAILABLE),
    }
}

/// One line for the section of a table. A lock is told with its holder.
pub(in crate::pg) fn reason(refusal: &Refusal, oid: u32, name: &str, locks: &Section<Lock>) -> Text {
    let locked = || match blocker(locks, oid) {
        Some(lock) => format!("{name} is locked: {}", holder(lock)),
        None => format!("{name} was locked a moment ago"),
    };
    match refusal {
        Refusal::Locked => locked().into(),
        Refusal::Unreadable(reason) => reason.clone(),
        Refusal::Guarded(reason) | Refusal::TooLarge(reason) => {
            format!("{name} is not read: {reason}").into()
        }
        Refusal::Section(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => locked().into(),
        Refusal::Section(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            format!("{error}; {} is needed", grants(name)).into()
        }
        Refusal::Section(error) => format!("{name}: {error}").into(),
    }
}

/// What a role needs to read a table that has a schema in its name; the server does not say which of both it lacks but in words.
fn grants(name: &str) -> String {
    // Names are quoted where they have to be: a dot outside of quotes ends the schema's.
    let quoted = |at: usize| name.get(..at).is_some_and(|front| front.matches('"').count() % 2 == 1);
    let dot = name.match_indices('.').map(|(at, _)| at).find(|at| !quoted(*at));
    match dot.and_then(|at| name.get(..at)).filter(|schema| *schema != "public") {
        Some(schema) => format!("GRANT USAGE ON SCHEMA {schema} and GRANT SELECT ON {name}"),
        None => format!("GRANT SELECT ON {name}"),
    }
}

fn holder(lock: &Lock) -> String {
    let who = lock.pid.map_or_else(|| "a prepared transaction".to_owned(), |pid| pid.to_string());
    let verb = if lock.granted { "holds" } else { "waits for" };
    format!("{who} {verb} {}", lock.mode.as_str())
}

/// Who keeps readers out of a table of our own database: its holder, else somebody who waits to be.
pub(in crate::pg) fn blocker(locks: &Section<Lock>, oid: u32) -> Option<&Lock> {
    if oid == 0 || locks.error.is_some() {
        return None;
    }
    let read = LockModes::of(LockMode::AccessShare);
    let mut blocking = locks.last_rows().iter().filter(|lock| {
        lock.tag.relation() == Some(oid)
            && lock.tag.locktype() == LockType::Relation
            && lock.mode.conflicts_with(read)
    });
    blocking.clone().find(|lock| lock.granted).or_else(|| blocking.next())
}
