use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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

/// `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
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
    filter: Filter,
}

impl Line {
    fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes), blank: false, filter: Filter::default() }
    }

    /// Adds a character and returns how many columns it takes on its own.
    fn push(&mut self, c: char) -> usize {
        match self.filter.show(c) {
            Shown::Nothing => 0,
            Shown::Space | Shown::Newline => {
                self.blank = true;
                0
            }
            Shown::Number(number) => {
                let blank = self.blank();
                self.out.push_str(&number);
                usize::from(blank) + number.len()
            }
            Shown::Char(c) => {
                let blank = self.blank();
                self.out.push(c);
                usize::from(blank) + c.width().unwrap_or(0)
            }
        }
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
const MAX_MARKS: u8 = 6;

/// What is shown of a character.
enum Shown {
    Nothing,
    /// White space that does not end a line.
    Space,
    /// White space that ends a line.
    Newline,
    /// The code point, as `<U+200B>`.
    Number(String),
    Char(char),
}

/// Makes the characters of a text harmless, one after another.
#[derive(Default)]
struct Filter {
    /// Zero-width characters since the last one with a width.
    marks: u8,
}

impl Filter {
    fn show(&mut self, c: char) -> Shown {
        let shown = class(c);
        match shown {
            Shown::Space | Shown::Newline => {}
            // A combining mark or other zero-width part of a grapheme.
            Shown::Char(c) if !c.is_ascii() && c.width() == Some(0) => {
                if self.marks >= MAX_MARKS {
                    return Shown::Nothing;
                }
                self.marks += 1;
            }
            _ => self.marks = 0,
        }
        shown
    }
}

/// Classifies a character.
///
/// - C0 controls and DEL become their pictures (`␛`, U+2400 to U+2421), C1 controls their code points.
/// - All invisible characters also become their code points: joiners, variation selectors, soft hyphens, direction marks
///   and overrides, zero-width spaces, tags and all other characters that Unicode's `DerivedCoreProperties.txt` lists as
///   `Default_Ignorable_Code_Point`. They could make one text pass for another, and terminals disagree on the width of
///   some sequences that they form. For the latter reason emoji modifiers become code points, too.
fn class(c: char) -> Shown {
    match c {
        ' ' | '\t' => Shown::Space,
        '!'..='~' => Shown::Char(c),
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Shown::Newline,
        '\0'..='\u{1f}' => Shown::Char(picture(c)),
        '\u{7f}' => Shown::Char('␡'),
        _ if c.is_control() || is_unseen(c) => Shown::Number(format!("<U+{:04X}>", u32::from(c))),
        // Halfwidth sound marks count as no column in a grapheme but take one on a terminal; the standalone marks read the same,
        // and their width is agreed on.
        '\u{ff9e}' => Shown::Char('\u{309b}'),
        '\u{ff9f}' => Shown::Char('\u{309c}'),
        _ if c.is_whitespace() => Shown::Space,
        _ => Shown::Char(c),
    }
}

/// The picture of a C0 control character, `␛` for ESC.
fn picture(c: char) -> char {
    char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER)
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

const TAB: usize = 4;

/// `text` in lines of at most `columns` columns: its newlines are kept, longer lines are broken between words (or within
/// a word that is itself too long), tabs become blanks, and everything else is as in [`one_line`]. Leading and
/// trailing empty lines are removed. With 0 columns there are no lines.
#[must_use]
pub fn lines(text: &str, columns: usize) -> Vec<String> {
    let mut out = Vec::new();
    if columns == 0 {
        return out;
    }
    for line in harmless(text).split('\n') {
        wrap(line, columns, &mut out);
    }
    let leading = out.iter().take_while(|line| line.is_empty()).count();
    out.drain(..leading);
    let trailing = out.iter().rev().take_while(|line| line.is_empty()).count();
    out.truncate(out.len() - trailing);
    out
}

/// All lines, with only harmless characters, blanks and `\n`.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut column, mut filter) = (0, Filter::default());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match filter.show(c) {
            Shown::Nothing => {}
            Shown::Newline => {
                if c == '\r' {
                    rest.next_if_eq(&'\n');
                }
                out.push('\n');
                column = 0;
            }
            Shown::Space => {
                let blanks = if c == '\t' { TAB - column % TAB } else { 1 };
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            Shown::Number(number) => {
                column += number.len();
                out.push_str(&number);
            }
            Shown::Char(c) => {
                out.push(c);
                column += c.width().unwrap_or(0);
            }
        }
    }
    out
}

/// Breaks one line at spaces; its indentation, limited to half of the columns, is repeated in the continuation lines.
fn wrap(line: &str, columns: usize, out: &mut Vec<String>) {
    let line = line.trim_end_matches(' ');
    let body = line.trim_start_matches(' ');
    // A deep indentation must leave room for the words.
    let indent = (line.len() - body.len()).min(columns / 2);
    let mut paragraph = Paragraph { out, line: " ".repeat(indent), used: indent, columns };
    let (mut blanks, mut word, mut word_width) = (0, String::new(), 0);
    for grapheme in body.graphemes(true) {
        if grapheme == " " {
            paragraph.word(std::mem::take(&mut blanks), &word, word_width);
            word.clear();
            word_width = 0;
            blanks += 1;
        } else {
            word.push_str(grapheme);
            word_width += grapheme.width();
        }
    }
    paragraph.word(blanks, &word, word_width);
    let last = paragraph.line;
    out.push(last);
}

struct Paragraph<'a> {
    out: &'a mut Vec<String>,
    line: String,
    used: usize,
    columns: usize,
}

impl Paragraph<'_> {
    fn word(&mut self, blanks: usize, word: &str, width: usize) {
        if self.used + blanks + width <= self.columns {
            self.line.extend(std::iter::repeat_n(' ', blanks));
            self.line.push_str(word);
            self.used += blanks + width;
            return;
        }
        if self.used > 0 && !self.line.trim_start().is_empty() {
            self.end_line();
        }
        for grapheme in word.graphemes(true) {
            if grapheme.width() <= self.columns {
                self.piece(grapheme);
                continue;
            }
            // Some scripts join any number of letters into one grapheme.
            for c in grapheme.chars() {
                let c = if c.width().unwrap_or(0) > self.columns { ELLIPSIS } else { c };
                self.piece(c.encode_utf8(&mut [0; 4]));
            }
        }
    }

    /// Adds a part of a word; it must not be wider than a line.
    fn piece(&mut self, piece: &str) {
        let columns = piece.width();
        if self.used + columns > self.columns {
            self.end_line();
        }
        self.line.push_str(piece);
        self.used += columns;
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.out.push(line.trim_end_matches(' ').to_owned());
        self.used = 0;
    }
}
