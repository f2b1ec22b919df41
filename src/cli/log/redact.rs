//! Redaction of every log line: removes passwords and quoted text, which can be literals of a statement or values in an
//! error message.

use crate::model::statement::redacted::without_userinfo;
use crate::text;

/// Longest log line, in columns.
const LONGEST: usize = 1000;

/// Longest name in double quotes that is kept, in bytes.
const NAME: usize = 63;

/// One line without control characters or secrets.
pub(super) fn harmless(said: &str) -> String {
    let line = without_userinfo(&without_passwords(&without_quoted(said)));
    text::fit(&text::one_line_prefix(&line, LONGEST), LONGEST).into_owned()
}

/// Replaces `'x'` by `'?'`, also if the closing quote is missing. Keeps `"x"` only if it can be nothing but a name.
fn without_quoted(said: &str) -> String {
    // The server puts a rejected value in double quotes. Messages in other languages are not recognized, so nothing is kept.
    let has_value = !said.is_ascii()
        || ["input syntax", "invalid ", " value", "out of range"].iter().any(|word| said.contains(word));
    let mut left = String::with_capacity(said.len());
    let mut rest = said;
    while let Some(at) = rest.find(|letter| matches!(letter, '\'' | '"' | '$') || closing(letter).is_some()) {
        let (before, quoted) = rest.split_at(at);
        left.push_str(before);
        if let Some((open, close)) = quoted.chars().next().and_then(|open| Some((open, closing(open)?))) {
            left.extend([open, '?', close]);
            rest = quoted.split_once(close).map_or("", |(_, tail)| tail);
            continue;
        }
        if let Some(tail) = after_dollars(quoted) {
            left.push_str("'?'");
            rest = tail;
            continue;
        }
        let quote = if quoted.starts_with('\'') { '\'' } else { '"' };
        if quoted.starts_with('$') || is_apostrophe(before, quoted) {
            left.push_str(quoted.get(..1).unwrap_or_default());
            rest = quoted.get(1..).unwrap_or_default();
            continue;
        }
        let inner = quoted.get(1..).unwrap_or_default();
        let (content, tail) = within(inner, quote);
        let is_name = quote == '"' && !has_value && content.len() <= NAME && content.chars().all(is_of_name);
        if is_name {
            left.extend([r#"""#, content, r#"""#]);
        } else {
            left.extend([quote, '?', quote]);
        }
        rest = tail;
    }
    left.push_str(rest);
    left
}

/// The closing quote for an opening quote of messages in other languages.
fn closing(open: char) -> Option<char> {
    match open {
        '«' => Some('»'),
        '»' => Some('«'),
        '„' => Some('“'),
        '“' => Some('”'),
        '‘' => Some('’'),
        '「' => Some('」'),
        _ => None,
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '@')
}

/// Whether the quote is the apostrophe of `doesn't`. Any other apostrophe starts a string and removes the text after it,
/// which reveals nothing.
fn is_apostrophe(before: &str, quoted: &str) -> bool {
    before.ends_with('n')
        && quoted.strip_prefix("'t").is_some_and(|rest| rest.chars().next().is_none_or(|next| next == ' '))
}

/// The text up to the closing quote, and the text after it. A doubled quote does not close.
fn within(inner: &str, quote: char) -> (&str, &str) {
    let mut at = 0;
    while let Some(found) = inner.get(at..).and_then(|rest| rest.find(quote)) {
        let end = at + found;
        let tail = inner.get(end + 1..).unwrap_or_default();
        if !tail.starts_with(quote) {
            return (inner.get(..end).unwrap_or_default(), tail);
        }
        at = end + 2;
    }
    (inner, "")
}

/// The text after a dollar-quoted string, if one starts here.
fn after_dollars(quoted: &str) -> Option<&str> {
    let tag = quoted.strip_prefix('$')?;
    let (tag, _) = tag.split_once('$')?;
    let is_tag = tag.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
        && !tag.starts_with(|letter: char| letter.is_ascii_digit());
    let delimiter = is_tag.then(|| format!("${tag}$"))?;
    let inner = quoted.get(delimiter.len()..)?;
    Some(inner.split_once(&delimiter).map_or("", |(_, tail)| tail))
}

/// Redacts `password=…`, `password = …` and `"password": …` up to the next blank. Quoted values are already removed.
fn without_passwords(said: &str) -> String {
    const NAME: &str = "password";
    let mut left = String::with_capacity(said.len());
    let mut rest = said;
    while let Some(at) = find_ignoring_case(rest, NAME) {
        let (before, tail) = rest.split_at(at + NAME.len());
        left.push_str(before);
        rest = tail;
        let value = tail.trim_start_matches(['"', ' ', '\t']).strip_prefix(['=', ':']);
        let Some(value) = value.map(|value| value.trim_start_matches([' ', '\t'])) else { continue };
        left.extend([tail.strip_suffix(value).unwrap_or_default(), "?"]);
        let end = value.find(|letter: char| letter.is_whitespace() || letter == '&').unwrap_or(value.len());
        rest = value.get(end..).unwrap_or_default();
    }
    left.push_str(rest);
    left
}

fn find_ignoring_case(text: &str, word: &str) -> Option<usize> {
    text.as_bytes().windows(word.len()).position(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}
