//! Locks in Redis: the reading of each server, and the combined state of N servers.
//!
//! A Redlock lock is a key with the same value on a majority of N independent servers
//! (<https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>); a lock on one server is the same with
//! N = 1. The user defines which servers form a set; sets are independent of each other.

mod merge;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::model::Text;

pub(crate) use merge::redis_lease_rows;
pub use merge::{RedisLease, RedisLeases, ServerKey, ServerState, Standing, merge, merge_sets, recorded};

/// Keys and values are bytes: an action must send back exactly the same bytes.
pub type Bytes = Arc<[u8]>;

/// Bytes as text; invalid UTF-8 is replaced. Not yet safe for a screen.
pub fn shown(bytes: &[u8]) -> Text {
    String::from_utf8_lossy(bytes).into()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    After(Duration),
    /// Never (`PTTL` is -1): the client that set it without a term may have ended long ago.
    Never,
}

impl Expiry {
    /// Time left; `None` for a key without a term.
    pub const fn left(self) -> Option<Duration> {
        match self {
            Self::After(left) => Some(left),
            Self::Never => None,
        }
    }

    /// Sort key: never is later than any time.
    pub(in crate::model) fn order(self) -> Duration {
        self.left().unwrap_or(Duration::MAX)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockValue {
    /// A string: the name of the holder, with a random part.
    Text {
        /// The stored bytes, or as many as were read.
        bytes: Bytes,
        /// False if the value is longer than what was read; it then cannot be compared.
        whole: bool,
    },
    /// A hash as stored by Redisson: `uuid:threadid` and its lock count. A read-write lock has several, and a mode.
    Redisson {
        holders: Vec<(Bytes, i64)>,
        /// The field `mode`, `read` or `write`.
        mode: Option<Bytes>,
    },
    /// Anything else (`list`, `set`, `hash` with other fields, …): not a known lock.
    Other(Text),
}

impl LockValue {
    pub fn text(bytes: &[u8]) -> Self {
        Self::Text { bytes: bytes.into(), whole: true }
    }

    pub const fn is_lock(&self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// The value, the holders of a hash, or the type of anything else. Not yet safe for a screen.
    pub fn shown(&self) -> Text {
        match self {
            Self::Text { bytes, whole: true } => shown(bytes),
            Self::Text { bytes, whole: false } => format!("{}…", String::from_utf8_lossy(bytes)).into(),
            Self::Redisson { holders, .. } => {
                let names: Vec<_> = holders.iter().map(|(field, _)| String::from_utf8_lossy(field)).collect();
                names.join(", ").into()
            }
            Self::Other(kind) => format!("({kind})").into(),
        }
    }

    /// Whether both have the same holders, whatever their lock counts.
    pub fn is_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Redisson { holders, mode }, Self::Redisson { holders: others, mode: other_mode }) => {
                let names = holders.iter().map(|(name, _)| name);
                names.eq(others.iter().map(|(name, _)| name)) && mode == other_mode
            }
            (one, other) => one == other,
        }
    }

    /// The lock count of the only holder, if it is counted (Redisson's locks are reentrant).
    pub fn holds(&self) -> Option<i64> {
        match self {
            Self::Redisson { holders, .. } => match holders.as_slice() {
                [(_, count)] => Some(*count),
                _ => None,
            },
            Self::Text { .. } | Self::Other(_) => None,
        }
    }

    /// Whether two servers have the same holder. A Redisson client has a different uuid on each server, so for a lock over
    /// several servers only the thread ids match: likely, but not certain.
    pub(in crate::model) fn same_holder(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Redisson { holders: mine, mode },
                Self::Redisson { holders: theirs, mode: other_mode },
            ) => {
                let mut threads = [mine, theirs].map(|holders| {
                    let mut threads: Vec<&[u8]> = holders.iter().map(|(field, _)| thread(field)).collect();
                    threads.sort_unstable();
                    threads
                });
                let [left, right] = &mut threads;
                left == right && mode == other_mode
            }
            (mine, theirs) => mine == theirs,
        }
    }
}

/// The part after the uuid in `uuid:threadid` and `uuid:threadid:write`.
fn thread(field: &[u8]) -> &[u8] {
    let colon = field.iter().position(|byte| *byte == b':');
    colon.and_then(|colon| field.get(colon + 1..)).unwrap_or(field)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReading {
    pub key: Bytes,
    pub value: LockValue,
    pub expiry: Expiry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerReading {
    pub server: Text,
    /// The keys on the server, or why they are unknown, in one line.
    pub keys: Result<Vec<KeyReading>, Text>,
}
