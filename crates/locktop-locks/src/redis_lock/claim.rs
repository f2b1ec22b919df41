use std::sync::Arc;

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
