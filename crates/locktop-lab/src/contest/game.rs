//! What all contests have in common.

use std::fmt::Debug;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use tokio_postgres::Client;

use super::tally::Found;
use crate::Audience;
use crate::workers::Orders;
use locktop_tasks::schema::SchemaName;
use pg_connect::conninfo::ConnInfo;

/// Where they are played.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) info: ConnInfo,
    /// Locktop's tables and functions, which are the demo's own here.
    pub(crate) schema: SchemaName,
    /// The program of the processes.
    pub(crate) program: PathBuf,
    pub(crate) orders: Orders,
    pub(crate) seed: u64,
    /// Somebody is going to ask for the numbers, and nobody looks on.
    pub(crate) counted: bool,
    /// While it has a question open nothing moves on.
    pub(crate) audience: Audience,
}

impl Place {
    /// One number where it is counted, and a smaller one where somebody looks on.
    pub(super) fn many(&self, counted: usize, shown: usize) -> usize {
        if self.counted { counted } else { shown }
    }
}

/// A contest that goes on. Dropping it ends it at once.
pub(crate) trait Game: Debug + Send + Sync {
    /// Whoever stands still is woken, what is under way comes to its end, and all go.
    fn finish(&mut self) -> BoxFuture<'_, ()>;

    /// The servers of Redis that are a part of it, to be looked at, in sets.
    fn redis(&self) -> Vec<Vec<String>> {
        Vec::new()
    }

    /// The numbers, as they are now.
    fn count<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<Found, tokio_postgres::Error>>;
}
