use std::sync::Arc;
use std::time::Duration;

use super::claim::{Armed, Claim, Votes, count, random_delay, random_value};
use super::guard::Guard;
use super::line::Waiter;
use super::member::Member;
use super::options::{LockOptions, SHORTEST_TERM, validity};
use super::quorum;
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
}
