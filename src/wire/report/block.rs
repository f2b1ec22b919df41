//! Blocks of a report, and their text.

use super::Style;
use crate::model::Timestamp;
use crate::text::{count, one_line_prefix};

pub(super) const LONG: usize = 300;

#[derive(Debug)]
pub(super) enum Block {
    Paragraph(String),
    Line,
    /// Episodes by number: bars on the time line, or a table.
    Episodes(Vec<u64>),
    /// Which session waited for which at the worst moment, with at most so many rows.
    Tree(usize),
    List(Vec<String>),
    /// Headings (true for numbers) and rows.
    Table(Vec<(&'static str, bool)>, Vec<Vec<String>>),
}

pub(super) fn fit(text: &str) -> String {
    one_line_prefix(text, LONG).into_owned()
}

/// The time of day, `14:02:31`, in the time zone of the report.
pub(super) fn time(style: Style, at: Timestamp) -> String {
    at.with_timezone(&style.zone).format("%H:%M:%S").to_string()
}

pub(super) fn listed<T>(all: &[T], room: usize, line: impl Fn(&T) -> String) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(room).map(line).collect();
    if all.len() > room {
        lines.push(format!("and {} more like these", count((all.len() - room) as u64)));
    }
    lines
}

pub(super) fn escape(text: &str) -> String {
    without_tags(text).replace('"', "&quot;").replace('\'', "&#39;")
}

pub(super) fn without_tags(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Escapes text for HTML, without line breaks inside times and dates.
pub(super) fn text(text: &str) -> String {
    let is_time = |word: &str| {
        let is_of_it = |byte: u8| byte.is_ascii_digit() || b":.,;+-".contains(&byte);
        let core = word.replace('–', "-");
        core.len() >= 5
            && core.bytes().all(is_of_it)
            && core.bytes().filter(|byte| b":-".contains(byte)).count() >= 2
    };
    let words = text.split(' ').map(|word| {
        let escaped = escape(word);
        if is_time(word) { format!("<time>{escaped}</time>") } else { escaped }
    });
    words.collect::<Vec<_>>().join(" ")
}
