//! Which database stores text in which encoding.
//!
//! A poll asks the server to convert nothing: one query in another encoding, in a database that is not even ours, would fail a whole
//! statement. So text arrives in the bytes it is stored in.

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use locktop_base::encoding::Encoding;

/// The encodings of all databases of a server, by OID.
#[derive(Debug, Default, Clone)]
pub struct Encodings(Arc<FxHashMap<u32, Encoding>>);

impl Encodings {
    /// Of this database; the default while it is not known.
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
