//! Text in the encoding of its database, and shared: a user, application or wait event that occurs a thousand times is one
//! allocation.

use std::sync::Arc;

pub use locktop_base::encoding::Encoding;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::Text;

/// The store is cleared above this many texts: applications can use arbitrary names.
const LIMIT: usize = 8192;

#[derive(Debug, Default)]
pub struct Texts {
    encoding: Encoding,
    known: FxHashSet<Text>,
}

impl Texts {
    /// An empty store for texts of a database with this encoding.
    pub fn of(encoding: Encoding) -> Self {
        Self { encoding, ..Self::default() }
    }

    pub fn get(&mut self, bytes: Option<&[u8]>) -> Option<Text> {
        let encoding = self.encoding;
        encoding.text(bytes).map(|text| self.intern(&text))
    }

    pub fn intern(&mut self, text: &str) -> Text {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        if self.known.len() >= LIMIT {
            self.known.clear();
        }
        let text: Text = text.into();
        self.known.insert(Arc::clone(&text));
        text
    }
}

/// The encoding of each database.
///
/// A poll requests no conversion: one query in another encoding, in any database, would fail a whole statement. Text
/// therefore arrives in the encoding in which it is stored.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_share_one_text() {
        let mut texts = Texts::default();
        let first = texts.get(Some(b"app")).unwrap();
        assert!(Arc::ptr_eq(&first, &texts.get(Some(b"app")).unwrap()));
        assert_eq!(texts.get(None), None);
        assert_eq!(&*texts.get(Some(b"caf\xe9")).unwrap(), "caf\u{fffd}");
    }

    #[test]
    fn the_store_does_not_grow_without_end() {
        let mut texts = Texts::default();
        for number in 0..LIMIT * 2 {
            texts.intern(&number.to_string());
        }
        assert!(texts.known.len() <= LIMIT);
    }
}
