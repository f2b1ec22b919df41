//! The tables of the other lock systems, as they were read: leases, the work queue, rate limits and id generators.
//!
//! A database may have several of each at once, the published one and that of `locktop schema install`. Every column that
//! a table lacks, and every NULL, is simply not known.

use std::sync::Arc;

use super::Text;
use super::counted_waits::CountedWaits;
use super::growth::Growth;
use super::id_generator::IdGenerator;
use super::lease::Lease;
use super::lock::LockTag;
use super::owner::Owner;
use super::rate_limit::RateLimit;
use super::redis_lease::RedisLeases;
use super::refusals::Refusals;
use super::section::Section;
use super::task::KeyRule;
use super::task_worker::TaskWorker;
pub use super::text_id::TextId;
use super::work_queue::{Item, StateCount};

/// A table of the database that locktop is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// Its OID; 0 where there is no such table.
    pub table: u32,
    /// `schema.table`, unquoted, for people and for telling one table from another.
    pub name: Text,
    /// Whether it is one of locktop's own: its rows are locked by keys of a namespace of their own, not by raw ids, and changed by
    /// the functions of its schema.
    pub own_keys: bool,
    /// What is locked for a row, where `own_keys` does not say it.
    pub key_rule: KeyRule,
    /// A function in its schema takes advisory locks and names the table.
    pub has_function: bool,
    /// Whose it is, and whether that role is trusted: tables of strangers are shown, never acted on.
    pub owner: Owner,
    /// Rows, bytes and what would be purged, by the planner's statistics.
    pub growth: Growth,
}

/// A table and what was read of it.
#[derive(Debug, Clone)]
pub struct TableRows<T> {
    /// The table that the rows are of.
    pub source: Arc<Source>,
    /// What was read of it, with its age and error; not all of it where `is_cut` says so.
    pub section: Section<T>,
    /// There are more rows than were read.
    pub is_cut: bool,
}

impl<T> Default for TableRows<T> {
    fn default() -> Self {
        Self { source: Arc::default(), section: Section::default(), is_cut: false }
    }
}

impl<T> TableRows<T> {
    /// The same rows, marked as old.
    pub fn stale(&self, error: Text) -> Self {
        Self { source: Arc::clone(&self.source), section: self.section.stale(error), is_cut: self.is_cut }
    }
}

/// What was read of each of these tables; of a kind there may be several, in several schemas.
#[derive(Debug, Clone, Default)]
pub struct Systems {
    /// Tables of leases: `distlock`, or what `[tables]` of the config calls so.
    pub leases: Vec<TableRows<Lease>>,
    /// `task_queue`: how many items there are of each status.
    pub counts: Vec<TableRows<StateCount>>,
    /// `task_queue`: the items that somebody should see.
    pub items: Vec<TableRows<Item>>,
    /// Tables of rate limits: `rate_limit`.
    pub limits: Vec<TableRows<RateLimit>>,
    /// Tables of snowflake ids, a row for each worker: `id_generator`.
    pub generators: Vec<TableRows<IdGenerator>>,
    /// `locktop_workers`: who takes which types of work.
    pub workers: Vec<TableRows<TaskWorker>>,
    /// `contended_locks`: the locks that were waited for the longest, as the schema has counted.
    pub contended: Vec<TableRows<CountedWaits>>,
    /// `refusals`: what the schema's functions refused, one row a table.
    pub refusals: Vec<TableRows<Refusals>>,
    /// Locks that are kept in Redis; without servers where none is configured.
    pub redis: Arc<RedisLeases>,
}

impl Systems {
    /// What was counted for a lock, where anything was; of several tables the first.
    pub fn counted(&self, tag: &LockTag) -> Option<&CountedWaits> {
        let mut rows = self.contended.iter().flat_map(|table| table.section.last_rows().iter());
        rows.find(|counted| counted.tag == *tag)
    }
}
