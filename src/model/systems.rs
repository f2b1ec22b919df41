//! The tables of the other lock systems: leases, the work queue, rate limits and id generators.
//!
//! A database may have several of each at once: the published one and that of `locktop schema install`. A missing column
//! and a NULL both count as unknown.

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

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// OID of the table; 0 if there is no such table.
    pub table: u32,
    /// `schema.table`, unquoted: for display, and as the identity of the table.
    pub name: Text,
    /// Whether it is one of locktop's own: its rows are locked by keys in a separate namespace, not by raw ids, and changed by
    /// functions of its schema.
    pub own_keys: bool,
    pub key_rule: KeyRule,
    /// A function in its schema acquires advisory locks and names the table.
    pub has_function: bool,
    /// The owner, and whether it is trusted: tables of untrusted owners are shown, but never acted on.
    pub owner: Owner,
    /// Rows, bytes and what would be purged, by the planner's statistics.
    pub growth: Growth,
}

#[derive(Debug, Clone)]
pub struct TableRows<T> {
    pub source: Arc<Source>,
    /// The rows, with age and error; incomplete if `is_cut`.
    pub section: Section<T>,
    pub is_cut: bool,
}

impl<T> Default for TableRows<T> {
    fn default() -> Self {
        Self { source: Arc::default(), section: Section::default(), is_cut: false }
    }
}

impl<T> TableRows<T> {
    pub fn stale(&self, error: Text) -> Self {
        Self { source: Arc::clone(&self.source), section: self.section.stale(error), is_cut: self.is_cut }
    }
}

/// The tables of each kind, of which there may be several in different schemas.
#[derive(Debug, Clone, Default)]
pub struct Systems {
    /// `distlock`, or the tables under that name in `[tables]` of the config.
    pub leases: Vec<TableRows<Lease>>,
    /// `task_queue`: number of items in each status.
    pub counts: Vec<TableRows<StateCount>>,
    /// `task_queue`: the items that need attention.
    pub items: Vec<TableRows<Item>>,
    pub limits: Vec<TableRows<RateLimit>>,
    /// `id_generator`: snowflake ids, one row per worker.
    pub generators: Vec<TableRows<IdGenerator>>,
    /// `locktop_workers`: the types of work that each worker takes.
    pub workers: Vec<TableRows<TaskWorker>>,
    /// `contended_locks`: the locks with the longest waits, as counted by the schema.
    pub contended: Vec<TableRows<CountedWaits>>,
    /// `refusals`: what the schema's functions refused, one row a table.
    pub refusals: Vec<TableRows<Refusals>>,
    /// Locks in Redis; without servers if none is configured.
    pub redis: Arc<RedisLeases>,
}

impl Systems {
    /// The counts for a lock, if any; if several tables have it, the first.
    pub fn counted(&self, tag: &LockTag) -> Option<&CountedWaits> {
        let mut rows = self.contended.iter().flat_map(|table| table.section.last_rows().iter());
        rows.find(|counted| counted.tag == *tag)
    }
}
