//! The tables of the other lock systems: leases, the work queue, rate limits and id generators.
//!
//! A database may have several of each at once: the published one and that of `locktop schema install`. A missing column
//! and a NULL both count as unknown.

use std::sync::Arc;

use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::redis_lease::RedisLeases;
use crate::model::section::Section;
use crate::model::table_rows::{
    Growth, IdGenerator, Item, Lease, Owner, RateLimit, Refusals, StateCount, TaskWorker,
};
use crate::model::task::KeyRule;
use crate::model::{Text, Timestamp};

pub use crate::model::table_rows::NameHash;

rows! {
    as source_rows;

    #[derive(Eq, Default)]
    pub struct Source in Sources {
        /// OID of the table; 0 if there is no such table.
        1 table: u32,
        /// `schema.table`, unquoted: for display, and as the identity of the table.
        2 name: Text,
        /// Whether it is one of locktop's own: its rows are locked by keys in a separate namespace, not by raw ids, and changed by
        /// functions of its schema.
        3 own_keys: bool,
        4 key_rule: KeyRule,
        /// A function in its schema acquires advisory locks and names the table.
        5 has_function: bool,
        /// The owner, and whether it is trusted: tables of untrusted owners are shown, but never acted on.
        6 owner: Owner,
        /// Rows, bytes and what would be purged, by the planner's statistics.
        7 growth: Growth,
    }

    /// Waits counted by the schema's `observe_lock_waits()`, from any source: a row of `contended_locks`. Waits that locktop
    /// itself saw are in [`lock_waits`](crate::model::lock_waits).
    pub struct CountedWaits in CountedLocks {
        /// The locked object, as [`contended`](crate::model::lock_waits::contended) returns it.
        1 tag: LockTag,
        2 waits: u64,
        /// The total duration of the waits, in seconds.
        3 total: f64,
        /// The duration of the longest wait, in seconds.
        4 longest: f64,
        /// The mode that the longest wait requested (`longest_mode`). None if it is not the name of a mode.
        5 longest_mode: Option<LockMode>,
        6 first: Option<Timestamp>,
        7 last: Option<Timestamp>,
    }
}

#[derive(Debug, Clone)]
pub struct TableRows<T> {
    pub source: Arc<Source>,
    pub section: Section<T>,
}

impl<T> Default for TableRows<T> {
    fn default() -> Self {
        Self { source: Arc::default(), section: Section::default() }
    }
}

impl<T> TableRows<T> {
    pub fn stale(&self, error: Text) -> Self {
        Self { source: Arc::clone(&self.source), section: self.section.stale(error) }
    }
}

/// The kinds of tables, in the order in which they are read: the number of the part in a recording, the field of [`SourceTables`],
/// a row, its columns in a recording, and the name of the section. Passes them on to another macro.
macro_rules! table_kinds {
    ($to:ident) => {
        $to! {
            /// `distlock`, or the tables under that name in `[tables]` of the config.
            1 leases: Lease in LeaseTables = "leases",
            /// `task_queue`: number of items in each status.
            2 counts: StateCount in CountTables = "queue",
            /// `task_queue`: the items that need attention.
            3 items: Item in ItemTables = "queue_items",
            4 limits: RateLimit in LimitTables = "rate_limits",
            /// `id_generator`: snowflake ids, one row per worker.
            5 generators: IdGenerator in GeneratorTables = "id_generators",
            /// `locktop_workers`: the types of work that each worker takes.
            6 workers: TaskWorker in WorkerTables = "task_workers",
            /// `contended_locks`: the locks with the longest waits, as counted by the schema.
            7 contended: CountedWaits in ContendedTables = "lock_waits",
            /// `refusals`: what the schema's functions refused, one row a table.
            8 refusals: Refusals in RefusalTables = "refusals",
        }
    };
}

pub(crate) use table_kinds;

macro_rules! systems {
    ($($(#[$doc:meta])* $_tag:literal $kind:ident: $row:ident in $_columns:ident = $section:literal,)*) => {
        /// The tables of each kind, of which there may be several in different schemas.
        #[derive(Debug, Clone, Default)]
        pub struct SourceTables {
            $($(#[$doc])* pub $kind: Vec<TableRows<$row>>,)*
            /// Locks in Redis; without servers if none is configured.
            pub redis: Arc<RedisLeases>,
        }

        impl SourceTables {
            /// The section of each table, with when it was read, and why it is unknown.
            pub fn sections(
                &self,
            ) -> impl Iterator<Item = (&'static str, &Source, Option<Timestamp>, Option<&Text>)> {
                fn of<T>(table: &TableRows<T>) -> (&Source, Option<Timestamp>, Option<&Text>) {
                    (&table.source, table.section.taken_at, table.section.error.as_ref())
                }
                std::iter::empty()$(.chain(self.$kind.iter().map(|table| {
                    let (source, taken_at, error) = of(table);
                    ($section, source, taken_at, error)
                })))*
            }

            /// Tables that are excluded by their section and name count as read and empty.
            pub(in crate::model) fn empty(&mut self, is_excluded: impl Fn(&str, Option<&str>) -> bool, at: Timestamp) {
                $(for table in &mut self.$kind {
                    if is_excluded($section, Some(&table.source.name)) {
                        table.section = Section::fresh(Vec::new(), at);
                    }
                })*
            }
        }
    };
}

table_kinds!(systems);

impl SourceTables {
    /// The counts for a lock, if any; if several tables have it, the first.
    pub fn counted(&self, tag: &LockTag) -> Option<&CountedWaits> {
        let mut rows = self.contended.iter().flat_map(|table| table.section.last_rows().iter());
        rows.find(|counted| counted.tag == *tag)
    }
}

/// The lock tag of columns in which 0 stands for NULL.
pub fn tag(
    locktype: LockType,
    database: u32,
    relation: u32,
    (classid, objid, objsubid): (u32, u32, u16),
) -> LockTag {
    let none = LockTag::new(locktype);
    match locktype {
        LockType::Relation | LockType::Extend | LockType::Page | LockType::Tuple => {
            none.with_database(database).with_relation(relation)
        }
        LockType::FrozenId => none.with_database(database),
        LockType::Object | LockType::UserLock | LockType::Advisory => {
            none.with_database(database).with_classid(classid).with_objid(objid).with_objsubid(objsubid)
        }
        _ => none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock_waits::contended;
    use crate::sample::{advisory, relation};

    #[test]
    fn a_lock_that_was_counted_is_the_one_that_is_seen() {
        let fields =
            |it: &LockTag| (it.classid().unwrap_or(0), it.objid().unwrap_or(0), it.objsubid().unwrap_or(0));
        let row = relation(5).with_locktype(LockType::Tuple).with_page(0).with_tuple(1);
        let xid = LockTag::new(LockType::TransactionId).with_transactionid(9);
        for seen in [advisory(42), advisory(-1), relation(5), row, xid] {
            let counted = tag(
                seen.locktype(),
                seen.database().unwrap_or(0),
                seen.relation().unwrap_or(0),
                fields(&seen),
            );
            assert_eq!(counted, contended(&seen));
        }
    }
}
