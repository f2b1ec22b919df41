//! Shared by all parts of locktop: [`text`] that is safe to show, the [`clock`], and advisory lock keys.

pub mod clock;
#[cfg(feature = "encodings")]
pub mod encoding;
#[cfg(feature = "files")]
pub mod file;
pub mod namespace;
pub mod order;
mod query_text;
pub mod text;

pub use namespace::LockKey;
pub use query_text::QueryText;

/// Text from the server: shared, immutable, valid UTF-8 (invalid bytes were replaced when it was decoded), and otherwise
/// untrusted: it may contain control characters, escape sequences and newlines, and may be megabytes long.
/// [`text::one_line`] makes it safe for a screen.
pub type Text = std::sync::Arc<str>;

/// A time on the server's clock.
#[cfg(feature = "chrono")]
pub type Timestamp = chrono::DateTime<chrono::Utc>;
