//! Texts in statements and in answers, whatever the encodings of the database and of the connection.
//!
//! A connection may or may not convert what it carries, and a server checks what it does not convert: there, one letter
//! beyond ASCII fails a whole message. So only ASCII is sent and received; texts are hexadecimal digits if they have to
//! be.

use std::fmt::Write as _;

use locktop_base::encoding::{Encoding, unhex};
use postgres_protocol::escape::escape_literal;

/// Prefix of a text that is sent as the digits of its UTF-8.
const SENT: &str = "pg_catalog.convert_from(pg_catalog.decode('";
/// Their suffixes. The server knows more than one name for UTF-8: the second one marks a note.
const COMPARED: &str = "', 'hex'), 'UTF8')";
const NOTED: &str = "', 'hex'), 'UTF-8')";
/// Prefix of an answer that consists of the name of an encoding and the digits of a text in it.
const PACKED: &str = "packed ";
/// Characters of a column that are read at most. If the server takes bytes for characters, they are bytes.
pub const CUT: usize = 500;

/// A text in a statement. Replacement characters, which stand for invalid bytes, are sent as question marks.
#[must_use]
pub fn text(value: &str) -> String {
    sent(value, COMPARED)
}

/// A text that is only recorded.
#[must_use]
pub fn note(value: &str) -> String {
    sent(value, NOTED)
}

fn sent(value: &str, end: &str) -> String {
    if value.is_ascii() {
        return escape_literal(value);
    }
    format!("{SENT}{}{end}", hex(&value.replace('\u{fffd}', "?")))
}

/// A text for people to read.
#[must_use]
pub fn shown(value: Option<&str>) -> String {
    value.map_or_else(|| "NULL".to_owned(), escape_literal)
}

/// The condition that a text in the server is the one that was read. A replacement character matches any bytes; all the
/// rest is compared.
#[must_use]
pub fn is(column: &str, value: Option<&str>) -> String {
    match value {
        Some(value) if value.contains('\u{fffd}') => {
            format!("{} ~ ({})", digits(column), pattern(value))
        }
        Some(value) => format!("{column} IS NOT DISTINCT FROM {}", text(value)),
        None => format!("{column} IS NOT DISTINCT FROM NULL"),
    }
}

/// The condition that a text of a column is the one that was read, which was cut if it is long.
#[must_use]
pub fn is_cut(column: &str, value: Option<&str>) -> String {
    is(&format!("left({column}, {CUT})"), value)
}

/// The text as bytes in the database's encoding, in hexadecimal digits.
fn digits(expression: &str) -> String {
    format!("encode(convert_to({expression}, getdatabaseencoding()), 'hex')")
}

/// A regular expression over those digits.
fn pattern(value: &str) -> String {
    let mut parts = vec!["'^'".to_owned()];
    for (place, part) in value.split('\u{fffd}').enumerate() {
        if place > 0 {
            parts.push("'([0-9a-f]{2})+'".to_owned());
        }
        if !part.is_empty() {
            parts.push(digits(&text(part)));
        }
    }
    parts.push("'$'".to_owned());
    parts.join(" || ")
}

/// Wraps an expression so that its text arrives as it is stored.
#[must_use]
pub fn packed(expression: &str) -> String {
    let digits = digits(&format!("({expression})::text"));
    format!("'{PACKED}' || getdatabaseencoding() || ' ' || {digits}")
}

/// The text of a column made by [`packed`], decoded from its database's encoding; any other text as it is.
pub(crate) fn unpacked(answer: &str) -> String {
    let digits = answer.strip_prefix(PACKED).and_then(|rest| rest.split_once(' '));
    match digits.and_then(|(encoding, digits)| Some((encoding, unhex(digits)?))) {
        Some((encoding, bytes)) => Encoding::named(encoding).decode(&bytes).into_owned(),
        None => answer.to_owned(),
    }
}

/// The same statements for a database that cannot store one of the letters that were sent: with question marks for those
/// beyond ASCII, first in notes and then everywhere, since nothing there can be equal to a compared text. `None` if there
/// are none.
pub(crate) fn plain(sql: &str) -> Option<String> {
    without(sql, &[NOTED]).or_else(|| without(sql, &[NOTED, COMPARED]))
}

fn without(sql: &str, ends: &[&str]) -> Option<String> {
    let mut parts = sql.split(SENT);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    let mut is_other = false;
    for part in parts {
        plain.push_str(SENT);
        let (digits, end) = part.split_once('\'').unwrap_or((part, ""));
        let is_meant =
            ends.iter().any(|meant| meant.strip_prefix('\'').is_some_and(|meant| end.starts_with(meant)));
        let text = unhex(digits).filter(|_| is_meant).and_then(|bytes| String::from_utf8(bytes).ok());
        match text.filter(|text| !text.is_ascii()) {
            Some(text) => {
                is_other = true;
                plain.push_str(&hex(&text.replace(|letter: char| !letter.is_ascii(), "?")));
                plain.push('\'');
                plain.push_str(end);
            }
            None => plain.push_str(part),
        }
    }
    is_other.then_some(plain)
}

fn hex(text: &str) -> String {
    let mut digits = String::with_capacity(2 * text.len());
    for byte in text.bytes() {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_ascii_is_sent() {
        assert_eq!(text("it's"), "'it''s'");
        assert_eq!(text("\u{e9}"), "pg_catalog.convert_from(pg_catalog.decode('c3a9', 'hex'), 'UTF8')");
        assert_eq!(text("\u{fffd}"), "pg_catalog.convert_from(pg_catalog.decode('3f', 'hex'), 'UTF8')");
        for value in ["caf\u{e9}", "\u{65e5}\u{fffd}'", "\u{fffd}\u{fffd}"] {
            assert!(text(value).is_ascii() && is("t.x", Some(value)).is_ascii(), "{value}");
        }
        assert_eq!(is("t.x", None), "t.x IS NOT DISTINCT FROM NULL");
    }

    #[test]
    fn an_answer_is_read_by_the_encoding_that_it_names() {
        assert_eq!(unpacked("packed LATIN1 636166e9"), "caf\u{e9}");
        assert_eq!(unpacked("packed SQL_ASCII 61ff"), "a\u{fffd}");
        assert_eq!(unpacked("packed EUC_JP c6fc"), "\u{65e5}");
        for as_it_is in ["t", "{\"a\": 1}", "packed ", "packed LATIN1 6", "packed LATIN1 zz"] {
            assert_eq!(unpacked(as_it_is), as_it_is);
        }
    }

    #[test]
    fn letters_that_a_database_does_not_have_become_question_marks() {
        let sql = format!("SELECT {}, {}, {}, 'c3a9'", note("a\u{65e5}b"), text("\u{e9}"), text("plain"));
        let first = plain(&sql).unwrap();
        let expected = format!(
            "SELECT {}, {}, 'plain', 'c3a9'",
            note("a\u{65e5}b").replace("e697a5", "3f"),
            text("\u{e9}")
        );
        assert_eq!(first, expected, "what is compared stays");
        let second = plain(&first).unwrap();
        assert_eq!(second, expected.replace("c3a9', 'hex'", "3f', 'hex'"));
        assert_eq!(plain(&second), None);
        assert_eq!(plain(&format!("SELECT {}", text(SENT))), None);
    }
}
