//! Shared by all parts of locktop: [`text`] that is safe to show, the [`clock`], and advisory lock keys.

pub mod clock;
#[cfg(feature = "encodings")]
pub mod encoding;
#[cfg(feature = "files")]
pub mod file;
pub mod namespace;
pub mod order;
pub mod text;

pub use namespace::LockKey;

/// Text from the server: shared, immutable, valid UTF-8 (invalid bytes were replaced when it was decoded), and otherwise
/// untrusted: it may contain control characters, escape sequences and newlines, and may be megabytes long.
/// [`text::one_line`] makes it safe for a screen.
pub type Text = std::sync::Arc<str>;

/// A time on the server's clock.
#[cfg(feature = "chrono")]
pub type Timestamp = chrono::DateTime<chrono::Utc>;

/// The text of a statement that another session sent, as the server kept it. It may contain a password, so the type
/// implements neither `Display` nor `Deref`: code that prints it gets the text from locktop's module `output`, which
/// knows what each channel may show.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct QueryText(Text);

impl QueryText {
    /// The full text, to be compared, recognized or stored, never printed.
    #[must_use]
    pub fn unredacted(&self) -> &Text {
        &self.0
    }

    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Whether it contains `part`, such as `(to prevent wraparound)`.
    #[must_use]
    pub fn contains(&self, part: &str) -> bool {
        self.0.contains(part)
    }
}

impl std::fmt::Debug for QueryText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QueryText({} bytes)", self.0.len())
    }
}

impl From<Text> for QueryText {
    fn from(text: Text) -> Self {
        Self(text)
    }
}

impl From<&str> for QueryText {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for QueryText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}
