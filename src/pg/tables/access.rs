use tokio_postgres::error::SqlState;

use crate::model::Text;
use crate::model::lock::{Lock, LockMode, LockModes, LockType};
use crate::model::snapshot::Section;
use crate::pg::scope::SectionError;

#[derive(Debug)]
pub(in crate::pg) enum Refusal {
    Section(SectionError),
    Locked,
    Unreadable(Text),
    /// Larger than the copy limit: the reason, to follow the name.
    TooLarge(Text),
    /// Not, or no longer, a table that locktop reads: the reason, to follow the name.
    Guarded(Text),
}

impl Refusal {
    /// The error of the connection, if more than a statement failed.
    pub(in crate::pg) fn fatal(&self) -> Option<&SectionError> {
        match self {
            Self::Section(error) if error.is_fatal() => Some(error),
            _ => None,
        }
    }
}

/// Whether to search the tables again. A locked table has not changed.
pub(in crate::pg) fn has_changed(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Locked | Refusal::TooLarge(_) => false,
        Refusal::Unreadable(_) | Refusal::Guarded(_) => true,
        Refusal::Section(error) => error.code() != Some(&SqlState::LOCK_NOT_AVAILABLE),
    }
}

/// One line for the section of a table. A lock is reported with its holder.
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

/// The grants needed to read a table whose name has a schema. The server reports which one is missing only in words.
fn grants(name: &str) -> String {
    // Names are quoted if necessary: a dot outside of quotes ends the schema.
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

/// The lock that blocks readers of a table in the connected database: of a holder, else of a waiter.
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
