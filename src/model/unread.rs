//! What of a snapshot could not be read.

use super::snapshot::{Section, Snapshot};
use super::{Text, Timestamp};

/// A section whose last attempt failed.
#[derive(Debug, Clone, Copy)]
pub struct Unread<'a> {
    /// What it is called in a finding: `locks`, `leases`.
    pub section: &'static str,
    /// The table, of a section that each of several tables has.
    pub table: Option<&'a str>,
    /// Server time of the rows that are shown instead; none when it was never read.
    pub taken_at: Option<Timestamp>,
    /// The error in one line: the server's, or that of the connection.
    pub error: &'a Text,
}

impl Snapshot {
    /// The sections whose last attempt failed, in the order in which they are read. Items of a queue are of the table that its counts are of, and tell nothing more.
    pub fn unread(&self) -> Vec<Unread<'_>> {
        let mut all = vec![
            unread("server", None, &self.server),
            unread("backends", None, &self.backends),
            unread("locks", None, &self.locks),
            unread("prepared", None, &self.prepared),
        ];
        for set in self.task_sets.iter() {
            let name = &*set.tables.schedules;
            all.extend([
                unread("tasks", Some(name), &set.tasks),
                unread("executions", Some(name), &set.executions),
            ]);
        }
        let systems = &self.systems;
        all.extend(
            systems.leases.iter().map(|table| unread("leases", Some(&table.source.name), &table.section)),
        );
        all.extend(
            systems.counts.iter().map(|table| unread("queue", Some(&table.source.name), &table.section)),
        );
        all.extend(
            systems
                .limits
                .iter()
                .map(|table| unread("rate_limits", Some(&table.source.name), &table.section)),
        );
        let generators = systems.generators.iter();
        all.extend(generators.map(|table| unread("id_generators", Some(&table.source.name), &table.section)));
        all.into_iter().flatten().collect()
    }
}

fn unread<'a, T>(section: &'static str, table: Option<&'a str>, rows: &'a Section<T>) -> Option<Unread<'a>> {
    Some(Unread { section, table, taken_at: rows.taken_at, error: rows.error.as_ref()? })
}
