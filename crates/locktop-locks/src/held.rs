//! Work under a lock that can be lost.

use std::pin::pin;
use std::task::Poll;

use crate::error::Lost;

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
    fn run<F: Future>(&self, work: F) -> impl Future<Output = Result<F::Output, Lost>> {
        async move {
            let (mut lost, mut work) = (pin!(self.lost()), pin!(work));
            std::future::poll_fn(|context| {
                self.check()?;
                if let Poll::Ready(loss) = lost.as_mut().poll(context) {
                    return Poll::Ready(Err(loss));
                }
                work.as_mut().poll(context).map(Ok)
            })
            .await
        }
    }
}
