//! The config file: `~/.config/locktop/config.toml`.
//!
//! Every mistake in it is found at once and told with its line and column, before the screen is touched.

pub mod adapter;
pub mod append;
mod error;
mod expected;
mod history;
mod location;
mod reader;
mod redis_servers;
mod sections;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use adapter::{AdapterChoice, AdapterChoices};
pub use error::{ConfigError, Mistake, Position};
pub use location::{Location, locate};

use crate::feed::history::Limits;
use crate::model::alert::Ways;
use crate::model::lock_key::LockKey;
use crate::model::thresholds::Thresholds;
use crate::redis::RedisSets;

/// The shortest time between two polls that can be asked for.
pub const MIN_REFRESH: Duration = Duration::from_millis(100);
/// The longest time between two polls that can be asked for.
pub const MAX_REFRESH: Duration = Duration::from_secs(60);

/// The default config with comments: what `locktop config print` writes.
pub const DEFAULT_TEXT: &str = include_str!("default.toml");

/// Everything the file says; what it does not say is at its default.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where it was read from, if from a file.
    pub path: Option<PathBuf>,
    /// `refresh`: the time between two polls.
    pub refresh: Duration,
    /// `server_load`: the share of one core of the server that reading `pg_locks` may take.
    pub server_load: f64,
    /// `remember`: the next dashboard begins as the last one was left.
    pub remember: bool,
    /// `notify`: what is done when something becomes critical.
    pub notify: Ways,
    /// `[targets.NAME]`: servers by their names.
    pub targets: BTreeMap<String, Target>,
    /// `trusted_owners`: roles whose tables and functions are used.
    pub trusted_owners: Vec<String>,
    /// `[tables]`: where a table is that is not found by its usual name, by that name.
    pub tables: BTreeMap<&'static str, String>,
    /// `[thresholds]`, and the blockers of `[[expected]]`.
    pub thresholds: Thresholds,
    /// `[check] exclude`: sections that `locktop check` does without if it cannot read them.
    pub check_exclude: Vec<String>,
    /// `[history]`: how much of the past is kept.
    pub history: Limits,
    /// `[[lock_names]]`: names for advisory locks.
    pub lock_names: Vec<NamedLock>,
    /// `[[lock_name_queries]]`: queries that name advisory locks.
    pub lock_name_queries: Vec<LockNameQuery>,
    /// `[redis]`: servers whose locks are shown with the leases.
    pub redis: Redis,
    /// `[adapters]`: which job systems of others are looked for, and how.
    pub adapters: AdapterChoices,
    /// `[keys]`: the keys of actions, in place of their default ones.
    pub keys: Vec<KeyBinding>,
    /// `[theme]`: which theme, and which colours in it are others.
    pub theme: Theme,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            path: None,
            refresh: Duration::from_secs(1),
            server_load: 0.02,
            remember: true,
            notify: Ways::default(),
            targets: BTreeMap::new(),
            trusted_owners: Vec::new(),
            tables: BTreeMap::new(),
            thresholds: Thresholds::default(),
            check_exclude: Vec::new(),
            history: Limits::default(),
            lock_names: Vec::new(),
            lock_name_queries: Vec::new(),
            redis: Redis::default(),
            adapters: AdapterChoices::default(),
            keys: Vec::new(),
            theme: Theme::default(),
        }
    }
}

/// A server with a name, of `[targets.NAME]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// URI, key=value string or database name. It may hold a password.
    pub conninfo: String,
    /// Whether everything that acts on it is left out.
    pub read_only: bool,
    /// Its own time between two polls; none: the file's.
    pub refresh: Option<Duration>,
    /// In place of the file's `trusted_owners`; none: those.
    pub trusted_owners: Option<Vec<String>>,
    /// `[targets.NAME.redis]`: in place of `[redis]`.
    pub redis: Option<Redis>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("conninfo", &"***")
            .field("read_only", &self.read_only)
            .field("refresh", &self.refresh)
            .field("trusted_owners", &self.trusted_owners)
            .field("redis", &self.redis)
            .finish()
    }
}

/// Redis servers whose locks are shown with the leases. Those of one set decide together: a lock of Redlock is held by
/// whoever has it on most of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redis {
    /// The servers, in sets; empty where none is configured.
    pub sets: RedisSets,
    /// Which keys are locks, as globs of Redis; empty for `lock:*`.
    pub patterns: Vec<String>,
}

/// A name for an advisory lock key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLock {
    /// The key: one number, or two.
    pub key: LockKey,
    /// What the key is called on the screens.
    pub name: String,
    /// The only database in which it has that name; none means all.
    pub database: Option<String>,
}

/// A query that names advisory lock keys: one column or two for the key, and one for the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockNameQuery {
    /// The query, as it is sent.
    pub sql: String,
    /// The database to ask, and the only one in which the names count; none means the one we are connected to.
    pub database: Option<String>,
    /// Where it stands in the file.
    pub at: Position,
}

/// The keys of one action, in place of its default ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBinding {
    /// Name of the action, as it stands in the file.
    pub action: String,
    /// The keys as written, with their places.
    pub keys: Vec<(String, Position)>,
    /// Where the name of the action stands in the file.
    pub at: Position,
}

/// What `[theme]` says: which theme, and which colours in it are others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    /// `dark`, `light`, `mono` or `ansi`.
    pub base: String,
    /// Colours in place of the base's.
    pub colours: Vec<Colour>,
}

impl Default for Theme {
    fn default() -> Self {
        Self { base: "dark".to_owned(), colours: Vec::new() }
    }
}

/// A colour for a meaning, in place of the theme's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Colour {
    /// What it stands for: `critical`, `warning`, ….
    pub meaning: String,
    /// The colour, as it stands in the file.
    pub colour: String,
    /// Where the colour stands in the file.
    pub at: Position,
}

/// What the floors above know of actions, keys and colours, so that mistakes in them get their line too. An error is
/// what was expected, to follow the word "expected".
#[derive(Clone, Copy)]
pub struct Checks<'a> {
    /// Names of actions; none takes any.
    pub actions: Option<&'a [&'a str]>,
    /// Whether a word is a key.
    pub key: &'a dyn Fn(&str) -> Result<(), String>,
    /// Meanings that have a colour; none takes any.
    pub meanings: Option<&'a [&'a str]>,
    /// Whether a word is a colour.
    pub colour: &'a dyn Fn(&str) -> Result<(), String>,
}

impl Default for Checks<'_> {
    fn default() -> Self {
        Self { actions: None, key: &|_| Ok(()), meanings: None, colour: &|_| Ok(()) }
    }
}

impl Config {
    /// Reads the text of a config; `file` is what mistakes are reported under.
    ///
    /// # Errors
    /// When there are mistakes in it: all of them.
    pub fn parse(text: &str, file: &Path, checks: &Checks<'_>) -> Result<Self, ConfigError> {
        let failed = |mistakes| ConfigError::Mistakes { file: file.to_owned(), mistakes };
        let (table, errors) = toml::de::DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return Err(failed(syntax(text, &errors)));
        }
        let mut reader = reader::Reader::new(text);
        let config = sections::root(&mut reader, table.get_ref(), checks);
        let mistakes = reader.finish();
        if mistakes.is_empty() { Ok(config) } else { Err(failed(mistakes)) }
    }

    /// Reads the file at `location`. One that nobody named and that is not there is the default.
    ///
    /// # Errors
    /// It cannot be read, or has mistakes.
    pub fn load(location: &Location, checks: &Checks<'_>) -> Result<Self, ConfigError> {
        let text = match std::fs::read_to_string(&location.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !location.named => {
                return Ok(Self::default());
            }
            Err(error) => {
                return Err(ConfigError::Unreadable {
                    what: "the config file",
                    path: location.path.clone(),
                    error,
                });
            }
        };
        let config = Self::parse(&text, &location.path, checks)?;
        Ok(Self { path: Some(location.path.clone()), ..config })
    }

    /// A mistake that only shows later, such as a key bound to two actions, told like any other.
    pub fn mistake(&self, at: Position, message: impl Into<String>) -> ConfigError {
        ConfigError::Mistakes {
            file: self.path.clone().unwrap_or_default(),
            mistakes: vec![Mistake { at, message: message.into() }],
        }
    }
}

/// What is not TOML at all.
fn syntax(text: &str, errors: &[toml::de::Error]) -> Vec<Mistake> {
    let mistake = |error: &toml::de::Error| Mistake {
        at: Position::of(text, error.span().map_or(0, |span| span.start)),
        message: format!("not valid TOML: {}", error.message().replace('\n', ", ")),
    };
    errors.iter().map(mistake).collect()
}
