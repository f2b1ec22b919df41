use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::claim::{Armed, count};
use super::error::Lost;
use super::quorum;
use super::watchdog::{self, State};
use crate::held;
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

async fn lost(state: &mut watch::Receiver<State>) -> Lost {
    let found = state.wait_for(|state| state.lost.is_some()).await;
    // The watchdog ends only after it has reported the loss, or with its runtime.
    found.ok().and_then(|state| state.lost).unwrap_or(Lost::Silent)
}

/// Ends with the guard.
#[derive(Debug)]
struct Watchdog(JoinHandle<()>);

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Guard {
    pub(super) fn begin(armed: Armed, term: Duration, started: Duration, valid_until: Duration) -> Self {
        let (sender, state) = watch::channel(State { valid_until, lost: None });
        let renewing = watchdog::run(Arc::clone(&armed.claim), term, started, sender);
        Self { watchdog: Watchdog(tokio::spawn(renewing)), state, armed }
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
        let state = *self.state.borrow();
        let left = state.valid_until.saturating_sub(clock::since_boot());
        if state.lost.is_none() { left } else { Duration::ZERO }
    }

    /// Whether the lock is certainly held at this moment. Reads the clock, so it is correct even if this process, or the
    /// whole machine, was suspended.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.time_left().is_zero()
    }

    /// Waits until the lock is, or may be, lost. Work under the lock must stop then.
    pub async fn lost(&mut self) -> Lost {
        lost(&mut self.state).await
    }

    /// Runs the work while the lock is held, and drops it midway when the lock is lost. The clock is read before each step,
    /// so that a process that was suspended does nothing more. It is not read after the last step.
    ///
    /// # Errors
    /// If the lock was, or may have been, lost before the last step.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        let mut state = self.state.clone();
        let lost_now = || self.state.borrow().lost.unwrap_or(Lost::Silent);
        let check = || if self.is_held() { Ok(()) } else { Err(lost_now()) };
        held::run(work, check, lost(&mut state)).await
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
