//! Reads all configured servers repeatedly, in the background.
//!
//! A round has two phases, each on all servers concurrently: every server scans a little more of its key space, then every
//! server is asked for all keys that any of them has. So a key is known on all servers as soon as it is found on one, and
//! no key seems to be missing on a server only because its scan has not reached it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rustc_hash::FxHashMap;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::read::Cursor;
use super::{RedisOptions, RedisSets, RedisState, read};
use crate::clock;
use crate::model::redis_lease::{Bytes, LockValue, RedisLeases, ServerReading, merge_sets};
use locktop_locks::redis::Connection;
use locktop_locks::redis::RedisFault;
use locktop_locks::redis::RedisUrl;

/// Reads the servers in the background until the receiver is dropped. The channel always holds the newest state.
/// A plain list of servers is one set.
pub fn watch(servers: impl Into<RedisSets>, options: RedisOptions) -> (Receiver<RedisState>, JoinHandle<()>) {
    let (sender, receiver) = channel(RedisState::default());
    (receiver, tokio::spawn(run(servers.into(), options, sender)))
}

/// Runs a single round, which scans the key spaces for up to half the timeout.
pub async fn read_once(servers: impl Into<RedisSets>, options: RedisOptions) -> RedisState {
    let mut round = Round::new(&servers.into(), RedisOptions { steps: u32::MAX, ..options });
    let leases = Arc::new(round.go().await);
    let read = leases.read_at.is_some().then(clock::monotonic);
    RedisState { round: 1, leases, read }
}

async fn run(servers: RedisSets, options: RedisOptions, states: Sender<RedisState>) {
    let interval = options.interval;
    let mut round = Round::new(&servers, options);
    loop {
        let started = clock::monotonic();
        let leases = tokio::select! {
            leases = round.go() => leases,
            () = states.closed() => return,
        };
        states.send_modify(|state| {
            let read = if leases.read_at.is_some() { Some(clock::monotonic()) } else { state.read };
            let leases = Arc::new(or_the_last(leases, &state.leases));
            *state = RedisState { round: state.round + 1, leases, read };
        });
        tokio::select! {
            () = states.closed() => return,
            () = tokio::time::sleep(interval.saturating_sub(started.elapsed())) => {}
        }
    }
}

fn or_the_last(leases: RedisLeases, last: &RedisLeases) -> RedisLeases {
    if leases.read_at.is_some() {
        leases
    } else {
        RedisLeases { rows: last.rows.clone(), read_at: last.read_at, cut: last.cut, ..leases }
    }
}

#[derive(Debug)]
struct Round {
    members: Vec<Member>,
    sets: Vec<usize>,
    keys: BTreeSet<Bytes>,
    held: FxHashMap<(usize, Bytes), ObservedHolder>,
    options: RedisOptions,
}

/// The holder of a lock, since when it has been observed, and the longest remaining time in milliseconds.
#[derive(Debug, Clone)]
struct ObservedHolder {
    holder: LockValue,
    since: Instant,
    longest: Option<i64>,
}

impl Round {
    fn new(servers: &RedisSets, options: RedisOptions) -> Self {
        let members = servers.servers().cloned().map(Member::new).collect();
        Self { members, sets: servers.sizes(), keys: BTreeSet::new(), held: FxHashMap::default(), options }
    }

    async fn go(&mut self) -> RedisLeases {
        let options = &self.options;
        let found = join_all(self.members.iter_mut().map(|member| member.poll(options))).await;
        let mut left_out = false;
        for key in found.into_iter().flatten() {
            if self.keys.len() < options.most_keys {
                self.keys.insert(key);
            } else {
                left_out |= !self.keys.contains(&key);
            }
        }
        let keys: Vec<Bytes> = self.keys.iter().cloned().collect();
        let readings =
            join_all(self.members.iter_mut().map(|member| member.read(&keys, options.timeout))).await;
        let mut leases = merge_sets(&readings, &self.sets);
        if leases.down() < leases.servers.len() {
            leases.read_at = Some(clock::wall());
            self.remember(&mut leases);
            // Forgets keys that no server has. A server that was down finds its own keys again.
            self.keys = leases.rows.iter().map(|row| row.key.clone()).collect();
        }
        let looking = |member: &Member| member.connection.is_ok() && !member.is_complete();
        leases.cut = left_out || self.members.iter().any(looking);
        leases
    }

    /// Adds how long the holder of each lock has been observed and the longest remaining time, since Redis records neither.
    fn remember(&mut self, leases: &mut RedisLeases) {
        let millis = |time: Duration| i64::try_from(time.as_millis()).ok();
        let now = clock::monotonic();
        let mut before = std::mem::take(&mut self.held);
        for row in &mut leases.rows {
            let key = (row.set, row.key.clone());
            let known = before.remove(&key).filter(|held| held.holder.is_of(&row.holder));
            let (since, longest) = known.map_or((now, None), |held| (held.since, held.longest));
            let longest = longest.max(row.expiry.left().and_then(millis));
            (row.observed, row.longest) = (millis(now.saturating_duration_since(since)), longest);
            self.held.insert(key, ObservedHolder { holder: row.holder.clone(), since, longest });
        }
    }
}

#[derive(Debug)]
struct Member {
    server: RedisUrl,
    /// The connection, or why there is none. `Err(None)`: not tried yet.
    connection: Result<Connection, Option<RedisFault>>,
    cursors: Vec<Cursor>,
    failures: u32,
    again: Instant,
}

impl Member {
    fn new(server: RedisUrl) -> Self {
        let again = clock::monotonic();
        Self { server, connection: Err(None), cursors: Vec::new(), failures: 0, again }
    }

    fn is_complete(&self) -> bool {
        !self.cursors.is_empty() && self.cursors.iter().all(|cursor| cursor.complete)
    }

    /// Scans a little more of the key space. The patterns share the limits of a round.
    async fn poll(&mut self, options: &RedisOptions) -> Vec<Bytes> {
        if self.connection.is_err() && clock::monotonic() >= self.again {
            match Connection::open(&self.server, options.timeout).await {
                Ok(connection) => self.connection = Ok(connection),
                Err(fault) => self.failed(fault),
            }
        }
        let Ok(connection) = &self.connection else { return Vec::new() };
        let share = u32::try_from(options.patterns.len()).unwrap_or(u32::MAX).max(1);
        let limits = read::ScanLimits {
            step: options.step.into(),
            steps: options.steps.div_ceil(share),
            time: options.timeout / 2 / share,
        };
        self.cursors.resize_with(options.patterns.len(), Cursor::default);
        let mut found = Vec::new();
        for (cursor, pattern) in self.cursors.iter_mut().zip(&options.patterns) {
            match read::scan(connection, cursor, pattern.as_bytes(), limits).await {
                Ok(keys) => found.extend(keys),
                Err(fault) => {
                    self.failed(fault);
                    return Vec::new();
                }
            }
        }
        found
    }

    /// Reads the values of these keys. The timeout covers all answers together, because the rows of the other servers wait
    /// for them.
    async fn read(&mut self, keys: &[Bytes], timeout: Duration) -> ServerReading {
        let server = self.server.to_string().into();
        if let Ok(connection) = &self.connection {
            let timeout = timeout * 2;
            let silent = || RedisFault::Silent { server: self.server.clone(), timeout };
            let answer = tokio::time::timeout(timeout, read::read(connection, keys)).await;
            match answer.unwrap_or_else(|_| Err(silent())) {
                Ok(readings) => {
                    self.failures = 0;
                    return ServerReading { server, keys: Ok(readings) };
                }
                Err(fault) => self.failed(fault),
            }
        }
        let why = match &self.connection {
            Err(Some(fault)) => fault.to_string(),
            _ => "not asked yet".to_owned(),
        };
        ServerReading { server, keys: Err(why.into()) }
    }

    /// Skips the server after a failure: for half a second at first, then for up to ten seconds.
    fn failed(&mut self, fault: RedisFault) {
        let delay = Duration::from_millis(500) * 2u32.saturating_pow(self.failures.min(5));
        self.failures = self.failures.saturating_add(1);
        self.again = clock::monotonic() + delay.min(Duration::from_secs(10));
        self.connection = Err(Some(fault));
        self.cursors.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_fails_is_left_alone_for_longer_each_time() {
        let server = RedisUrl::parse("redis://localhost").unwrap();
        let mut member = Member::new(server.clone());
        let fault = RedisFault::Refused { server, reason: "no".to_owned() };
        let mut delays = Vec::new();
        for _ in 0..6 {
            let before = clock::monotonic();
            member.failed(fault.clone());
            delays.push((member.again - before).as_secs_f64());
        }
        for (delay, least) in delays.iter().zip([0.5, 1.0, 2.0, 4.0, 8.0, 10.0]) {
            assert!((least..least + 0.4).contains(delay), "{delays:?}");
        }
    }
}
