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

mod guard;
mod link;
mod queue;

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::call::Parameter;
use crate::{Error, SchemaName};
pub use guard::{Holder, Lease, Leases};
use locktop_base::text::one_line_prefix;

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

/// Until when a lease counts as held that was requested at `sent`.
pub(crate) fn end(sent: Duration, term: Duration) -> Duration {
    sent.saturating_add(term.saturating_sub(term / 10))
}

/// A row as it was displayed. Times are as the server printed them with `DateStyle` ISO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// `id` of the lease.
    pub id: i32,
    /// `owner`: the name of its holder.
    pub owner: String,
    /// `ts`: when it was acquired, or last renewed.
    pub ts: String,
    /// `expired_time`: the interval from `ts` to its end.
    pub expired_time: String,
    /// `token`, which grows with each new owner; `None` if the table has no such column.
    pub token: Option<i64>,
}

/// The table that a lease is in, which determines the statement that ends one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The table `distlock` that `locktop schema install` created in this schema.
    Installed(SchemaName),
    /// A table that was created as published, without tokens: its schema and name as in the catalog.
    Published {
        /// The schema's name, unquoted.
        schema: String,
        /// The table's name, unquoted.
        table: String,
    },
}

impl Place {
    /// The statement; its parameters are id, owner, ts, `expired_time` and, in a table of locktop's own, token.
    #[must_use]
    pub fn sql(&self) -> String {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        match self {
            Self::Installed(schema) => format!(
                "SELECT {}.lease_force_release($1, $2, $3::text::timestamptz, $4::text::interval, $5)",
                schema.quoted()
            ),
            // The owner is kept, to show which one had it. A holder that renews by name, as published, gets the lease back: nothing
            // in such a table can prevent that.
            Self::Published { schema, table } => format!(
                "WITH ended AS (UPDATE {}.{} SET ts = clock_timestamp(), expired_time = interval '0' \
                 WHERE id = $1 AND owner = $2 AND ts = $3::text::timestamptz AND expired_time = $4::text::interval \
                 AND clock_timestamp() < ts + expired_time RETURNING 1) SELECT EXISTS (SELECT FROM ended)",
                quoted(schema),
                quoted(table)
            ),
        }
    }
}

/// Ends the lease if its row is exactly as it was displayed; false if anything about it has changed, including a renewal,
/// or it has already ended. Its holder is not notified: it finds out when it renews, or when a fenced write is refused.
///
/// # Errors
/// If the server refuses or the connection fails.
pub async fn force_release(client: &Client, place: &Place, shown: &Shown) -> Result<bool, Error> {
    let token = shown.token.unwrap_or_default();
    let mut values: Vec<Parameter<'_>> = vec![
        (&shown.id, Type::INT4),
        (&shown.owner, Type::TEXT),
        (&shown.ts, Type::TEXT),
        (&shown.expired_time, Type::TEXT),
    ];
    let (what, schema) = match place {
        Place::Installed(schema) => {
            values.push((&token, Type::INT8));
            ("lease_force_release", schema.quoted())
        }
        Place::Published { schema, .. } => ("table of leases", schema.clone()),
    };
    let failed = |error: tokio_postgres::Error| Error::of(what, &schema, &error);
    let rows = client.query_typed(&place.sql(), &values).await.map_err(failed)?;
    rows.first().map_or(Ok(false), |row| row.try_get(0).map_err(failed))
}
