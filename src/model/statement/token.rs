//! A statement as tokens: words, names, strings, numbers and signs, without comments.

use super::scan;

/// What a piece of a statement is, as far as forms ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A key word, or a name without quotes.
    Word,
    /// A name in double quotes.
    Quoted,
    /// A string, in whatever quotes, or a name in `U&"…"`, which is not decoded.
    Text,
    /// A number, or a parameter such as `$1`.
    Number,
    /// One character of anything else: `(`, `,`, `=`.
    Sign,
}

/// A piece of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Whether it is a word, a name, a value or a sign.
    pub kind: Kind,
    /// As it was written, with its quotes.
    pub text: &'a str,
}

impl Token<'_> {
    /// Whether it is this key word, whatever its case.
    pub fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is one of these key words.
    pub fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Whether it is the sign with this character.
    pub fn sign(&self, sign: char) -> bool {
        self.kind == Kind::Sign && self.text.starts_with(sign)
    }

    /// The name that it is, as the server has it: small letters where there are no quotes, and no more than 63 bytes.
    pub fn name(&self) -> Option<String> {
        let mut name = match self.kind {
            Kind::Word => self.text.to_ascii_lowercase(),
            Kind::Quoted => self.text.strip_prefix('"')?.strip_suffix('"')?.replace("\"\"", "\""),
            Kind::Text | Kind::Number | Kind::Sign => return None,
        };
        let end = (0..=name.len().min(63)).rev().find(|end| name.is_char_boundary(*end))?;
        name.truncate(end);
        (!name.is_empty()).then_some(name)
    }
}

/// The tokens of a text, without spaces and comments.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = next(rest, first);
        let (token, tail) = rest.split_at_checked(length.max(first.len_utf8())).unwrap_or((rest, ""));
        if let Some(kind) = kind {
            found.push(Token { kind, text: token });
        }
        rest = tail;
    }
    found
}

/// What comes next, none for spaces and comments, and how many bytes it has.
fn next(rest: &str, first: char) -> (Option<Kind>, usize) {
    match first {
        _ if first.is_whitespace() => (None, first.len_utf8()),
        '-' if rest.starts_with("--") => (None, rest.find(['\n', '\r']).unwrap_or(rest.len())),
        '/' if rest.starts_with("/*") => (None, scan::comment(rest)),
        '\'' => (Some(Kind::Text), scan::string(rest, false)),
        '"' => (Some(Kind::Quoted), scan::quoted(rest)),
        '$' if scan::dollar_tag(rest).is_some() => (Some(Kind::Text), scan::dollar_quoted(rest)),
        '$' if rest.get(1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) => {
            (Some(Kind::Number), 1 + scan::number(rest.get(1..).unwrap_or_default()))
        }
        '0'..='9' => (Some(Kind::Number), scan::number(rest)),
        _ if begins_name(first) => word(rest),
        _ => (Some(Kind::Sign), first.len_utf8()),
    }
}

fn begins_name(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_' || !character.is_ascii()
}

/// A word, or a string with a letter before its quote.
fn word(rest: &str) -> (Option<Kind>, usize) {
    let is_part = |c: char| begins_name(c) && !c.is_whitespace() || c.is_ascii_digit() || c == '$';
    let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
    let (word, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
    match word {
        "E" | "e" if tail.starts_with('\'') => (Some(Kind::Text), end + scan::string(tail, true)),
        "B" | "b" | "X" | "x" | "N" | "n" if tail.starts_with('\'') => {
            (Some(Kind::Text), end + scan::string(tail, false))
        }
        "U" | "u" if tail.starts_with("&'") => {
            (Some(Kind::Text), end + 1 + scan::string(tail.get(1..).unwrap_or_default(), false))
        }
        "U" | "u" if tail.starts_with("&\"") => {
            (Some(Kind::Text), end + 1 + scan::quoted(tail.get(1..).unwrap_or_default()))
        }
        _ => (Some(Kind::Word), end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_strings_are_read_as_the_server_reads_them() {
        for (text, expected) in [
            ("SELECT 1 -- x ' y\n, /* a /* ' */ b */ 2", vec!["SELECT", "1", ",", "2"]),
            ("a.\"b\"\"c\".d", vec!["a", ".", "\"b\"\"c\"", ".", "d"]),
            (r"'it''s' E'a\'b' 'c\'", vec!["'it''s'", r"E'a\'b'", r"'c\'"]),
            ("$$ ; $x$ $$ $f$ ' $$ $f$ $1 a$1", vec!["$$ ; $x$ $$", "$f$ ' $$ $f$", "$1", "a$1"]),
            ("U&\"d\\0061t\" U&'x' b'01'", vec!["U&\"d\\0061t\"", "U&'x'", "b'01'"]),
            ("报表.订单 = 1.5e10", vec!["报表", ".", "订单", "=", "1.5e10"]),
            ("'open", vec!["'open"]),
            ("/* open", vec![]),
        ] {
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_folded_and_cut_as_the_server_does() {
        let name = |text: &str| tokens(text)[0].name();
        assert_eq!(name("Orders"), Some("orders".to_owned()));
        assert_eq!(name("\"Or\"\"ders\""), Some("Or\"ders".to_owned()));
        assert_eq!(name("\"\""), None);
        assert_eq!(name("U&\"a\""), None);
        assert_eq!(name("'a'"), None);
        assert_eq!(name(&"é".repeat(40)).map(|name| name.len()), Some(62));
    }
}
