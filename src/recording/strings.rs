//! Each text is stored once per group; rows have its number.

use std::cell::Cell;

use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, encode_key, encode_varint, key_len, skip_field, uint64};
use rustc_hash::FxHashMap;

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

// Numbers in the packed form of Protocol Buffers (`repeated uint64 … = 1`), encoded as they are added.
// Each message asks its columns for their length, again at each nesting depth. With ten thousand locks, half a million
// numbers per snapshot would be measured, while the length of encoded bytes is known.

/// Written numbers as bytes, or read numbers as integers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    written: usize,
    read: Vec<u64>,
}

impl Packed {
    /// Reserves one byte per row, since most numbers are small.
    pub(super) fn reserve_bytes(&mut self, rows: usize) {
        self.bytes.reserve(rows);
    }

    /// Appends a number: seven bits per byte, lowest first.
    pub(super) fn add(&mut self, mut number: u64) {
        self.written += 1;
        while number >= 0x80 {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }

    pub(super) fn number(&self, at: usize) -> Option<u64> {
        self.read.get(at).copied()
    }

    pub(super) fn count(&self) -> usize {
        self.written.max(self.read.len())
    }
}

impl prost::Message for Packed {
    fn encode_raw(&self, into: &mut impl BufMut) {
        if !self.bytes.is_empty() {
            encode_key(1, WireType::LengthDelimited, into);
            encode_varint(self.bytes.len() as u64, into);
            into.put_slice(&self.bytes);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        kind: WireType,
        from: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), prost::DecodeError> {
        match tag {
            1 => uint64::merge_repeated(kind, &mut self.read, from, context),
            _ => skip_field(kind, tag, from, context),
        }
    }

    fn encoded_len(&self) -> usize {
        match self.bytes.len() {
            0 => 0,
            length => prost::length_delimiter_len(length) + length + key_len(1),
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("the snapshot is too large to be kept")]
    TooLarge,
    #[error("the snapshot is damaged")]
    Damaged,
    #[error("the snapshot needs an earlier one that is missing")]
    NoKey,
    #[error("a later release of locktop is needed to read this")]
    Later,
    #[error("there is nothing to keep")]
    Empty,
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[derive(Clone, PartialEq, prost::Message)]
    struct Theirs {
        #[prost(uint64, repeated, tag = 1)]
        value: Vec<u64>,
    }

    #[test]
    fn the_bytes_are_those_of_protocol_buffers() {
        for numbers in [vec![], vec![0], vec![1, 127, 128, 300, 1 << 14, 1 << 35, u64::MAX], vec![7; 500]] {
            let (mut ours, theirs) = (Packed::default(), Theirs { value: numbers.clone() });
            ours.reserve_bytes(numbers.len());
            for number in &numbers {
                ours.add(*number);
            }
            assert_eq!(ours.encode_to_vec(), theirs.encode_to_vec(), "{numbers:?}");
            assert_eq!((ours.encoded_len(), ours.count()), (theirs.encoded_len(), numbers.len()));
            let read = Packed::decode(&*theirs.encode_to_vec()).unwrap();
            assert_eq!((read.read.clone(), read.number(numbers.len())), (numbers, None));
        }
        // A later release may add fields.
        let mut later = Theirs { value: vec![5] }.encode_to_vec();
        later.extend([0x10, 7]);
        assert_eq!(Packed::decode(&*later).unwrap().read, [5]);
    }
}
