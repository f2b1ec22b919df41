use std::fmt;
use std::sync::Arc;

use locktop_base::LockKey;
use sha2::{Digest, Sha256};

/// Longest name that is sent with a lock, in bytes: `pg_stat_activity` keeps 1,024 bytes of a statement.
const SHOWN: usize = 200;

/// The key of an advisory lock. All keys of a database share one lock manager.
///
/// A name is hashed to a 64-bit key, [`Key::named`], which SQL computes in the same way:
///
/// ```sql
/// SELECT ('x' || left(encode(sha256(convert_to('locktop-lock:' || 'invoice:7', 'UTF8')), 'hex'), 16))::bit(64)::bigint
/// ```
///
/// A statement that locks a name has it in a comment, so it is in `pg_stat_activity.query` of the holder and of those who
/// wait, and in the server's log of a long wait; locktop shows it. The comment of [`Locks::elect`](super::Locks::elect) begins with
/// `lead` instead of `lock`, by which locktop recognizes an election. There is no comment for a name of more than 200 bytes, or with
/// `/*`, `*/` or a control character. A name must not be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Key {
    /// One 64-bit key.
    Bigint(i64),
    /// Two 32-bit keys; never in conflict with a 64-bit key.
    Pair(i32, i32),
    /// The 64-bit key of this name.
    Named(i64, Arc<str>),
}

impl Key {
    /// The key of a name: the first 8 bytes, big-endian, of the SHA-256 of `locktop-lock:` and the name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let hash = Sha256::new_with_prefix("locktop-lock:").chain_update(name).finalize();
        let first = hash.first_chunk().copied().unwrap_or_default();
        Self::Named(i64::from_be_bytes(first), name.into())
    }

    /// The key as it is in `pg_locks`.
    #[must_use]
    pub fn number(&self) -> LockKey {
        match *self {
            Self::Bigint(key) | Self::Named(key, _) => LockKey::Bigint(key),
            Self::Pair(first, second) => LockKey::Pair(first, second),
        }
    }

    /// The name as a comment of a statement, after a word that tells what it is for; if it has a name that fits.
    pub(super) fn comment(&self, word: &str) -> Option<String> {
        let Self::Named(_, name) = self else { return None };
        let ends_comment = name.contains("*/") || name.contains("/*");
        let is_safe = name.len() <= SHOWN && !ends_comment && !name.contains(char::is_control);
        is_safe.then(|| format!("/* {word} {name} */ "))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bigint(key) => key.fmt(f),
            Self::Pair(first, second) => write!(f, "({first}, {second})"),
            Self::Named(_, name) => write!(f, "{name:?}"),
        }
    }
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

impl From<String> for Key {
    fn from(name: String) -> Self {
        Self::named(&name)
    }
}

impl From<&String> for Key {
    fn from(name: &String) -> Self {
        Self::named(name)
    }
}

impl From<i64> for Key {
    fn from(key: i64) -> Self {
        Self::Bigint(key)
    }
}

impl From<(i32, i32)> for Key {
    fn from((first, second): (i32, i32)) -> Self {
        Self::Pair(first, second)
    }
}

impl From<&Key> for Key {
    fn from(key: &Key) -> Self {
        key.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_a_comment_only_if_it_cannot_end_it() {
        for name in ["invoice:7", "/jobs/daily", "*", "all *", "/"] {
            assert_eq!(Key::named(name).comment("lock"), Some(format!("/* lock {name} */ ")));
        }
        for name in ["a*/ SELECT 1", "/*", "*/", "a\nb", &"x".repeat(201)] {
            assert_eq!(Key::named(name).comment("lock"), None, "{name}");
        }
        assert_eq!(Key::Bigint(1).comment("lock"), None);
        assert_ne!(Key::named("a").number(), Key::named("b").number());
    }
}
