use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::claim::{Armed, Claim, Votes, count};
use super::options::validity;
use super::quorum;
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
        let renewing = renew(Arc::clone(&armed.claim), term, started, sender);
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

#[derive(Debug, Clone)]
struct State {
    /// Until when the last confirmed term is valid, by [`clock::since_boot`].
    valid_until: Duration,
    /// Set once, and never reset.
    lost: Option<Lost>,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// A majority has renewed: valid until this time of [`clock::since_boot`].
    Renewed(Duration),
    /// Nothing is known; it may be tried again.
    Unclear,
    /// No majority can still have it.
    Gone(Lost),
}

/// Renews at a third of the term, and earlier after a failed renewal, until the lock is lost.
async fn renew(claim: Arc<Claim>, term: Duration, taken: Duration, state: watch::Sender<State>) {
    let mut valid_until = state.borrow().valid_until;
    let mut next = taken + term / 3;
    let lost = loop {
        let ended = sleep_until(valid_until);
        tokio::pin!(ended);
        tokio::select! {
            biased;
            () = &mut ended => break Lost::Silent,
            () = sleep_until(next) => {}
        }
        let started = clock::since_boot();
        // After a pause of this process both times may be over.
        if started >= valid_until {
            break Lost::Silent;
        }
        let votes = tokio::select! {
            // An answer after the end of the term is too late, even if both arrive at once.
            biased;
            () = &mut ended => break Lost::Silent,
            votes = claim.ask(|member, claim| member.renew(&claim.key, &claim.value, term)) => votes,
        };
        if clock::since_boot() >= valid_until {
            break Lost::Silent;
        }
        match outcome(&votes, count(claim.members.len()), term, started, clock::since_boot()) {
            Outcome::Renewed(until) => {
                valid_until = until;
                next = started + term / 3;
                state.send_modify(|state| state.valid_until = until);
            }
            Outcome::Unclear => next = clock::since_boot() + term / 20,
            Outcome::Gone(lost) => break lost,
        }
    };
    state.send_modify(|state| state.lost = Some(lost));
}

/// Sleeps until that time since boot. A timer stops while the machine sleeps, but other servers do not: the clock is read
/// every second.
async fn sleep_until(moment: Duration) {
    loop {
        let left = moment.saturating_sub(clock::since_boot());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
    }
}

fn outcome(votes: &Votes, servers: u32, term: Duration, started: Duration, now: Duration) -> Outcome {
    let quorum = quorum(servers);
    if votes.yes >= quorum {
        let left = validity(term, now.saturating_sub(started));
        return left.map_or(Outcome::Unclear, |left| Outcome::Renewed(now + left));
    }
    if servers.saturating_sub(votes.no) < quorum {
        return Outcome::Gone(Lost::Gone { gone: votes.no, servers });
    }
    Outcome::Unclear
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_renews_a_majority_ends_and_anything_else_is_tried_again() {
        let (term, started) = (Duration::from_secs(10), clock::since_boot());
        let after = |yes, no, unknown: usize, elapsed| {
            let votes = Votes { yes, no, unknown: vec!["no answer".to_owned(); unknown] };
            outcome(&votes, 5, term, started, started + Duration::from_millis(elapsed))
        };
        let renewed = Outcome::Renewed(started + Duration::from_millis(9_898));
        assert_eq!(after(5, 0, 0, 0), renewed);
        assert_eq!(after(3, 2, 0, 500), renewed);
        assert_eq!(after(3, 0, 2, 9_898), Outcome::Unclear);
        assert_eq!(after(2, 2, 1, 0), Outcome::Unclear);
        assert_eq!(after(0, 0, 5, 0), Outcome::Unclear);
        assert_eq!(after(2, 3, 0, 0), Outcome::Gone(Lost::Gone { gone: 3, servers: 5 }));
    }
}
