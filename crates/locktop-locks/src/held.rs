//! Work under a lock that can be lost, the term of one that expires, and the election of a leader by a lock of any kind.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;

use crate::error::{Error, Lost};
use locktop_base::clock;
use pg_connect::Backoff;

/// A lock that is held: of a session, a lease, or in Redis. It can be lost.
pub trait Held {
    /// Whether the lock is still held, as far as this process knows. A lock with a term reads the clock, so the answer is right
    /// even if this process, or the whole machine, was suspended.
    ///
    /// # Errors
    /// If it is, or may be, lost. It remains so.
    fn check(&self) -> Result<(), Lost>;

    /// Completes when the lock is, or may be, lost: work under it must stop then. It never completes after a release.
    fn lost(&self) -> impl Future<Output = Lost> + Send + 'static;

    /// Runs the work while the lock is held, and drops it midway when the lock is lost. [`Held::check`] precedes each step, so that
    /// a process that was suspended does nothing more. It does not follow the last step.
    ///
    /// # Errors
    /// If the lock was, or may have been, lost before the last step.
    fn run<F: Future>(&self, work: F) -> Run<'_, Self, F> {
        Run { held: self, lost: Box::pin(self.lost()), work: Box::pin(work) }
    }
}

/// [`Held::run`]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Run<'a, H: ?Sized, F> {
    held: &'a H,
    lost: Pin<Box<dyn Future<Output = Lost> + Send>>,
    work: Pin<Box<F>>,
}

impl<H: Held + ?Sized, F: Future> Future for Run<'_, H, F> {
    type Output = Result<F::Output, Lost>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.held.check()?;
        if let Poll::Ready(loss) = self.lost.as_mut().poll(context) {
            return Poll::Ready(Err(loss));
        }
        self.work.as_mut().poll(context).map(Ok)
    }
}

/// The term of a lock that expires. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Term(watch::Sender<Standing>);

/// Either the lock is held for some time, or it is lost, and then for good. Times are those of [`clock::since_boot`].
#[derive(Debug)]
pub(crate) struct Standing {
    /// From then on another client may hold it.
    until: Duration,
    /// The loss when that time comes.
    unrenewed: Lost,
    /// The loss instead of that if the last renewal attempt failed.
    lost: Option<Lost>,
    loss: Option<Lost>,
    /// It is released, or its guard is dropped: its end is no loss.
    is_over: bool,
}

impl Term {
    pub(crate) fn new(until: Duration, unrenewed: Lost) -> Self {
        Self(watch::Sender::new(Standing::new(until, unrenewed)))
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Standing)) {
        self.0.send_modify(change);
    }

    #[cfg(feature = "redis")]
    pub(crate) fn until(&self) -> Duration {
        self.0.borrow().until
    }

    /// Reads the clock, and returns how long the lock is certainly held.
    pub(crate) fn left(&self) -> Duration {
        let now = clock::since_boot();
        self.0.send_if_modified(|standing| standing.tick(now));
        self.0.borrow().left(now)
    }

    pub(crate) fn check(&self) -> Result<(), Lost> {
        self.left();
        self.0.borrow().loss.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn lost(&self) -> impl Future<Output = Lost> + Send + 'static {
        let term = self.clone();
        async move {
            let mut news = term.0.subscribe();
            loop {
                let left = term.left();
                let is_over = {
                    let known = news.borrow_and_update();
                    if let Some(loss) = &known.loss {
                        return loss.clone();
                    }
                    known.is_over
                };
                // A timer stops while the machine sleeps, but servers do not: the clock is read every second.
                let wait = if is_over { Duration::MAX } else { left.min(Duration::from_secs(1)) };
                let _ = tokio::time::timeout(wait, news.changed()).await;
            }
        }
    }
}

impl Standing {
    fn new(until: Duration, unrenewed: Lost) -> Self {
        Self { until, unrenewed, lost: None, loss: None, is_over: false }
    }

    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    fn left(&self, now: Duration) -> Duration {
        if self.loss.is_some() { Duration::ZERO } else { self.until.saturating_sub(now) }
    }

    /// Reads the clock; returns whether that changed anything.
    fn tick(&mut self, now: Duration) -> bool {
        if self.is_over || self.loss.is_some() || now < self.until {
            return false;
        }
        self.loss = self.lost.take().or_else(|| Some(self.unrenewed.clone()));
        true
    }

    /// A renewal is confirmed. A confirmation that comes too late does not restore a lost lock.
    pub(crate) fn renewed(&mut self, until: Duration, now: Duration) {
        self.tick(now);
        self.lost = None;
        self.until = until;
        self.tick(now);
    }

    /// A renewal attempt has failed, and may be repeated.
    pub(crate) fn failed(&mut self, trouble: Lost) {
        self.lost = Some(trouble);
    }

    /// It is not held, by the answers of the servers.
    pub(crate) fn lose(&mut self, loss: Lost) {
        self.loss.get_or_insert(loss);
    }
}

/// How often the leader is read.
const READ: Duration = Duration::from_secs(1);

/// Waits for the lock and runs the work while it is held; again if it is lost, until the work or `stop` completes.
pub(crate) async fn lead<G: Held, F, W, R>(
    stop: impl Future<Output = ()>,
    mut lock: impl FnMut() -> F,
    mut work: impl FnMut(Arc<G>) -> W,
    release: impl FnOnce(G) -> R,
) -> Result<(), Error>
where
    F: Future<Output = Result<G, Error>>,
    W: Future<Output = ()>,
    R: Future,
{
    let mut stop = pin!(stop);
    let mut backoff = Backoff::default();
    loop {
        let guard = tokio::select! {
            () = &mut stop => return Ok(()),
            guard = lock() => guard,
        };
        let guard = match guard {
            Ok(guard) => Arc::new(guard),
            Err(error) if error.is_transient() => {
                let pause = backoff.failed(matches!(error, Error::Silent { .. }));
                tokio::select! {
                    () = &mut stop => return Ok(()),
                    () = tokio::time::sleep(pause) => continue,
                }
            }
            Err(error) => return Err(error),
        };
        backoff = Backoff::default();
        let done = tokio::select! {
            () = &mut stop => Ok(()),
            done = guard.run(work(Arc::clone(&guard))) => done,
        };
        if done.is_ok() {
            // The work is done; an error would only report that the lock is lost.
            if let Some(guard) = Arc::into_inner(guard) {
                let _ = release(guard).await;
            }
            return Ok(());
        }
    }
}

/// A way to read who holds a lock.
pub(crate) trait Leader: Send + 'static {
    type Holder: PartialEq + Send + Sync + 'static;

    fn read(&mut self) -> impl Future<Output = Result<Option<Self::Holder>, Error>> + Send;
}

/// Reads the leader each second until the receiver is dropped.
pub(crate) fn watched<L: Leader>(mut leader: L) -> watch::Receiver<Option<L::Holder>> {
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        loop {
            let mut reading = pin!(leader.read());
            let holder = loop {
                tokio::select! {
                    () = sender.closed() => return,
                    holder = &mut reading => break holder.ok().flatten(),
                    // Not known any more.
                    () = tokio::time::sleep(2 * READ) => {
                        sender.send_if_modified(|known| known.take().is_some());
                    }
                }
            };
            sender.send_if_modified(|known| {
                let is_new = *known != holder;
                *known = holder;
                is_new
            });
            tokio::select! {
                () = sender.closed() => return,
                () = tokio::time::sleep(READ) => {}
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::{LeaseId, end};

    const TERM: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn acquired() -> Standing {
        let reason = "suspended".to_owned();
        Standing::new(end(at(100), TERM), Lost::NotRenewed { id: LeaseId::Number(7), reason })
    }

    /// A task of its own needs a future that is `Send`, whatever the guard.
    #[test]
    fn a_run_can_be_spawned_for_any_guard() {
        fn is_send<T: Send>(_: &T) {}
        fn spawned<G: Held + Sync>(guard: &G) {
            is_send(&guard.run(async {}));
        }
        let _ = spawned::<crate::advisory::Guard>;
    }

    #[test]
    fn it_ends_before_the_term_does_counted_from_before_it_was_sent() {
        let mut standing = acquired();
        assert_eq!(standing.left(at(100)), at(27));
        assert!(!standing.tick(at(126)) && standing.loss.as_ref().is_none());
        assert!(standing.tick(at(127)), "three seconds before the server lets another owner in");
        assert!(!standing.tick(at(128)), "once is enough");
        assert!(matches!(standing.loss.as_ref(), Some(Lost::NotRenewed { id: LeaseId::Number(7), .. })));
        assert_eq!(standing.left(at(101)), Duration::ZERO);
    }

    #[test]
    fn a_renewal_counts_from_when_it_was_sent() {
        let mut standing = acquired();
        standing.renewed(end(at(110), TERM), at(126));
        assert_eq!(standing.left(at(126)), at(11));
    }

    #[test]
    fn an_answer_from_before_the_machine_slept_does_not_count() {
        let mut standing = acquired();
        standing.renewed(end(at(110), TERM), at(500));
        assert!(standing.loss.as_ref().is_some());
        let mut standing = acquired();
        standing.tick(at(127));
        standing.renewed(end(at(120), TERM), at(128));
        assert!(standing.loss.as_ref().is_some(), "a loss that was reported is final");
    }

    #[test]
    fn the_last_failure_is_the_reason_and_a_loss_from_the_server_is_kept() {
        let mut standing = acquired();
        standing.failed(Lost::NotRenewed { id: LeaseId::Number(7), reason: "no connection".to_owned() });
        standing.tick(at(200));
        let text = standing.loss.as_ref().unwrap().to_string();
        assert_eq!(text, "lease 7 may be lost: no renewal was confirmed in time (no connection)");
        let mut standing = acquired();
        standing.lose(Lost::Lease { id: LeaseId::Number(7) });
        standing.tick(at(200));
        assert_eq!(standing.loss.as_ref(), Some(&Lost::Lease { id: LeaseId::Number(7) }));
    }
}
