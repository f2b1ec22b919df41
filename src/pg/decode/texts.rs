//! Shared text: a user, application or wait event that occurs a thousand times is one allocation.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::encoding::Encoding;
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

    /// The shared copy of `text`.
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
