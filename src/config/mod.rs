//! The config file, `~/.config/locktop/config.toml`. All its mistakes are reported at once, with line and column, before
//! the screen is touched.

pub mod adapter;
mod reader;
mod sections;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use locktop_base::file::of_user;

use crate::app::keymap::Binding;
use crate::feed::history::HistoryLimits;
use crate::keys::Key;
use crate::model::finding::AlertWays;
use crate::model::lock_key::LockKey;
use crate::model::thresholds::Thresholds;
use crate::redis::RedisSets;
use crate::ui::theme::{BaseTheme, Colors};
pub use adapter::{AdapterChoice, AdapterChoices};

pub const MIN_REFRESH: Duration = Duration::from_millis(100);
pub const MAX_REFRESH: Duration = Duration::from_secs(60);

/// The default config with comments, as printed by `locktop config print`.
pub const DEFAULT_TEXT: &str = include_str!("default.toml");

/// The contents of the config file, with defaults for missing settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub path: Option<PathBuf>,
    /// `refresh`: the time between two polls.
    pub refresh: Duration,
    /// `server_load`: the share of one core of the server that reading `pg_locks` may take.
    pub server_load: f64,
    /// `remember`: restore the layout of the last dashboard.
    pub remember: bool,
    /// `notify`: how a new critical finding is announced.
    pub notify: AlertWays,
    pub targets: BTreeMap<String, ConfigTarget>,
    /// `trusted_owners`: roles whose tables and functions are used.
    pub trusted_owners: Vec<String>,
    /// `[tables]`: places of tables that do not have their default name, by that name.
    pub tables: BTreeMap<&'static str, String>,
    /// `[thresholds]`, and the blockers of `[[expected]]`.
    pub thresholds: Thresholds,
    /// `[check] exclude`: sections that `locktop check` ignores if they cannot be read.
    pub check_exclude: Vec<String>,
    /// `[history]`: how much of the past is kept.
    pub history: HistoryLimits,
    pub lock_names: Vec<NamedLock>,
    pub lock_name_queries: Vec<LockNameQuery>,
    /// `[redis]`: servers whose locks are shown with the leases.
    pub redis: Redis,
    /// `[adapters]`: which other job systems to search for, and how.
    pub adapters: AdapterChoices,
    /// `[keys]`: keys of actions that replace the defaults.
    pub keys: Vec<KeyBinding>,
    pub theme: ThemeConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            path: None,
            refresh: Duration::from_secs(1),
            server_load: 0.02,
            remember: true,
            notify: AlertWays::default(),
            targets: BTreeMap::new(),
            trusted_owners: Vec::new(),
            tables: BTreeMap::new(),
            thresholds: Thresholds::default(),
            check_exclude: Vec::new(),
            history: HistoryLimits::default(),
            lock_names: Vec::new(),
            lock_name_queries: Vec::new(),
            redis: Redis::default(),
            adapters: AdapterChoices::default(),
            keys: Vec::new(),
            theme: ThemeConfig::default(),
        }
    }
}

/// A server of `[targets.NAME]`.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigTarget {
    /// A URI, key=value string or database name. It can contain a password.
    pub conninfo: String,
    /// Whether no action on this server is possible.
    pub read_only: bool,
    /// Time between two polls. `None` uses that of the file.
    pub refresh: Option<Duration>,
    /// Replaces the `trusted_owners` of the file if set.
    pub trusted_owners: Option<Vec<String>>,
    /// `[targets.NAME.redis]`: replaces `[redis]`.
    pub redis: Option<Redis>,
}

impl std::fmt::Debug for ConfigTarget {
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

/// Redis servers whose locks are shown with the leases. A Redlock lock belongs to the owner that holds it on a majority of
/// the servers of a set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redis {
    pub sets: RedisSets,
    /// Redis glob patterns of keys that are locks. Empty for `lock:*`.
    pub patterns: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLock {
    pub key: LockKey,
    pub name: String,
    /// The only database in which the name applies. `None` for all.
    pub database: Option<String>,
}

/// A query for names of advisory lock keys: one or two columns for the key, and one for the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockNameQuery {
    pub sql: String,
    /// The database to query, to which the names are limited. `None` is the connected database.
    pub database: Option<String>,
    pub at: Position,
}

/// The keys of one action, replacing the defaults.
#[derive(Debug, Clone)]
pub struct KeyBinding {
    pub action: &'static Binding,
    pub keys: Vec<(Key, Position)>,
}

impl PartialEq for KeyBinding {
    fn eq(&self, other: &Self) -> bool {
        (self.action.action, &self.keys) == (other.action.action, &other.keys)
    }
}

/// `[theme]`: the base theme, and changed colors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThemeConfig {
    pub base: BaseTheme,
    pub colours: Colors,
}

impl Config {
    /// Parses a config; mistakes are reported for `file`.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        reader::parse(text, file, sections::root)
    }

    /// Reads the file at `location`. If it does not exist and the user did not name it, returns the default.
    pub fn load(location: &Location) -> Result<Self, ConfigError> {
        let path = &location.path;
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Self { path: Some(path.clone()), ..Self::parse(&text, path)? }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !location.named => {
                Ok(Self::default())
            }
            Err(error) => Err(ConfigError::Unreadable { what: "the config file", path: path.clone(), error }),
        }
    }

    /// A mistake that is detected later, such as a key bound to two actions.
    pub fn mistake(&self, at: Position, message: impl Into<String>) -> ConfigError {
        ConfigError::Mistakes {
            file: self.path.clone().unwrap_or_default(),
            mistakes: vec![Mistake { at, message: message.into() }],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

impl Position {
    pub(crate) fn of(source: &str, offset: usize) -> Self {
        let before = source.get(..offset).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    pub at: Position,
    /// The value found and the one expected, in one line.
    pub message: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {what} {}: {error}", .path.display())]
    Unreadable { what: &'static str, path: PathBuf, error: std::io::Error },
    /// The file has mistakes. Printed as one line each, `file:line:column: message`.
    #[error("{}", lines(.file, .mistakes))]
    Mistakes {
        file: PathBuf,
        /// In the order of the file.
        mistakes: Vec<Mistake>,
    },
    /// Several files are invalid; the message has the lines of each.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<ConfigError>),
}

fn lines(file: &std::path::Path, mistakes: &[Mistake]) -> String {
    let line = |mistake: &Mistake| {
        let Mistake { at: Position { line, column }, message } = mistake;
        format!("{}:{line}:{column}: {message}", file.display())
    };
    mistakes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub path: PathBuf,
    /// Whether the user named the file, so that it must exist.
    pub named: bool,
}

/// The file of `--config`, otherwise of `LOCKTOP_CONFIG`, otherwise `locktop/config.toml` in `XDG_CONFIG_HOME` or
/// `~/.config`. `None` if there is no home directory either.
pub fn locate(flag: Option<PathBuf>, env: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
    let named = flag.or_else(|| env("LOCKTOP_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    if let Some(path) = named {
        return Some(Location { path, named: true });
    }
    let path = of_user("XDG_CONFIG_HOME", ".config", env)?.join("locktop/config.toml");
    Some(Location { path, named: false })
}
