//! JSON objects as lists of keys. `object!` names each key once; its value is computed when the object is written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::ser::Serializer;

use super::harmless::Harmless;
use crate::model::lock_key::LockKey;
use crate::model::{Timestamp, adapter, backend, blame, event, finding, lease, lock, plan, rate_limit};

pub(in crate::wire) type Result = serde_json::Result<()>;

pub(in crate::wire) trait Json {
    fn write(&self, to: &mut Writer) -> Result;
}

/// JSON text that is being written.
pub(in crate::wire) struct Writer(Vec<u8>);

impl Writer {
    fn scalar(&mut self, value: &(impl Serialize + ?Sized)) -> Result {
        value.serialize(&mut Serializer::with_formatter(&mut self.0, Harmless))
    }

    /// A complete value never ends with an opening bracket.
    fn comma(&mut self) {
        if !matches!(self.0.last(), Some(b'{' | b'[')) {
            self.0.push(b',');
        }
    }

    fn key(&mut self, key: &str) -> Result {
        self.comma();
        self.scalar(key)?;
        self.0.push(b':');
        Ok(())
    }

    pub(in crate::wire) fn field(&mut self, key: &str, value: &(impl Json + ?Sized)) -> Result {
        self.key(key)?;
        value.write(self)
    }

    pub(in crate::wire) fn list(&mut self, key: &str, items: impl IntoIterator<Item: Json>) -> Result {
        self.key(key)?;
        self.array(items)
    }

    fn array(&mut self, items: impl IntoIterator<Item: Json>) -> Result {
        self.0.push(b'[');
        for item in items {
            self.comma();
            item.write(self)?;
        }
        self.0.push(b']');
        Ok(())
    }

    fn object(&mut self, keys: impl FnOnce(&mut Self) -> Result) -> Result {
        self.0.push(b'{');
        keys(self)?;
        self.0.push(b'}');
        Ok(())
    }
}

/// A value as one line of JSON that is safe to show on a terminal.
pub(in crate::wire) fn text(value: &impl Json) -> serde_json::Result<String> {
    let mut writer = Writer(Vec::new());
    value.write(&mut writer)?;
    String::from_utf8(writer.0).map_err(serde_json::Error::custom)
}

/// An object; the function writes its keys.
pub(in crate::wire) struct Object<F>(pub(in crate::wire) F);

impl<F: Fn(&mut Writer) -> Result> Object<F> {
    pub(in crate::wire) fn keys(&self, to: &mut Writer) -> Result {
        self.0(to)
    }
}

impl<F: Fn(&mut Writer) -> Result> Json for Object<F> {
    fn write(&self, to: &mut Writer) -> Result {
        to.object(&self.0)
    }
}

/// `object!(row; pid, at = time, waits[] = rows.iter().map(wait), ..other)`: `pid` is `row.pid`, or without a row the
/// variable `pid`; `[]` writes an iterator as an array; `..` writes the keys of another object.
macro_rules! object {
    (@ $to:ident $row:tt) => {};
    (@ $to:ident $row:tt .. $object:expr $(, $($rest:tt)*)?) => {
        $object.keys($to)?;
        object!(@ $to $row $($($rest)*)?);
    };
    (@ $to:ident $row:tt $key:ident [] = $items:expr $(, $($rest:tt)*)?) => {
        $to.list(stringify!($key), $items)?;
        object!(@ $to $row $($($rest)*)?);
    };
    (@ $to:ident $row:tt $key:ident = $value:expr $(, $($rest:tt)*)?) => {
        $to.field(stringify!($key), &$value)?;
        object!(@ $to $row $($($rest)*)?);
    };
    (@ $to:ident [] $key:ident $(, $($rest:tt)*)?) => {
        $to.field(stringify!($key), &$key)?;
        object!(@ $to [] $($($rest)*)?);
    };
    (@ $to:ident [$row:ident] $key:ident $(, $($rest:tt)*)?) => {
        $to.field(stringify!($key), &$row.$key)?;
        object!(@ $to [$row] $($($rest)*)?);
    };
    ($row:ident; $($keys:tt)*) => {
        $crate::wire::json::object::Object(move |to: &mut $crate::wire::json::object::Writer| {
            object!(@ to [$row] $($keys)*);
            Ok(())
        })
    };
    ($($keys:tt)*) => {
        $crate::wire::json::object::Object(move |to: &mut $crate::wire::json::object::Writer| {
            object!(@ to [] $($keys)*);
            Ok(())
        })
    };
}
pub(in crate::wire) use object;

macro_rules! scalars {
    ($($kind:ty),+) => {
        $(impl Json for $kind {
            fn write(&self, to: &mut Writer) -> Result {
                to.scalar(self)
            }
        })+
    };
}
scalars!(bool, u8, u16, u32, u64, usize, i32, i64, f64, char, str, String, Cow<'_, str>, plan::Reason);

macro_rules! words {
    ($($kind:ty),+) => {
        $(impl Json for $kind {
            fn write(&self, to: &mut Writer) -> Result {
                to.scalar(self.as_str())
            }
        })+
    };
}
words!(
    adapter::ActionKind,
    adapter::Part,
    adapter::Proof,
    adapter::QueueState,
    adapter::ScheduleState,
    adapter::State,
    adapter::TermState,
    adapter::WorkerState,
    backend::State,
    blame::Ending,
    event::Kind,
    lease::LeaseState,
    lock::LockMode,
    lock::LockType,
    rate_limit::LimitState
);

/// RFC 3339 with offset and microseconds.
impl Json for Timestamp {
    fn write(&self, to: &mut Writer) -> Result {
        to.scalar(&self.to_rfc3339_opts(chrono::SecondsFormat::Micros, false))
    }
}

impl Json for finding::Severity {
    fn write(&self, to: &mut Writer) -> Result {
        to.scalar(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        })
    }
}

impl Json for LockKey {
    fn write(&self, to: &mut Writer) -> Result {
        match *self {
            Self::Bigint(value) => object!(kind = "bigint", value, text = exact(value)).write(to),
            Self::Pair(classid, objid) => object!(kind = "pair", classid, objid).write(to),
        }
    }
}

/// A number as text. Readers that keep numbers as doubles, such as jq and JavaScript, change those above 2^53.
pub(super) fn exact(number: i64) -> String {
    number.to_string()
}

impl<T: Json + ?Sized> Json for &T {
    fn write(&self, to: &mut Writer) -> Result {
        (**self).write(to)
    }
}

impl<T: Json + ?Sized> Json for Arc<T> {
    fn write(&self, to: &mut Writer) -> Result {
        (**self).write(to)
    }
}

impl<T: Json> Json for Option<T> {
    fn write(&self, to: &mut Writer) -> Result {
        match self {
            Some(value) => value.write(to),
            None => to.scalar(&()),
        }
    }
}

impl<T: Json> Json for Vec<T> {
    fn write(&self, to: &mut Writer) -> Result {
        to.array(self)
    }
}

impl<K: AsRef<str>, V: Json> Json for BTreeMap<K, V> {
    fn write(&self, to: &mut Writer) -> Result {
        to.object(|to| self.iter().try_for_each(|(key, value)| to.field(key.as_ref(), value)))
    }
}
