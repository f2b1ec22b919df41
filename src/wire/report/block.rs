//! What the parts of a report are made of.

use super::Style;
use crate::model::Timestamp;
use crate::text::{count, one_line_prefix};

/// Columns of a text that are told.
pub(super) const LONG: usize = 300;

/// What stands in a part of a report.
#[derive(Debug)]
pub(super) enum Block {
    Paragraph(String),
    /// The time line: how many waited, with the signs of what happened.
    Line,
    /// Episodes by their numbers: bars on the time line, or a table.
    Episodes(Vec<u64>),
    /// Which session waited for which at the worst moment, in so many rows.
    Tree(usize),
    List(Vec<String>),
    /// Headings, those of numbers with true, and rows.
    Table(Vec<(&'static str, bool)>, Vec<Vec<String>>),
}

pub(super) fn fit(text: &str) -> String {
    one_line_prefix(text, LONG).into_owned()
}

/// The time of day, `14:02:31`, in the zone of the report.
pub(super) fn time(style: Style, at: Timestamp) -> String {
    at.with_timezone(&style.zone).format("%H:%M:%S").to_string()
}

/// A line for each of so many, and one for the others.
pub(super) fn listed<T>(all: &[T], room: usize, line: impl Fn(&T) -> String) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(room).map(line).collect();
    if all.len() > room {
        lines.push(format!("and {} more like these", count((all.len() - room) as u64)));
    }
    lines
}
