//! Text with a meaning: what the screens are made of before a theme gives the meanings their colours.

/// What a piece of text means. The theme decides how that looks; the words alone must be enough to understand it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// A heading.
    Title,
    /// Less important: units, labels, finished things.
    Dim,
    /// Needs somebody now.
    Critical,
    /// Will need somebody; somebody waits.
    Warning,
    /// As it should be.
    Good,
    /// A key to press, and what is followed or selected.
    Key,
    /// Not of now: paused, stale.
    Past,
}

/// A piece of text of one meaning. The text is one line and harmless.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// The text.
    pub text: String,
    /// What it means.
    pub tone: Tone,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Its pieces, left to right.
    pub spans: Vec<Span>,
}

impl Line {
    /// An empty line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more piece.
    #[must_use]
    pub fn with(mut self, text: impl Into<String>, tone: Tone) -> Self {
        self.push(text, tone);
        self
    }

    /// Appends a piece.
    pub fn push(&mut self, text: impl Into<String>, tone: Tone) {
        let text = text.into();
        if !text.is_empty() {
            self.spans.push(Span { text, tone });
        }
    }

    /// Columns it takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| crate::text::width(&span.text)).sum()
    }

    /// The text without its meaning.
    #[must_use]
    pub fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}
