use std::hash::{DefaultHasher, Hash, Hasher};

/// Identifies something by where it is stored and its name there. A hash of both, small enough to select and mark by; an
/// action needs the row itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub(crate) u64);

impl TextId {
    /// The id of `name` in the table, or on the server, `source`.
    pub fn of(source: &str, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (source, name).hash(&mut hasher);
        Self(hasher.finish())
    }
}
