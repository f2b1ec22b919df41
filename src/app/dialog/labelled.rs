use crate::app::line::{Line, Tone};

pub(super) fn field(label: &str, text: impl Into<String>, tone: Tone) -> Line {
    Line::new().with(format!("{label:<9} "), Tone::Dim).with(text, tone)
}
