//! The binary format of COPY: PostgreSQL documentation, page "COPY", section "Binary Format".

use super::DecodeError;

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
    fn the_header_comes_alone_or_with_the_first_row() {
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
    fn what_is_no_copy_is_refused() {
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
