//! Blockers that are meant to block: a migration at night, a backup.

use super::Text;

/// An entry of the config's `[[expected]]`: a blocker that meets all its conditions is no trouble. One without any
/// condition meets nobody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExpectedBlocker {
    /// Its `application_name`.
    pub application: Option<Text>,
    /// Its role.
    pub user: Option<Text>,
    /// The database that it is connected to.
    pub database: Option<Text>,
    /// The only lock for which others wait behind it: the name of an advisory lock, or a relation.
    pub lock: Option<Text>,
    /// Why it may block.
    pub reason: Option<Text>,
}

/// Who blocks, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blocker<'a> {
    /// Its `application_name`; none for a prepared transaction.
    pub application: Option<&'a str>,
    /// Its role.
    pub user: Option<&'a str>,
    /// Its database.
    pub database: Option<&'a str>,
}

impl ExpectedBlocker {
    /// Whether a blocker meets the conditions; `holds` tells whether a lock of that name is all that others wait for.
    #[must_use]
    pub fn is_met(&self, blocker: Blocker<'_>, holds: impl FnOnce(&str) -> bool) -> bool {
        let conditions = [
            (&self.application, blocker.application),
            (&self.user, blocker.user),
            (&self.database, blocker.database),
        ];
        let any = self.lock.is_some() || conditions.iter().any(|(wanted, _)| wanted.is_some());
        any && conditions.iter().all(|(wanted, found)| wanted.is_none() || wanted.as_deref() == *found)
            && self.lock.as_deref().is_none_or(holds)
    }

    /// `, expected: nightly migration`: the end of a finding's summary.
    #[must_use]
    pub fn words(&self) -> String {
        self.reason.as_ref().map_or_else(|| ", expected".to_owned(), |reason| format!(", expected: {reason}"))
    }
}
