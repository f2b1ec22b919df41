//! Rows from the server in the format of a binary COPY, however they were read.

use bytes::Bytes;
use locktop_base::encoding::unhex;

use crate::pg::decode::DecodeError;

/// Header of a binary COPY: the signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

#[derive(Debug)]
pub(super) struct RowBuffer(Vec<u8>);

impl RowBuffer {
    pub(super) fn new() -> Self {
        Self(HEADER.to_vec())
    }

    pub(super) fn row(&mut self, columns: usize) {
        self.0.extend(i16::try_from(columns).unwrap_or(i16::MAX).to_be_bytes());
    }

    /// None for NULL.
    pub(super) fn value(&mut self, value: Option<&[u8]>) {
        match value.and_then(|value| Some((value, i32::try_from(value.len()).ok()?))) {
            Some((value, length)) => {
                self.0.extend(length.to_be_bytes());
                self.0.extend(value);
            }
            None => self.0.extend((-1_i32).to_be_bytes()),
        }
    }

    /// A row from `record_send` in hexadecimal digits: the number of columns, and the type OID before each value.
    pub(super) fn record(&mut self, digits: &str) -> Result<(), DecodeError> {
        let bytes = unhex(digits).ok_or(DecodeError::Short)?;
        let (columns, mut rest) = number(&bytes)?;
        self.row(usize::try_from(columns).map_err(|_| DecodeError::Short)?);
        for _ in 0..columns {
            let (_, tail) = number(rest)?;
            let (length, tail) = number(tail)?;
            match usize::try_from(length) {
                Err(_) => {
                    self.value(None);
                    rest = tail;
                }
                Ok(length) => {
                    let (value, tail) = tail.split_at_checked(length).ok_or(DecodeError::Short)?;
                    self.value(Some(value));
                    rest = tail;
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<Bytes> {
        vec![self.0.into()]
    }
}

fn number(bytes: &[u8]) -> Result<(i32, &[u8]), DecodeError> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or(DecodeError::Short)?;
    Ok((i32::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pg::decode::copy::CopyReader;

    fn rows(messages: &[Bytes], columns: usize) -> Vec<Vec<Option<Vec<u8>>>> {
        let (mut reader, mut rows) = (CopyReader::default(), Vec::new());
        for message in messages {
            let read = reader.read(message, columns, |fields| {
                rows.push((0..columns).map(|_| fields.value().unwrap().map(<[u8]>::to_vec)).collect());
                Ok(())
            });
            read.unwrap();
        }
        rows
    }

    #[test]
    fn a_record_becomes_a_row() {
        let mut buffer = RowBuffer::new();
        // ROW(1::int4, NULL::text, 'ab'::text)
        buffer
            .record(
                "00000003000000170000000400000001 00000019ffffffff 00000019000000026162"
                    .replace(' ', "")
                    .as_str(),
            )
            .unwrap();
        buffer.row(3);
        buffer.value(Some(b"x"));
        buffer.value(None);
        buffer.value(Some(b""));
        let expected = vec![
            vec![Some(vec![0, 0, 0, 1]), None, Some(b"ab".to_vec())],
            vec![Some(b"x".to_vec()), None, Some(Vec::new())],
        ];
        assert_eq!(rows(&buffer.finish(), 3), expected);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for bad in ["0", "zz", "00000001", "0000000100000017", "000000010000001700000009", "ffffffff"] {
            assert_eq!(RowBuffer::new().record(bad), Err(DecodeError::Short), "{bad}");
        }
    }
}
