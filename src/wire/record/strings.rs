//! Each text is stored once per group; rows have its number.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use super::error::RecordError;
use crate::model::Text;

/// Maximum bytes of the rows of one snapshot when they are read; the file is not trusted.
const MOST: usize = 128 << 20;

/// Memory that a text takes besides its bytes.
const EACH: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Strings {
    ids: FxHashMap<Text, u32>,
    /// The ids by address in memory; the keys of `ids` keep the texts alive. Most texts are the same objects as in the previous
    /// snapshot, so their bytes need not be read.
    places: FxHashMap<(usize, usize), u32>,
    new: Vec<Text>,
}

impl Strings {
    /// The number of a text, starting at 1.
    pub(super) fn id(&mut self, text: &Text) -> u32 {
        let place = (text.as_ptr().addr(), text.len());
        if let Some(id) = self.places.get(&place).or_else(|| self.ids.get(text)) {
            return *id;
        }
        let id = u32::try_from(self.ids.len()).unwrap_or(u32::MAX - 1) + 1;
        self.ids.insert(Text::clone(text), id);
        self.places.insert(place, id);
        self.new.push(Text::clone(text));
        id
    }

    pub(super) fn take_new(&mut self) -> TextBlock {
        let mut block = TextBlock::default();
        for text in self.new.drain(..) {
            block.bytes.extend_from_slice(text.as_bytes());
            block.end.push(block.bytes.len() as u64);
        }
        block
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TextBlock {
    #[prost(uint64, repeated, tag = 1)]
    end: Vec<u64>,
    #[prost(bytes = "vec", tag = 2)]
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Decoded {
    texts: Vec<Text>,
    taken: usize,
    room: Cell<usize>,
}

impl Default for Decoded {
    fn default() -> Self {
        Self { texts: Vec::new(), taken: 0, room: Cell::new(MOST) }
    }
}

impl Decoded {
    pub(super) fn extend(&mut self, block: &TextBlock) -> Result<(), RecordError> {
        let mut start = 0;
        for end in &block.end {
            let end = usize::try_from(*end).map_err(|_| RecordError::Damaged)?;
            let bytes = block.bytes.get(start..end).ok_or(RecordError::Damaged)?;
            self.taken += EACH + bytes.len();
            if self.taken > MOST {
                return Err(RecordError::TooLarge);
            }
            self.texts.push(String::from_utf8_lossy(bytes).into());
            start = end;
        }
        Ok(())
    }

    pub(super) fn get(&self, id: u32) -> Option<Text> {
        let at = usize::try_from(id).ok()?.checked_sub(1)?;
        self.texts.get(at).cloned()
    }

    pub(super) fn begin(&self) {
        self.room.set(MOST);
    }

    /// How many of `count` items of this size fit; takes their room.
    pub(super) fn room(&self, count: usize, size: usize) -> usize {
        let left = self.room.get();
        let count = count.min(left / size.max(1));
        self.room.set(left - count * size);
        count
    }
}
