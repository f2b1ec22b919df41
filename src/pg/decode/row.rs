//! Rows of user tables, one value after the other.

use bytes::Bytes;

use super::DecodeError;
use super::copy::{CopyReader, Fields};
use super::texts::Texts;
use super::value::{boolean, float8, int8, timestamp};
use crate::model::{Text, Timestamp};

/// Longest text that is kept, in characters.
pub(in crate::pg) const CHARACTERS: usize = 500;

/// The rows in the messages of one COPY, each with this many columns. Rows for which `read` gives None are left out.
pub(in crate::pg) fn rows<T>(
    messages: &[Bytes],
    columns: usize,
    texts: &mut Texts,
    mut read: impl FnMut(&mut Values<'_, '_>) -> Result<Option<T>, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let (mut reader, mut rows) = (CopyReader::default(), Vec::new());
    for message in messages {
        reader.read(message, columns, |fields| {
            rows.extend(read(&mut Values { fields, texts })?);
            Ok(())
        })?;
    }
    Ok(rows)
}

/// The values of a row, in the order of its columns. NULL and a value of another type are None.
pub(in crate::pg) struct Values<'a, 'b> {
    fields: &'a mut Fields<'b>,
    texts: &'a mut Texts,
}

impl<'b> Values<'_, 'b> {
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
