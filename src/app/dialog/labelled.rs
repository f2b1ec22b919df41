//! A label and what it says, as a line of a question.

use crate::app::line::{Line, Tone};

/// A label and what it says.
pub(super) fn field(label: &str, text: impl Into<String>, tone: Tone) -> Line {
    Line::new().with(format!("{label:<9} "), Tone::Dim).with(text, tone)
}
