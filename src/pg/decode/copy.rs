//! The binary format of COPY: PostgreSQL documentation, page "COPY", section "Binary Format".

use bytes::Bytes;

use super::DecodeError;
use super::Texts;
use super::value::{boolean, float8, int8, timestamp};
use crate::model::{Text, Timestamp};
use locktop_base::encoding::unhex;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Splits the messages of one COPY. The server sends each row in a separate message, with the header before the first
/// row.
#[derive(Debug, Default)]
pub struct CopyReader {
    started: bool,
}

impl CopyReader {
    pub fn read(
        &mut self,
        message: &[u8],
        columns: usize,
        mut row: impl FnMut(&mut Fields<'_>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut rest = message;
        if !self.started {
            rest = header(rest)?;
            self.started = true;
        }
        while let Some((count, tail)) = rest.split_first_chunk::<2>() {
            let Ok(found) = usize::try_from(i16::from_be_bytes(*count)) else {
                return Ok(()); // -1 ends the data
            };
            if found < columns {
                return Err(DecodeError::Columns { found, expected: columns });
            }
            let mut fields = Fields { rest: tail, left: found };
            row(&mut fields)?;
            rest = fields.finish()?;
        }
        Ok(())
    }
}

fn header(message: &[u8]) -> Result<&[u8], DecodeError> {
    let rest = message.strip_prefix(SIGNATURE).ok_or(DecodeError::NotCopy)?;
    let (_flags, rest) = rest.split_first_chunk::<4>().ok_or(DecodeError::NotCopy)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or(DecodeError::NotCopy)?;
    rest.get(u32::from_be_bytes(*length) as usize..).ok_or(DecodeError::NotCopy)
}

#[derive(Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Fields<'a> {
    /// None for NULL.
    #[inline]
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        let (length, tail) = self.rest.split_first_chunk::<4>().ok_or(DecodeError::Short)?;
        self.left = self.left.saturating_sub(1);
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = tail;
            return Ok(None);
        };
        let (value, tail) = tail.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.rest = tail;
        Ok(Some(value))
    }

    fn finish(mut self) -> Result<&'a [u8], DecodeError> {
        while self.left > 0 {
            self.value()?;
        }
        Ok(self.rest)
    }
}

/// Longest text that is kept, in characters.
pub(in crate::pg) const CHARACTERS: usize = 500;

/// The rows in the messages of one COPY, each with this many columns. Rows for which `read` gives None are left out.
pub(in crate::pg) fn rows<T>(
    messages: &[Bytes],
    columns: usize,
    texts: &mut Texts,
    mut read: impl FnMut(&mut CopyValues<'_, '_>) -> Result<Option<T>, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let (mut reader, mut rows) = (CopyReader::default(), Vec::new());
    for message in messages {
        reader.read(message, columns, |fields| {
            rows.extend(read(&mut CopyValues { fields, texts })?);
            Ok(())
        })?;
    }
    Ok(rows)
}

/// The values of a row, in the order of its columns. NULL and a value of another type are None.
pub(in crate::pg) struct CopyValues<'a, 'b> {
    fields: &'a mut Fields<'b>,
    texts: &'a mut Texts,
}

impl<'b> CopyValues<'_, 'b> {
    /// A text, truncated to [`CHARACTERS`].
    pub(in crate::pg) fn text(&mut self) -> Result<Option<Text>, DecodeError> {
        let Some(text) = self.whole_text()? else { return Ok(None) };
        Ok(Some(match text.char_indices().nth(CHARACTERS) {
            Some((end, _)) => self.texts.intern(text.get(..end).unwrap_or_default()),
            None => text,
        }))
    }

    pub(in crate::pg) fn whole_text(&mut self) -> Result<Option<Text>, DecodeError> {
        Ok(self.texts.get(self.fields.value()?))
    }

    pub(in crate::pg) fn bytes(&mut self) -> Result<Option<&'b [u8]>, DecodeError> {
        self.fields.value()
    }

    pub(in crate::pg) fn int(&mut self) -> Result<Option<i64>, DecodeError> {
        Ok(int8(self.fields.value()?))
    }

    /// None if the value does not fit into the type.
    pub(in crate::pg) fn small<N: TryFrom<i64>>(&mut self) -> Result<Option<N>, DecodeError> {
        Ok(self.int()?.and_then(|number| N::try_from(number).ok()))
    }

    /// A `float8`; None if it is infinite or NaN.
    pub(in crate::pg) fn number(&mut self) -> Result<Option<f64>, DecodeError> {
        Ok(self.float()?.filter(|number| number.is_finite()))
    }

    pub(in crate::pg) fn float(&mut self) -> Result<Option<f64>, DecodeError> {
        Ok(float8(self.fields.value()?))
    }

    pub(in crate::pg) fn time(&mut self) -> Result<Option<Timestamp>, DecodeError> {
        Ok(timestamp(self.fields.value()?))
    }

    pub(in crate::pg) fn flag(&mut self) -> Result<Option<bool>, DecodeError> {
        Ok(boolean(self.fields.value()?))
    }
}

#[derive(Debug)]
pub(in crate::pg) struct RowBuffer(Vec<u8>);

impl RowBuffer {
    pub(in crate::pg) fn new() -> Self {
        // The signature, no flags, no extension.
        Self([SIGNATURE, &[0; 8]].concat())
    }

    pub(in crate::pg) fn row(&mut self, columns: usize) {
        self.0.extend(i16::try_from(columns).unwrap_or(i16::MAX).to_be_bytes());
    }

    /// None for NULL.
    pub(in crate::pg) fn value(&mut self, value: Option<&[u8]>) {
        match value.and_then(|value| Some((value, i32::try_from(value.len()).ok()?))) {
            Some((value, length)) => {
                self.0.extend(length.to_be_bytes());
                self.0.extend(value);
            }
            None => self.0.extend((-1_i32).to_be_bytes()),
        }
    }

    /// A row from `record_send` in hexadecimal digits: the number of columns, and the type OID before each value.
    pub(in crate::pg) fn record(&mut self, digits: &str) -> Result<(), DecodeError> {
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

    pub(in crate::pg) fn finish(self) -> Vec<Bytes> {
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

    fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut bytes = i16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
        for value in values {
            match value {
                None => bytes.extend((-1i32).to_be_bytes()),
                Some(value) => {
                    bytes.extend(i32::try_from(value.len()).unwrap().to_be_bytes());
                    bytes.extend(*value);
                }
            }
        }
        bytes
    }

    fn head() -> Vec<u8> {
        [SIGNATURE, &[0; 8]].concat()
    }

    fn read(messages: &[Vec<u8>], columns: usize) -> Result<Vec<Option<Vec<u8>>>, DecodeError> {
        let mut reader = CopyReader::default();
        let mut first = Vec::new();
        for message in messages {
            reader.read(message, columns, |fields| {
                first.push(fields.value()?.map(<[u8]>::to_vec));
                Ok(())
            })?;
        }
        Ok(first)
    }

    #[test]
    fn the_header_is_read_alone_or_with_the_first_row() {
        let end = (-1i16).to_be_bytes().to_vec();
        let rows = [row(&[Some(b"a"), None]), row(&[None, Some(b"b")])];
        let expected = Ok(vec![Some(b"a".to_vec()), None]);
        assert_eq!(read(&[head(), rows[0].clone(), rows[1].clone(), end.clone()], 2), expected);
        assert_eq!(read(&[[head(), rows[0].clone()].concat(), [rows[1].clone(), end].concat()], 2), expected);
    }

    #[test]
    fn an_extension_of_the_header_is_skipped() {
        let message = [SIGNATURE, &[0, 0, 0, 0, 0, 0, 0, 3, 9, 9, 9], &row(&[Some(b"a")])].concat();
        assert_eq!(read(&[message], 1), Ok(vec![Some(b"a".to_vec())]));
    }

    #[test]
    fn columns_that_were_not_asked_for_are_skipped() {
        let rows = [row(&[Some(b"a"), Some(b"zz")]), row(&[Some(b"b"), None])].concat();
        assert_eq!(read(&[[head(), rows].concat()], 1), Ok(vec![Some(b"a".to_vec()), Some(b"b".to_vec())]));
    }

    #[test]
    fn data_that_is_not_a_copy_stream_is_rejected() {
        assert_eq!(read(&[b"SELECT".to_vec()], 1), Err(DecodeError::NotCopy));
        assert_eq!(
            read(&[[head(), row(&[None])].concat()], 2),
            Err(DecodeError::Columns { found: 1, expected: 2 })
        );
        let whole = [head(), row(&[Some(b"abc")])].concat();
        for cut in head().len() + 2..whole.len() {
            assert_eq!(read(&[whole[..cut].to_vec()], 1), Err(DecodeError::Short), "{cut}");
        }
    }
}

#[cfg(test)]
mod rows_tests {
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
    fn an_invalid_record_is_rejected() {
        for bad in ["0", "zz", "00000001", "0000000100000017", "000000010000001700000009", "ffffffff"] {
            assert_eq!(RowBuffer::new().record(bad), Err(DecodeError::Short), "{bad}");
        }
    }
}
