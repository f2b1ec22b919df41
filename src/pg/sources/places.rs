//! Where the config says that tables are.

use std::collections::BTreeMap;

use crate::model::task::KeyRule;

/// `[tables]` of the config: where a table is that is not found by its usual name, as in SQL, by that name (`distlock = "jobs.leases"`); and
/// what is locked for a row (`task_key`, `queue_key`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places(pub BTreeMap<&'static str, String>);

impl Places {
    /// The same, and this.
    pub fn with(mut self, name: &'static str, place: &str) -> Self {
        self.0.insert(name, place.to_owned());
        self
    }

    /// Where the table of this name is; None where the config does not say.
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn key_rule(&self, name: &str) -> KeyRule {
        self.of(name).map_or(KeyRule::Unsaid, KeyRule::parse)
    }
}
