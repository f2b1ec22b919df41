use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::types::{ToSql, Type};

use super::link::{Link, first};
use super::{Lease, LeaseId, Request};
use crate::Error;
use crate::lead::{self, Leader};
use pg_connect::conninfo::ConnInfo;

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The holder of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The name that it gave.
    pub owner: String,
    /// Its fencing token.
    pub token: i64,
}

impl Lease {
    /// Runs the work of a leader: waits for the lease, runs the work while it is held, and waits again if it is lost, until the
    /// work or `stop` completes. While the server is out of reach it tries again, after up to a minute. The work fences its
    /// writes with [`Lease::fence`]. A lease that the work passes on is renewed until the last of its `Arc`s is dropped, and then expires.
    ///
    /// # Errors
    /// As for [`Lease::acquire`].
    pub async fn lead<F: Future<Output = ()>>(
        info: &ConnInfo,
        request: &Request,
        stop: impl Future<Output = ()>,
        work: impl FnMut(Arc<Self>) -> F,
    ) -> Result<(), Error> {
        let lock = || async {
            loop {
                if let Some(lease) = Self::acquire_within(info, request, Duration::MAX).await? {
                    return Ok(lease);
                }
            }
        };
        lead::lead(stop, lock, work, Self::release).await
    }

    /// The current holder; `None` if the lease is not held. It may have changed before the answer arrives.
    ///
    /// # Errors
    /// If the server cannot be reached, or refuses.
    pub async fn holder(info: &ConnInfo, request: &Request) -> Result<Option<Holder>, Error> {
        Link::new(info, request).read().await
    }

    /// The holder of the lease, read once a second on one connection until the receiver is dropped; `None` also if that is not
    /// known.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn leader(info: &ConnInfo, request: &Request) -> watch::Receiver<Option<Holder>> {
        lead::watched(Link::new(info, request))
    }
}

impl Leader for Link {
    type Holder = Holder;

    async fn read(&mut self) -> Result<Option<Holder>, Error> {
        let (what, schema, lease) = ("distlock", self.schema.clone(), self.lease.clone());
        let (id, kind, column): (&(dyn ToSql + Sync), _, _) = match &lease {
            LeaseId::Number(id) => (id, Type::INT4, "id"),
            LeaseId::Name(name) => (name, Type::TEXT, "name"),
        };
        let sql = format!(
            "SELECT d.owner, d.token FROM {schema}.distlock d
              WHERE d.{column} OPERATOR(pg_catalog.=) $1 AND d.owner IS NOT NULL
                AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (d.ts OPERATOR(pg_catalog.+) d.expired_time)"
        );
        let values = [(id, kind)];
        let asking = first(self.client().await?, what, &schema, &sql, &values);
        let Ok(answer) = tokio::time::timeout(TIMEOUT, asking).await else {
            self.close();
            return Err(Error::silent(what, TIMEOUT));
        };
        let row = answer?;
        let failed = |error| Error::column(what, &error);
        row.map(|row| {
            Ok(Holder { owner: row.try_get(0).map_err(failed)?, token: row.try_get(1).map_err(failed)? })
        })
        .transpose()
    }
}
