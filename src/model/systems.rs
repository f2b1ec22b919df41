//! The tables of the other lock systems, as they were read: leases, the work queue, rate limits and id generators.
//!
//! A database may have several of each at once, the published one and that of `locktop schema install`. Every column that
//! a table lacks, and every NULL, is simply not known.

use std::sync::Arc;

use super::Text;
use super::lease::Lease;
use super::redis_lease::RedisLeases;
use super::snapshot::Section;

/// A table of the database that locktop is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// Its OID; 0 where there is no such table.
    pub table: u32,
    /// `schema.table`.
    pub name: Text,
}

/// A table and what was read of it.
#[derive(Debug, Clone)]
pub struct TableRows<T> {
    /// Where it is from.
    pub source: Arc<Source>,
    /// The rows.
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
    #[must_use]
    pub fn stale(&self, error: Text) -> Self {
        Self { source: Arc::clone(&self.source), section: self.section.stale(error), is_cut: self.is_cut }
    }
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Systems {
    /// `distlock`.
    pub leases: Vec<TableRows<Lease>>,
    /// Locks that are kept in Redis; without servers where none is configured.
    pub redis: Arc<RedisLeases>,
}
