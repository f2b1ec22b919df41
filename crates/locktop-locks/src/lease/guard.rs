//! A lease that is held.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use super::error::{LeaseError, Loss};
use super::link::Link;
use super::standing::Standing;
use super::{Request, SHORTEST, keeper};
use crate::call::CallError;
use locktop_base::clock;
use pg_connect::conninfo::ConnInfo;

/// Longest wait for the row of a lease that is given back.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A lease that is ours, renewed in the background. Dropping it stops the renewals and lets it run out: whatever was under way may
/// still be.
#[derive(Debug)]
#[must_use = "dropping it lets the lease expire"]
pub struct Lease {
    id: i32,
    token: i64,
    /// The name of the schema, in double quotes.
    schema: String,
    standing: watch::Sender<Standing>,
    /// Stops the task when dropped.
    stop: oneshot::Sender<()>,
    task: JoinHandle<Link>,
}

impl Lease {
    /// Takes a lease that nobody has; none when somebody has it, whatever the owner's name.
    ///
    /// # Errors
    /// When the request is none, the server cannot be reached or refuses, or does not answer within the term. Where the answer is
    /// missing, the lease may be taken all the same, by nobody: it then ends after its term.
    pub async fn acquire(info: &ConnInfo, request: &Request) -> Result<Option<Self>, LeaseError> {
        Self::acquire_within(info, request, Duration::ZERO).await
    }

    /// The same, asking again for at most so long. Nobody queues for a lease: who asks next after it ends has it.
    ///
    /// # Errors
    /// As for [`Self::acquire`].
    pub async fn acquire_within(
        info: &ConnInfo,
        request: &Request,
        limit: Duration,
    ) -> Result<Option<Self>, LeaseError> {
        if request.owner.is_empty() || request.term < SHORTEST {
            return Err(LeaseError::Request);
        }
        let mut link = Link::new(info, request);
        let start = clock::monotonic();
        let pause = (request.term / 10).min(Duration::from_secs(1));
        loop {
            link.client().await?;
            let sent = clock::since_boot();
            let answer = tokio::time::timeout(request.term, link.acquire(&request.owner)).await;
            let Ok(answer) = answer else {
                link.close();
                return Err(LeaseError::Silent { what: "lease_acquire", limit: request.term });
            };
            match answer? {
                Some(token) => return Ok(Some(Self::new(link, request, token, sent))),
                None if start.elapsed() >= limit => return Ok(None),
                None => tokio::time::sleep(pause.min(limit.saturating_sub(start.elapsed()))).await,
            }
        }
    }

    fn new(link: Link, request: &Request, token: i64, sent: Duration) -> Self {
        let standing = watch::Sender::new(Standing::new(request.id, sent, request.term));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(keeper::keep(link, token, standing.clone(), stopped));
        Self { id: request.id, token, schema: request.schema.quoted(), standing, stop, task }
    }

    /// Larger than the token of any owner before. For whatever outside this database can compare numbers.
    #[must_use]
    pub fn token(&self) -> i64 {
        self.token
    }

    /// Looks at the clock: for how long the lease is still ours for sure.
    ///
    /// # Errors
    /// When it is, or may be, lost. It stays so.
    pub fn check(&self) -> Result<Duration, Loss> {
        let now = clock::since_boot();
        self.standing.send_if_modified(|standing| standing.tick(now));
        let standing = self.standing.borrow();
        standing.loss().map_or_else(|| Ok(standing.left(now)), |loss| Err(loss.clone()))
    }

    /// Ends as soon as the lease is, or may be, lost.
    pub fn lost(&self) -> impl Future<Output = Loss> + Send + use<> {
        let standing = self.standing.clone();
        async move {
            let mut news = standing.subscribe();
            loop {
                let now = clock::since_boot();
                standing.send_if_modified(|standing| standing.tick(now));
                let left = {
                    let known = news.borrow_and_update();
                    if let Some(loss) = known.loss() {
                        return loss.clone();
                    }
                    known.left(now)
                };
                let _ = tokio::time::timeout(left, news.changed()).await;
            }
        }
    }

    /// Does the work as long as the lease is ours, and drops it half way when it is not. The clock is looked at before each step, so
    /// that a process which was suspended does nothing more.
    ///
    /// # Errors
    /// When the lease was, or may have been, lost before the work was done.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Loss> {
        let (mut lost, mut work) = (pin!(self.lost()), pin!(work));
        std::future::poll_fn(|context| {
            if let Err(loss) = self.check() {
                return Poll::Ready(Err(loss));
            }
            if let Poll::Ready(loss) = lost.as_mut().poll(context) {
                return Poll::Ready(Err(loss));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// Makes a transaction fail unless the lease is still ours, and keeps every other owner out until it ends: the first statement of
    /// what only the holder may write. Renewals go on meanwhile.
    ///
    /// # Errors
    /// [`LeaseError::Fenced`] when the lease is not ours any more. The transaction is good for a ROLLBACK only.
    pub async fn fence(&self, transaction: &Transaction<'_>) -> Result<(), LeaseError> {
        let sql = format!("SELECT {}.assert_lease($1, $2)", self.schema);
        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&self.id, Type::INT4), (&self.token, Type::INT8)];
        let answer = transaction.query_typed(&sql, &values).await;
        answer.map(|_| ()).map_err(|error| LeaseError::of("assert_lease", &self.schema, &error))
    }

    /// Ends the lease now; whether it was ours until now.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses or does not answer, or somebody keeps the row locked. The lease may then run to the
    /// end of its term.
    pub async fn release(self) -> Result<bool, LeaseError> {
        drop(self.stop);
        let stopped =
            |_| CallError::Lost { what: "lease_release", reason: "its task was stopped".to_owned() };
        let mut link = self.task.await.map_err(stopped)?;
        let start = clock::monotonic();
        loop {
            let answer = tokio::time::timeout(TIMEOUT, link.release(self.token)).await;
            let Ok(answer) = answer else {
                link.close();
                return Err(LeaseError::Silent { what: "lease_release", limit: TIMEOUT });
            };
            match answer? {
                Some(held) => return Ok(held),
                None if start.elapsed() > TIMEOUT => {
                    return Err(LeaseError::Locked { id: self.id, what: "lease_release" });
                }
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
}
