use std::collections::BTreeMap;
use std::ops::Range;

use locktop_locks::quorum;
use serde::Serializer;
use serde::ser::SerializeStruct;
use sha2::{Digest, Sha256};

use super::{Bytes, Expiry, KeyReading, LockValue, ServerReading, shown};
use crate::model::{Text, Timestamp};
use crate::order::SortExt;

words! {
    pub enum Standing {
        /// A majority has the same value: its owner holds the lock.
        Held,
        /// No majority, and several values: no client holds it, and the values block each other.
        Split,
        /// One value on fewer than a majority, and the other servers are free: no client holds it. A client is just acquiring or
        /// releasing it, or has failed to.
        Minority,
        /// Servers that do not answer decide whether there is a majority.
        Unknown,
    }
}

impl RedisLease {
    pub fn name(&self) -> Text {
        shown(&self.key)
    }

    pub fn members(&self) -> Range<usize> {
        self.first..self.first.saturating_add(usize::try_from(self.servers).unwrap_or(usize::MAX))
    }

    /// Whether a lock was set without a term: it remains if its holder dies. `SETNX` and `EXPIRE` as two commands leave such a
    /// lock behind if the client dies between them.
    pub fn leaks(&self) -> bool {
        self.without_expiry > 0 && self.places.iter().any(|place| place.value.is_lock())
    }
}

rows! {
    as redis_lease_rows;

    #[derive(Default, Eq)]
    pub struct RedisLeases in Redis {
        1 rows: Vec<RedisLease>,
        /// In the given order, one set after the other.
        2 servers: Vec<ServerState>,
        /// Number of servers in each set.
        3 sets: Vec<usize>,
        /// When the rows were read, by the clock of this machine; `None` if they never were.
        4 read_at: Option<Timestamp>,
        /// There are more keys than are read, or the key space has not been completely scanned yet.
        5 cut: bool,
    }

    #[derive(Eq)]
    pub struct RedisLease in RedisRows {
        1 key: Bytes,
        /// The value that most servers have; in a tie the smallest, so that the result is stable.
        2 holder: LockValue,
        /// Index of its set of servers, from 0.
        3 set: usize,
        /// Position of the first server of the set in the list of all servers.
        4 first: usize,
        /// Number of servers that have the value of the holder.
        5 votes: u32,
        6 servers: u32,
        /// Number of servers that did not answer.
        7 down: u32,
        8 standing: Standing,
        /// Whether it is only probable that the holder is the same on all its servers (Redisson over several servers).
        9 uncertain: bool,
        /// Other values, with the number of servers that have each; most first.
        10 others: Vec<(LockValue, u32)>,
        /// When the holder loses its majority (or, without a majority, its last key), unless it renews.
        11 expiry: Expiry,
        12 without_expiry: u32,
        13 places: Vec<ServerKey>,
        /// How long its holder had been observed at the time of reading, in milliseconds: it may have held the lock for longer.
        14 observed: Option<i64>,
        /// The longest remaining time observed with this holder, in milliseconds: the term is at least that long.
        15 longest: Option<i64>,
    }

    #[derive(Eq)]
    pub struct ServerKey in RedisPlaces {
        1 server: usize,
        2 value: LockValue,
        3 expiry: Expiry,
    }

    #[derive(Eq)]
    pub struct ServerState in ServerStates {
        /// Address from the config, without a password.
        1 server: Text,
        2 error: Option<Text>,
    }
}

impl RedisLeases {
    pub fn down(&self) -> usize {
        self.servers.iter().filter(|server| server.error.is_some()).count()
    }

    /// `2 of 5 down`; `None` if all answer.
    pub fn down_text(&self) -> Option<String> {
        let down = self.down();
        (down > 0).then(|| format!("{down} of {} down", self.servers.len()))
    }
}

/// Merges the readings of one set of servers; the caller sets `read_at` and `cut`.
pub fn merge(readings: &[ServerReading]) -> RedisLeases {
    merge_sets(readings, &[readings.len()])
}

/// The same for several sets with these numbers of servers: a lock is judged only by the servers of its own set.
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
    // Two sets may have the same key; the stable sort keeps their order.
    rows.order_by(|a, b| a.key.cmp(&b.key));
    RedisLeases { rows, servers, sets: sets.to_vec(), read_at: None, cut: false }
}

/// Sorted by key; `first` is the position of the first server of the set among all.
fn locks(readings: &[ServerReading], set: usize, first: usize) -> Vec<RedisLease> {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let down = count(readings.iter().filter(|reading| reading.keys.is_err()).count());
    let mut by_key: BTreeMap<&Bytes, Vec<ServerKey>> = BTreeMap::new();
    for (server, reading) in readings.iter().enumerate() {
        for KeyReading { key, value, expiry } in reading.keys.iter().flatten() {
            let places = by_key.entry(key).or_default();
            // A key reported twice by one server counts once.
            if places.last().is_none_or(|place| place.server != server) {
                places.push(ServerKey { server, value: value.clone(), expiry: *expiry });
            }
        }
    }
    let servers = count(readings.len());
    let rows = by_key.into_iter().filter_map(|(key, places)| lease(key, places, servers, down));
    rows.map(|lease| RedisLease { set, first, ..lease }).collect()
}

/// `None` if no server has the key.
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
    candidates.order_by(|a, b| votes(b).cmp(&votes(a)).then_with(|| name(a).cmp(&name(b))));
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

/// When fewer than a majority are left: the keys expire one after another, and the majority ends with the last key that the
/// quorum needs. Without a majority, when the last key expires.
fn expiry(group: &[&ServerKey], quorum: u32) -> Expiry {
    let mut all: Vec<Expiry> = group.iter().map(|place| place.expiry).collect();
    all.order_by_key(|expiry| std::cmp::Reverse(expiry.order()));
    let deciding = usize::try_from(quorum).unwrap_or(usize::MAX).saturating_sub(1);
    all.get(deciding).or(all.first()).copied().unwrap_or(Expiry::Never)
}

/// As the record has a lock: the SHA-256 of the value instead of the value, which is a secret: any client that knows it can
/// release the lock.
pub fn recorded<S: Serializer>(lease: &RedisLease, serializer: S) -> Result<S::Ok, S::Error> {
    let value = match &lease.holder {
        LockValue::Text { bytes, .. } => Some(bytes),
        LockValue::Redisson { holders, .. } => holders.first().map(|(holder, _)| holder),
        LockValue::Other(_) => None,
    };
    let mut line = serializer.serialize_struct("RedisLease", 4)?;
    line.serialize_field("key", &*shown(&lease.key))?;
    line.serialize_field("value_sha256", &value.map(|bytes| hex(&Sha256::digest(bytes))))?;
    line.serialize_field("votes", &lease.votes)?;
    line.serialize_field("servers", &lease.servers)?;
    line.end()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
