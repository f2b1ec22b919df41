//! Waiting for a key: in the order of arrival, and until it is released.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FutureExt as _, join_all};
use futures_util::stream::{SelectAll, StreamExt as _};
use redis::aio::PubSubStream;
use tokio::runtime::Handle;

use super::member::{Member, Vote};

/// A place in the line of a key, which is left when this is dropped. The line is on the first server, and only decides
/// which client asks for the lock: a line that is lost costs the order, and nothing else.
pub(super) struct Waiter {
    members: Arc<[Member]>,
    key: String,
    /// `None` without a line: the server does not answer, or refuses it.
    ticket: Option<String>,
    /// How long the ticket counts without being renewed.
    lasts: Duration,
    /// `None` before the first refusal.
    news: Option<SelectAll<PubSubStream>>,
}

/// Where a release of the key is published.
pub(super) fn channel(key: &str) -> String {
    format!("locktop_free:{key}")
}

impl Waiter {
    pub(super) fn new(members: &Arc<[Member]>, key: &str, ticket: Option<String>, lasts: Duration) -> Self {
        Self { members: Arc::clone(members), key: key.to_owned(), ticket, lasts, news: None }
    }

    /// Whether it may ask for the lock.
    pub(super) async fn is_first(&mut self) -> bool {
        let (Some(ticket), Some(server)) = (&self.ticket, self.members.first()) else { return true };
        match server.turn(&self.key, ticket, self.lasts).await {
            Vote::Yes => true,
            Vote::No => false,
            Vote::Unknown(_) => {
                self.ticket = None;
                true
            }
        }
    }

    /// Waits for a release on any server, for at most `limit`. The first time it only subscribes: a release may have been
    /// before.
    pub(super) async fn wait(&mut self, limit: Duration) {
        let Some(news) = &mut self.news else {
            let channel = channel(&self.key);
            let listening = join_all(self.members.iter().map(|member| member.listen(&channel)));
            if let Ok(heard) = tokio::time::timeout(limit, listening).await {
                self.news = Some(heard.into_iter().flatten().collect());
            }
            return;
        };
        let heard = async {
            if news.next().await.is_none() {
                // No server is heard.
                std::future::pending::<()>().await;
            }
        };
        let _ = tokio::time::timeout(limit, heard).await;
        // The other servers' messages about the same release.
        while let Some(Some(_)) = news.next().now_or_never() {}
    }

    /// Leaves the line before the lock is used: the next one is then the first when it hears of the release.
    pub(super) async fn leave(mut self) {
        if let (Some(ticket), Some(server)) = (&self.ticket, self.members.first()) {
            server.leave(&self.key, ticket).await;
            self.ticket = None;
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let (Some(ticket), Ok(runtime)) = (self.ticket.take(), Handle::try_current()) {
            let (members, key) = (Arc::clone(&self.members), std::mem::take(&mut self.key));
            runtime.spawn(async move {
                if let Some(server) = members.first() {
                    server.leave(&key, &ticket).await;
                }
            });
        }
    }
}
