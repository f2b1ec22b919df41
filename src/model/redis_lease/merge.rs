//! What N servers say together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use strum::IntoStaticStr;

use locktop_locks::quorum;

use super::reading::{Bytes, Expiry, KeyReading, LockValue, ServerReading, shown};
use crate::model::{Text, Timestamp};

/// What the servers together say of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Standing {
    /// A majority has the same value: its owner holds the lock.
    Held,
    /// No majority, and several values: nobody holds it, and each is in the others' way.
    Split,
    /// One value, on fewer than a majority, and the others are free: nobody holds it. Somebody is just taking or
    /// releasing it, or has failed to.
    Minority,
    /// Whether it is a majority depends on servers that do not answer.
    Unknown,
}

impl Standing {
    /// Its word on the screens and in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A key as one of the servers has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerKey {
    /// Index of the server in its set.
    pub server: usize,
    /// What is stored under the key there.
    pub value: LockValue,
    /// When the key goes by itself there.
    pub expiry: Expiry,
}

/// A lock over all servers of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisLease {
    /// The key's name, as bytes.
    pub key: Bytes,
    /// The value that most servers have; among equals the smallest, so that it is the same each time.
    pub holder: LockValue,
    /// Which set of servers it is on, from 0 on.
    pub set: usize,
    /// Where that set begins in the list of all servers.
    pub first: usize,
    /// On how many servers it is.
    pub votes: u32,
    /// How many servers the set has.
    pub servers: u32,
    /// How many of them did not answer.
    pub down: u32,
    /// Who holds it, or why nobody does.
    pub standing: Standing,
    /// Whether the holder is the same on all its servers only as far as can be told (Redisson over several servers).
    pub uncertain: bool,
    /// Other values, and on how many servers each is; most first.
    pub others: Vec<(LockValue, u32)>,
    /// When the holder no longer has a majority (or, where it has none, its last key), unless it renews.
    pub expiry: Expiry,
    /// On how many servers the key never goes.
    pub without_expiry: u32,
    /// The key on each server that has it, in the order of the servers.
    pub places: Vec<ServerKey>,
    /// How long its holder had been observed when it was read, in milliseconds: it may have it for longer.
    pub observed: Option<i64>,
    /// The longest remaining time observed with this holder, in milliseconds: its term is at least that long.
    pub longest: Option<i64>,
}

impl RedisLease {
    /// The key as text of the server.
    pub fn name(&self) -> Text {
        shown(&self.key)
    }

    /// How many of its servers have it: `3/5`.
    pub fn quorum_text(&self) -> String {
        format!("{}/{}", self.votes, self.servers)
    }

    /// The servers of its set, in the list of all.
    pub fn members(&self) -> Range<usize> {
        self.first..self.first.saturating_add(usize::try_from(self.servers).unwrap_or(usize::MAX))
    }

    /// Whether somebody has set a lock without a term: it remains if its holder dies. `SETNX` and `EXPIRE` as two commands
    /// leave that behind when the client dies between them.
    pub fn leaks(&self) -> bool {
        self.without_expiry > 0 && self.places.iter().any(|place| place.value.is_lock())
    }

    /// Whether the lock goes within this time unless it is renewed.
    pub fn expires_within(&self, time: Duration) -> bool {
        self.expiry.left().is_some_and(|left| left <= time)
    }

    /// Whether its servers have different values.
    pub fn is_contested(&self) -> bool {
        !self.others.is_empty()
    }
}

/// A server, and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerState {
    /// Its address as the config has it, without a password.
    pub server: Text,
    /// Why it did not answer.
    pub error: Option<Text>,
}

/// All locks over all servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedisLeases {
    /// By name of the key, then by set.
    pub rows: Vec<RedisLease>,
    /// In the order they were given, one set after the other.
    pub servers: Vec<ServerState>,
    /// How many servers each set has.
    pub sets: Vec<usize>,
    /// When the rows were read, by this machine's clock; none when they never were.
    pub read_at: Option<Timestamp>,
    /// There are more keys than are looked at, or not all of the key space has been looked through yet.
    pub cut: bool,
}

impl RedisLeases {
    /// How many servers did not answer.
    pub fn down(&self) -> usize {
        self.servers.iter().filter(|server| server.error.is_some()).count()
    }

    /// `2 of 5 down`; none when all answer.
    pub fn down_text(&self) -> Option<String> {
        let down = self.down();
        (down > 0).then(|| format!("{down} of {} down", self.servers.len()))
    }
}

/// Puts the readings of servers together that are one set; `read_at` and `cut` are for the caller to fill in.
pub fn merge(readings: &[ServerReading]) -> RedisLeases {
    merge_sets(readings, &[readings.len()])
}

/// The same for several sets, each of which has so many of the servers: a lock is judged by the servers of its set alone.
pub fn merge_sets(readings: &[ServerReading], sets: &[usize]) -> RedisLeases {
    let servers = readings
        .iter()
        .map(|reading| ServerState { server: reading.server.clone(), error: reading.keys.clone().err() })
        .collect();
    let (mut rows, mut first) = (Vec::new(), 0);
    for (set, size) in sets.iter().enumerate() {
        let end = first + size;
        rows.extend(locks(readings.get(first..end).unwrap_or_default(), set, first));
        first = end;
    }
    // Two sets may have the same key: they stay in their order.
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    RedisLeases { rows, servers, sets: sets.to_vec(), read_at: None, cut: false }
}

/// The locks of one set, by key; `first` is the place of its first server among all.
fn locks(readings: &[ServerReading], set: usize, first: usize) -> Vec<RedisLease> {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let down = count(readings.iter().filter(|reading| reading.keys.is_err()).count());
    let mut by_key: BTreeMap<&Bytes, Vec<ServerKey>> = BTreeMap::new();
    for (server, reading) in readings.iter().enumerate() {
        for KeyReading { key, value, expiry } in reading.keys.iter().flatten() {
            let places = by_key.entry(key).or_default();
            // A server that names a key twice has one of it.
            if places.last().is_none_or(|place| place.server != server) {
                places.push(ServerKey { server, value: value.clone(), expiry: *expiry });
            }
        }
    }
    let servers = count(readings.len());
    let rows = by_key.into_iter().filter_map(|(key, places)| lease(key, places, servers, down));
    rows.map(|lease| RedisLease { set, first, ..lease }).collect()
}

/// One key; none without a place where it is.
fn lease(key: &Bytes, places: Vec<ServerKey>, servers: u32, down: u32) -> Option<RedisLease> {
    let mut candidates: Vec<Vec<&ServerKey>> = Vec::new();
    for place in &places {
        let same = |group: &Vec<&ServerKey>| {
            group.first().is_some_and(|first| first.value.same_holder(&place.value))
        };
        match candidates.iter_mut().find(|group| same(group)) {
            Some(group) => group.push(place),
            None => candidates.push(vec![place]),
        }
    }
    let votes = |group: &Vec<&ServerKey>| u32::try_from(group.len()).unwrap_or(u32::MAX);
    let name = |group: &Vec<&ServerKey>| group.iter().map(|place| place.value.shown()).min();
    candidates.sort_by(|a, b| votes(b).cmp(&votes(a)).then_with(|| name(a).cmp(&name(b))));
    let mut candidates = candidates.into_iter();
    let best = candidates.next()?;
    let first = best.iter().min_by_key(|place| place.value.shown())?;
    let others: Vec<_> =
        candidates.filter_map(|group| Some((group.first()?.value.clone(), votes(&group)))).collect();
    let quorum = quorum(servers);
    let standing = match votes(&best) {
        votes if votes >= quorum => Standing::Held,
        votes if votes.saturating_add(down) >= quorum => Standing::Unknown,
        _ if others.is_empty() => Standing::Minority,
        _ => Standing::Split,
    };
    let without_expiry = places.iter().filter(|place| place.expiry == Expiry::Never).count();
    Some(RedisLease {
        key: key.clone(),
        holder: first.value.clone(),
        set: 0,
        first: 0,
        votes: votes(&best),
        servers,
        down,
        standing,
        uncertain: best.iter().any(|place| place.value != first.value),
        others,
        expiry: expiry(&best, quorum),
        without_expiry: u32::try_from(without_expiry).unwrap_or(u32::MAX),
        places,
        observed: None,
        longest: None,
    })
}

/// When fewer than a majority are left: the keys go one after the other, and the majority with the one that is the
/// quorum's last. Without a majority, when the last one goes.
fn expiry(group: &[&ServerKey], quorum: u32) -> Expiry {
    let mut all: Vec<Expiry> = group.iter().map(|place| place.expiry).collect();
    all.sort_by_key(|expiry| std::cmp::Reverse(expiry.order()));
    let deciding = usize::try_from(quorum).unwrap_or(usize::MAX).saturating_sub(1);
    all.get(deciding).or(all.first()).copied().unwrap_or(Expiry::Never)
}
