use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

use super::hostile::{Class, MAX_MARKS, class, number};
use super::width::{ELLIPSIS, width};

/// Makes text of any origin safe for one line of a screen: control characters, newlines, escape sequences and direction
/// overrides become harmless, runs of white space become one space. Borrowed if nothing changes.
///
/// Leading and trailing white space is removed. Escape characters are shown as `␛`, and the rest of the sequence as plain
/// text. Invisible characters that could disguise a text are shown as code points, `<U+200B>`; combining marks beyond the
/// sixth on one character are dropped.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    if is_plain(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let mut line = Line::with_capacity(text.len());
    for c in text.chars() {
        line.push(c);
    }
    line.finish(text)
}

/// As much of [`one_line`] as a field of `columns` columns can show, and slightly more if the text is longer, so that
/// [`super::fit`] still sees that it must cut: `fit(&one_line_prefix(text, n), n)` is `fit(&one_line(text), n)` at a cost
/// that does not grow with `text`.
///
/// If thousands of blanks or invisible characters precede the first visible one, an ellipsis stands for the rest.
#[must_use]
pub fn one_line_prefix(text: &str, columns: usize) -> Cow<'_, str> {
    if let Some(head) = plain_head(text, columns) {
        return Cow::Borrowed(head);
    }
    let input = head_of(text, 16_384 + columns.saturating_mul(32));
    let mut line = Line::with_capacity(columns.saturating_mul(2).min(input.len()));
    let (mut seen, mut enough) = (0, columns.saturating_add(2));
    for c in input.chars() {
        seen += line.push(c);
        if seen >= enough {
            // The last grapheme may still grow; all before it are final.
            let last = line.out.graphemes(true).next_back().map_or(0, str::len);
            let settled = line.out.get(..line.out.len() - last).unwrap_or_default();
            if width(settled) > columns {
                return line.finish(text);
            }
            enough = seen.saturating_mul(2);
        }
    }
    if input.len() < text.len() {
        line.out.push(ELLIPSIS);
    }
    line.finish(text)
}

/// The first `columns` columns and one or two more, if they are plain printable ASCII.
fn plain_head(text: &str, columns: usize) -> Option<&str> {
    if text.len() <= columns {
        return is_plain(text.as_bytes()).then_some(text);
    }
    let blank = text.as_bytes().get(columns) == Some(&b' ');
    let head = text.get(..=columns + usize::from(blank))?;
    is_plain(head.as_bytes()).then_some(head)
}

/// At most `bytes` bytes of `text`, cut at a character boundary.
fn head_of(text: &str, bytes: usize) -> &str {
    (bytes.saturating_sub(3)..=bytes).rev().find_map(|end| text.get(..end)).unwrap_or(text)
}

/// Whether `text` is printable ASCII without blanks at the ends or in a row.
fn is_plain(text: &[u8]) -> bool {
    let mut blank = true;
    for byte in text {
        match byte {
            b' ' if blank => return false,
            b' '..=b'~' => blank = *byte == b' ',
            _ => return false,
        }
    }
    !blank || text.is_empty()
}

struct Line {
    out: String,
    /// Pending white space, which is added when something follows it.
    blank: bool,
    /// Zero-width characters since the last one with a width.
    marks: u8,
}

impl Line {
    fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes), blank: false, marks: 0 }
    }

    /// Adds a character and returns how many columns it takes on its own.
    fn push(&mut self, c: char) -> usize {
        let shown = match class(c) {
            Class::Keep if c == ' ' => {
                self.blank = true;
                return 0;
            }
            Class::Space | Class::Newline => {
                self.blank = true;
                return 0;
            }
            Class::Number => {
                self.marks = 0;
                let blank = self.blank();
                let number = number(c);
                self.out.push_str(&number);
                return usize::from(blank) + number.len();
            }
            Class::Mark => {
                if self.marks >= MAX_MARKS {
                    return 0;
                }
                self.marks += 1;
                c
            }
            Class::Keep => {
                self.marks = 0;
                c
            }
            Class::Replace(other) => {
                self.marks = 0;
                other
            }
        };
        let blank = self.blank();
        self.out.push(shown);
        usize::from(blank) + shown.width().unwrap_or(0)
    }

    /// Adds the pending blank, if there is one.
    fn blank(&mut self) -> bool {
        let blank = std::mem::take(&mut self.blank) && !self.out.is_empty();
        if blank {
            self.out.push(' ');
        }
        blank
    }

    /// Returns the line, borrowed if `text` begins with it.
    fn finish(self, text: &str) -> Cow<'_, str> {
        match text.get(..self.out.len()) {
            Some(head) if head == self.out => Cow::Borrowed(head),
            _ => Cow::Owned(self.out),
        }
    }
}
