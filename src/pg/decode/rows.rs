//! Rows that are declared with their columns, and how each value is decoded.

use super::DecodeError;
use super::copy::Values;
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};
use crate::pg::tables::{ColumnKind, Columns};

pub(in crate::pg) trait DecodedRow: Sized {
    const COLUMNS: Columns;

    /// None if the row cannot be distinguished from others.
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError>;
}

pub(in crate::pg) trait Value: Sized {
    const KIND: ColumnKind;
    const IS_REQUIRED: bool;

    /// The value of so many columns; None if it is required and missing.
    fn read(row: &mut Values<'_, '_>, columns: usize) -> Result<Option<Self>, DecodeError>;
}

macro_rules! values {
    ($($type:ty: $kind:ident $is_required:literal, |$row:ident, $columns:pat_param| $value:expr;)*) => {$(
        impl Value for $type {
            const KIND: ColumnKind = ColumnKind::$kind;
            const IS_REQUIRED: bool = $is_required;

            fn read($row: &mut Values<'_, '_>, $columns: usize) -> Result<Option<Self>, DecodeError> {
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

pub(in crate::pg) const fn column<T: Value>(name: &'static str) -> (&'static str, ColumnKind, bool) {
    (name, T::KIND, T::IS_REQUIRED)
}

macro_rules! decoded {
    ($($_columns:ident of $row:ident { $($tag:literal $field:ident: $type:ty = $($column:literal)+,)* })*) => {$(
        impl $crate::pg::decode::rows::DecodedRow for $row {
            const COLUMNS: $crate::pg::tables::Columns =
                &[$($($crate::pg::decode::rows::column::<$type>($column),)+)*];

            fn read(
                row: &mut $crate::pg::decode::copy::Values<'_, '_>,
            ) -> Result<Option<Self>, $crate::pg::decode::DecodeError> {
                $(
                    let columns = [$($column),+].len();
                    let $field = <$type as $crate::pg::decode::rows::Value>::read(row, columns)?;
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
        &[$($(($name, $crate::pg::tables::ColumnKind::$kind, false),)+)+]
    };
}

pub(in crate::pg) use {decoded, optional};
