//! Columns: one message for each kind of value, with one value per row. Missing values at the end of a column are unknown.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::strings::{Decoded, Packed, Strings};
use crate::model::{QueryText, Text, Timestamp};

pub(super) trait RecordedValue: Sized {
    type Column: RecordedColumn<Self>;
}

pub(super) trait RecordedColumn<T>: prost::Message + Default + std::fmt::Debug {
    fn reserve(&mut self, _rows: usize) {}
    fn push(&mut self, value: &T, strings: &mut Strings);
    /// Appends several values. A row type does so field by field: ten thousand locks have sixteen columns, and only one column
    /// is written to at a time.
    fn extend<'a>(&mut self, values: impl Iterator<Item = &'a T> + Clone, strings: &mut Strings)
    where
        T: 'a,
    {
        for value in values {
            self.push(value, strings);
        }
    }
    /// The value of a row; the type's value for "not known" if the column is too short.
    fn get(&self, at: usize, strings: &Decoded) -> T;
    /// Number of rows with a value; less than the number of rows if the last ones are not known.
    fn rows(&self) -> usize;
}

pub(super) fn column<T: RecordedValue>(rows: &[T], strings: &mut Strings) -> T::Column {
    let mut column = T::Column::default();
    column.reserve(rows.len());
    column.extend(rows.iter(), strings);
    column
}

/// The rows of a column, at most as many as the memory limit allows.
pub(super) fn rows<T: RecordedValue>(column: &T::Column, strings: &Decoded) -> Vec<T> {
    let count = strings.room(column.rows(), size_of::<T>());
    (0..count).map(|at| column.get(at, strings)).collect()
}

/// The entries of a map in the order of their keys.
pub(super) fn sorted<K: Ord + Clone, V: Clone>(map: &FxHashMap<K, V>) -> Vec<(K, V)> {
    let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    entries
}

/// 64-bit numbers, with a bit for each that is not known.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Wides {
    #[prost(sint64, repeated, tag = 1)]
    value: Vec<i64>,
    #[prost(bytes = "vec", tag = 2)]
    unknown: Vec<u8>,
}

/// Floating-point numbers, with a bit for each that is not known.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Reals {
    #[prost(double, repeated, tag = 1)]
    value: Vec<f64>,
    #[prost(bytes = "vec", tag = 2)]
    unknown: Vec<u8>,
}

/// Microseconds since 1970; the smallest value stands for none.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Times {
    #[prost(sfixed64, repeated, tag = 1)]
    micros: Vec<i64>,
}

/// Concatenated bytes, and where each value ends.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Blobs {
    #[prost(uint64, repeated, tag = 1)]
    end: Vec<u64>,
    #[prost(bytes = "vec", tag = 2)]
    bytes: Vec<u8>,
}

/// Values that are stored as another type, and both conversions.
macro_rules! stored_as {
    ($($value:ty as $stored:ty: $to:expr, $from:expr;)*) => {$(
        impl $crate::recording::cell::RecordedValue for $value {
            type Column = <$stored as $crate::recording::cell::RecordedValue>::Column;
        }

        impl $crate::recording::cell::RecordedColumn<$value> for <$stored as $crate::recording::cell::RecordedValue>::Column {
            fn push(&mut self, value: &$value, strings: &mut $crate::recording::strings::Strings) {
                let to: fn(&$value) -> $stored = $to;
                $crate::recording::cell::RecordedColumn::<$stored>::push(self, &to(value), strings);
            }

            fn get(&self, at: usize, strings: &$crate::recording::strings::Decoded) -> $value {
                let from: fn($stored) -> $value = $from;
                from($crate::recording::cell::RecordedColumn::<$stored>::get(self, at, strings))
            }

            fn rows(&self) -> usize {
                $crate::recording::cell::RecordedColumn::<$stored>::rows(self)
            }

            fn reserve(&mut self, rows: usize) {
                $crate::recording::cell::RecordedColumn::<$stored>::reserve(self, rows);
            }
        }
    )*};
}

pub(super) use stored_as;

stored_as! {
    Timestamp as Option<Timestamp>: |time| Some(*time), Option::unwrap_or_default;
    Arc<[u32]> as Vec<u32>: |list| list.to_vec(), Into::into;
    Text as Option<Text>: |text| Some(Text::clone(text)), Option::unwrap_or_default;
    // Redaction has already happened: see `feed::record::redact`.
    Option<QueryText> as Option<Text>:
        |query| query.as_ref().map(|query| Text::clone(query.unredacted())),
        |text| text.map(QueryText::from);
}

fn set_bit(bits: &mut Vec<u8>, at: usize) {
    if bits.len() <= at / 8 {
        bits.resize(at / 8 + 1, 0);
    }
    if let Some(byte) = bits.get_mut(at / 8) {
        *byte |= 1 << (at % 8);
    }
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// The range of a list, from the ends of all lists.
fn place(ends: &[u64], at: usize) -> std::ops::Range<usize> {
    let end = |at: usize| ends.get(at).and_then(|end| usize::try_from(*end).ok()).unwrap_or_default();
    let start = at.checked_sub(1).map_or(0, end);
    start..end(at).max(start)
}

/// Numbers below 2^63 that can be unknown: stored as the number plus one, 0 for unknown.
macro_rules! counts {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl RecordedValue for Option<$type> {
            type Column = Packed;
        }

        impl RecordedColumn<Option<$type>> for Packed {
            fn push(&mut self, value: &Option<$type>, _: &mut Strings) {
                let code: fn($type) -> u64 = $to;
                self.add(value.map_or(0, |value| code(value).saturating_add(1)));
            }

            fn get(&self, at: usize, _: &Decoded) -> Option<$type> {
                let value: fn(u64) -> Option<$type> = $from;
                value(self.number(at)?.checked_sub(1)?)
            }

            fn rows(&self) -> usize {
                self.count()
            }

            fn reserve(&mut self, rows: usize) {
                self.reserve_bytes(rows);
            }
        }

        stored_as! { $type as Option<$type>: |value| Some(*value), Option::unwrap_or_default; }
    )*};
}

/// Maps numbers near zero, whatever their sign, to small ones.
fn zigzag(value: i32) -> u64 {
    u64::from((value << 1 ^ value >> 31).cast_unsigned())
}

fn unzigzag(code: u64) -> Option<i32> {
    let code = u32::try_from(code).ok()?;
    Some((code >> 1).cast_signed() ^ -(code & 1).cast_signed())
}

counts! {
    u32: u64::from, |code| u32::try_from(code).ok();
    u16: u64::from, |code| u16::try_from(code).ok();
    i32: zigzag, unzigzag;
    bool: u64::from, |code| Some(code != 0);
    usize: |value| value as u64, |code| usize::try_from(code).ok();
}

macro_rules! with_bits {
    ($($column:ty, $type:ty: $to:expr, $from:expr;)*) => {$(
        impl RecordedValue for Option<$type> {
            type Column = $column;
        }

        impl RecordedColumn<Option<$type>> for $column {
            fn push(&mut self, value: &Option<$type>, _: &mut Strings) {
                if value.is_none() {
                    set_bit(&mut self.unknown, self.value.len());
                }
                self.value.push($to(value.unwrap_or_default()));
            }

            fn get(&self, at: usize, _: &Decoded) -> Option<$type> {
                self.value.get(at).filter(|_| !bit(&self.unknown, at)).map(|value| $from(*value))
            }

            fn rows(&self) -> usize {
                self.value.len()
            }
        }

        stored_as! { $type as Option<$type>: |value| Some(*value), Option::unwrap_or_default; }
    )*};
}

with_bits! {
    Wides, i64: std::convert::identity, std::convert::identity;
    Wides, u64: u64::cast_signed, i64::cast_unsigned;
    Reals, f64: std::convert::identity, std::convert::identity;
}

pub(super) fn micros(time: Option<Timestamp>) -> i64 {
    time.map_or(i64::MIN, |time| time.timestamp_micros())
}

/// Times further from 1970, about 250,000 years, are invalid. Minutes and days can be subtracted from all others without
/// overflow.
const FARTHEST: u64 = 8_000_000_000_000_000_000;

pub(super) fn time(micros: i64) -> Option<Timestamp> {
    (micros.unsigned_abs() <= FARTHEST).then(|| Timestamp::from_timestamp_micros(micros)).flatten()
}

impl RecordedValue for Option<Timestamp> {
    type Column = Times;
}

impl RecordedColumn<Option<Timestamp>> for Times {
    fn reserve(&mut self, rows: usize) {
        self.micros.reserve(rows);
    }

    fn push(&mut self, value: &Option<Timestamp>, _: &mut Strings) {
        self.micros.push(micros(*value));
    }

    fn get(&self, at: usize, _: &Decoded) -> Option<Timestamp> {
        self.micros.get(at).copied().and_then(time)
    }

    fn rows(&self) -> usize {
        self.micros.len()
    }
}

impl RecordedValue for Option<Text> {
    type Column = Packed;
}

/// Numbers of strings of the group; 0 for none.
impl RecordedColumn<Option<Text>> for Packed {
    fn push(&mut self, value: &Option<Text>, strings: &mut Strings) {
        self.add(value.as_ref().map_or(0, |text| strings.id(text)).into());
    }

    fn get(&self, at: usize, strings: &Decoded) -> Option<Text> {
        strings.get(u32::try_from(self.number(at)?).ok()?)
    }

    fn rows(&self) -> usize {
        self.count()
    }

    fn reserve(&mut self, rows: usize) {
        self.reserve_bytes(rows);
    }
}

impl RecordedValue for Arc<[u8]> {
    type Column = Blobs;
}

impl RecordedColumn<Arc<[u8]>> for Blobs {
    fn push(&mut self, value: &Arc<[u8]>, _: &mut Strings) {
        self.bytes.extend_from_slice(value);
        self.end.push(self.bytes.len() as u64);
    }

    fn get(&self, at: usize, strings: &Decoded) -> Arc<[u8]> {
        let place = place(&self.end, at);
        let place = place.start..place.start + strings.room(place.len(), 1);
        self.bytes.get(place).unwrap_or_default().into()
    }

    fn rows(&self) -> usize {
        self.end.len()
    }
}

/// Lists: the rows of all one after the other, and where each list ends.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Lists<C: prost::Message + Default + std::fmt::Debug> {
    #[prost(uint64, repeated, tag = 1)]
    end: Vec<u64>,
    #[prost(message, required, tag = 2)]
    rows: C,
}

impl<T: RecordedValue> RecordedValue for Vec<T> {
    type Column = Lists<T::Column>;
}

impl<T: RecordedValue> RecordedColumn<Vec<T>> for Lists<T::Column> {
    fn push(&mut self, list: &Vec<T>, strings: &mut Strings) {
        for row in list {
            self.rows.push(row, strings);
        }
        self.end.push(self.end.last().copied().unwrap_or_default() + list.len() as u64);
    }

    fn get(&self, at: usize, strings: &Decoded) -> Vec<T> {
        let place = place(&self.end, at);
        let end = place.end.min(self.rows.rows());
        let count = strings.room(end.saturating_sub(place.start), size_of::<T>());
        (place.start..place.start + count).map(|at| self.rows.get(at, strings)).collect()
    }

    fn rows(&self) -> usize {
        self.end.len()
    }
}
