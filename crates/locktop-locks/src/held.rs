//! Work under a lock that can be lost, and the election of a leader by a lock of any kind.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;

use crate::error::{Error, Lost};
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

    /// A task of its own needs a future that is `Send`, whatever the guard.
    #[test]
    fn a_run_can_be_spawned_for_any_guard() {
        fn is_send<T: Send>(_: &T) {}
        fn spawned<G: Held + Sync>(guard: &G) {
            is_send(&guard.run(async {}));
        }
        let _ = spawned::<crate::advisory::Guard>;
    }
}
