use tokio_postgres::types::Type;

use super::{LearnError, QueryNames, ROWS, Row};
use crate::model::lock_key::LockKey;

/// Longest name that is kept, in characters.
pub(super) const NAME: usize = 200;
/// Characters of a key that are read; a number has fewer.
pub(super) const KEY: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `(key, name)`: keys of one bigint.
    Bigint,
    /// `(classid, objid, name)`: keys of two integers.
    Pair,
}

impl Shape {
    /// A name may have any type: the server converts it to text.
    pub(super) fn of(types: &[(&str, Type)]) -> Result<Self, LearnError> {
        let shape = match types {
            [(_, key), _] if is_key(key) => Some(Self::Bigint),
            [(_, classid), (_, objid), _] if is_key(classid) && is_key(objid) => Some(Self::Pair),
            _ => None,
        };
        shape.ok_or_else(|| LearnError::Columns(described(types)))
    }

    /// Column names in the message that is sent.
    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Bigint => &["key", "name"],
            Self::Pair => &["classid", "objid", "name"],
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Bigint => "64-bit number",
            Self::Pair => "32-bit number",
        }
    }

    /// The key in the columns before the name; None if one of them is NULL.
    fn key(self, columns: &[Option<String>]) -> Result<Option<LockKey>, String> {
        match (self, columns) {
            (Self::Bigint, [Some(key)]) => number(key).map(LockKey::Bigint).map(Some),
            (Self::Pair, [Some(classid), Some(objid)]) => {
                Ok(Some(LockKey::Pair(number(classid)?, number(objid)?)))
            }
            _ => Ok(None),
        }
    }
}

fn is_key(kind: &Type) -> bool {
    [Type::INT8, Type::INT4, Type::INT2, Type::NUMERIC, Type::TEXT, Type::VARCHAR].contains(kind)
}

fn described(types: &[(&str, Type)]) -> String {
    let columns: Vec<String> = types.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    match &columns[..] {
        [] => "no columns".to_owned(),
        _ => format!("({})", columns.join(", ")),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| text.to_owned())
}

/// Rows whose last column is the name, in hexadecimal digits of its bytes.
pub(super) fn answer(shape: Shape, mut rows: Vec<Row>) -> Result<QueryNames, LearnError> {
    let cut = rows.len() > ROWS;
    rows.truncate(ROWS);
    let mut names = Vec::with_capacity(rows.len());
    for (place, mut row) in rows.into_iter().enumerate() {
        let Some(name) = row.pop().flatten() else { continue };
        let key = shape.key(&row).map_err(|value| LearnError::Key {
            row: place + 1,
            value,
            wanted: shape.wanted(),
        })?;
        let name: String = from_hex(&name).chars().take(NAME).collect();
        if let Some(key) = key.filter(|_| !name.trim().is_empty()) {
            names.push((key, name.into()));
        }
    }
    Ok(QueryNames { names, cut })
}

/// Text from hexadecimal digits, with replacement characters for invalid UTF-8.
pub(super) fn from_hex(digits: &str) -> String {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Vec<u8> = digits.as_bytes().chunks(2).filter_map(byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
