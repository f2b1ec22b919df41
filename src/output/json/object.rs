//! JSON objects as lists of keys. `object!` names each key once; its value is computed when the object is written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::ser::{Formatter, Serializer};

use crate::model::job_state::JobState;
use crate::model::lock_key::LockKey;
use crate::model::{Timestamp, adapter, backend, blame, event, finding, lease, lock, plan, rate_limit};

pub(in crate::output) type Result = serde_json::Result<()>;

pub(in crate::output) trait Json {
    fn write(&self, to: &mut Writer) -> Result;
}

pub(in crate::output) struct Writer(Vec<u8>);

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

    pub(in crate::output) fn field(&mut self, key: &str, value: &(impl Json + ?Sized)) -> Result {
        self.key(key)?;
        value.write(self)
    }

    pub(in crate::output) fn list(&mut self, key: &str, items: impl IntoIterator<Item: Json>) -> Result {
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
pub(in crate::output) fn text(value: &impl Json) -> serde_json::Result<String> {
    let mut writer = Writer(Vec::new());
    value.write(&mut writer)?;
    String::from_utf8(writer.0).map_err(serde_json::Error::custom)
}

pub(in crate::output) struct JsonObject<F>(pub(in crate::output) F);

impl<F: Fn(&mut Writer) -> Result> JsonObject<F> {
    pub(in crate::output) fn keys(&self, to: &mut Writer) -> Result {
        self.0(to)
    }
}

impl<F: Fn(&mut Writer) -> Result> Json for JsonObject<F> {
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
        $crate::output::json::object::JsonObject(move |to: &mut $crate::output::json::object::Writer| {
            object!(@ to [$row] $($keys)*);
            Ok(())
        })
    };
    ($($keys:tt)*) => {
        $crate::output::json::object::JsonObject(move |to: &mut $crate::output::json::object::Writer| {
            object!(@ to [] $($keys)*);
            Ok(())
        })
    };
}
pub(in crate::output) use object;

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
    adapter::WorkerState,
    backend::State,
    blame::Ending,
    event::EventKind,
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

/// A guess is reported as unknown.
impl Json for JobState {
    fn write(&self, to: &mut Writer) -> Result {
        to.scalar(self.certain())
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

/// Writes `\u` escapes for characters that control a terminal, end a line for some readers, change the direction of the
/// text, or are invisible. JSON requires that only for the controls below U+0020 (RFC 8259, section 7).
pub(super) struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut written = 0;
        for (at, found) in fragment.match_indices(commands) {
            writer.write_all(fragment.get(written..at).unwrap_or_default().as_bytes())?;
            for unit in found.encode_utf16() {
                write!(writer, "\\u{unit:04x}")?;
            }
            written = at + found.len();
        }
        writer.write_all(fragment.get(written..).unwrap_or_default().as_bytes())
    }
}

/// DEL, the C1 controls, the line and paragraph separators, and invisible characters, including direction controls.
fn commands(letter: char) -> bool {
    matches!(letter, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}') || crate::text::is_unseen(letter)
}

/// A value as one line of JSON that is safe to show on a terminal.
pub fn to_string(value: &impl Serialize) -> serde_json::Result<String> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Harmless))?;
    String::from_utf8(out).map_err(serde_json::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped_and_read_back() {
        let hostile = "a\u{200b}\u{200d}\u{ad}\u{e0041}\u{7f}\u{9b}2J\u{9f}é\u{a0}\u{2028}\u{2029}\u{202e}\u{2066}\u{200f}\u{61c}\u{1b}\"\\\n語😀";
        let written = to_string(&[hostile, "plain", ""]).unwrap();
        assert_eq!(
            written,
            "[\"a\\u200b\\u200d\\u00ad\\udb40\\udc41\\u007f\\u009b2J\\u009fé\u{a0}\\u2028\\u2029\\u202e\\u2066\\u200f\\u061c\\u001b\\\"\\\\\\n語😀\",\
             \"plain\",\"\"]"
        );
        assert!(!written.contains(char::is_control));
        assert_eq!(serde_json::from_str::<Vec<String>>(&written).unwrap(), [hostile, "plain", ""]);
    }
}
