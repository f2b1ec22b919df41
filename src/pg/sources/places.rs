use std::collections::BTreeMap;

use crate::model::task::KeyRule;

/// `[tables]` of the config, by usual name: the location of a table that its usual name does not find, in SQL syntax
/// (`distlock = "jobs.leases"`), and the lock of a row (`task_key`, `queue_key`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places(pub BTreeMap<&'static str, String>);

impl Places {
    pub fn with(mut self, name: &'static str, place: &str) -> Self {
        self.0.insert(name, place.to_owned());
        self
    }

    /// None if the config does not define it.
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn key_rule(&self, name: &str) -> KeyRule {
        self.of(name).map_or(KeyRule::Unsaid, KeyRule::parse)
    }
}
