//! Numbers in the packed form of Protocol Buffers (`repeated uint64 … = 1`), encoded as they are added.
//!
//! Each message asks its columns for their length, again at each nesting depth. With ten thousand locks, half a million
//! numbers per snapshot would be measured, while the length of encoded bytes is known.

/// Written numbers as bytes, or read numbers as integers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    written: usize,
    pub(super) read: Vec<u64>,
}

impl Packed {
    /// Reserves one byte per row, since most numbers are small.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.bytes.reserve(rows);
    }

    /// Appends a number: seven bits per byte, lowest first.
    pub(super) fn push(&mut self, mut number: u64) {
        self.written += 1;
        while number >= 0x80 {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }

    pub(super) fn get(&self, at: usize) -> Option<u64> {
        self.read.get(at).copied()
    }

    pub(super) fn rows(&self) -> usize {
        self.written.max(self.read.len())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Implements messages for columns that consist of such numbers only.
macro_rules! packed {
    ($($column:ident),*) => {$(
        impl prost::Message for $column {
            fn encode_raw(&self, into: &mut impl prost::bytes::BufMut) {
                let bytes = self.0.bytes();
                if !bytes.is_empty() {
                    let kind = prost::encoding::WireType::LengthDelimited;
                    prost::encoding::encode_key(1, kind, into);
                    prost::encoding::encode_varint(bytes.len() as u64, into);
                    into.put_slice(bytes);
                }
            }

            fn merge_field(
                &mut self,
                tag: u32,
                kind: prost::encoding::WireType,
                from: &mut impl prost::bytes::Buf,
                context: prost::encoding::DecodeContext,
            ) -> Result<(), prost::DecodeError> {
                match tag {
                    1 => prost::encoding::uint64::merge_repeated(kind, &mut self.0.read, from, context),
                    _ => prost::encoding::skip_field(kind, tag, from, context),
                }
            }

            fn encoded_len(&self) -> usize {
                match self.0.bytes().len() {
                    0 => 0,
                    length => prost::length_delimiter_len(length) + length + prost::encoding::key_len(1),
                }
            }

            fn clear(&mut self) {
                self.0 = Packed::default();
            }
        }
    )*};
}

pub(super) use packed;

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[derive(Debug, Clone, Default, PartialEq)]
    struct Ours(Packed);

    packed! { Ours }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Theirs {
        #[prost(uint64, repeated, tag = 1)]
        value: Vec<u64>,
    }

    #[test]
    fn the_bytes_are_those_of_protocol_buffers() {
        for numbers in [vec![], vec![0], vec![1, 127, 128, 300, 1 << 14, 1 << 35, u64::MAX], vec![7; 500]] {
            let (mut ours, theirs) = (Ours::default(), Theirs { value: numbers.clone() });
            ours.0.reserve(numbers.len());
            for number in &numbers {
                ours.0.push(*number);
            }
            assert_eq!(ours.encode_to_vec(), theirs.encode_to_vec(), "{numbers:?}");
            assert_eq!((ours.encoded_len(), ours.0.rows()), (theirs.encoded_len(), numbers.len()));
            let read = Ours::decode(&*theirs.encode_to_vec()).unwrap();
            assert_eq!((read.0.read.clone(), read.0.get(numbers.len())), (numbers, None));
        }
        // A later release may add fields.
        let mut later = Theirs { value: vec![5] }.encode_to_vec();
        later.extend([0x10, 7]);
        assert_eq!(Ours::decode(&*later).unwrap().0.read, [5]);
    }
}
