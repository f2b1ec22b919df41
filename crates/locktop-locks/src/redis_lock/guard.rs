//! A lock that is held.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::claim::{Armed, count};
use super::error::Lost;
use super::quorum;
use super::watchdog::{self, State};
use locktop_base::clock;

/// What became of a release, counted over the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// Servers that had the value and have deleted it.
    pub freed: u32,
    /// Servers that did not have it any more.
    pub gone: u32,
    /// Servers that did not answer: there it ends with its term.
    pub unknown: u32,
}

impl Released {
    /// Whether a majority still had it: the lock was held to the end.
    #[must_use]
    pub fn was_held(self) -> bool {
        self.freed >= quorum(self.freed + self.gone + self.unknown)
    }
}

/// A lock that is held, and renewed by a task of its own, until it is released, lost or dropped.
#[derive(Debug)]
pub struct Guard {
    // In this order: no renewal begins once the value is being taken back.
    watchdog: Watchdog,
    state: watch::Receiver<State>,
    armed: Armed,
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

    /// Until when the lock is held for sure, by [`clock::since_boot`]; each renewal moves it.
    #[must_use]
    pub fn valid_until(&self) -> Duration {
        self.state.borrow().valid_until
    }

    /// How much longer the lock is held for sure if no renewal succeeds; nothing when it is lost.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        let state = *self.state.borrow();
        let left = state.valid_until.saturating_sub(clock::since_boot());
        if state.lost.is_none() { left } else { Duration::ZERO }
    }

    /// Whether the lock is held for sure at this moment. Asks the clock, so it is right also when this process, or the
    /// whole machine, has stood still.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.time_left().is_zero()
    }

    /// Waits until the lock is, or may be, lost. Whoever does work under the lock stops it then.
    pub async fn lost(&mut self) -> Lost {
        let found = self.state.wait_for(|state| state.lost.is_some()).await;
        // The watchdog ends only after it has said so, or with its runtime.
        found.ok().and_then(|state| state.lost).unwrap_or(Lost::Silent)
    }

    /// Gives the lock back, and says what the servers said.
    pub async fn release(self) -> Released {
        let Self { watchdog, armed, state: _ } = self;
        drop(watchdog);
        let votes = armed.release().await;
        Released { freed: votes.yes, gone: votes.no, unknown: count(votes.unknown.len()) }
    }

    /// Ends the renewals and leaves the key to the end of its term: nobody else gets the lock before.
    pub fn keep(mut self) {
        self.armed.disarm();
    }
}
