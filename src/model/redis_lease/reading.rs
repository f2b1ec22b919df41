//! What one server says.

use std::sync::Arc;
use std::time::Duration;

use crate::model::Text;

/// Keys and values are bytes, and whatever acts on them must send back the very same ones.
pub type Bytes = Arc<[u8]>;

/// How bytes are told to people; invalid UTF-8 is replaced, the rest is not yet fit for a screen.
pub fn shown(bytes: &[u8]) -> Text {
    String::from_utf8_lossy(bytes).into()
}

/// When a key goes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// In this time, as `PTTL` said.
    After(Duration),
    /// Never (`PTTL` is -1): whoever has set it and not set a term with it may be long gone.
    Never,
}

impl Expiry {
    /// Time left; none for a key without a term.
    pub const fn left(self) -> Option<Duration> {
        match self {
            Self::After(left) => Some(left),
            Self::Never => None,
        }
    }

    /// For comparing: never is later than any time.
    pub(super) fn order(self) -> Duration {
        self.left().unwrap_or(Duration::MAX)
    }
}

/// What is stored under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockValue {
    /// A string: who holds the lock says so, with something random in it.
    Text {
        /// As it is there, or as much of it as was read.
        bytes: Bytes,
        /// False when it is longer than what was read; then nothing can be compared with it.
        whole: bool,
    },
    /// A hash as Redisson's: `uuid:threadid` and how often it was locked. A read-write lock has several, and a mode.
    Redisson {
        /// Field and count, in the order of the fields.
        holders: Vec<(Bytes, i64)>,
        /// The field `mode`, `read` or `write`.
        mode: Option<Bytes>,
    },
    /// Anything else (`list`, `set`, `hash` with other fields, …): no lock that we know.
    Other(Text),
}

impl LockValue {
    /// The value of a string that was read whole.
    pub fn text(bytes: &[u8]) -> Self {
        Self::Text { bytes: bytes.into(), whole: true }
    }

    /// Whether this is how somebody holds a lock.
    pub const fn is_lock(&self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// For people: the value, the holders of a hash, the kind of anything else. Not yet fit for a screen.
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

    /// Whether both are of the same holders, however often they have locked it.
    pub fn is_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Redisson { holders, mode }, Self::Redisson { holders: others, mode: other_mode }) => {
                let names = holders.iter().map(|(name, _)| name);
                names.eq(others.iter().map(|(name, _)| name)) && mode == other_mode
            }
            (one, other) => one == other,
        }
    }

    /// How many times its only holder has locked it, where it counts that (Redisson's locks are reentrant).
    pub fn holds(&self) -> Option<i64> {
        match self {
            Self::Redisson { holders, .. } => match holders.as_slice() {
                [(_, count)] => Some(*count),
                _ => None,
            },
            Self::Text { .. } | Self::Other(_) => None,
        }
    }

    /// Whether two servers speak of the same holder. Redisson's clients have another uuid for each server, so that of a
    /// lock over several servers only the threads' numbers are the same: that is likely, not certain.
    pub(super) fn same_holder(&self, other: &Self) -> bool {
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

/// What is behind the uuid in `uuid:threadid` and `uuid:threadid:write`.
fn thread(field: &[u8]) -> &[u8] {
    let colon = field.iter().position(|byte| *byte == b':');
    colon.and_then(|colon| field.get(colon + 1..)).unwrap_or(field)
}

/// A key that one server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReading {
    /// The key's name, as bytes.
    pub key: Bytes,
    /// What is stored under it.
    pub value: LockValue,
    /// When it goes by itself.
    pub expiry: Expiry,
}

/// What one server said, or why it said nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerReading {
    /// Its address as the config has it, without a password.
    pub server: Text,
    /// The keys that are there, or in one line why it is not known.
    pub keys: Result<Vec<KeyReading>, Text>,
}
