//! Renews a lock for as long as its guard lives.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::claim::{Claim, Votes, count};
use super::options::validity;
use super::quorum;
use crate::Lost;
use locktop_base::clock;

#[derive(Debug, Clone)]
pub(super) struct State {
    /// Until when the last confirmed term is valid, by [`clock::since_boot`].
    pub(super) valid_until: Duration,
    /// Set once, and never reset.
    pub(super) lost: Option<Lost>,
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
pub(super) async fn run(claim: Arc<Claim>, term: Duration, taken: Duration, state: watch::Sender<State>) {
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
