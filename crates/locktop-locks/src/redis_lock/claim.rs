use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::Handle;

use super::line;
use super::member::{Member, Vote};

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
        let channel = if publish { line::channel(&self.key) } else { String::new() };
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
        if self.armed
            && let Ok(runtime) = Handle::try_current()
        {
            let claim = Arc::clone(&self.claim);
            runtime.spawn(async move { claim.release(true).await });
        }
    }
}

/// `name:` and 128 random bits, or only the bits if there is no name.
///
/// # Errors
/// If the system has no random bytes.
pub(super) fn random_value(name: &str) -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    let bits = u128::from_be_bytes(bytes);
    Ok(if name.is_empty() { format!("{bits:032x}") } else { format!("{name}:{bits:032x}") })
}

/// A random time between zero and `longest`; half of it if there are no random bytes.
pub(super) fn random_delay(longest: Duration) -> Duration {
    let share = getrandom::u32().map_or(0.5, |chance| f64::from(chance) / f64::from(u32::MAX));
    longest.mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_differ_and_say_whose_they_are() {
        let (one, other) = (random_value("worker-1").unwrap(), random_value("worker-1").unwrap());
        assert_ne!(one, other);
        assert!(one.starts_with("worker-1:"));
        assert_eq!(one.len(), "worker-1:".len() + 32);
        assert_eq!(random_value("").unwrap().len(), 32);
    }

    #[test]
    fn delays_are_within_their_bounds() {
        let longest = Duration::from_millis(200);
        let delays: Vec<_> = (0..100).map(|_| random_delay(longest)).collect();
        assert!(delays.iter().all(|delay| *delay <= longest));
        assert!(delays.iter().any(|delay| *delay != delays[0]));
    }
}
