use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

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

/// How many zero-width characters may follow one another. More would pile up over adjacent lines; no orthography needs as
/// many.
pub(super) const MAX_MARKS: u8 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Keep,
    /// A combining mark or other zero-width part of a grapheme.
    Mark,
    /// White space that does not end a line.
    Space,
    /// White space that ends a line.
    Newline,
    /// Its code point is shown instead: see [`number`].
    Number,
    Replace(char),
}

/// Classifies a character.
///
/// - C0 controls and DEL become their pictures (`␛`, U+2400 to U+2421), C1 controls their code points.
/// - All invisible characters also become their code points: joiners, variation selectors, soft hyphens, direction marks
///   and overrides, zero-width spaces, tags and all other characters that Unicode's `DerivedCoreProperties.txt` lists as
///   `Default_Ignorable_Code_Point`. They could make one text pass for another, and terminals disagree on the width of
///   some sequences that they form. For the latter reason emoji modifiers become code points, too.
pub(super) fn class(c: char) -> Class {
    match c {
        ' '..='~' => Class::Keep,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Class::Newline,
        '\t' => Class::Space,
        '\0'..='\u{1f}' => Class::Replace(picture(c)),
        '\u{7f}' => Class::Replace('␡'),
        _ if c.is_control() || is_unseen(c) => Class::Number,
        // Halfwidth sound marks count as no column in a grapheme but take one on a terminal; the standalone marks read the same,
        // and their width is agreed on.
        '\u{ff9e}' => Class::Replace('\u{309b}'),
        '\u{ff9f}' => Class::Replace('\u{309c}'),
        _ if c.is_whitespace() => Class::Space,
        _ if unicode_width::UnicodeWidthChar::width(c) == Some(0) => Class::Mark,
        _ => Class::Keep,
    }
}

/// The picture of a C0 control character, `␛` for ESC.
fn picture(c: char) -> char {
    char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The code point of a character that has no picture, as `<U+200B>`.
pub(super) fn number(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

/// Whether a character is invisible on its own.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    is_modifier(c) || is_invisible(c)
}

/// Whether the character changes the appearance of its neighbours, and so their width.
fn is_modifier(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{200c}' | '\u{200d}'
        | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
        | '\u{1f3fb}'..='\u{1f3ff}')
}

/// Whether the character has no glyph, such as a zero-width space.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
