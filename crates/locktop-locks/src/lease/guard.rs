use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use super::link::{Kept, Link, first};
use super::{LeaseId, NAME, Request, SHORTEST, end, queue};
use crate::call::Parameter;
use crate::held::{self, Leader, Standing, Term};
use crate::{Error, Held, Lost};
use locktop_base::clock;
use pg_connect::conninfo::ConnInfo;

/// Longest wait for an answer, and for the row of a lease that is released.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A held lease, renewed in the background. Dropping it stops the renewals and lets it expire: work may still be in
/// progress.
#[derive(Debug)]
#[must_use = "dropping it lets the lease expire"]
pub struct Lease {
    id: LeaseId,
    /// `distlock.id`.
    row: i32,
    token: i64,
    term: Duration,
    /// The name of the schema, in double quotes.
    schema: String,
    held: Term,
    /// Stops the task when dropped.
    stop: oneshot::Sender<()>,
    task: JoinHandle<Link>,
}

impl Lease {
    /// Acquires a lease that is free, even if others wait for it; `None` if it is held, whatever the owner's name.
    ///
    /// # Errors
    /// If the request is invalid, or the server cannot be reached, refuses, or does not answer within the term. Without an
    /// answer the lease may have been acquired all the same, without a holder: it then ends after its term.
    pub async fn acquire(info: &ConnInfo, request: &Request) -> Result<Option<Self>, Error> {
        Self::acquire_within(info, request, Duration::ZERO).await
    }

    /// The same, after a wait of at most `limit` in the queue for the lease: first come, first served. The next in the queue
    /// asks when the lease is released by [`Self::release`], when its term ends, and at the latest after [`Request::retry`].
    ///
    /// A request that is dropped leaves the queue at once. One that is not the first of the queue after 5 to 10 min goes to its
    /// end, because VACUUM keeps the rows that a session which waits for a lock can see.
    ///
    /// # Errors
    /// As for [`Self::acquire`], and if the wait is cancelled.
    pub async fn acquire_within(
        info: &ConnInfo,
        request: &Request,
        limit: Duration,
    ) -> Result<Option<Self>, Error> {
        Leases::new(info.clone()).acquire_within(request, limit).await
    }

    fn new(link: Link, request: &Request, token: i64, sent: Duration) -> Self {
        let (id, term, schema) = (request.id.clone(), request.term, request.schema.quoted());
        let reason = "this process or its machine was suspended, or its runtime was blocked";
        let held = Term::new(end(sent, term), not_renewed(&id, reason.to_owned()));
        let (stop, stopped) = oneshot::channel();
        let row = link.row;
        let task = tokio::spawn(keep(link, token, held.clone(), stopped));
        Self { id, row, token, term, schema, held, stop, task }
    }

    /// Larger than the token of any earlier owner. For systems outside this database that can compare numbers.
    #[must_use]
    pub fn token(&self) -> i64 {
        self.token
    }

    /// Reads the clock and returns for how long the lease is certainly still held; zero if it is, or may be, lost.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.held.left()
    }

    /// Makes a transaction fail unless the lease is still held, and blocks every other owner until it ends: the first
    /// statement of a write that only the holder may make. Renewals continue meanwhile.
    ///
    /// For this transaction `idle_in_transaction_session_timeout` is at most the time that is left, or a third of the term if
    /// that is longer: the server terminates the session of a holder that is suspended in it, and the next owner waits no
    /// longer than that after its last statement.
    ///
    /// # Errors
    /// [`Error::Fenced`] if the lease is no longer held. The transaction can then only be rolled back.
    pub async fn fence(&self, transaction: &Transaction<'_>) -> Result<(), Error> {
        // The server decides whether it is held. The setting is a number of milliseconds up to `i32::MAX`.
        let left = self.time_left().max(self.term / 3);
        let left = format!("{}ms", left.as_millis().clamp(1, i32::MAX.unsigned_abs().into()));
        let current =
            "pg_catalog.current_setting('idle_in_transaction_session_timeout')::pg_catalog.interval";
        let sql = format!(
            "SELECT {}.assert_lease($1, $2),
                    CASE WHEN {current} OPERATOR(pg_catalog.>) interval '0'
                              AND {current} OPERATOR(pg_catalog.<=) $3::pg_catalog.interval THEN NULL
                         ELSE pg_catalog.set_config('idle_in_transaction_session_timeout', $3, true) END",
            self.schema
        );
        let values: &[Parameter<'_>] =
            &[(&self.row, Type::INT4), (&self.token, Type::INT8), (&left, Type::TEXT)];
        let answer = transaction.query_typed(&sql, values).await;
        answer.map(|_| ()).map_err(|error| match Error::of("assert_lease", &self.schema, &error) {
            Error::Fenced(message) => {
                let number = format!("lease {} ", self.row);
                Error::Fenced(message.replacen(&number, &format!("lease {} ", self.id), 1))
            }
            error => error,
        })
    }

    /// Ends the lease now, and notifies the next in its queue, if there is one; returns whether it was held until now.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses or does not answer, or another session keeps the row locked. The lease may
    /// then run to the end of its term.
    pub async fn release(self) -> Result<bool, Error> {
        drop(self.stop);
        let stopped = |_| Error::Disconnected {
            what: "lease_release".to_owned(),
            reason: "its task was stopped".to_owned(),
        };
        let mut link = self.task.await.map_err(stopped)?;
        link.leave().await;
        let start = clock::monotonic();
        loop {
            let answer = tokio::time::timeout(TIMEOUT, link.release(self.token)).await;
            let Ok(answer) = answer else {
                link.close();
                return Err(Error::silent("lease_release", TIMEOUT));
            };
            match answer? {
                Some(held) => return Ok(held),
                None if start.elapsed() > TIMEOUT => {
                    return Err(Error::Locked { id: self.id, what: "lease_release" });
                }
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
}

/// Leases of one server, for a program that requests them again and again: a released lease, or a request that was not granted,
/// leaves its connection to the next request, for up to 5 s. Clones share it.
#[derive(Debug, Clone)]
pub struct Leases {
    info: ConnInfo,
    kept: Arc<Kept>,
}

impl Leases {
    /// Leases on this server. Nothing is connected before the first request.
    #[must_use]
    pub fn new(info: ConnInfo) -> Self {
        Self { info, kept: Arc::default() }
    }

    /// As [`Lease::acquire`].
    ///
    /// # Errors
    /// As for that.
    pub async fn acquire(&self, request: &Request) -> Result<Option<Lease>, Error> {
        self.acquire_within(request, Duration::ZERO).await
    }

    /// As [`Lease::acquire_within`].
    ///
    /// # Errors
    /// As for that.
    pub async fn acquire_within(&self, request: &Request, limit: Duration) -> Result<Option<Lease>, Error> {
        if request.owner.is_empty() || request.term < SHORTEST {
            return Err(Error::invalid(format!(
                "a lease needs an owner and a term of at least {} ms",
                SHORTEST.as_millis()
            )));
        }
        if let LeaseId::Name(name) = &request.id
            && (!(1..=NAME).contains(&name.chars().count()) || name.contains('\0'))
        {
            return Err(Error::invalid("the name of a lease has 1 to 200 characters, and no NUL"));
        }
        let mut link = Link::new(&self.info, request);
        link.kept = Arc::downgrade(&self.kept);
        link.connection = self.kept.take().await;
        let granted = queue::acquire(&mut link, request, limit).await?;
        if granted.is_none() {
            link.keep();
        }
        Ok(granted.map(|(token, sent)| Lease::new(link, request, token, sent)))
    }
}

impl Held for Lease {
    fn check(&self) -> Result<(), Lost> {
        self.held.check()
    }

    fn lost(&self) -> impl Future<Output = Lost> + Send + 'static {
        self.held.lost()
    }
}

/// Leaves the queue, and renews until the lease is lost or the other end of `stop` is dropped.
async fn keep(mut link: Link, token: i64, held: Term, stop: oneshot::Receiver<()>) -> Link {
    tokio::select! {
        biased;
        _ = stop => held.change(Standing::end),
        () = renew_for_ever(&mut link, token, &held) => {}
    }
    link
}

async fn renew_for_ever(link: &mut Link, token: i64, held: &Term) {
    let start = clock::monotonic();
    link.leave().await;
    let mut pause = (link.term / 3).saturating_sub(start.elapsed());
    loop {
        tokio::time::sleep(pause).await;
        if held.check().is_err() {
            return;
        }
        let left = held.left();
        if left < shortest(link.term) {
            // Too late for an answer: the result of the last attempt is the better reason.
            pause = left;
            continue;
        }
        pause = match renew(link, token, held).await {
            Ok(()) => link.term / 3,
            Err(error) => {
                held.change(|held| held.failed(not_renewed(&link.lease, error.to_string())));
                link.term / 30
            }
        };
    }
}

/// The minimum time for an attempt.
fn shortest(term: Duration) -> Duration {
    term / 20
}

/// One attempt, for half of the time that is left: a new connection may get through if this one does not.
async fn renew(link: &mut Link, token: i64, held: &Term) -> Result<(), Error> {
    let sent = clock::since_boot();
    let left = held.left();
    let limit = (left / 2).max(shortest(link.term)).min(left);
    let Ok(answer) = tokio::time::timeout(limit, link.renew(token)).await else {
        link.close();
        // Without a fraction of a millisecond.
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        return Err(Error::silent("lease_renew", Duration::from_millis(limit)));
    };
    let id = link.lease.clone();
    match answer? {
        Some(true) => held.change(|held| held.renewed(end(sent, link.term), clock::since_boot())),
        Some(false) => held.change(|held| held.lose(Lost::Lease { id })),
        None => return Err(Error::Locked { id, what: "lease_renew" }),
    }
    Ok(())
}

fn not_renewed(id: &LeaseId, reason: String) -> Lost {
    Lost::NotRenewed { id: id.clone(), reason }
}

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
        held::lead(stop, lock, work, Self::release).await
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
        held::watched(Link::new(info, request))
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
