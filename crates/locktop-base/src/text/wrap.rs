use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::one_line::{Class, MAX_MARKS, class, number};
use super::width::ELLIPSIS;

const TAB: usize = 4;

/// `text` in lines of at most `columns` columns: its newlines are kept, longer lines are broken between words (or within
/// a word that is itself too long), tabs become blanks, and everything else is as in [`super::one_line`]. Leading and
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
    let (mut column, mut marks) = (0, 0);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let shown = match class(c) {
            Class::Number => {
                marks = 0;
                let number = number(c);
                column += number.len();
                out.push_str(&number);
                continue;
            }
            Class::Newline => {
                if c == '\r' {
                    rest.next_if_eq(&'\n');
                }
                out.push('\n');
                column = 0;
                continue;
            }
            Class::Space => {
                let blanks = if c == '\t' { TAB - column % TAB } else { 1 };
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
                continue;
            }
            Class::Mark if marks >= MAX_MARKS => continue,
            Class::Mark => {
                marks += 1;
                c
            }
            Class::Keep => {
                marks = if c == ' ' { marks } else { 0 };
                c
            }
            Class::Replace(other) => {
                marks = 0;
                other
            }
        };
        out.push(shown);
        column += shown.width().unwrap_or(0);
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
