//! What of a statement is printed where: every statement that leaves the program passes [`shown`].
//!
//! A statement of another session is a [`QueryText`], whose text is only read by what recognizes or stores it. A new place that prints one
//! gets a channel here; `tests/offline/statements.rs` refuses it otherwise. Passwords are removed in every channel.

use std::borrow::Cow;

use super::statement::redacted::redacted_pieces;
use super::statement::secrets::{speaks_of_secret, without_userinfo};
use super::{QueryText, Text, fingerprint};

/// What is left out of the statements of a recording or of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub enum Mode {
    /// Passwords.
    None,
    /// Strings, numbers and comments.
    Literals,
    /// Everything but a number, which is equal for statements that differ only in literals.
    Queries,
    /// Strings, numbers and comments; what is left is made into a hash by the recorder, which has the salt.
    Names,
}

/// A way on which text leaves the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Panes, pages and questions of the dashboard, also over a recording; the panes of `snapshot` and of a report.
    Screen,
    /// What `y` puts on the clipboard.
    Clipboard,
    /// The findings of `snapshot`, and of `snapshot --watch`.
    Snapshot,
    /// `snapshot --format json`, one or many, and `replay --export jsonl`.
    Json,
    /// `replay --export csv`.
    Csv,
    /// `check`, in each of its formats.
    Check,
    /// `lock-of`, as text and as JSON, also what it says of a statement that it does not know.
    LockOf,
    /// Events: on the screen, in recordings, in reports.
    Events,
    /// The statements that are kept with what a session was blamed for.
    Blame,
    /// `report`, and what it takes from the server's log.
    Report(Mode),
    /// `record`, `cut`, and the history that `o` saves.
    Recording(Mode),
    /// The sentences that say why a session waits.
    Why,
    /// A notification of the desktop.
    Notification,
    /// The title of the terminal's window.
    Title,
    /// The file of `--log`.
    Log,
    /// The file and the table with the record of actions.
    Audit,
}

/// How much of a statement is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// All but passwords.
    NoSecrets,
    /// All but strings, numbers and comments.
    NoLiterals,
    /// One line without literals, comments and lists.
    Fingerprint,
    /// A number.
    Number,
    /// Nothing.
    Nothing,
}

impl Channel {
    /// How much of a statement it shows.
    pub const fn left(self) -> Left {
        match self {
            Self::Screen
            | Self::Clipboard
            | Self::Snapshot
            | Self::Json
            | Self::Csv
            | Self::LockOf
            | Self::Events
            | Self::Blame
            | Self::Report(Mode::None)
            | Self::Recording(Mode::None) => Left::NoSecrets,
            Self::Report(Mode::Literals | Mode::Names) | Self::Recording(Mode::Literals | Mode::Names) => {
                Left::NoLiterals
            }
            Self::Report(Mode::Queries) | Self::Recording(Mode::Queries) => Left::Number,
            Self::Check => Left::Fingerprint,
            Self::Why | Self::Notification | Self::Title | Self::Log | Self::Audit => Left::Nothing,
        }
    }
}

/// What a channel shows of a statement. It is not yet fit for a screen: it has the line ends and the control characters of the statement.
pub fn shown(channel: Channel, statement: &QueryText) -> Cow<'_, str> {
    shown_text(channel, statement.unredacted())
}

/// The same of a statement that is no session's: of the server's log, of the command line, of an earlier recording.
pub fn shown_text(channel: Channel, statement: &str) -> Cow<'_, str> {
    match channel.left() {
        Left::Nothing => Cow::Borrowed(""),
        // What was taken out once stays as it is.
        _ if fingerprint::is_number(statement) || fingerprint::is_hash(statement) => Cow::Borrowed(statement),
        Left::NoSecrets if !speaks_of_secret(statement) => Cow::Borrowed(statement),
        Left::NoSecrets | Left::NoLiterals => Cow::Owned(without_literals(statement)),
        Left::Fingerprint => Cow::Owned(fingerprint::fingerprint(statement)),
        Left::Number => {
            Cow::Owned(format!("query {:08x}", crc32fast::hash(without_literals(statement).as_bytes())))
        }
    }
}

/// The same as a text to keep; the one that there is where nothing is taken out.
pub fn kept(channel: Channel, statement: &Text) -> Text {
    match shown_text(channel, statement) {
        Cow::Borrowed(left) if left.len() == statement.len() => Text::clone(statement),
        left => left.into(),
    }
}

/// A statement with `?` for its strings and numbers, and without what its comments say; without passwords in any quotes, or in none.
pub fn without_literals(statement: &str) -> String {
    let mut left = String::with_capacity(statement.len());
    left.extend(redacted_pieces(statement).map(|(_, shown)| shown));
    if left.contains("://") { without_userinfo(&left) } else { left }
}

#[cfg(test)]
mod tests;
