use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::claim::{Armed, count};
use super::quorum;
use super::watchdog::{self, State};
use crate::{Held, Lost};
use locktop_base::clock;

/// The result of a release, counted over the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// Servers that had the value and have deleted it.
    pub freed: u32,
    /// Servers that no longer had it.
    pub gone: u32,
    /// Servers that did not answer: there it expires with its term.
    pub unknown: u32,
}

impl Released {
    /// Whether a majority still had it: the lock was held to the end.
    #[must_use]
    pub fn was_held(self) -> bool {
        self.freed >= quorum(self.freed + self.gone + self.unknown)
    }
}

/// A held lock, renewed by a background task, until it is released, lost or dropped.
#[derive(Debug)]
pub struct Guard {
    // The order matters: no renewal begins once the value is being released.
    watchdog: Watchdog,
    state: watch::Receiver<State>,
    armed: Armed,
}

/// Ends with the guard.
#[derive(Debug)]
struct Watchdog {
    task: JoinHandle<()>,
    /// The lock is no longer wanted, so its end is no loss.
    is_over: Arc<AtomicBool>,
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.task.abort();
    }
}

impl Guard {
    pub(super) fn begin(armed: Armed, term: Duration, started: Duration, valid_until: Duration) -> Self {
        let (sender, state) = watch::channel(State { valid_until, lost: None });
        let renewing = watchdog::run(Arc::clone(&armed.claim), term, started, sender);
        Self { watchdog: Watchdog { task: tokio::spawn(renewing), is_over: Arc::default() }, state, armed }
    }

    /// The value that is set under the key.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.armed.claim.value
    }

    /// Until when the lock is certainly held, by [`clock::since_boot`]; each renewal extends it.
    #[must_use]
    pub fn valid_until(&self) -> Duration {
        self.state.borrow().valid_until
    }

    /// How much longer the lock is certainly held if no renewal succeeds; zero if it is lost.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        let state = self.state.borrow();
        let left = state.valid_until.saturating_sub(clock::since_boot());
        if state.lost.is_none() { left } else { Duration::ZERO }
    }

    /// Whether the lock is certainly held at this moment. Reads the clock, so it is correct even if this process, or the
    /// whole machine, was suspended.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.time_left().is_zero()
    }

    /// Releases the lock, and returns the servers' answers.
    pub async fn release(self) -> Released {
        let Self { watchdog, armed, state: _ } = self;
        drop(watchdog);
        let votes = armed.release(true).await;
        Released { freed: votes.yes, gone: votes.no, unknown: count(votes.unknown.len()) }
    }

    /// Stops the renewals and leaves the key to the end of its term: no other client gets the lock before.
    pub fn keep(mut self) {
        self.armed.disarm();
    }
}

impl Held for Guard {
    fn check(&self) -> Result<(), Lost> {
        if self.is_held() { Ok(()) } else { Err(self.state.borrow().lost.clone().unwrap_or(Lost::Silent)) }
    }

    fn lost(&self) -> impl Future<Output = Lost> + Send + 'static {
        let (mut state, is_over) = (self.state.clone(), Arc::clone(&self.watchdog.is_over));
        async move {
            let found =
                state.wait_for(|state| state.lost.is_some()).await.ok().and_then(|state| state.lost.clone());
            if found.is_none() && is_over.load(Ordering::Acquire) {
                return std::future::pending().await;
            }
            found.unwrap_or(Lost::Silent)
        }
    }
}
