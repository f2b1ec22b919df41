//! Decodes the bytes of the server into rows of the model.
//!
//! Large sections arrive as binary COPY: one message per row, no allocation per row, each value decoded in place. No
//! value causes an error: text is read in its database's encoding with replacement characters, an infinite timestamp is
//! None, NULL is a value, and an unknown word becomes `Other` or its row is left out. Only bytes that violate the
//! protocol are an error.

pub mod backends;
pub mod copy;
pub mod locks;
pub mod value;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tokio_postgres::Row;

use crate::model::lock_key::LockKey;
use crate::model::plan::Rights;
use crate::model::{Text, Timestamp};
use crate::pg::jobs::tables::{ColumnKind, Columns};
use copy::CopyValues;
use value::{raw, text};

pub use locktop_base::encoding::Encoding;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("the answer is not a binary COPY")]
    NotCopy,
    #[error("a row of the answer is cut short")]
    Short,
    #[error("a row of the answer has {found} columns, not {expected}")]
    Columns { found: usize, expected: usize },
    /// The server left out rows as already known, but they are not: the settings of the session were changed by other
    /// software.
    #[error("the answer omits rows that are not known")]
    Unknown,
}

/// A row that is declared with its columns.
pub(super) trait DecodedRow: Sized {
    const COLUMNS: Columns;

    /// None if the row cannot be distinguished from others.
    fn read(row: &mut CopyValues<'_, '_>) -> Result<Option<Self>, DecodeError>;
}

pub(super) trait DecodedValue: Sized {
    const KIND: ColumnKind;
    const IS_REQUIRED: bool;

    /// The value of so many columns; None if it is required and missing.
    fn read(row: &mut CopyValues<'_, '_>, columns: usize) -> Result<Option<Self>, DecodeError>;
}

macro_rules! values {
    ($($type:ty: $kind:ident $is_required:literal, |$row:ident, $columns:pat_param| $value:expr;)*) => {$(
        impl DecodedValue for $type {
            const KIND: ColumnKind = ColumnKind::$kind;
            const IS_REQUIRED: bool = $is_required;

            fn read($row: &mut CopyValues<'_, '_>, $columns: usize) -> Result<Option<Self>, DecodeError> {
                Ok($value)
            }
        }
    )*};
}

values! {
    Text: Text true, |row, _| row.text()?;
    Option<Text>: Text false, |row, _| Some(row.text()?);
    // `pg_class.reltuples` is negative for a table that was never counted.
    u64: Int true, |row, _| row.small()?;
    i64: Int true, |row, _| row.int()?;
    Option<i64>: Int false, |row, _| Some(row.int()?);
    Option<i32>: Int false, |row, _| Some(row.small()?);
    Option<u32>: Int false, |row, _| Some(row.small()?);
    Option<f64>: Interval false, |row, _| Some(row.number()?);
    Option<Timestamp>: Time false, |row, _| Some(row.time()?);
    bool: Bool false, |row, _| Some(row.flag()?.unwrap_or_default());
    Option<bool>: Bool false, |row, _| Some(row.flag()?);
    // One bigint, or else two integers.
    Option<LockKey>: Int false, |row, columns| {
        let key = row.int()?.map(LockKey::Bigint);
        let (class, object) = if columns > 1 { (row.small()?, row.small()?) } else { (None, None) };
        Some(key.or_else(|| Some(LockKey::Pair(class?, object?))))
    };
}

pub(super) const fn column<T: DecodedValue>(name: &'static str) -> (&'static str, ColumnKind, bool) {
    (name, T::KIND, T::IS_REQUIRED)
}

macro_rules! decoded {
    ($($_columns:ident of $row:ident { $($tag:literal $field:ident: $type:ty = $($column:literal)+,)* })*) => {$(
        impl $crate::pg::decode::DecodedRow for $row {
            const COLUMNS: $crate::pg::jobs::tables::Columns =
                &[$($($crate::pg::decode::column::<$type>($column),)+)*];

            fn read(
                row: &mut $crate::pg::decode::copy::CopyValues<'_, '_>,
            ) -> Result<Option<Self>, $crate::pg::decode::DecodeError> {
                $(
                    let columns = [$($column),+].len();
                    let $field = <$type as $crate::pg::decode::DecodedValue>::read(row, columns)?;
                    let Some($field) = $field else { return Ok(None) };
                )*
                Ok(Some(Self { $($field,)* }))
            }
        }
    )*};
}

/// Columns of which a row needs none, with their kinds.
macro_rules! optional {
    ($($kind:ident: $($name:literal)+;)+) => {
        &[$($(($name, $crate::pg::jobs::tables::ColumnKind::$kind, false),)+)+]
    };
}

pub(super) use {decoded, optional};

/// The store is cleared above this many texts: applications can use arbitrary names.
const LIMIT: usize = 8192;

/// Text in the encoding of its database, and shared: a user, application or wait event that occurs a thousand times is one
/// allocation.
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

/// The encoding of each database.
///
/// A poll requests no conversion: one query in another encoding, in any database, would fail a whole statement. Text
/// therefore arrives in the encoding in which it is stored.
#[derive(Debug, Default, Clone)]
pub struct Encodings(Arc<FxHashMap<u32, Encoding>>);

impl Encodings {
    /// The default encoding while that of the database is not known.
    pub fn of(&self, database: Option<u32>) -> Encoding {
        if self.0.is_empty() {
            return Encoding::default();
        }
        database.and_then(|oid| self.0.get(&oid).copied()).unwrap_or_default()
    }
}

impl FromIterator<(u32, Encoding)> for Encodings {
    fn from_iter<T: IntoIterator<Item = (u32, Encoding)>>(databases: T) -> Self {
        let others = databases.into_iter().filter(|(_, encoding)| *encoding != Encoding::default());
        Self(Arc::new(others.collect()))
    }
}

/// Limit of roles of a kind; the statement (`assets/sql/rights.sql`) returns one more.
const ROLES: usize = 1000;

/// None if the role itself is not among the rows.
pub(super) fn rights_of(rows: &[Row], encoding: Encoding) -> Option<Rights> {
    of(rows.iter().filter_map(|row| Some((text(raw(row, 0))?, encoding.shared(raw(row, 1)?)))))
}

fn of<W: AsRef<str>, N: AsRef<str>>(rows: impl Iterator<Item = (W, N)>) -> Option<Rights> {
    let mut rights = Rights::default();
    let mut role = None;
    for (word, name) in rows {
        let name = name.as_ref();
        match (word.as_ref(), name) {
            ("role", _) => role = Some(Text::from(name)),
            ("version", _) => rights.version_num = name.parse().unwrap_or_default(),
            ("is", "superuser") => rights.superuser = true,
            ("is", "no_inherit") => rights.no_inherit = true,
            ("has", "pg_read_all_stats") => rights.read_all_stats = true,
            ("has", "pg_signal_backend") => rights.signal_backend = true,
            ("has", "pg_signal_autovacuum_worker") => rights.signal_autovacuum = true,
            ("member", _) => rights.member_of.push(name.into()),
            ("superuser", _) => rights.superusers.push(name.into()),
            _ => {}
        }
    }
    rights.role = role?;
    rights.partial = rights.member_of.len() > ROLES || rights.superusers.len() > ROLES;
    for roles in [&mut rights.member_of, &mut rights.superusers] {
        roles.sort_unstable();
        roles.truncate(ROLES);
    }
    Some(rights)
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

    #[test]
    fn rows_are_put_together() {
        let rows = [
            ("member", "ops"),
            ("role", "ops"),
            ("version", "170002"),
            ("has", "pg_signal_backend"),
            ("member", "app"),
            ("superuser", "postgres"),
            ("is", "something new"),
        ];
        let rights = of(rows.into_iter()).unwrap();
        let expected = Rights {
            role: "ops".into(),
            version_num: 170_002,
            signal_backend: true,
            member_of: vec!["app".into(), "ops".into()],
            superusers: vec!["postgres".into()],
            ..Rights::default()
        };
        assert_eq!(rights, expected);
        assert_eq!(of([("member", "ops")].into_iter()), None);
    }

    #[test]
    fn more_roles_than_are_taken_are_not_all() {
        let many = (0..=ROLES).map(|number| ("member", format!("r{number}")));
        let rights = of(many.chain([("role", "r0".to_owned())])).unwrap();
        assert_eq!((rights.member_of.len(), rights.partial), (ROLES, true));
    }
}
