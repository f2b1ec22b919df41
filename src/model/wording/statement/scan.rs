//! Splits a statement into pieces as the server's scanner does (`src/backend/parser/scan.l`): the only scanner of the
//! monitor.
//!
//! It never fails. Truncated or invalid text is a piece too: an unclosed string continues to the end. If the text alone
//! does not determine how a session reads it, it is read so that no part of a string is taken for anything else.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanPiece {
    Space,
    /// `-- …`, without the line end.
    LineComment,
    /// `/* … */`, with nested comments.
    Comment,
    /// A string in any quotes, with its prefix and all continuation lines; also an unclosed quoted name.
    String,
    Quoted,
    Number,
    /// `$1`
    Parameter,
    Word,
    /// Any other single character: `(`, `,`, `=`.
    Sign,
}

pub fn pieces(text: &str) -> impl Iterator<Item = (ScanPiece, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, length) = next(rest)?;
        let (found, tail) = rest.split_at_checked(length).unwrap_or((rest, ""));
        rest = tail;
        Some((piece, found))
    })
}

fn next(rest: &str) -> Option<(ScanPiece, usize)> {
    let bytes = rest.as_bytes();
    let first = *bytes.first()?;
    let second = bytes.get(1).copied().unwrap_or_default();
    Some(match first {
        _ if is_space(first) => (ScanPiece::Space, length(bytes, is_space)),
        _ if begins_name(first) => word(rest),
        b'-' if second == b'-' => {
            (ScanPiece::LineComment, length(bytes, |byte| !matches!(byte, b'\n' | b'\r')))
        }
        b'/' if second == b'*' => (ScanPiece::Comment, comment(bytes)),
        b'\'' => (ScanPiece::String, string(bytes, 0, false)),
        b'"' => quoted(bytes, 0),
        b'$' if second.is_ascii_digit() => (ScanPiece::Parameter, 1 + digits(bytes, 1)),
        b'$' => dollar_quoted(rest).map_or((ScanPiece::Sign, 1), |length| (ScanPiece::String, length)),
        b'0'..=b'9' => (ScanPiece::Number, number(bytes)),
        b'.' if second.is_ascii_digit() => (ScanPiece::Number, number(bytes)),
        _ => (ScanPiece::Sign, 1),
    })
}

fn length(bytes: &[u8], is_so: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !is_so(*byte)).unwrap_or(bytes.len())
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c')
}

/// The server treats bytes above 127 as letters, whatever character they belong to.
fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn is_of_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// A word, or what a quote after it makes of it: `E'…'`, `U&"…"`. Only a whole word is a prefix.
fn word(rest: &str) -> (ScanPiece, usize) {
    let bytes = rest.as_bytes();
    let end = length(bytes, is_of_name);
    let (word, tail) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
    match (word, tail) {
        (b"E" | b"e", [b'\'', ..]) => (ScanPiece::String, string(bytes, end, true)),
        (b"B" | b"b" | b"X" | b"x" | b"N" | b"n", [b'\'', ..]) => {
            (ScanPiece::String, string(bytes, end, false))
        }
        (b"U" | b"u", [b'&', b'\'', ..]) => (ScanPiece::String, string(bytes, end + 1, false)),
        (b"U" | b"u", [b'&', b'"', ..]) => quoted(bytes, end + 1),
        _ => (ScanPiece::Word, end),
    }
}

/// The end of a string whose first quote is at `open`. In a string without escapes, a quote after a backslash ends it,
/// unless the session has `standard_conforming_strings` off: then the rest of the text belongs to it.
fn string(bytes: &[u8], open: usize, escapes: bool) -> usize {
    let (mut at, mut is_escaped) = (open + 1, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => is_escaped = !is_escaped,
            b'\'' if is_escaped && !escapes => return bytes.len(),
            b'\'' if is_escaped => is_escaped = false,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 1,
            b'\'' => match continued(bytes, at + 1) {
                Some(next) => at = next,
                None => return at + 1,
            },
            _ => is_escaped = false,
        }
        at += 1;
    }
    bytes.len()
}

/// The quote that continues a string that ended before `at`: between them are a line end and otherwise only spaces and `--`
/// comments.
fn continued(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut has_line_end = false;
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'\n' | b'\r', _) => has_line_end = true,
            (b' ' | b'\t' | b'\x0b' | b'\x0c', _) => {}
            (b'-', Some(b'-')) => {
                at += bytes.get(at..)?.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
                has_line_end = true;
            }
            (b'\'', _) => return has_line_end.then_some(at),
            _ => return None,
        }
        at += 1;
    }
}

/// A quoted name; two quotes are one within it. An unclosed one may be anything.
fn quoted(bytes: &[u8], open: usize) -> (ScanPiece, usize) {
    let mut at = open + 1;
    while let Some(byte) = bytes.get(at) {
        if *byte == b'"' {
            if bytes.get(at + 1) != Some(&b'"') {
                return (ScanPiece::Quoted, at + 1);
            }
            at += 1;
        }
        at += 1;
    }
    (ScanPiece::String, bytes.len())
}

/// A dollar-quoted string, up to its closing tag; `None` if no such string begins here.
fn dollar_quoted(text: &str) -> Option<usize> {
    let rest = text.get(1..)?;
    let end = rest.bytes().position(|byte| !is_of_name(byte) || byte == b'$')?;
    let is_tag = rest.get(end..)?.starts_with('$');
    let tag = text.get(..end + 2).filter(|_| is_tag)?;
    let found = text.get(tag.len()..)?.find(tag);
    Some(found.map_or(text.len(), |end| tag.len() + end + tag.len()))
}

fn comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => {
                (depth, at) = (depth.saturating_sub(1), at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn digits(bytes: &[u8], at: usize) -> usize {
    length(bytes.get(at..).unwrap_or_default(), |byte| byte.is_ascii_digit() || byte == b'_')
}

/// A number, with adjacent letters: `1.5e-10`, `0x1F`, `1_000`, `.5`, `5.`; only the first of `1..10`.
fn number(bytes: &[u8]) -> usize {
    let mut at = digits(bytes, 0);
    if bytes.get(at) == Some(&b'.') && bytes.get(at + 1) != Some(&b'.') {
        at += 1;
        at += digits(bytes, at);
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
            at += 1 + sign;
            at += digits(bytes, at);
        }
    }
    at + length(bytes.get(at..).unwrap_or_default(), |byte| is_of_name(byte) && byte != b'$')
}

#[cfg(test)]
mod tests {
    use super::ScanPiece::{Comment, LineComment, Number, Parameter, Quoted, Sign, Space, String, Word};
    use super::*;

    #[test]
    fn pieces_are_those_of_the_server() {
        for (text, expected) in [
            ("some'x'", vec![(Word, "some"), (String, "'x'")]),
            ("E'a\\'b' x", vec![(String, "E'a\\'b'"), (Space, " "), (Word, "x")]),
            ("'a'\n 'b' 'c'", vec![(String, "'a'\n 'b'"), (Space, " "), (String, "'c'")]),
            (
                "e'a' -- it's\r\n\t'\\'b' c",
                vec![(String, "e'a' -- it's\r\n\t'\\'b'"), (Space, " "), (Word, "c")],
            ),
            (
                "'a' /* \n */ 'b'",
                vec![(String, "'a'"), (Space, " "), (Comment, "/* \n */"), (Space, " "), (String, "'b'")],
            ),
            ("'a\\' b", vec![(String, "'a\\' b")]),
            ("'a\\\\' b", vec![(String, "'a\\\\'"), (Space, " "), (Word, "b")]),
            ("-- x ' \r1", vec![(LineComment, "-- x ' "), (Space, "\r"), (Number, "1")]),
            ("/* a /* ' */ */2", vec![(Comment, "/* a /* ' */ */"), (Number, "2")]),
            ("$1$$a$$", vec![(Parameter, "$1"), (String, "$$a$$")]),
            ("a$1$b$", vec![(Word, "a$1$b$")]),
            ("$a $b", vec![(Sign, "$"), (Word, "a"), (Space, " "), (Sign, "$"), (Word, "b")]),
            ("$a$ $b$ ' $a$$b$", vec![(String, "$a$ $b$ ' $a$"), (String, "$b$")]),
            ("\"a'b\"\"c\"", vec![(Quoted, "\"a'b\"\"c\"")]),
            ("U&\"a\"u&'b'", vec![(Quoted, "U&\"a\""), (String, "u&'b'")]),
            ("\"a, 's", vec![(String, "\"a, 's")]),
            ("1..2", vec![(Number, "1"), (Sign, "."), (Number, ".2")]),
            (
                "1.5e-10-.5+5.",
                vec![(Number, "1.5e-10"), (Sign, "-"), (Number, ".5"), (Sign, "+"), (Number, "5.")],
            ),
            (
                "0x1F,1_000::t2",
                vec![
                    (Number, "0x1F"),
                    (Sign, ","),
                    (Number, "1_000"),
                    (Sign, ":"),
                    (Sign, ":"),
                    (Word, "t2"),
                ],
            ),
            ("报表='宽", vec![(Word, "报表"), (Sign, "="), (String, "'宽")]),
        ] {
            assert_eq!(pieces(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
