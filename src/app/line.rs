//! Text with a meaning, to which a theme assigns colours.

/// The meaning of a piece of text. The theme decides how it appears; the words alone must be sufficient to understand it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Tone {
    #[default]
    Plain,
    /// The heading of a page, a group or a column.
    Title,
    /// Less important: units, labels, finished things.
    Dim,
    /// Needs attention now.
    Critical,
    /// Will need attention, or a session waits.
    Warning,
    Good,
    /// A key to press, or what is followed or selected.
    Key,
    /// Not live: paused, stale, or from a recording.
    Past,
}

/// A piece of text with one meaning. The text is one line and safe for the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// Without control characters and escape sequences.
    pub text: String,
    pub tone: Tone,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    pub spans: Vec<Span>,
}

impl Line {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(mut self, text: impl Into<String>, tone: Tone) -> Self {
        self.push(text, tone);
        self
    }

    /// Omits an empty piece.
    pub fn push(&mut self, text: impl Into<String>, tone: Tone) {
        let text = text.into();
        if !text.is_empty() {
            self.spans.push(Span { text, tone });
        }
    }

    /// Several next to each other, with two spaces between.
    pub fn joined(lines: impl IntoIterator<Item = Self>) -> Self {
        lines.into_iter().fold(Self::new(), |mut all, line| {
            all.push(if all.spans.is_empty() { "" } else { "  " }, Tone::Plain);
            all.spans.extend(line.spans);
            all
        })
    }

    /// Width in columns of the terminal.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| crate::text::width(&span.text)).sum()
    }

    pub fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}
