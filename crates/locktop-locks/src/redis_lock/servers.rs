use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FutureExt as _, join_all};
use futures_util::stream::{SelectAll, StreamExt as _};
use redis::aio::PubSubStream;

use super::guard::{Armed, Claim, Guard, Votes, channel, count};
use super::member::{Member, Vote};
use super::{LockOptions, SHORTEST_TERM, quorum, validity};
use crate::advisory::source::spawn;
use crate::redis::RedisUrl;
use crate::{Error, Held as _};
use locktop_base::clock;

/// One server, or several independent ones whose majority decides. Clones share the connections.
#[derive(Debug, Clone)]
pub struct RedisLocks {
    members: Arc<[Member]>,
    options: LockOptions,
}

impl RedisLocks {
    /// Servers by their URLs. No connection is made yet.
    ///
    /// # Errors
    /// If there is no server, a server is named twice, a URL is not a Redis URL, or the term is too short.
    pub fn connect(urls: &[impl AsRef<str>], options: LockOptions) -> Result<Self, Error> {
        let servers: Result<Vec<_>, _> = urls.iter().map(|url| RedisUrl::parse(url.as_ref())).collect();
        Self::new(servers.map_err(|error| Error::invalid(error.to_string()))?, options)
    }

    /// The same with URLs that are already parsed.
    ///
    /// # Errors
    /// If there is no server, a server is named twice, or the term is too short.
    pub fn new(servers: Vec<RedisUrl>, options: LockOptions) -> Result<Self, Error> {
        if servers.is_empty() {
            return Err(Error::invalid("a lock in Redis needs at least one server"));
        }
        if let Some((_, twice)) = servers
            .iter()
            .enumerate()
            .find(|(at, server)| servers.iter().take(*at).any(|other| other == *server))
        {
            return Err(Error::invalid(format!("{twice} is named twice: each server has one vote")));
        }
        if options.term < SHORTEST_TERM {
            let term = options.term.as_millis();
            return Err(Error::invalid(format!(
                "a term of {term} ms is too short for a lock in Redis: use at least 100 ms"
            )));
        }
        let (timeout, quarantine) = (options.server_timeout(), options.quarantine());
        let members = servers.into_iter().map(|server| Member::new(server, timeout, quarantine)).collect();
        Ok(Self { members, options })
    }

    /// How many servers must agree.
    #[must_use]
    pub fn quorum(&self) -> u32 {
        quorum(count(self.members.len()))
    }

    /// Tries once; `None` if another client holds the lock.
    ///
    /// # Errors
    /// If too few servers agreed in time. What was set of the lock has been removed as far as the servers answer.
    pub async fn try_acquire(&self, key: &str) -> Result<Option<Guard>, Error> {
        let value = random_value(&self.options.name)
            .map_err(|error| Error::invalid(format!("this machine has no random bytes: {error}")))?;
        let claim = Claim { members: Arc::clone(&self.members), key: key.to_owned(), value };
        // From here on the value is released again, even if this future is dropped.
        let armed = Armed::new(claim);
        let term = self.options.term;
        let started = clock::since_boot();
        let votes = armed.claim.ask(|member, claim| member.take(&claim.key, &claim.value, term)).await;
        match self.verdict(key, votes, started) {
            Ok(Some(valid_until)) => Ok(Some(Guard::begin(armed, term, started, valid_until))),
            refusal => {
                armed.release(false).await;
                refusal.map(|_| None)
            }
        }
    }

    /// Waits in line until the lock is acquired; `None` if it is not in time. Without time it tries once.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn acquire(&self, key: &str, within: Duration) -> Result<Option<Guard>, Error> {
        if within.is_zero() {
            return self.try_acquire(key).await;
        }
        let started = clock::monotonic();
        let ticket = random_value(&self.options.name).ok();
        let mut waiter = Waiter::new(&self.members, key, ticket, self.options.ticket());
        let mut answer = Ok(None);
        loop {
            if waiter.is_first().await {
                answer = self.try_acquire(key).await;
                if let Ok(Some(_)) = answer {
                    waiter.leave().await;
                    return answer;
                }
            }
            let left = within.saturating_sub(started.elapsed());
            if left.is_zero() {
                return answer;
            }
            waiter.wait(random_delay(self.options.longest_delay).min(left)).await;
        }
    }

    /// Runs work under a lock: waits for the lock, at most the given time; drops the work midway if the lock is lost;
    /// releases the lock. `None` if it is not acquired in time.
    ///
    /// # Errors
    /// As for [`Self::acquire`]; or [`Error::NotHeld`] if the lock was lost, and then the work was not finished.
    pub async fn with<T>(
        &self,
        key: &str,
        within: Duration,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, Error> {
        let Some(guard) = self.acquire(key, within).await? else { return Ok(None) };
        let done = guard.run(work).await;
        guard.release().await;
        Ok(Some(done?))
    }

    /// Until when the lock is valid; `None` if other clients hold it on so many servers that no majority is left.
    fn verdict(&self, key: &str, votes: Votes, started: Duration) -> Result<Option<Duration>, Error> {
        let (servers, quorum) = (count(self.members.len()), self.quorum());
        let key = key.to_owned();
        if votes.yes >= quorum {
            let elapsed = clock::since_boot().saturating_sub(started);
            return validity(self.options.term, elapsed)
                .map(|left| Some(started + elapsed + left))
                .ok_or(Error::TooSlow { key, elapsed });
        }
        if servers - votes.no < quorum {
            return Ok(None);
        }
        Err(Error::NoQuorum { key, granted: votes.yes, quorum, servers, faults: votes.unknown })
    }
}

// Waiting for a key: in the order of arrival, and until it is released.

/// A place in the line of a key, which is left when this is dropped. The line is on the first server, and only decides
/// which client asks for the lock: a line that is lost costs the order, and nothing else.
struct Waiter {
    members: Arc<[Member]>,
    key: String,
    /// `None` without a line: the server does not answer, or refuses it.
    ticket: Option<String>,
    /// How long the ticket counts without being renewed.
    lasts: Duration,
    /// `None` before the first refusal.
    news: Option<SelectAll<PubSubStream>>,
}

impl Waiter {
    fn new(members: &Arc<[Member]>, key: &str, ticket: Option<String>, lasts: Duration) -> Self {
        Self { members: Arc::clone(members), key: key.to_owned(), ticket, lasts, news: None }
    }

    /// Whether it may ask for the lock.
    async fn is_first(&mut self) -> bool {
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
    async fn wait(&mut self, limit: Duration) {
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
    async fn leave(mut self) {
        if let (Some(ticket), Some(server)) = (&self.ticket, self.members.first()) {
            server.leave(&self.key, ticket).await;
            self.ticket = None;
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let (members, key) = (Arc::clone(&self.members), std::mem::take(&mut self.key));
            spawn(async move {
                if let Some(server) = members.first() {
                    server.leave(&key, &ticket).await;
                }
            });
        }
    }
}

/// `name:` and 128 random bits, or only the bits if there is no name.
///
/// # Errors
/// If the system has no random bytes.
fn random_value(name: &str) -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    let bits = u128::from_be_bytes(bytes);
    Ok(if name.is_empty() { format!("{bits:032x}") } else { format!("{name}:{bits:032x}") })
}

/// A random time between zero and `longest`; half of it if there are no random bytes.
fn random_delay(longest: Duration) -> Duration {
    let share = getrandom::u32().map_or(0.5, |chance| f64::from(chance) / f64::from(u32::MAX));
    longest.mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_make_no_sense_are_refused() {
        let refused = |urls: &[&str], term| {
            RedisLocks::connect(urls, LockOptions::term(Duration::from_millis(term))).unwrap_err().to_string()
        };
        assert_eq!(refused(&[], 1000), "a lock in Redis needs at least one server");
        let twice = refused(&["redis://a", "redis://b", "redis://:s3cret@a:6379"], 1000);
        assert_eq!(twice, "a:6379 is named twice: each server has one vote");
        assert!(refused(&["redis://a"], 99).contains("99 ms is too short"));
        assert!(refused(&["http://a"], 1000).starts_with("not a Redis URL"));
        let quorum =
            |servers: &[&str]| RedisLocks::connect(servers, LockOptions::default()).unwrap().quorum();
        assert_eq!(quorum(&["redis://a"]), 1);
        assert_eq!(quorum(&["redis://a", "redis://b"]), 2);
        assert_eq!(quorum(&["redis://a", "redis://b", "redis://c", "redis://d", "redis://e"]), 3);
    }

    #[test]
    fn lock_values_are_unique_and_start_with_the_owner_name() {
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
