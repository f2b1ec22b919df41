//! Text with a meaning: what the screens are made of before a theme gives the meanings their colours.

/// What a piece of text means. The theme decides how that looks; the words alone must be enough to understand it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tone {
    /// Nothing special: what most text is.
    #[default]
    Plain,
    /// The heading of a page, a group or a column.
    Title,
    /// Less important: units, labels, finished things.
    Dim,
    /// Something is wrong that needs somebody now.
    Critical,
    /// Something will need somebody; somebody waits.
    Warning,
    /// Something is as it should be.
    Good,
    /// A key to press, and what is followed or selected.
    Key,
    /// It is not of now: paused, stale, of a recording.
    Past,
}

/// A piece of text of one meaning. The text is one line and harmless.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// The text, without control characters and escape sequences.
    pub text: String,
    /// What it means, which the theme has a colour for.
    pub tone: Tone,
}

/// A line of pieces, each with its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Its pieces, from left to right.
    pub spans: Vec<Span>,
}

impl Line {
    /// A line of no pieces.
    pub fn new() -> Self {
        Self::default()
    }

    /// The line with one more piece behind it.
    pub fn with(mut self, text: impl Into<String>, tone: Tone) -> Self {
        self.push(text, tone);
        self
    }

    /// Appends a piece; an empty one is left out.
    pub fn push(&mut self, text: impl Into<String>, tone: Tone) {
        let text = text.into();
        if !text.is_empty() {
            self.spans.push(Span { text, tone });
        }
    }

    /// Columns of the terminal that its text takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| crate::text::width(&span.text)).sum()
    }

    /// Its text without the meanings.
    pub fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}
