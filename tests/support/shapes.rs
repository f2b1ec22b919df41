//! The statements of `tests/statements.toml`, and the channels in which they are tested.

use locktop::model::disclosure::{Channel, Mode};
use serde::Deserialize;

/// The secret in each statement.
pub(crate) const SECRET: &str = "s3cret";

/// Every channel, in every mode.
pub(crate) const CHANNELS: [Channel; 22] = [
    Channel::Screen,
    Channel::Clipboard,
    Channel::Snapshot,
    Channel::Json,
    Channel::Csv,
    Channel::Check,
    Channel::LockOf,
    Channel::Events,
    Channel::Blame,
    Channel::Report(Mode::None),
    Channel::Report(Mode::Literals),
    Channel::Report(Mode::Queries),
    Channel::Report(Mode::Names),
    Channel::Recording(Mode::None),
    Channel::Recording(Mode::Literals),
    Channel::Recording(Mode::Queries),
    Channel::Recording(Mode::Names),
    Channel::Why,
    Channel::Notification,
    Channel::Title,
    Channel::Log,
    Channel::Audit,
];

/// The statements, by purpose.
#[derive(Deserialize)]
pub(crate) struct Shapes {
    /// PostgreSQL's own scanner reads these, too.
    pub(crate) literals: Vec<String>,
    /// Strings that continue after a comment, and their value in PostgreSQL.
    #[allow(dead_code, reason = "each test program uses a part of it")]
    pub(crate) continued: Vec<(String, String)>,
    /// Statements that are cut or invalid.
    pub(crate) cut: Vec<String>,
    /// Statements that can be read in two ways.
    pub(crate) backslashes: Vec<String>,
    /// Statements with a password.
    pub(crate) passwords: Vec<String>,
}

impl Shapes {
    /// All statements.
    #[allow(dead_code, reason = "each test program uses a part of it")]
    pub(crate) fn all(&self) -> Vec<&str> {
        let continued = self.continued.iter().map(|(statement, _)| statement);
        let others = [&self.literals, &self.cut, &self.backslashes, &self.passwords];
        others.into_iter().flatten().chain(continued).map(String::as_str).collect()
    }
}

/// Reads the file.
pub(crate) fn shapes() -> Shapes {
    toml::from_str(include_str!("../statements.toml")).unwrap()
}
