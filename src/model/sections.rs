//! The sections of a snapshot: what was read when, and what could not be.

use super::Timestamp;
use super::snapshot::{Section, Snapshot};
use super::systems::TableRows;

/// When a section was read, and why its last attempt failed.
#[derive(Debug, Clone, Copy)]
pub struct SectionRead<'a> {
    /// What it is called in a finding: `locks`, `leases`.
    pub section: &'static str,
    /// The table, of a section that each of several tables has.
    pub table: Option<&'a str>,
    /// Server time of its rows; none when it was never read.
    pub taken_at: Option<Timestamp>,
    /// The error of the last attempt in one line: the server's, or that of the connection; none where it was read.
    pub error: Option<&'a str>,
}

impl<'a> SectionRead<'a> {
    /// What tells it from the others: its name, and the table where several have one.
    pub fn name(&self) -> (&'static str, Option<&'a str>) {
        (self.section, self.table)
    }
}

impl Snapshot {
    /// All sections that findings and events tell of, in the order in which they are read. Items of a queue are of the table that its
    /// counts are of, and tell nothing more; what workers announce and what they waited for is told in the JSON alone.
    pub fn sections(&self) -> Vec<SectionRead<'_>> {
        let mut all = vec![
            read("server", None, &self.server),
            read("backends", None, &self.backends),
            read("locks", None, &self.locks),
            read("prepared", None, &self.prepared),
            read("tables", None, &self.detection.tables),
            read("adapters", None, &self.detection.adapters),
        ];
        for set in self.task_sets.iter() {
            all.push(read("tasks", Some(&set.tables.schedules), &set.tasks));
            all.push(read("executions", set.tables.executions.as_deref(), &set.executions));
        }
        all.extend(tables("leases", &self.systems.leases));
        all.extend(tables("queue", &self.systems.counts));
        all.extend(tables("rate_limits", &self.systems.limits));
        all.extend(tables("id_generators", &self.systems.generators));
        all
    }
}

fn read<'a, T>(section: &'static str, table: Option<&'a str>, rows: &'a Section<T>) -> SectionRead<'a> {
    SectionRead { section, table, taken_at: rows.taken_at, error: rows.error.as_deref() }
}

fn tables<'a, T>(section: &'static str, tables: &'a [TableRows<T>]) -> impl Iterator<Item = SectionRead<'a>> {
    tables.iter().map(move |table| read(section, Some(&table.source.name), &table.section))
}
