use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinHandle;

use super::member::{Member, Vote};
use super::{quorum, validity};
use crate::advisory::source::spawn;
use crate::held::{Standing, Term};
use crate::{Held, Lost};
use locktop_base::clock;

/// The result of a release, counted over the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// Servers that had the value and have deleted it.
    pub freed: u32,
    /// Servers that no longer had it.
    pub missing: u32,
    /// Servers that did not answer: there it expires with its term.
    pub unknown: u32,
}

impl Released {
    /// Whether a majority still had it: the lock was held to the end.
    #[must_use]
    pub fn was_held(self) -> bool {
        self.freed >= quorum(self.freed + self.missing + self.unknown)
    }
}

/// A held lock, renewed by a background task, until it is released, lost or dropped.
#[derive(Debug)]
pub struct Guard {
    // The order matters: no renewal begins once the value is being released.
    watchdog: Watchdog,
    armed: Armed,
}

/// Ends with the guard.
#[derive(Debug)]
struct Watchdog {
    task: JoinHandle<()>,
    held: Term,
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.held.change(Standing::end);
        self.task.abort();
    }
}

impl Guard {
    pub(super) fn begin(armed: Armed, term: Duration, started: Duration, valid_until: Duration) -> Self {
        let held = Term::new(valid_until, Lost::Silent);
        let task = tokio::spawn(renew(Arc::clone(&armed.claim), term, started, held.clone()));
        Self { watchdog: Watchdog { task, held }, armed }
    }

    /// The value that is set under the key.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.armed.claim.value
    }

    /// Until when the lock is certainly held, by [`clock::since_boot`]; each renewal extends it.
    #[must_use]
    pub fn valid_until(&self) -> Duration {
        self.watchdog.held.until()
    }

    /// How much longer the lock is certainly held if no renewal succeeds; zero if it is lost.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.watchdog.held.left()
    }

    /// Whether the lock is certainly held at this moment. Reads the clock, so it is correct even if this process, or the
    /// whole machine, was suspended.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.time_left().is_zero()
    }

    /// Releases the lock, and returns the servers' answers.
    pub async fn release(self) -> Released {
        let Self { watchdog, armed } = self;
        drop(watchdog);
        let votes = armed.release(true).await;
        Released { freed: votes.yes, missing: votes.no, unknown: count(votes.unknown.len()) }
    }

    /// Stops the renewals and leaves the key to the end of its term: no other client gets the lock before.
    pub fn keep(mut self) {
        self.armed.disarm();
    }
}

impl Held for Guard {
    fn check(&self) -> Result<(), Lost> {
        self.watchdog.held.check()
    }

    fn lost(&self) -> impl Future<Output = Lost> + Send + 'static {
        self.watchdog.held.lost()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// A majority has renewed: valid until this time of [`clock::since_boot`].
    Renewed(Duration),
    /// Nothing is known; it may be tried again.
    Unclear,
    /// No majority can still have it.
    Lost(Lost),
}

/// Renews at a third of the term, and earlier after a failed renewal, until the lock is lost.
async fn renew(claim: Arc<Claim>, term: Duration, taken: Duration, held: Term) {
    let mut next = taken + term / 3;
    loop {
        tokio::select! {
            biased;
            _ = held.lost() => return,
            () = sleep_until(next) => {}
        }
        let started = clock::since_boot();
        let votes = tokio::select! {
            // After a pause of this process both may be ready, and an answer after the end of the term is too late.
            biased;
            _ = held.lost() => return,
            votes = claim.ask(|member, claim| member.renew(&claim.key, &claim.value, term)) => votes,
        };
        let now = clock::since_boot();
        match outcome(&votes, count(claim.members.len()), term, started, now) {
            Outcome::Renewed(until) => {
                next = started + term / 3;
                held.change(|held| held.renewed(until, now));
            }
            Outcome::Unclear => next = now + term / 20,
            Outcome::Lost(lost) => held.change(|held| held.lose(lost)),
        }
    }
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
        return Outcome::Lost(Lost::Gone { gone: votes.no, servers });
    }
    Outcome::Unclear
}

/// The servers' answers to one request.
#[derive(Debug, Default)]
pub(super) struct Votes {
    pub(super) yes: u32,
    pub(super) no: u32,
    /// The reasons for each server without an answer.
    pub(super) unknown: Vec<String>,
}

pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A value that is, or may be, set under a key.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) members: Arc<[Member]>,
    pub(super) key: String,
    pub(super) value: String,
}

impl Claim {
    /// Asks all servers at the same time.
    pub(super) async fn ask<'a, F: Future<Output = Vote>>(
        &'a self,
        question: impl Fn(&'a Member, &'a Claim) -> F,
    ) -> Votes {
        let answers = join_all(self.members.iter().map(|member| question(member, self))).await;
        let mut votes = Votes::default();
        for answer in answers {
            match answer {
                Vote::Yes => votes.yes += 1,
                Vote::No => votes.no += 1,
                Vote::Unknown(why) => votes.unknown.push(why),
            }
        }
        votes
    }

    /// A release of less than the lock is not published.
    async fn release(&self, publish: bool) -> Votes {
        let channel = if publish { channel(&self.key) } else { String::new() };
        let channel = channel.as_str();
        self.ask(|member, claim| member.release(&claim.key, &claim.value, channel)).await
    }
}

/// Releases the value in the background when dropped.
#[derive(Debug)]
pub(super) struct Armed {
    pub(super) claim: Arc<Claim>,
    armed: bool,
}

impl Armed {
    pub(super) fn new(claim: Claim) -> Self {
        Self { claim: Arc::new(claim), armed: true }
    }

    /// Releases the value on all servers. If this future is dropped, that continues in the background.
    pub(super) async fn release(mut self, publish: bool) -> Votes {
        let votes = self.claim.release(publish).await;
        self.armed = false;
        votes
    }

    /// Leaves the value in place, to the end of its term.
    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        // Without a runtime the value expires with its term.
        if self.armed {
            let claim = Arc::clone(&self.claim);
            spawn(async move { drop(claim.release(true).await) });
        }
    }
}

/// Where a release of the key is published.
pub(super) fn channel(key: &str) -> String {
    format!("locktop_free:{key}")
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
        assert_eq!(after(2, 3, 0, 0), Outcome::Lost(Lost::Gone { gone: 3, servers: 5 }));
    }
}
