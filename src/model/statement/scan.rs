//! Where strings, quoted names, comments and numbers of a statement end, as the server's scanner reads them
//! (`src/backend/parser/scan.l`). Each takes text from its first character on and gives bytes; what is not closed goes on to the end.

/// A string; with backslashes where it begins with E.
pub fn string(text: &str, escapes: bool) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if escapes => drop(characters.next()),
            '\'' if characters.peek().is_some_and(|(_, next)| *next == '\'') => drop(characters.next()),
            '\'' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A name in quotes; two of them are one within it.
pub fn quoted(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' if characters.peek().is_some_and(|(_, next)| *next == '"') => drop(characters.next()),
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `$tag$` at the beginning of a text, with both its dollars; none where that is no such tag.
pub fn dollar_tag(text: &str) -> Option<&str> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_' || !character.is_ascii();
    let end = text.get(1..)?.find(|character| !is_name(character))? + 1;
    let name = text.get(1..end)?;
    let is_closed = text.get(end..)?.starts_with('$');
    let begins_with_digit = name.starts_with(|character: char| character.is_ascii_digit());
    (is_closed && !begins_with_digit).then(|| text.get(..=end)).flatten()
}

/// A string in dollars, to the end of the tag that closes it.
pub fn dollar_quoted(text: &str) -> usize {
    let Some(tag) = dollar_tag(text) else { return 1 };
    let rest = text.get(tag.len()..).unwrap_or_default();
    rest.find(tag).map_or(text.len(), |end| tag.len() + end + tag.len())
}

/// A comment in `/* */`; others may stand in it.
pub fn comment(text: &str) -> usize {
    let bytes = text.as_bytes();
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
    text.len()
}

/// A number, with what clings to it.
pub fn number(text: &str) -> usize {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_');
    text.find(|character| !is_part(character)).unwrap_or(text.len())
}
