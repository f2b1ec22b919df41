//! JSON text that is safe to show on a terminal.

use std::io;

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::ser::{Formatter, Serializer};

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
///
/// # Errors
/// If it has a map with keys that are not text.
pub fn to_string(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Harmless))?;
    String::from_utf8(out).map_err(serde_json::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_escaped_and_reads_back() {
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
