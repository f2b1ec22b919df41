//! Whether work may continue.
//!
//! Work may have to **stop**: this is signalled once, with the reason, and never withdrawn. Or it may be
//! **unconfirmed** that its lock is still held, because the last answered heartbeat is too long ago, as after a
//! suspension. Then the work waits until a heartbeat confirms the lock or it is told to stop.
//!
//! [`gate`] enforces this: a future behind it is not polled meanwhile. Tasks and threads that the work has spawned are
//! not behind it, and have to use [`Stop::confirmed`].

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;

use crate::work_session::Job;
use locktop_base::clock;

/// Why running work has to stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// The connection that holds its lock has ended, with the known cause. Another worker may have the task by now.
    #[error("the connection that held its lock has ended: {0}")]
    ConnectionLost(String),
    /// A heartbeat found that the execution no longer belongs to this session.
    #[error("a heartbeat found that this session no longer runs it")]
    NotOurs,
    /// The worker is shutting down, and its grace is over. The job is returned.
    #[error("the worker is shutting down")]
    ShutDown,
}

/// When a session last knew that it held its locks.
#[derive(Debug)]
pub(super) struct LockConfirmation(watch::Sender<Confirmed>);

#[derive(Debug, Clone, Copy)]
struct Confirmed {
    /// By [`clock::since_boot`]; `None` if it is never in doubt.
    at: Option<Duration>,
    /// How long a confirmation is valid.
    lasts: Duration,
}

impl Confirmed {
    fn is_good(self) -> bool {
        self.at.is_none_or(|at| clock::since_boot().saturating_sub(at) <= self.lasts)
    }
}

impl LockConfirmation {
    pub(super) fn new(at: Duration, lasts: Duration) -> Self {
        Self(watch::Sender::new(Confirmed { at: Some(at), lasts }))
    }

    /// `at` is the time of the request, not of the answer.
    pub(super) fn confirm(&self, at: Duration) {
        self.0.send_modify(|confirmed| confirmed.at = Some(at));
    }

    pub(super) fn is_good(&self) -> bool {
        self.0.borrow().is_good()
    }
}

#[derive(Debug)]
pub(super) struct StopSender(watch::Sender<Option<StopReason>>);

impl StopSender {
    /// Only the first reason counts. Returns whether this was the first.
    pub(super) fn request(&self, reason: StopReason) -> bool {
        self.0.send_if_modified(|told| {
            let first = told.is_none();
            if first {
                *told = Some(reason);
            }
            first
        })
    }

    pub(super) fn reason(&self) -> Option<StopReason> {
        self.0.borrow().clone()
    }
}

/// Shows the work whether it may continue. All clones show the same.
#[derive(Debug, Clone)]
pub struct Stop {
    requested: watch::Receiver<Option<StopReason>>,
    confirmed: watch::Receiver<Confirmed>,
}

impl Stop {
    pub(super) fn new(hold: &LockConfirmation) -> (StopSender, Self) {
        let (teller, told) = watch::channel(None);
        (StopSender(teller), Self { requested: told, confirmed: hold.0.subscribe() })
    }

    /// Never requests a stop, for work that is run by other means.
    #[must_use]
    pub fn never() -> Self {
        // Without their senders both keep their values, and `stopped` never returns.
        let confirmed = watch::channel(Confirmed { at: None, lasts: Duration::ZERO }).1;
        Self { requested: watch::channel(None).1, confirmed }
    }

    /// The reason to stop now; `None` while the work need not stop.
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        self.requested.borrow().clone()
    }

    /// Returns the reason as soon as the work has to stop.
    pub async fn stopped(&self) -> StopReason {
        let mut told = self.requested.clone();
        match told.wait_for(Option::is_some).await.map(|told| told.clone()) {
            Ok(Some(reason)) => reason,
            // The worker no longer exists. It ends all its work first, so this is not reached inside a worker.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Whether the work may continue at this moment: it was not told to stop, and the server has recently confirmed the
    /// lock.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        // In this order: a heartbeat signals lost jobs before it confirms the rest.
        let confirmed = self.confirmed.borrow().is_good();
        confirmed && self.requested.borrow().is_none()
    }

    /// Returns as soon as the work may continue, in most cases at once.
    pub async fn confirmed(&self) -> Result<(), StopReason> {
        let mut confirmed = self.confirmed.clone();
        loop {
            let good = confirmed.borrow_and_update().is_good();
            if let Some(reason) = self.reason() {
                return Err(reason);
            }
            if good {
                return Ok(());
            }
            tokio::select! {
                reason = self.stopped() => return Err(reason),
                changed = confirmed.changed() => if changed.is_err() {
                    return Err(self.stopped().await);
                },
            }
        }
    }
}

/// Runs `work`, but polls it only while its lock is confirmed. Once told to stop, it is polled again so that it can
/// clean up.
pub async fn gate<F: Future>(work: F, stop: &Stop) -> F::Output {
    let mut work = pin!(work);
    let mut closed = None;
    poll_fn(|context| {
        if !stop.may_go_on() && stop.reason().is_none() {
            // The one future that waits for the gate to open; it lives while the gate is closed.
            let opening = closed.get_or_insert_with(|| {
                let stop = stop.clone();
                Box::pin(async move { stop.confirmed().await })
            });
            if opening.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        closed = None;
        work.as_mut().poll(context)
    })
    .await
}

/// The work of a job: an execution of a task, or an item of the queue. The worker loop takes care of the lock; the work
/// only of itself and of `stop`.
///
/// The future is not polled while it is in doubt whether the lock is still held ([`super::gate`]). Once told to stop,
/// it has five seconds to clean up and return; then it is dropped. A panic fails the job. The work enforces its own
/// time limit: the loop has none.
pub trait Work: Send + Sync + 'static {
    /// Runs one job. `Ok` completes it.
    fn run(&self, job: &Job, stop: Stop) -> impl Future<Output = Result<(), WorkError>> + Send;
}

/// Why a job is not completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The work failed, with the text for its row. It is retried after a pause, up to its last attempt.
    #[error("{0}")]
    Failed(String),
    /// The work is impossible: an item is set aside, with the text in its row. A task fails as by [`Self::Failed`].
    #[error("{0}")]
    Refused(String),
    /// The work was told to stop, and did. After a shutdown the job is returned; in all other cases it no longer belongs to
    /// this session, and nothing is written.
    #[error("{0}")]
    Stopped(StopReason),
}

impl From<StopReason> for WorkError {
    fn from(reason: StopReason) -> Self {
        Self::Stopped(reason)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn counting(count: &Arc<AtomicU32>) -> impl Future<Output = ()> + use<> {
        let count = Arc::clone(count);
        poll_fn(move |context| {
            context.waker().wake_by_ref();
            if count.fetch_add(1, Ordering::Relaxed) > 100 { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    fn suspended() -> LockConfirmation {
        // The last confirmation has expired, as after a suspension.
        LockConfirmation::new(Duration::ZERO, Duration::ZERO)
    }

    #[tokio::test]
    async fn work_that_is_not_confirmed_is_not_polled_until_it_is() {
        let hold = suspended();
        let (_sender, stop) = Stop::new(&hold);
        let count = Arc::new(AtomicU32::new(0));
        let work = tokio::spawn({
            let (stop, work) = (stop.clone(), counting(&count));
            async move { gate(work, &stop).await }
        });
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(count.load(Ordering::Relaxed), 0, "nothing was done of it");
        assert!(!stop.may_go_on() && stop.reason().is_none());
        hold.0.send_modify(|confirmed| confirmed.lasts = LONG);
        hold.confirm(clock::since_boot());
        work.await.unwrap();
        assert!(stop.may_go_on());
        assert_eq!(stop.confirmed().await, Ok(()));
    }

    #[tokio::test]
    async fn lost_work_sees_the_stop_reason_before_it_runs() {
        let hold = suspended();
        let (sender, stop) = Stop::new(&hold);
        let seen = {
            let stop = stop.clone();
            tokio::spawn(async move { gate(async { stop.reason() }, &stop).await })
        };
        tokio::task::yield_now().await;
        assert!(sender.request(StopReason::NotOurs));
        assert!(!sender.request(StopReason::ShutDown), "the first reason counts");
        assert_eq!(seen.await.unwrap(), Some(StopReason::NotOurs));
        assert_eq!(stop.stopped().await, StopReason::NotOurs);
        assert_eq!(stop.confirmed().await, Err(StopReason::NotOurs));
        hold.0.send_modify(|confirmed| confirmed.lasts = LONG);
        hold.confirm(clock::since_boot());
        assert!(!stop.may_go_on(), "a heartbeat does not withdraw a stop");
    }

    #[tokio::test]
    async fn a_stop_that_is_never_requested_lets_work_continue() {
        let stop = Stop::never();
        assert!(stop.may_go_on() && stop.reason().is_none());
        gate(async {}, &stop).await;
        assert_eq!(stop.confirmed().await, Ok(()));
    }
}
