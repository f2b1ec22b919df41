use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

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
