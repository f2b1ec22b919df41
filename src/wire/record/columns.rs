//! Columns of rows: messages for row types, for lists of rows, and for enumerations.

use std::sync::Arc;

use super::cell::{Cell, Column, place};
use super::strings::{Decoded, Strings};
use crate::model::Text;

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

/// The same for rows that exist only as columns, to store a type of the model in another form. Defines the row type, too.
macro_rules! flat_rows {
    ($($(#[$doc:meta])* $columns:ident of $(#[$attribute:meta])* $row:ident { $($tag:tt $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            $(#[$attribute])*
            pub(in crate::wire::record) struct $row {
                $($field: $type,)*
            }
        )*

        $crate::wire::record::columns::columns! {
            $($(#[$doc])* $columns of $row { $($tag $field: $type,)* })*
        }
    };
}

/// Lists of rows: the rows of all lists one after the other, and where each list ends.
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
                let place = $crate::wire::record::columns::list(&self.end, at);
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

/// An enumeration: a number for each variant, which is never reused, and the variant for unknown numbers.
macro_rules! codes {
    ($($type:ident, else $unknown:ident; { $($code:literal $variant:ident,)* })*) => {$(
        impl $crate::wire::record::columns::Code for $type {
            fn code(self) -> u32 {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            fn of(code: u32) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    _ => Self::$unknown,
                }
            }
        }

        impl $crate::wire::record::cell::Cell for $type {
            type Column = $crate::wire::record::cell::Counts;
        }

        impl $crate::wire::record::cell::Column<$type> for $crate::wire::record::cell::Counts {
            fn push(&mut self, value: &$type, strings: &mut $crate::wire::record::strings::Strings) {
                $crate::wire::record::cell::Column::<u32>::push(self, &$crate::wire::record::columns::Code::code(*value), strings);
            }

            fn get(&self, at: usize, strings: &$crate::wire::record::strings::Decoded) -> $type {
                let code = $crate::wire::record::cell::Column::<Option<u32>>::get(self, at, strings);
                code.map_or($type::$unknown, $crate::wire::record::columns::Code::of)
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
                let code = value.map($crate::wire::record::columns::Code::code);
                $crate::wire::record::cell::Column::<Option<u32>>::push(self, &code, strings);
            }

            fn get(&self, at: usize, strings: &$crate::wire::record::strings::Decoded) -> Option<$type> {
                let code = $crate::wire::record::cell::Column::<Option<u32>>::get(self, at, strings);
                code.map($crate::wire::record::columns::Code::of)
            }

            fn rows(&self) -> usize {
                $crate::wire::record::cell::Column::<u32>::rows(self)
            }
        }
    )*};
}

pub(super) use {codes, columns, flat_rows, lists};

pub(super) trait Code: Copy {
    /// Number in a file, which is never reused.
    fn code(self) -> u32;
    /// The variant with this number; for an unknown number, the variant that stands for it.
    fn of(code: u32) -> Self;
}

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
