//! How many columns a text takes, and how to make it take as many as there are.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Stands for what was cut off.
pub const ELLIPSIS: char = '…';

/// The same where only ASCII can be shown; one column, too, so that nothing else moves.
pub const ASCII_ELLIPSIS: char = '~';

/// The side of a field at which its text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Align {
    /// Text at the left edge, as words are set.
    #[default]
    Left,
    /// Text at the right edge, as numbers are set.
    Right,
}

/// Columns `text` takes on a terminal. `text` must be one line already.
///
/// It is the sum over the graphemes, each as `unicode-width` has it, because that is how `ratatui` fills its
/// buffer; the width of the whole string can be less (Arabic ligatures).
#[must_use]
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(UnicodeWidthStr::width).sum() }
}

/// `text` in at most `columns` columns, cut on a character boundary with an ellipsis where it is longer.
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
        Some(end) => {
            let kept = text.get(..end).unwrap_or_default();
            let mut out = String::with_capacity(kept.len() + ellipsis.len_utf8());
            out.push_str(kept);
            out.push(ellipsis);
            Cow::Owned(out)
        }
    }
}

/// `text` in at most `columns` columns, cut in its middle: of a place the name before it and its port behind it stay.
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

/// `text` in exactly `columns` columns: cut as [`fit`] does, or filled up with blanks.
#[must_use]
pub fn fit_pad(text: &str, columns: usize, align: Align) -> String {
    let fitted = fit(text, columns);
    let blanks = columns.saturating_sub(width(&fitted));
    let mut out = String::with_capacity(fitted.len() + blanks);
    let fill = std::iter::repeat_n(' ', blanks);
    match align {
        Align::Left => {
            out.push_str(&fitted);
            out.extend(fill);
        }
        Align::Right => {
            out.extend(fill);
            out.push_str(&fitted);
        }
    }
    out
}

/// Where to cut so that an ellipsis still fits; none when all of `text` does. Reads no further than it must.
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
