//! Leases in PostgreSQL: locks that expire, in the table `distlock` of locktop's schema.
//!
//! A lease needs no open connection, so it may last for days, and it works through any pooler. It cannot stop a holder
//! that does not know that the lease is lost, because it was suspended or cut off. Therefore each owner has a token that
//! is larger than all before it, and a write that only the holder may make is fenced with it, in the transaction that
//! writes:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use locktop_locks::Held;
//! use locktop_locks::lease::{Lease, Request};
//! use locktop_locks::pg_connect::conninfo::ConnInfo;
//!
//! # async fn example(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let info = ConnInfo::parse("host=db.example dbname=shop")?;
//! let request = Request::new("invoices", "node1", Duration::from_secs(30));
//! let Some(lease) = Lease::acquire(&info, &request).await? else { return Ok(()) };
//! let work = async {
//!     let transaction = client.transaction().await?;
//!     lease.fence(&transaction).await?;
//!     transaction.batch_execute("UPDATE report SET made_at = clock_timestamp()").await?;
//!     transaction.commit().await?;
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! };
//! lease.run(work).await??;
//! assert!(lease.release().await?);
//! # Ok(())
//! # }
//! ```
//!
//! # Which clock decides
//!
//! The server's clock decides when a lease ends. The holder does not read it: it counts nine tenths of the term by its
//! own monotonic clock, from *before* it sent the last confirmed renewal, and then stops ([`Lost::NotRenewed`](crate::Lost::NotRenewed)). So it
//! stops before the server lets another owner in, unless the rates of the two clocks differ by a tenth. It renews at a
//! third of the term, and tries again, with a new connection, as long as there is time. The renewals are a task of the runtime:
//! work that blocks a thread belongs in `spawn_blocking`.
//!
//! [`Held::run`](crate::Held::run) reads the clock before each step of the work: a process that was suspended finds out when it resumes,
//! before it does more. Between that check and the effect it may be suspended again; only [`Lease::fence`] protects
//! against that.
//!
//! # The queue
//!
//! [`Lease::acquire_within`] waits for a session advisory lock, which the server grants in the order of arrival. The session
//! that has it is the first in the queue, and listens for the release. The lock's key is
//! `hashtextextended('locktop lease "SCHEMA" ID', 0)`, where ID is the number, or the name as an SQL literal, and the channel `locktop_lease_KEY`. A release tries to get the key
//! shared, and notifies only if it does not get it, in a statement of its own. A program that calls `lease_release` itself
//! can do the same:
//!
//! ```sql
//! SELECT pg_notify(concat('locktop_lease_', k.key), '') FROM hashtextextended('locktop lease "locktop" 7', 0) k (key)
//!  WHERE NOT pg_try_advisory_xact_lock_shared(k.key);
//! ```
//!
//! If a holder dies, the next one gets the lease at the end of its term. If the first in the queue is suspended or cut off,
//! the server ends its session after [`Request::retry`] and its term (at least 1 s, at most 10 s). Behind a pooler in
//! transaction mode there is no session to wait with: a request is repeated with random pauses, and the order is random.
//!
//! # The SQL
//!
//! `lease_acquire(id, owner, term)` and `lease_acquire_named(name, owner, term)` return the token or null, `lease_id(name)` the id of a name, whose row it creates if there is none, `lease_renew(id, token)` and `lease_release(id, token)` a
//! boolean, `assert_lease(id, token)` fails with SQLSTATE `LT001`; `lease_check` only reads, and the view `leases` is for
//! display. Statements written for the published table work on this one, and give each new owner a new token too.
//!
//! A request for a lease that is held only reads it, and so does not block its holder; a renewal and a release wait for
//! the row for at most a second, and no longer than the lease lasts.
//!
//! A role that is not the owner of the schema needs `USAGE` on it, `SELECT, INSERT, UPDATE` on `distlock`, and `SELECT`
//! on the view; for statements as published, `USAGE` on the sequence `distlock_token_seq` as well.

mod force;
mod guard;
mod keeper;
mod link;
mod queue;

use std::time::Duration;

use crate::SchemaName;
use locktop_base::text::one_line_prefix;

pub use force::{Place, Shown, force_release};
pub use guard::{Holder, Lease, Leases};

/// Most characters of a name.
const NAME: usize = 200;

/// The shortest term: a third of it must be enough for a round trip of a renewal.
pub const SHORTEST: Duration = Duration::from_millis(100);

/// Identifies a lease: two that differ are two leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeaseId {
    /// The row of `distlock` with this id.
    Number(i32),
    /// The row with this name, of 1 to 200 characters; its id is a random negative number.
    Name(String),
}

impl From<i32> for LeaseId {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for LeaseId {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl std::fmt::Display for LeaseId {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(to),
            Self::Name(name) => one_line_prefix(name, NAME).fmt(to),
        }
    }
}

/// Which lease, for which owner, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its number or name; its row is created if it does not exist.
    pub id: LeaseId,
    /// For display: owners are distinguished by the token.
    pub owner: String,
    /// The time until it ends, unless it is renewed; at least [`SHORTEST`].
    pub term: Duration,
    /// The schema that the table is in.
    pub schema: SchemaName,
    /// How often the first in the queue asks without being notified: 1 s, less if leases end otherwise than by
    /// [`Lease::release`].
    pub retry: Duration,
}

impl Request {
    /// A lease in the schema `locktop`.
    #[must_use]
    pub fn new(id: impl Into<LeaseId>, owner: &str, term: Duration) -> Self {
        let (owner, schema) = (owner.to_owned(), SchemaName::default());
        Self { id: id.into(), owner, term, schema, retry: Duration::from_secs(1) }
    }
}
