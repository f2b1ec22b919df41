//! What is left out of every line of the log, wherever it comes from: texts in quotes, which may be literals of somebody's statement or
//! their values in an error, and passwords.

use crate::model::statement::secrets::without_userinfo;
use crate::text;

/// Columns of a line of the log, at most.
const LONGEST: usize = 1000;

/// Bytes of a name in double quotes that stays.
const NAME: usize = 63;

/// One line that steers no terminal and tells no secret.
pub(super) fn harmless(said: &str) -> String {
    let line = without_userinfo(&without_passwords(&without_quoted(said)));
    text::fit(&text::one_line_prefix(&line, LONGEST), LONGEST).into_owned()
}

/// `'x'` is `'?'`, also where the end is missing; `"x"` stays where it can only be a name.
fn without_quoted(said: &str) -> String {
    // Where the server says which value it could not take it stands in double quotes. What it says in another language is not known.
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

/// Which quote ends what this one begins, of those that messages in other languages have.
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

/// `doesn't`: no string begins there. Another apostrophe takes what is behind it with it, which tells nobody anything.
fn is_apostrophe(before: &str, quoted: &str) -> bool {
    before.ends_with('n')
        && quoted.strip_prefix("'t").is_some_and(|rest| rest.chars().next().is_none_or(|next| next == ' '))
}

/// What is in quotes, and what comes behind them; a doubled quote is none.
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

/// What comes behind a string in dollars, where one begins here.
fn after_dollars(quoted: &str) -> Option<&str> {
    let tag = quoted.strip_prefix('$')?;
    let (tag, _) = tag.split_once('$')?;
    let is_tag = tag.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
        && !tag.starts_with(|letter: char| letter.is_ascii_digit());
    let delimiter = is_tag.then(|| format!("${tag}$"))?;
    let inner = quoted.get(delimiter.len()..)?;
    Some(inner.split_once(&delimiter).map_or("", |(_, tail)| tail))
}

/// `password=…`, `password = …`, `"password": …` up to the next blank. (A value in quotes is gone already.)
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
