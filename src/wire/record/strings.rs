//! Each text once a group: rows have its number.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use super::error::RecordError;
use crate::model::Text;

/// Bytes that the rows of one look may take when they are read: who made the file may be anybody.
const MOST: usize = 128 << 20;

/// What a text costs beside its bytes.
const EACH: usize = 64;

/// Texts as they are written.
#[derive(Debug, Default)]
pub(super) struct Strings {
    ids: FxHashMap<Text, u32>,
    /// The same by where they are in memory, which the keys of `ids` see to: most texts are the very ones of the look before, and are not read
    /// for that.
    places: FxHashMap<(usize, usize), u32>,
    /// Those that were not written yet.
    new: Vec<Text>,
}

impl Strings {
    /// The number of a text, from 1 on.
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

    /// Those that are new since the last call.
    pub(super) fn take_new(&mut self) -> TextBlock {
        let mut block = TextBlock::default();
        for text in self.new.drain(..) {
            block.bytes.extend_from_slice(text.as_bytes());
            block.end.push(block.bytes.len() as u64);
        }
        block
    }
}

/// Texts one after the other, and where each ends.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TextBlock {
    #[prost(uint64, repeated, tag = 1)]
    end: Vec<u64>,
    #[prost(bytes = "vec", tag = 2)]
    bytes: Vec<u8>,
}

/// Texts as they are read.
#[derive(Debug)]
pub(super) struct Decoded {
    texts: Vec<Text>,
    taken: usize,
    /// Bytes that rows may still take.
    room: Cell<usize>,
}

impl Default for Decoded {
    fn default() -> Self {
        Self { texts: Vec::new(), taken: 0, room: Cell::new(MOST) }
    }
}

impl Decoded {
    /// Appends what a look brought.
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

    /// The text with a number.
    pub(super) fn get(&self, id: u32) -> Option<Text> {
        let at = usize::try_from(id).ok()?.checked_sub(1)?;
        self.texts.get(at).cloned()
    }

    /// Begins another look, which may take as much as any.
    pub(super) fn begin(&self) {
        self.room.set(MOST);
    }

    /// How many of so many things of this size there is room for.
    pub(super) fn room(&self, count: usize, size: usize) -> usize {
        let left = self.room.get();
        let count = count.min(left / size.max(1));
        self.room.set(left - count * size);
        count
    }
}
