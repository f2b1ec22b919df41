//! What is printed of a statement, and where: every statement that leaves the program passes [`shown`].
//!
//! A statement of another session is a [`QueryText`]; its text is read only by code that recognizes or stores it. New code
//! that prints one must get a channel here, or `tests/offline/statements.rs` fails. Passwords are removed in every channel.

use std::borrow::Cow;

use crate::model::statement::redacted::{redacted_pieces, speaks_of_secret, without_userinfo};
use crate::model::statement::tags::numbered;
use crate::model::{QueryText, Text, fingerprint};

/// Parts of statements to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray, clap::ValueEnum)]
#[strum(serialize_all = "lowercase")]
pub enum Mode {
    /// Nothing.
    None,
    /// Strings, numbers and comments.
    Literals,
    /// Everything but a number, which is equal for statements that differ only in literals.
    Queries,
    /// Everything but the form of the statement, and all names: tables, roles, databases, applications and addresses become hashes; tasks, jobs, leases
    /// and queues are omitted.
    // The recorder, which has the salt, hashes what is left without strings, numbers and comments.
    Names,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Panes, pages and dialogs of the dashboard, also in a replay; the panes of `snapshot` and of a report.
    Screen,
    Clipboard,
    Snapshot,
    /// `snapshot --format json`, single or repeated, and `replay --export jsonl`.
    Json,
    Csv,
    Check,
    LockOf,
    Events,
    Blame,
    Report(Mode),
    /// `record`, `cut`, and the history that `o` saves.
    Recording(Mode),
    Why,
    Notification,
    Title,
    /// The file of `--log`.
    Log,
    Audit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// All but passwords.
    NoSecrets,
    /// All but strings, numbers and comments.
    NoLiterals,
    /// One line without literals, comments and lists.
    Fingerprint,
    /// A number that identifies the statement.
    Number,
    Nothing,
}

impl Channel {
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

/// The text of a statement that a channel shows. It still has line ends and control characters: it is not safe for a
/// screen.
pub fn shown(channel: Channel, statement: &QueryText) -> Cow<'_, str> {
    shown_text(channel, statement.unredacted())
}

/// The same for a statement of no session: from the server log, the command line or an earlier recording.
pub fn shown_text(channel: Channel, statement: &str) -> Cow<'_, str> {
    match channel.left() {
        Left::Nothing => Cow::Borrowed(""),
        // A statement that was already replaced by a number or hash stays as it is.
        _ if fingerprint::is_number(statement) || fingerprint::is_hash(statement) => Cow::Borrowed(statement),
        Left::NoSecrets if !speaks_of_secret(statement) => Cow::Borrowed(statement),
        Left::NoSecrets | Left::NoLiterals => Cow::Owned(without_literals(statement)),
        Left::Fingerprint => Cow::Owned(fingerprint::fingerprint(statement)),
        Left::Number => {
            Cow::Owned(format!("query {:08x}", crc32fast::hash(without_literals(statement).as_bytes())))
        }
    }
}

/// The same, to be stored, with the tags of locktop's library as numbers; the original is reused if nothing is removed.
pub fn kept(channel: Channel, statement: &Text) -> Text {
    match shown_text(channel, statement) {
        Cow::Borrowed(left) if left.len() == statement.len() => Text::clone(statement),
        left if matches!(channel.left(), Left::NoSecrets | Left::NoLiterals) => {
            let (tags, rest) = numbered(statement);
            if tags.is_empty() { left.into() } else { format!("{tags}{}", without_literals(rest)).into() }
        }
        left => left.into(),
    }
}

/// The statement with `?` for strings and numbers, without the text of comments, and without passwords, quoted in any way
/// or not.
pub fn without_literals(statement: &str) -> String {
    let mut left = String::with_capacity(statement.len());
    left.extend(redacted_pieces(statement).map(|(_, shown)| shown));
    if left.contains("://") { without_userinfo(&left) } else { left }
}

#[cfg(test)]
mod tests;
