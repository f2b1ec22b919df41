use std::fmt;

use super::beginning;
use super::scan::{ScanPiece, pieces};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    Word,
    Quoted,
    /// A string in any quotes, or a name in `U&"…"`, which is not decoded.
    Text,
    /// A number, or a parameter such as `$1`.
    Number,
    /// Any other single character: `(`, `,`, `=`.
    Sign,
    /// A psql command, to the end of its line.
    Psql,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    pub at: usize,
}

impl Token<'_> {
    pub fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Whether it is one of these words, which blanks separate.
    pub(super) fn is_among(&self, words: &str) -> bool {
        self.kind == TokenKind::Word && words.split(' ').any(|word| self.is(word))
    }

    pub fn sign(&self, sign: char) -> bool {
        self.kind == TokenKind::Sign && self.text.starts_with(sign)
    }

    /// The value of a plain string; `None` for other quotes.
    pub fn string(&self) -> Option<String> {
        let text = (self.kind == TokenKind::Text).then_some(self.text)?;
        Some(text.strip_prefix('\'')?.strip_suffix('\'')?.replace("''", "'"))
    }

    /// Printable form: without literals, and truncated.
    pub fn shown(&self) -> String {
        match self.kind {
            TokenKind::Text | TokenKind::Number => "?".to_owned(),
            TokenKind::Psql => self.text.split_ascii_whitespace().next().unwrap_or_default().to_owned(),
            TokenKind::Word | TokenKind::Quoted | TokenKind::Sign => self.text.chars().take(40).collect(),
        }
    }

    pub fn is_closed(&self) -> bool {
        let last = self.text.chars().next_back();
        match self.kind {
            TokenKind::Quoted => self.text.len() > 1 && last == Some('"'),
            TokenKind::Text if self.text.starts_with('$') => {
                let tag = self.text.split_inclusive('$').take(2).map(str::len).sum();
                self.text.len() >= 2 * tag && self.text.get(..tag).is_some_and(|tag| self.text.ends_with(tag))
            }
            TokenKind::Text => self.text.len() > 1 && matches!(last, Some('\'' | '"')),
            TokenKind::Word | TokenKind::Number | TokenKind::Sign | TokenKind::Psql => true,
        }
    }

    /// The name as the server stores it: lower case unless quoted, and truncated to 63 bytes.
    pub fn name(&self) -> Option<String> {
        let mut name = match self.kind {
            TokenKind::Word => self.text.to_ascii_lowercase(),
            TokenKind::Quoted => self.text.strip_prefix('"')?.strip_suffix('"')?.replace("\"\"", "\""),
            TokenKind::Text | TokenKind::Number | TokenKind::Sign | TokenKind::Psql => return None,
        };
        name.truncate(beginning(&name, 63).len());
        (!name.is_empty()).then_some(name)
    }
}

pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    // After a psql command, and after rows of COPY, scanning starts again.
    while let Some(rest) = text.get(from..).filter(|rest| !rest.is_empty()) {
        from = put(&mut found, rest, from);
    }
    found
}

/// Adds the tokens of `rest`, which begins at byte `from`, up to its end or to something that is not a statement; returns
/// the position after that.
fn put<'a>(found: &mut Vec<Token<'a>>, rest: &'a str, from: usize) -> usize {
    let mut at = 0;
    for (piece, text) in pieces(rest) {
        let behind = at + text.len();
        match text {
            "\\" if piece == ScanPiece::Sign => {
                let line = rest.get(at..).unwrap_or_default();
                let line = line.split(['\n', '\r']).next().unwrap_or(line);
                found.push(Token { kind: TokenKind::Psql, text: line, at: from + at });
                return from + at + line.len();
            }
            ";" if piece == ScanPiece::Sign => {
                found.push(Token { kind: TokenKind::Sign, text, at: from + at });
                if let Some(rows) = rest.get(behind..).and_then(|rest| rows(found, rest)) {
                    return from + behind + rows;
                }
            }
            _ => found.extend(kind(piece, text).map(|kind| Token { kind, text, at: from + at })),
        }
        at = behind;
    }
    from + rest.len()
}

/// Length in bytes of the rows after COPY … FROM STDIN in a file, including the `\.` line; `None` without rows.
fn rows(found: &[Token<'_>], rest: &str) -> Option<usize> {
    let [before @ .., _] = found else { return None };
    // No COPY has this many words; without the limit each semicolon would scan the whole text.
    let copy =
        before.iter().rev().take(200).take_while(|token| !token.sign(';') && token.kind != TokenKind::Psql);
    let is_copy = copy.clone().last().is_some_and(|first| first.is("COPY"));
    if !is_copy || !copy.clone().any(|token| token.is("STDIN")) {
        return None;
    }
    let end = ["\n\\.\n", "\n\\.\r\n"].into_iter().find_map(|end| Some(rest.find(end)? + end.len()));
    end.or_else(|| rest.ends_with("\n\\.").then_some(rest.len()))
}

fn kind(piece: ScanPiece, text: &str) -> Option<TokenKind> {
    match piece {
        ScanPiece::Space | ScanPiece::LineComment | ScanPiece::Comment => None,
        ScanPiece::String => Some(TokenKind::Text),
        ScanPiece::Quoted => Some(if text.starts_with('"') { TokenKind::Quoted } else { TokenKind::Text }),
        ScanPiece::Number | ScanPiece::Parameter => Some(TokenKind::Number),
        ScanPiece::Word => Some(TokenKind::Word),
        ScanPiece::Sign => Some(TokenKind::Sign),
    }
}

/// A relation as named in a statement, case-folded and without quotes.
#[derive(Debug, Clone, Default)]
pub struct Relation {
    /// `None` if the search path decides.
    pub schema: Option<String>,
    pub name: String,
    /// Whether ONLY precedes the name, which excludes partitions and children.
    pub only: bool,
}

/// ONLY does not count: it belongs to the statement.
impl PartialEq for Relation {
    fn eq(&self, other: &Self) -> bool {
        (&self.schema, &self.name) == (&other.schema, &other.name)
    }
}

impl Eq for Relation {}

impl Relation {
    /// Whether a name in the model, `orders` or `shop.orders`, means this relation. The model omits the schema if it is on the
    /// search path of locktop; a statement omits it if it is on the unknown search path of its session. So if either has no
    /// schema, only the name counts.
    pub fn is_called(&self, shown: &str) -> bool {
        if shown == self.name {
            return true;
        }
        let schema = shown.strip_suffix(self.name.as_str()).and_then(|rest| rest.strip_suffix('.'));
        schema.is_some_and(|schema| self.schema.as_deref().is_none_or(|own| own == schema))
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A name of up to three parts at the beginning, and its number of tokens. `column`: the last part is a column name.
pub(super) fn relation(tokens: &[Token<'_>], column: bool) -> Option<(Relation, usize)> {
    let mut parts = vec![tokens.first()?.name()?];
    let mut used = 1;
    while let [dot, part, ..] = tokens.get(used..)? {
        if !dot.sign('.') {
            break;
        }
        parts.push(part.name()?);
        used += 2;
    }
    if column && parts.len() > 1 {
        parts.pop();
    }
    let name = parts.pop()?;
    Some((Relation { schema: parts.pop(), name, only: false }, used))
}

/// The number of tokens of the parenthesized group that begins here, including both parentheses; `None` if it does not end.
pub(super) fn group(tokens: &[Token<'_>]) -> Option<usize> {
    let end = depths(tokens).position(|(depth, _)| depth == 0)?;
    (end > 0).then_some(end + 1)
}

/// Each token with the number of parentheses that are open after it.
pub(super) fn depths<'a, 'b>(tokens: &'b [Token<'a>]) -> impl Iterator<Item = (usize, &'b Token<'a>)> {
    tokens.iter().scan(0_usize, |depth, token| {
        if token.sign('(') {
            *depth += 1;
        } else if token.sign(')') {
            *depth = depth.saturating_sub(1);
        }
        Some((*depth, token))
    })
}

pub(super) fn split<'a, 'b>(tokens: &'b [Token<'a>], sign: char) -> Vec<&'b [Token<'a>]> {
    let (mut pieces, mut from) = (Vec::new(), 0);
    for (at, (depth, token)) in depths(tokens).enumerate() {
        if depth == 0 && token.sign(sign) {
            pieces.push(tokens.get(from..at).unwrap_or_default());
            from = at + 1;
        }
    }
    pieces.push(tokens.get(from..).unwrap_or_default());
    pieces
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
            ("SELECT 1 \\g it's\nx", vec!["SELECT", "1", "\\g it's", "x"]),
            (
                "COPY t FROM stdin;\n1\tit's\n\\.\nSELECT 1",
                vec!["COPY", "t", "FROM", "stdin", ";", "SELECT", "1"],
            ),
            ("COPY t FROM stdin; SELECT 1", vec!["COPY", "t", "FROM", "stdin", ";", "SELECT", "1"]),
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
