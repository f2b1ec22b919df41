//! Columns of rows: messages for row types and for enumerations.

/// A row type: a message with a column for each field. The columns of a query behind a field are ignored.
macro_rules! columns {
    ($($(#[$doc:meta])* $columns:ident of $row:ident $(<$of:ident>)? {
        $($tag:tt $field:ident: $type:ty $(= $($_column:literal)+)?,)*
    })*) => {$(
        $crate::recording::columns::columns! {
            @ $(#[$doc])* $columns, $row $(<$of>)?, $row { $($field,)* }, $row { $($field,)* }, $($tag $field: $type,)*
        }
    )*};
    (@ $(#[$doc:meta])* $columns:ident, $row:ty, $parts:pat, $whole:expr, $($tag:tt $field:ident: $type:ty,)*) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub(in crate::recording) struct $columns {
            $(
                #[prost(message, required, tag = $tag)]
                $field: <$type as $crate::recording::cell::RecordedValue>::Column,
            )*
        }

        impl $crate::recording::cell::RecordedValue for $row {
            type Column = $columns;
        }

        impl $crate::recording::cell::RecordedColumn<$row> for $columns {
            fn push(&mut self, row: &$row, strings: &mut $crate::recording::strings::Strings) {
                let $parts = row;
                $($crate::recording::cell::RecordedColumn::<$type>::push(&mut self.$field, $field, strings);)*
            }

            #[allow(unused_variables, reason = "one column is written at a time")]
            fn extend<'a>(
                &mut self,
                rows: impl Iterator<Item = &'a $row> + Clone,
                strings: &mut $crate::recording::strings::Strings,
            ) {
                $(
                    let values = rows.clone().map(|$parts| $field);
                    $crate::recording::cell::RecordedColumn::<$type>::extend(&mut self.$field, values, strings);
                )*
            }

            fn get(&self, at: usize, strings: &$crate::recording::strings::Decoded) -> $row {
                $(let $field = $crate::recording::cell::RecordedColumn::<$type>::get(&self.$field, at, strings);)*
                $whole
            }

            fn rows(&self) -> usize {
                let rows = [$($crate::recording::cell::RecordedColumn::<$type>::rows(&self.$field)),*];
                rows.into_iter().max().unwrap_or_default()
            }

            fn reserve(&mut self, rows: usize) {
                $($crate::recording::cell::RecordedColumn::<$type>::reserve(&mut self.$field, rows);)*
            }
        }
    };
}

/// The same for tuples, with the names of their columns.
macro_rules! tuples {
    ($($(#[$doc:meta])* $columns:ident of $row:ty as $parts:tt { $($tag:tt $field:ident: $type:ty,)* })*) => {$(
        $crate::recording::columns::columns! {
            @ $(#[$doc])* $columns, $row, $parts, $parts, $($tag $field: $type,)*
        }
    )*};
}

/// The same for rows that exist only as columns, to store a type of the model in another form. Defines the row type, too.
macro_rules! flat_rows {
    ($($(#[$doc:meta])* $columns:ident of $(#[$attribute:meta])* $row:ident { $($tag:tt $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            $(#[$attribute])*
            pub(in crate::recording) struct $row {
                $($field: $type,)*
            }
        )*

        $crate::recording::columns::columns! {
            $($(#[$doc])* $columns of $row { $($tag $field: $type,)* })*
        }
    };
}

/// A message of columns of different lengths, from the rows of each, and one number.
macro_rules! parts {
    ($($(#[$doc:meta])* $message:ident $(($number_tag:tt $number:ident: $kind:ident $number_type:ty))? {
        $($tag:tt $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub(in crate::recording) struct $message {
            $(
                #[prost(message, required, tag = $tag)]
                $field: <$type as $crate::recording::cell::RecordedValue>::Column,
            )*
            $(
                #[prost($kind, tag = $number_tag)]
                $number: $number_type,
            )?
        }

        impl $message {
            fn of(
                ($($field,)*): ($(&[$type],)*),
                $($number: $number_type,)?
                strings: &mut $crate::recording::strings::Strings,
            ) -> Self {
                Self { $($field: $crate::recording::cell::column($field, strings),)* $($number,)? }
            }

            fn rows(&self, strings: &$crate::recording::strings::Decoded) -> ($(Vec<$type>,)*) {
                ($($crate::recording::cell::rows(&self.$field, strings),)*)
            }
        }
    )*};
}

/// An enumeration: a number for each variant, which is never reused, and the variant for unknown numbers.
macro_rules! codes {
    ($($type:ident, else $unknown:ident; { $($code:literal $variant:ident,)* })*) => {$(
        $crate::recording::cell::stored_as! {
            Option<$type> as Option<u32>:
                |value| value.map(|value| match value {
                    $($type::$variant => $code,)*
                }),
                |code| code.map(|code| match code {
                    $($code => $type::$variant,)*
                    _ => $type::$unknown,
                });
            $type as Option<$type>: |value| Some(*value), |value| value.unwrap_or($type::$unknown);
        }
    )*};
}

pub(super) use {codes, columns, flat_rows, parts, tuples};
