//! The encoding of each database.
//!
//! A poll requests no conversion: one query in another encoding, in any database, would fail a whole statement. Text
//! therefore arrives in the encoding in which it is stored.

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use locktop_base::encoding::Encoding;

#[derive(Debug, Default, Clone)]
pub struct Encodings(Arc<FxHashMap<u32, Encoding>>);

impl Encodings {
    /// The default encoding while that of the database is not known.
    pub fn of(&self, database: Option<u32>) -> Encoding {
        if self.0.is_empty() {
            return Encoding::default();
        }
        database.and_then(|oid| self.0.get(&oid).copied()).unwrap_or_default()
    }
}

impl FromIterator<(u32, Encoding)> for Encodings {
    fn from_iter<T: IntoIterator<Item = (u32, Encoding)>>(databases: T) -> Self {
        let others = databases.into_iter().filter(|(_, encoding)| *encoding != Encoding::default());
        Self(Arc::new(others.collect()))
    }
}
