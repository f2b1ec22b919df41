use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// The key of all types, in notifications between workers.
const ALL: &str = "*";

/// The types of work that a session takes: a list, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Types {
    names: Option<Arc<[String]>>,
    key: Arc<str>,
}

impl Types {
    /// All types, including future ones.
    #[must_use]
    pub fn all() -> Self {
        Self { names: None, key: ALL.into() }
    }

    /// Only these, in any order; an empty list takes nothing.
    #[must_use]
    pub fn only(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
        names.sort();
        names.dedup();
        let mut hash = Sha256::new();
        for name in &names {
            // With its length, so that no two lists give the same text.
            hash.update(name.len().to_le_bytes());
            hash.update(name.as_bytes());
        }
        let mut key = String::new();
        for byte in hash.finalize().iter().take(8) {
            let _ = write!(key, "{byte:02x}");
        }
        Self { names: Some(names.into()), key: key.into() }
    }

    /// The names, sorted; `None` for all types.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The same for all workers that take the same types; a poll for other types says nothing about these.
    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_the_same_has_the_same_key() {
        let two = Types::only(["b", "a", "b"]);
        assert_eq!(two.names(), Some(&["a".to_owned(), "b".to_owned()][..]));
        assert_eq!(two.key(), Types::only(["a", "b"]).key());
        assert_eq!((Types::all().key(), Types::all().names()), ("*", None));
        let (one, none) = (Types::only(["ab"]), Types::only(Vec::<String>::new()));
        let keys = [two.key(), one.key(), none.key(), "*"];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key) && !key.contains(' '), "{keys:?}");
        }
    }
}
