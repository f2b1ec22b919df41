//! Work under a lock that can be lost.

use std::pin::Pin;
use std::task::{Context, Poll};

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
