//! A statement as tokens: words, names, strings, numbers and signs, without comments.

use super::scan::{Piece, pieces};

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
    let token = |(piece, text): (Piece, _)| Some(Token { kind: kind(piece, text)?, text });
    pieces(text).filter_map(token).collect()
}

fn kind(piece: Piece, text: &str) -> Option<Kind> {
    match piece {
        Piece::Space | Piece::LineComment | Piece::Comment => None,
        Piece::String => Some(Kind::Text),
        Piece::Quoted => Some(if text.starts_with('"') { Kind::Quoted } else { Kind::Text }),
        Piece::Number | Piece::Parameter => Some(Kind::Number),
        Piece::Word => Some(Kind::Word),
        Piece::Sign => Some(Kind::Sign),
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
