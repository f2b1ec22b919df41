//! Reads Rust sources: their tokens and texts.

/// A part of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Starts at 1.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word, `::`, or one other character.
    Code,
    /// The value of a string literal.
    Text,
    /// A line of a doc comment.
    Doc,
}

/// The tokens of a source, without comments, strings, characters and lifetimes.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = pieces(source);
    tokens.retain(|token| token.kind == Kind::Code);
    tokens
}

/// The tokens, strings and doc comments of a source, in order.
pub(crate) fn pieces(source: &str) -> Vec<Token> {
    let bytes: Vec<char> = source.chars().collect();
    let (mut tokens, mut index, mut line) = (Vec::new(), 0, 1);
    while index < bytes.len() {
        let rest = &bytes[index..];
        let mut add = |kind, text: String| tokens.push(Token { text, line, kind });
        let taken = match rest {
            ['/', '/', ..] => {
                let end = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                if let ['/', '/', '/', text @ ..] = &rest[..end] {
                    add(Kind::Doc, text.iter().collect::<String>().trim().to_owned());
                }
                end
            }
            ['/', '*', ..] => block_comment(rest),
            ['"', ..] => {
                let end = string(rest);
                add(Kind::Text, unescaped(&rest[1..(end - 1).min(rest.len())]));
                end
            }
            ['r', '"' | '#', ..] if raw_string(rest).is_some() => {
                let (start, body, end) = raw_string(rest).unwrap();
                add(Kind::Text, rest[start..body].iter().collect());
                end
            }
            ['\'', '\\', ..] => 3 + rest[3..].iter().position(|c| *c == '\'').unwrap_or(0),
            ['\'', _, '\'', ..] => 3,
            ['\'', ..] => 1 + rest[1..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').count(),
            [':', ':', ..] => {
                add(Kind::Code, "::".to_owned());
                2
            }
            [c, ..] if c.is_alphanumeric() || *c == '_' => {
                let text: String = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
                let length = text.chars().count();
                add(Kind::Code, text);
                length
            }
            [c, ..] => {
                if !c.is_whitespace() {
                    add(Kind::Code, c.to_string());
                }
                1
            }
            [] => 1,
        };
        line += rest.iter().take(taken).filter(|c| **c == '\n').count();
        index += taken.max(1);
    }
    tokens
}

fn block_comment(text: &[char]) -> usize {
    let (mut depth, mut index) = (0, 0);
    while index < text.len() {
        match text[index..] {
            ['/', '*', ..] => (depth, index) = (depth + 1, index + 2),
            ['*', '/', ..] => (depth, index) = (depth - 1, index + 2),
            _ => index += 1,
        }
        if depth == 0 {
            break;
        }
    }
    index
}

fn string(text: &[char]) -> usize {
    let mut index = 1;
    while index < text.len() && text[index] != '"' {
        index += if text[index] == '\\' { 2 } else { 1 };
    }
    index + 1
}

/// The start and end of the value of `r"…"` or `r#"…"#`, and the end of the literal; not for `r#type`.
fn raw_string(text: &[char]) -> Option<(usize, usize, usize)> {
    let hashes = text[1..].iter().take_while(|c| **c == '#').count();
    let start = 1 + hashes + 1;
    (text.get(1 + hashes) == Some(&'"')).then_some(())?;
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = text.get(start..)?;
    let length = body.windows(end.len()).position(|part| part == end).unwrap_or(body.len());
    Some((start, start + length, start + length + end.len()))
}

/// The value of a literal: `\` at the end of a line joins the next, an escaped character is itself.
fn unescaped(literal: &[char]) -> String {
    let (mut text, mut index) = (String::new(), 0);
    while index < literal.len() {
        match literal[index..] {
            ['\\', '\n', ..] => {
                let spaces = literal[index + 1..].iter().take_while(|c| c.is_whitespace()).count();
                index += 1 + spaces;
            }
            ['\\', c, ..] => {
                text.push(if matches!(c, 'n' | 't' | 'r') { '\n' } else { c });
                index += 2;
            }
            [c, ..] => {
                text.push(c);
                index += 1;
            }
            [] => break,
        }
    }
    text
}

#[test]
fn strings_are_read_with_their_lines() {
    let source =
        "/// A doc.\nf(\"a \\\"b\\\" \\\n    c\", r#\"d \"e\"\"#, '\"'); // \"no\"\nlet s = \"x\\ny\";";
    let texts = pieces(source).into_iter().filter(|piece| piece.kind != Kind::Code);
    let texts: Vec<_> = texts.map(|piece| (piece.line, piece.text)).collect();
    let expected = [(1, "A doc."), (2, "a \"b\" c"), (3, "d \"e\""), (4, "x\ny")];
    assert_eq!(texts, expected.map(|(line, text)| (line, text.to_owned())));
    assert_eq!(tokens(source).len(), 10, "{:?}", tokens(source));
}
