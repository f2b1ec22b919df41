//! What identifies a row that has a name.

use std::hash::{DefaultHasher, Hash, Hasher};

/// What identifies something by where it is kept and its name there. It is a hash of both: small enough to be selected and marked
/// by; who acts needs the row itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub(crate) u64);

impl TextId {
    /// Of what has this name in a table or on a server of that name.
    pub fn of(source: &str, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (source, name).hash(&mut hasher);
        Self(hasher.finish())
    }
}
