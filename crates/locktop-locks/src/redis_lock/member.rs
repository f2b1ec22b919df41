use std::time::{Duration, Instant};

use redis::aio::PubSubStream;
use tokio::sync::Mutex;

use crate::redis::{Command, Connection, RedisFault, RedisUrl, Reply, listen};
use locktop_base::clock;

/// Renews the term of the value, if the key still has it.
const RENEW: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                     return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";

/// Deletes the key, if it still has the value, and publishes that on a channel, if one is named.
const RELEASE: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
                       redis.call('DEL', KEYS[1]) \
                       if ARGV[2] ~= '' then redis.pcall('PUBLISH', ARGV[2], '') end \
                       return 1";

/// Renews a ticket, or adds it at the end of the line, removes those that were not renewed, and returns whether it is the
/// first. The line is ordered by arrival, the other set by the end of each ticket, both in microseconds.
const TURN: &str = "local time = redis.call('TIME') \
                    local now = time[1] * 1000000 + time[2] \
                    redis.call('ZADD', KEYS[1], 'NX', now, ARGV[1]) \
                    redis.call('ZADD', KEYS[2], now + ARGV[2] * 1000, ARGV[1]) \
                    for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do \
                      redis.call('ZREM', KEYS[1], dead) redis.call('ZREM', KEYS[2], dead) end \
                    redis.call('PEXPIRE', KEYS[1], ARGV[2]) redis.call('PEXPIRE', KEYS[2], ARGV[2]) \
                    return redis.call('ZRANK', KEYS[1], ARGV[1]) == 0 and 1 or 0";

/// Takes a ticket out of the line.
const LEAVE: &str = "redis.call('ZREM', KEYS[2], ARGV[1]) return redis.call('ZREM', KEYS[1], ARGV[1])";

/// Consecutive messages without an answer after which a new connection is made.
const SILENCES: u32 = 2;

/// A server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Vote {
    /// It did what was asked.
    Yes,
    /// The key has another value, or does not exist.
    No,
    /// Nothing is known; the reason, in one line.
    Unknown(String),
}

/// A voting server, with the one connection to it, which is made when it is first needed.
#[derive(Debug)]
pub(super) struct Member {
    server: RedisUrl,
    timeout: Duration,
    quarantine: Option<Duration>,
    slot: Mutex<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    open: Option<Open>,
    /// Consecutive messages that were not answered.
    silences: u32,
}

/// A connection: it is to one server process, and ends with it.
#[derive(Debug, Clone)]
struct Open {
    connection: Connection,
    /// From when on the server votes, or why it does not.
    votes_from: Result<Instant, String>,
}

impl Member {
    pub(super) fn new(server: RedisUrl, timeout: Duration, quarantine: Option<Duration>) -> Self {
        Self { server, timeout, quarantine, slot: Mutex::default() }
    }

    /// `SET key value NX PX term`, if the server votes.
    pub(super) async fn take(&self, key: &str, value: &str, term: Duration) -> Vote {
        let term = milliseconds(term);
        let set = Command::new("SET").arg(key).arg(value).arg("NX").arg("PX").number(term);
        self.ask(&set, true).await
    }

    pub(super) async fn renew(&self, key: &str, value: &str, term: Duration) -> Vote {
        let script = Command::new("EVAL").arg(RENEW).number(1).arg(key).arg(value).number(milliseconds(term));
        self.ask(&script, false).await
    }

    /// Deletes the value. Earlier messages on this connection have been executed by then: an abandoned message is never
    /// overtaken by a later one.
    pub(super) async fn release(&self, key: &str, value: &str, channel: &str) -> Vote {
        let script = Command::new("EVAL").arg(RELEASE).number(1).arg(key).arg(value).arg(channel);
        self.ask(&script, false).await
    }

    /// Whether the ticket is the first in the line of the key; it counts for `lasts` from now.
    pub(super) async fn turn(&self, key: &str, ticket: &str, lasts: Duration) -> Vote {
        let script = Command::new("EVAL").arg(TURN).number(2).arg(line(key)).arg(line(key) + ":ends");
        self.ask(&script.arg(ticket).number(milliseconds(lasts)), false).await
    }

    pub(super) async fn leave(&self, key: &str, ticket: &str) -> Vote {
        let script = Command::new("EVAL").arg(LEAVE).number(2).arg(line(key)).arg(line(key) + ":ends");
        self.ask(&script.arg(ticket), false).await
    }

    /// The messages of a channel; `None` if there are none.
    pub(super) async fn listen(&self, channel: &str) -> Option<PubSubStream> {
        listen(&self.server, self.timeout, channel).await
    }

    async fn ask(&self, command: &Command, votes: bool) -> Vote {
        let answer = tokio::time::timeout(self.timeout, self.send(command, votes)).await;
        let silent = || {
            let fault = RedisFault::Silent { server: self.server.clone(), timeout: self.timeout };
            (fault.to_string(), false)
        };
        let (vote, keep) = match answer.unwrap_or_else(|_| Err(silent())) {
            Ok(Reply::Nil | Reply::Number(0)) => (Vote::No, true),
            Ok(Reply::Number(1)) => (Vote::Yes, true),
            Ok(Reply::Bytes(status)) if status == b"OK" => (Vote::Yes, true),
            Ok(_) => (Vote::Unknown(format!("{}: an unexpected answer", self.server)), true),
            Err((why, keep)) => (Vote::Unknown(why), keep),
        };
        let mut slot = self.slot.lock().await;
        slot.silences = if keep { 0 } else { slot.silences.saturating_add(1) };
        // What releases a value that was set goes over the same connection, behind it.
        if slot.silences >= SILENCES && !votes {
            *slot = Slot::default();
        }
        vote
    }

    /// The answer, or why there is none, and whether the server has answered at all. A connection that broke, perhaps long
    /// ago, is replaced once: each of the three commands may be sent a second time, and then at worst answers no to what the
    /// first one did.
    async fn send(&self, command: &Command, votes: bool) -> Result<Reply, (String, bool)> {
        let mut again = true;
        loop {
            let Open { connection, votes_from } = self.connection().await?;
            if votes {
                self.has_a_vote(votes_from).map_err(|why| (why, true))?;
            }
            match connection.run(command).await {
                Ok(reply) => return Ok(reply),
                Err(fault) => {
                    let lost = matches!(fault, RedisFault::Lost { .. });
                    if lost {
                        self.slot.lock().await.open = None;
                    }
                    if !(lost && std::mem::take(&mut again)) {
                        return Err((fault.to_string(), fault.leaves_the_connection()));
                    }
                }
            }
        }
    }

    fn has_a_vote(&self, from: Result<Instant, String>) -> Result<(), String> {
        let wait = from?.saturating_duration_since(clock::monotonic());
        if wait.is_zero() {
            return Ok(());
        }
        Err(format!(
            "{} has just started, and has no vote for another {} ms: it may have lost a lock",
            self.server,
            wait.as_millis()
        ))
    }

    /// The connection; a new one if there is none.
    async fn connection(&self) -> Result<Open, (String, bool)> {
        let mut slot = self.slot.lock().await;
        if let Some(open) = &slot.open {
            return Ok(open.clone());
        }
        let fault = |fault: RedisFault| (fault.to_string(), false);
        let connection = Connection::open(&self.server, self.timeout).await.map_err(fault)?;
        let votes_from = match self.quarantine {
            None => Ok(clock::monotonic()),
            Some(quarantine) => votes_from(&connection, quarantine).await.map_err(fault)?,
        };
        let open = Open { connection, votes_from };
        slot.open = Some(open.clone());
        Ok(open)
    }
}

/// When a server has been up for long enough to vote.
async fn votes_from(
    connection: &Connection,
    quarantine: Duration,
) -> Result<Result<Instant, String>, RedisFault> {
    let info = match connection.run(&Command::new("INFO").arg("server")).await {
        Ok(reply) => reply,
        Err(fault @ RedisFault::Answer { .. }) => {
            return Ok(Err(format!("{fault}; it has no vote while its uptime is not known")));
        }
        Err(fault) => return Err(fault),
    };
    let Some(up) = info.as_bytes().and_then(uptime) else {
        return Ok(Err(connection.unexpected("INFO").to_string()));
    };
    // Both ends of the uptime are whole seconds: the real uptime may be a second less.
    let up = up.saturating_sub(Duration::from_secs(1));
    Ok(Ok(clock::monotonic() + quarantine.saturating_sub(up)))
}

fn uptime(info: &[u8]) -> Option<Duration> {
    let text = String::from_utf8_lossy(info);
    let seconds = text.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"))?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// In a cluster in the same slot as a key without braces.
fn line(key: &str) -> String {
    format!("locktop_line:{{{key}}}")
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uptime_is_read_from_the_info_of_the_server() {
        let info = b"# Server\r\nredis_version:7.0.15\r\nuptime_in_seconds:41\r\nuptime_in_days:0\r\n";
        assert_eq!(uptime(info), Some(Duration::from_secs(41)));
        assert_eq!(uptime(b"uptime_in_seconds:\r\n"), None);
        assert_eq!(uptime(b"\xff\xfe"), None);
    }
}
