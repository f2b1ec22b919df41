//! Rows of the parts: their columns, and how each is decoded.

use crate::model::adapter::{AdapterLease, AdapterSchedule, Depth, Job, Part, Paused, Worker, part_rows};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::Values;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Text,
    Int,
    Number,
    Time,
    Bool,
}

impl ValueKind {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Text => "pg_catalog.text",
            Self::Int => "pg_catalog.int8",
            Self::Number => "pg_catalog.float8",
            Self::Time => "pg_catalog.timestamptz",
            Self::Bool => "pg_catalog.bool",
        }
    }
}

/// An output column: its name, its kind, and whether it is required.
pub(super) type Column = (&'static str, ValueKind, bool);

pub(super) trait PartRow: Sized {
    const COLUMNS: &[Column];

    /// None if the row cannot be distinguished from others.
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError>;
}

trait Value: Sized {
    const KIND: ValueKind;
    const IS_REQUIRED: bool;

    /// The value of so many columns; None if it is required and missing.
    fn read(row: &mut Values<'_, '_>, columns: usize) -> Result<Option<Self>, DecodeError>;
}

macro_rules! values {
    ($($type:ty: $kind:ident $is_required:literal, |$row:ident, $columns:pat_param| $value:expr;)*) => {$(
        impl Value for $type {
            const KIND: ValueKind = ValueKind::$kind;
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
    i64: Int true, |row, _| row.int()?.filter(|number| *number >= 0);
    Option<i64>: Int false, |row, _| Some(row.int()?);
    Option<i32>: Int false, |row, _| Some(row.small()?);
    Option<f64>: Number false, |row, _| Some(row.number()?);
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

macro_rules! decoded {
    ($($_columns:ident of $row:ident { $($tag:literal $field:ident: $type:ty = $($column:literal)+,)* })*) => {$(
        impl PartRow for $row {
            const COLUMNS: &[Column] =
                &[$($(($column, <$type as Value>::KIND, <$type as Value>::IS_REQUIRED),)+)*];

            fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
                $(let Some($field) = <$type as Value>::read(row, [$($column),+].len())? else { return Ok(None) };)*
                Ok(Some(Self { $($field,)* }))
            }
        }
    )*};
}

part_rows!(decoded);

pub(super) fn columns(part: Part) -> &'static [Column] {
    match part {
        Part::Workers => Worker::COLUMNS,
        Part::Depth => Depth::COLUMNS,
        Part::Paused => Paused::COLUMNS,
        Part::Leases => AdapterLease::COLUMNS,
        Part::Schedules => AdapterSchedule::COLUMNS,
        Part::Running | Part::Due | Part::Scheduled | Part::Blocked | Part::Failed => Job::COLUMNS,
    }
}
