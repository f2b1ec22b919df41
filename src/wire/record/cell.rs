//! Columns: one message for each kind of value, with a value a row. What is missing at the end of a column is not known.

use std::sync::Arc;

use super::packed::{Packed, packed};
use super::strings::{Decoded, Strings};
use crate::model::{Text, Timestamp};

/// A value that has a column.
pub(super) trait Cell: Sized {
    /// The message that the values of all rows are in.
    type Column: Column<Self>;
}

/// The values of one field of all rows.
pub(super) trait Column<T>: prost::Message + Default {
    /// So many values will be appended.
    fn reserve(&mut self, _rows: usize) {}
    /// Appends the value of the next row.
    fn push(&mut self, value: &T, strings: &mut Strings);
    /// Appends the values of some rows. A row type does so field by field: of ten thousand locks with sixteen columns one column is
    /// written to at a time.
    fn extend<'a>(&mut self, values: impl Iterator<Item = &'a T> + Clone, strings: &mut Strings)
    where
        T: 'a,
    {
        for value in values {
            self.push(value, strings);
        }
    }
    /// The value of a row; what "not known" is for its type where the column does not go as far.
    fn get(&self, at: usize, strings: &Decoded) -> T;
    /// Rows for which there is a value; fewer than there are rows where the last are not known.
    fn rows(&self) -> usize;
}

/// The column of some rows.
pub(super) fn column<T: Cell>(rows: &[T], strings: &mut Strings) -> T::Column {
    let mut column = T::Column::default();
    column.reserve(rows.len());
    column.extend(rows.iter(), strings);
    column
}

/// The rows of a column; none more than there is memory for.
pub(super) fn rows<T: Cell>(column: &T::Column, strings: &Decoded) -> Vec<T> {
    let count = strings.room(column.rows(), size_of::<T>());
    (0..count).map(|at| column.get(at, strings)).collect()
}

/// Numbers below 2^63 that may be unknown: one more than the number, 0 for none.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counts(Packed);

/// Numbers of 64 bits. A bit for each that is not known.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Wides {
    #[prost(sint64, repeated, tag = 1)]
    value: Vec<i64>,
    #[prost(bytes = "vec", tag = 2)]
    unknown: Vec<u8>,
}

/// Numbers with a fraction. A bit for each that is not known.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Reals {
    #[prost(double, repeated, tag = 1)]
    value: Vec<f64>,
    #[prost(bytes = "vec", tag = 2)]
    unknown: Vec<u8>,
}

/// Microseconds since 1970; the least number there is for none.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Times {
    #[prost(sfixed64, repeated, tag = 1)]
    micros: Vec<i64>,
}

/// Numbers of strings of the group; 0 for none.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Texts(Packed);

packed! { Counts, Texts }

/// Bytes one after the other, and where each ends.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Blobs {
    #[prost(uint64, repeated, tag = 1)]
    end: Vec<u64>,
    #[prost(bytes = "vec", tag = 2)]
    bytes: Vec<u8>,
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

/// Where a list ends of which the ends are known.
fn place(ends: &[u64], at: usize) -> std::ops::Range<usize> {
    let end = |at: usize| ends.get(at).and_then(|end| usize::try_from(*end).ok()).unwrap_or_default();
    let start = at.checked_sub(1).map_or(0, end);
    start..end(at).max(start)
}

macro_rules! counts {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl Cell for Option<$type> {
            type Column = Counts;
        }

        impl Column<Option<$type>> for Counts {
            fn push(&mut self, value: &Option<$type>, _: &mut Strings) {
                let code: fn($type) -> u64 = $to;
                self.0.push(value.map_or(0, |value| code(value).saturating_add(1)));
            }

            fn get(&self, at: usize, _: &Decoded) -> Option<$type> {
                let value: fn(u64) -> Option<$type> = $from;
                value(self.0.get(at)?.checked_sub(1)?)
            }

            fn rows(&self) -> usize {
                self.0.rows()
            }

            fn reserve(&mut self, rows: usize) {
                self.0.reserve(rows);
            }
        }

        impl Cell for $type {
            type Column = Counts;
        }

        impl Column<$type> for Counts {
            fn push(&mut self, value: &$type, strings: &mut Strings) {
                self.push(&Some(*value), strings);
            }

            fn get(&self, at: usize, strings: &Decoded) -> $type {
                Column::<Option<$type>>::get(self, at, strings).unwrap_or_default()
            }

            fn rows(&self) -> usize {
                self.0.rows()
            }

            fn reserve(&mut self, rows: usize) {
                self.0.reserve(rows);
            }
        }
    )*};
}

/// Numbers near zero are small, whatever their sign.
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
        impl Cell for Option<$type> {
            type Column = $column;
        }

        impl Column<Option<$type>> for $column {
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

        impl Cell for $type {
            type Column = $column;
        }

        impl Column<$type> for $column {
            fn push(&mut self, value: &$type, _: &mut Strings) {
                self.value.push($to(*value));
            }

            fn get(&self, at: usize, _: &Decoded) -> $type {
                self.value.get(at).map(|value| $from(*value)).unwrap_or_default()
            }

            fn rows(&self) -> usize {
                self.value.len()
            }
        }
    )*};
}

with_bits! {
    Wides, i64: std::convert::identity, std::convert::identity;
    Wides, u64: u64::cast_signed, i64::cast_unsigned;
    Reals, f64: std::convert::identity, std::convert::identity;
}

/// None of the times there are.
pub(super) const NO_TIME: i64 = i64::MIN;

/// A time as it is kept.
pub(super) fn micros(time: Option<Timestamp>) -> i64 {
    time.map_or(NO_TIME, |time| time.timestamp_micros())
}

/// Times that are further from 1970 are none: some 250,000 years. From all others minutes and days can be taken away without an end.
const FARTHEST: u64 = 8_000_000_000_000_000_000;

/// A time that was kept.
pub(super) fn time(micros: i64) -> Option<Timestamp> {
    (micros.unsigned_abs() <= FARTHEST).then(|| Timestamp::from_timestamp_micros(micros)).flatten()
}

impl Cell for Option<Timestamp> {
    type Column = Times;
}

impl Column<Option<Timestamp>> for Times {
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

impl Cell for Timestamp {
    type Column = Times;
}

impl Column<Timestamp> for Times {
    fn push(&mut self, value: &Timestamp, _: &mut Strings) {
        self.micros.push(micros(Some(*value)));
    }

    fn get(&self, at: usize, strings: &Decoded) -> Timestamp {
        Column::<Option<Timestamp>>::get(self, at, strings).unwrap_or_default()
    }

    fn rows(&self) -> usize {
        self.micros.len()
    }
}

impl Cell for Option<Text> {
    type Column = Texts;
}

impl Column<Option<Text>> for Texts {
    fn push(&mut self, value: &Option<Text>, strings: &mut Strings) {
        self.0.push(value.as_ref().map_or(0, |text| strings.id(text)).into());
    }

    fn get(&self, at: usize, strings: &Decoded) -> Option<Text> {
        strings.get(u32::try_from(self.0.get(at)?).ok()?)
    }

    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn reserve(&mut self, rows: usize) {
        self.0.reserve(rows);
    }
}

impl Cell for Text {
    type Column = Texts;
}

impl Column<Text> for Texts {
    fn push(&mut self, value: &Text, strings: &mut Strings) {
        self.0.push(strings.id(value).into());
    }

    fn get(&self, at: usize, strings: &Decoded) -> Text {
        Column::<Option<Text>>::get(self, at, strings).unwrap_or_default()
    }

    fn rows(&self) -> usize {
        self.0.rows()
    }
}

impl Cell for Arc<[u8]> {
    type Column = Blobs;
}

impl Column<Arc<[u8]>> for Blobs {
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

/// A row type: a message with a column for each field.
macro_rules! columns {
    ($($(#[$doc:meta])* $columns:ident of $row:ident $(<$of:ident>)? { $($tag:tt $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub(in crate::wire::record) struct $columns {
            $(
                #[prost(message, required, tag = $tag)]
                $field: <$type as $crate::wire::record::cell::Cell>::Column,
            )*
        }

        impl $crate::wire::record::cell::Cell for $row $(<$of>)? {
            type Column = $columns;
        }

        impl $crate::wire::record::cell::Column<$row $(<$of>)?> for $columns {
            fn push(&mut self, row: &$row $(<$of>)?, strings: &mut $crate::wire::record::strings::Strings) {
                $($crate::wire::record::cell::Column::<$type>::push(&mut self.$field, &row.$field, strings);)*
            }

            fn extend<'a>(
                &mut self,
                rows: impl Iterator<Item = &'a $row $(<$of>)?> + Clone,
                strings: &mut $crate::wire::record::strings::Strings,
            ) {
                $(
                    let values = rows.clone().map(|row| &row.$field);
                    $crate::wire::record::cell::Column::<$type>::extend(&mut self.$field, values, strings);
                )*
            }

            fn get(&self, at: usize, strings: &$crate::wire::record::strings::Decoded) -> $row $(<$of>)? {
                $row {
                    $($field: $crate::wire::record::cell::Column::<$type>::get(&self.$field, at, strings),)*
                }
            }

            fn rows(&self) -> usize {
                let rows = [$($crate::wire::record::cell::Column::<$type>::rows(&self.$field)),*];
                rows.into_iter().max().unwrap_or_default()
            }

            fn reserve(&mut self, rows: usize) {
                $($crate::wire::record::cell::Column::<$type>::reserve(&mut self.$field, rows);)*
            }
        }
    )*};
}

/// Rows of rows: those of all lists one after the other, and where each list ends.
macro_rules! lists {
    ($($(#[$doc:meta])* $lists:ident of $row:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub(in crate::wire::record) struct $lists {
            #[prost(uint64, repeated, tag = 1)]
            end: Vec<u64>,
            #[prost(message, required, tag = 2)]
            rows: <$row as $crate::wire::record::cell::Cell>::Column,
        }

        impl $crate::wire::record::cell::Cell for Vec<$row> {
            type Column = $lists;
        }

        impl $crate::wire::record::cell::Column<Vec<$row>> for $lists {
            fn push(&mut self, list: &Vec<$row>, strings: &mut $crate::wire::record::strings::Strings) {
                for row in list {
                    $crate::wire::record::cell::Column::<$row>::push(&mut self.rows, row, strings);
                }
                let end = self.end.last().copied().unwrap_or_default() + list.len() as u64;
                self.end.push(end);
            }

            fn get(&self, at: usize, strings: &$crate::wire::record::strings::Decoded) -> Vec<$row> {
                let place = $crate::wire::record::cell::list(&self.end, at);
                let most = $crate::wire::record::cell::Column::<$row>::rows(&self.rows);
                let end = place.end.min(most);
                let count = strings.room(end.saturating_sub(place.start), size_of::<$row>());
                (place.start..place.start + count)
                    .map(|at| $crate::wire::record::cell::Column::<$row>::get(&self.rows, at, strings))
                    .collect()
            }

            fn rows(&self) -> usize {
                self.end.len()
            }
        }
    )*};
}

/// One of several words: a number for each, which is never used twice, and what an unknown one is taken for.
macro_rules! codes {
    ($($type:ty, else $unknown:expr; { $($code:literal $value:pat => $make:expr,)* })*) => {$(
        impl $crate::wire::record::cell::Code for $type {
            fn code(self) -> u32 {
                match self {
                    $($value => $code,)*
                }
            }

            fn of(code: u32) -> Self {
                match code {
                    $($code => $make,)*
                    _ => $unknown,
                }
            }
        }

        impl $crate::wire::record::cell::Cell for $type {
            type Column = $crate::wire::record::cell::Counts;
        }

        impl $crate::wire::record::cell::Column<$type> for $crate::wire::record::cell::Counts {
            fn push(&mut self, value: &$type, strings: &mut $crate::wire::record::strings::Strings) {
                $crate::wire::record::cell::Column::<u32>::push(self, &$crate::wire::record::cell::Code::code(*value), strings);
            }

            fn get(&self, at: usize, strings: &$crate::wire::record::strings::Decoded) -> $type {
                let code = $crate::wire::record::cell::Column::<Option<u32>>::get(self, at, strings);
                code.map_or($unknown, $crate::wire::record::cell::Code::of)
            }

            fn rows(&self) -> usize {
                $crate::wire::record::cell::Column::<u32>::rows(self)
            }
        }

        impl $crate::wire::record::cell::Cell for Option<$type> {
            type Column = $crate::wire::record::cell::Counts;
        }

        impl $crate::wire::record::cell::Column<Option<$type>> for $crate::wire::record::cell::Counts {
            fn push(&mut self, value: &Option<$type>, strings: &mut $crate::wire::record::strings::Strings) {
                let code = value.map($crate::wire::record::cell::Code::code);
                $crate::wire::record::cell::Column::<Option<u32>>::push(self, &code, strings);
            }

            fn get(&self, at: usize, strings: &$crate::wire::record::strings::Decoded) -> Option<$type> {
                let code = $crate::wire::record::cell::Column::<Option<u32>>::get(self, at, strings);
                code.map($crate::wire::record::cell::Code::of)
            }

            fn rows(&self) -> usize {
                $crate::wire::record::cell::Column::<u32>::rows(self)
            }
        }
    )*};
}

pub(super) use {codes, columns, lists};

/// A word with a number.
pub(super) trait Code: Copy {
    /// Its number in a file, which is never given to another.
    fn code(self) -> u32;
    /// The word with this number; of one that is not known here the word that the type has for that.
    fn of(code: u32) -> Self;
}

/// Where a list is among the rows of all.
pub(super) fn list(ends: &[u64], at: usize) -> std::ops::Range<usize> {
    place(ends, at)
}

lists! {
    /// Lists of process ids.
    PidLists of i32;
    OidLists of u32;
    TextLists of Text;
}

impl Cell for Arc<[u32]> {
    type Column = OidLists;
}

impl Column<Arc<[u32]>> for OidLists {
    fn push(&mut self, value: &Arc<[u32]>, strings: &mut Strings) {
        self.push(&value.to_vec(), strings);
    }

    fn get(&self, at: usize, strings: &Decoded) -> Arc<[u32]> {
        Column::<Vec<u32>>::get(self, at, strings).into()
    }

    fn rows(&self) -> usize {
        self.end.len()
    }
}
