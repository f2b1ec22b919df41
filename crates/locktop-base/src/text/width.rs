use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Marks where text was cut off.
pub const ELLIPSIS: char = '…';

/// The same if only ASCII can be shown; also one column wide, so that nothing else moves.
pub const ASCII_ELLIPSIS: char = '~';

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Align {
    #[default]
    Left,
    Right,
}

/// The columns that `text` takes on a terminal. `text` must be a single line.
///
/// This is the sum of `unicode-width` over the graphemes, because `ratatui` fills its buffer that way; the width of the
/// whole string can be less (Arabic ligatures).
#[must_use]
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(UnicodeWidthStr::width).sum() }
}

/// `text` in at most `columns` columns, cut at a character boundary with an ellipsis if it is longer.
#[must_use]
pub fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    fit_with(text, columns, ELLIPSIS)
}

/// As [`fit`], with another ellipsis, which must be one column wide.
#[must_use]
pub fn fit_with(text: &str, columns: usize, ellipsis: char) -> Cow<'_, str> {
    match cut(text, columns) {
        None => Cow::Borrowed(text),
        Some(_) if columns == 0 => Cow::Borrowed(""),
        Some(end) => Cow::Owned(format!("{}{ellipsis}", text.get(..end).unwrap_or_default())),
    }
}

/// `text` in at most `columns` columns, cut in the middle: of a server address, the name at the start and the port at the
/// end remain.
#[must_use]
pub fn fit_middle(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let tail_room = columns.saturating_sub(1) / 2;
    let mut tail = Vec::new();
    let mut taken = 0;
    for grapheme in text.graphemes(true).rev() {
        taken += grapheme.width();
        if taken > tail_room {
            break;
        }
        tail.push(grapheme);
    }
    let tail: String = tail.into_iter().rev().collect();
    let head = fit(text, columns - width(&tail).min(columns));
    Cow::Owned(format!("{head}{tail}"))
}

/// `text` in exactly `columns` columns: cut as by [`fit`], or padded with blanks.
#[must_use]
pub fn fit_pad(text: &str, columns: usize, align: Align) -> String {
    let fitted = fit(text, columns);
    let blanks = columns.saturating_sub(width(&fitted));
    match align {
        Align::Left => fitted.into_owned() + &" ".repeat(blanks),
        Align::Right => " ".repeat(blanks) + &fitted,
    }
}

/// The position to cut at so that an ellipsis still fits; `None` if all of `text` fits. Reads no further than necessary.
fn cut(text: &str, columns: usize) -> Option<usize> {
    // No character is wider than its UTF-8 form is long.
    if text.len() <= columns {
        return None;
    }
    if text.as_bytes().get(..=columns).is_some_and(<[u8]>::is_ascii) {
        return Some(columns.saturating_sub(1));
    }
    let (mut used, mut end) = (0, 0);
    for (start, grapheme) in text.grapheme_indices(true) {
        used += grapheme.width();
        if used > columns {
            return Some(end);
        }
        if used < columns {
            end = start + grapheme.len();
        }
    }
    None
}

/// `text`, which must be a single line, in ASCII and of the same width: the ellipsis becomes `~`, the placeholder `.`,
/// the picture of an escape `^`, the branch of a tree a backquote, and any other character as many `?` as it has columns.
#[must_use]
pub fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for grapheme in text.graphemes(true) {
        match grapheme {
            "…" => out.push('~'),
            "·" => out.push('.'),
            "␛" => out.push('^'),
            "└" => out.push('`'),
            _ if grapheme.is_ascii() => out.push_str(grapheme),
            _ => out.extend(std::iter::repeat_n('?', grapheme.width())),
        }
    }
    Cow::Owned(out)
}
