//! The statements of `tests/statements.toml`, and the channels that they are tried in.

use locktop::model::disclosure::{Channel, Mode};
use serde::Deserialize;

/// What is a secret in each of them.
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

/// Statements, by what they are for.
#[derive(Deserialize)]
pub(crate) struct Shapes {
    /// Read by PostgreSQL's own scanner as well.
    pub(crate) literals: Vec<String>,
    /// Strings that continue over comments, and what the server makes of them.
    #[allow(dead_code, reason = "each test program uses a part of it")]
    pub(crate) continued: Vec<(String, String)>,
    /// Cut, or mistaken.
    pub(crate) cut: Vec<String>,
    /// Read in two ways.
    pub(crate) backslashes: Vec<String>,
    /// With a password.
    pub(crate) passwords: Vec<String>,
}

impl Shapes {
    /// All of them.
    #[allow(dead_code, reason = "each test program uses a part of it")]
    pub(crate) fn all(&self) -> Vec<&str> {
        let continued = self.continued.iter().map(|(statement, _)| statement);
        let others = [&self.literals, &self.cut, &self.backslashes, &self.passwords];
        others.into_iter().flatten().chain(continued).map(String::as_str).collect()
    }
}

/// Reads them.
pub(crate) fn shapes() -> Shapes {
    toml::from_str(include_str!("../statements.toml")).unwrap()
}
