//! What follows from the command line, the config file and the environment together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::args::{Cli, Command, Screen, ViewArgs};
use super::password::Prompt;
use crate::config::adapter::adapters;
use crate::config::{
    Checks, Config, ConfigError, Location, LockNameQuery, NamedLock, Redis, Target, Theme, locate,
};
use crate::model::adapter::Adapter;
use crate::model::thresholds::Thresholds;
use crate::pg::trust::TrustedOwners;
use crate::redis::{RedisSets, parse_list};
use pg_connect::conninfo::{ConnInfo, Flags, Sources, has_password, is_connection_string, is_nearly};
use pg_connect::error::ConnInfoError;

/// What the settings depend on beside the command line.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Looks up an environment variable; none where it is not set or no text.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// What the config's keys and colours are checked against.
    pub checks: Checks<'a>,
}

/// Everything the dashboard and the snapshot need to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to connect; none for a demo on its own server.
    pub conninfo: Option<ConnInfo>,
    /// Whether to ask for a password.
    pub prompt: Prompt,
    /// Name of the target in the config, if it was named so.
    pub target: Option<String>,
    /// Time between two polls, as asked for.
    pub refresh: Duration,
    /// Whether everything that acts on the server is left out.
    pub read_only: bool,
    /// The screen to start on, where one is named.
    pub screen: Option<Screen>,
    /// The theme of the config or of `--theme`, with the config's own colours.
    pub theme: Theme,
    /// Whether to draw with ASCII alone, whatever the locale.
    pub ascii: bool,
    /// Whether to use the mouse from the start.
    pub mouse: bool,
    /// From when on something is a finding.
    pub thresholds: Thresholds,
    /// `[[lock_names]]`: names for advisory locks.
    pub lock_names: Vec<NamedLock>,
    /// `[[lock_name_queries]]`: queries for more of them.
    pub lock_name_queries: Vec<LockNameQuery>,
    /// Whose tables and functions are used, beside those of superusers and of the role that is connected.
    pub trusted_owners: TrustedOwners,
    /// `[tables]`: where tables are that are not found by their usual names.
    pub tables: BTreeMap<&'static str, String>,
    /// The job systems of others that are looked for.
    pub adapters: Vec<Arc<Adapter>>,
    /// The Redis servers to look at; none for none.
    pub redis: Redis,
    /// The config as it was read, for mistakes that only show later.
    pub config: Config,
}

/// Why there are no settings to go on with.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The config file cannot be read, or has mistakes in it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The connection string, the flags or the environment.
    #[error(transparent)]
    ConnInfo(#[from] ConnInfoError),
    /// Flags that do not go together.
    #[error("{0}")]
    Usage(String),
}

impl SettingsError {
    /// 1 for a bad config file, 2 for wrong usage.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Config(_) => 1,
            Self::ConnInfo(_) | Self::Usage(_) => 2,
        }
    }
}

impl Cli {
    /// The config file.
    ///
    /// # Errors
    /// When none is named and there is no home directory.
    pub fn config_location(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Location, SettingsError> {
        locate(self.config.clone(), env).ok_or_else(|| {
            SettingsError::Usage("no home directory and no config file: name one with --config".to_owned())
        })
    }

    /// Reads the config file and puts everything together.
    ///
    /// # Errors
    /// When the config has mistakes in it, or the target, the flags or the environment cannot be followed.
    pub fn settings(&self, context: &Context<'_>) -> Result<Settings, SettingsError> {
        let location = locate(self.config.clone(), context.env);
        let config = match &location {
            Some(location) => Config::load(location, &context.checks)?,
            None => Config::default(),
        };
        let adapters = adapters(&config.adapters, location.as_ref().map(|location| &*location.path))?;
        let (target, named) = self.target(&config)?;
        let conninfo = match &self.command {
            Some(Command::Demo(demo)) if demo.url.is_none() => None,
            Some(Command::Replay(_)) => None,
            _ => Some(self.conninfo(target, named, context)?),
        };
        let view = self.view();
        Ok(Settings {
            conninfo,
            prompt: self.prompt(),
            target: named.and(target.map(str::to_owned)),
            refresh: view.refresh.or(named.and_then(|named| named.refresh)).unwrap_or(config.refresh),
            read_only: view.read_only || named.is_some_and(|named| named.read_only),
            screen: view.screen,
            theme: match view.theme {
                Some(theme) => Theme { base: theme.as_str().to_owned(), ..config.theme.clone() },
                None => config.theme.clone(),
            },
            ascii: view.ascii,
            mouse: view.mouse,
            thresholds: config.thresholds.clone(),
            lock_names: config.lock_names.clone(),
            lock_name_queries: config.lock_name_queries.clone(),
            trusted_owners: self.trusted_owners(named, &config),
            tables: config.tables.clone(),
            adapters,
            redis: self.redis(named.and_then(|named| named.redis.as_ref()).unwrap_or(&config.redis))?,
            config,
        })
    }

    /// Whether the command line says where to connect; else the environment does.
    pub fn names_server(&self) -> bool {
        let flags = &self.connect;
        let own = match &self.command {
            Some(Command::Adapters(adapters)) => adapters.target(),
            Some(Command::LockOf(lock_of)) => lock_of.target.as_deref(),
            _ => None,
        };
        own.is_some()
            || [&self.target, &flags.host, &flags.port, &flags.username, &flags.dbname]
                .into_iter()
                .any(Option::is_some)
    }

    /// Whether a password stands on the command line, where others see it. Those of the config's targets do not.
    pub fn shows_password(&self, config: &Config) -> bool {
        let target = self.target(config).ok().and_then(|(target, named)| target.filter(|_| named.is_none()));
        [target, self.connect.dbname.as_deref()].into_iter().flatten().any(has_password)
    }

    /// The target as given, and what the config says of it if it is a name from there.
    fn target<'a>(
        &'a self,
        config: &'a Config,
    ) -> Result<(Option<&'a str>, Option<&'a Target>), SettingsError> {
        let own = match &self.command {
            Some(Command::Demo(demo)) => demo.url.as_deref(),
            Some(Command::Snapshot(snapshot)) => snapshot.target.as_deref(),
            Some(Command::Record(record)) => record.target.as_deref(),
            Some(Command::Check(check)) => check.target.as_deref(),
            Some(Command::LockOf(lock_of)) => lock_of.target.as_deref(),
            Some(Command::Recover(recover)) => recover.target.as_deref(),
            Some(Command::Worker(worker)) => worker.target.as_deref(),
            Some(Command::Adapters(adapters)) => adapters.target(),
            Some(Command::Schema(schema)) => schema.place().and_then(|place| place.target.as_deref()),
            _ => None,
        };
        let target = match (self.target.as_deref(), own) {
            (Some(first), Some(second)) => {
                return Err(SettingsError::Usage(format!(
                    "two targets, \"{}\" and \"{}\": give one",
                    shown(first),
                    shown(second)
                )));
            }
            (first, second) => first.or(second),
        };
        let flags = &self.connect;
        let own_server = matches!(&self.command, Some(Command::Demo(demo)) if demo.url.is_none());
        let place =
            [&flags.host, &flags.port, &flags.username, &flags.dbname].into_iter().any(Option::is_some);
        if own_server && (target.is_some() || place) {
            return Err(SettingsError::Usage(
                "demo starts its own server: use --url to name another".to_owned(),
            ));
        }
        let named =
            target.filter(|target| !is_connection_string(target)).and_then(|name| config.targets.get(name));
        if let (Some(target), Some(dbname), None) = (target, &flags.dbname, named)
            && !is_connection_string(target)
        {
            return Err(SettingsError::Usage(format!(
                "two databases, \"{target}\" and -d \"{}\": give one (the config has no target \"{target}\")",
                shown(dbname)
            )));
        }
        if let (Some(word), None, None, None) = (self.target.as_deref(), &self.command, named, &flags.dbname)
            && let Some(meant) = meant(word)
        {
            return Err(SettingsError::Usage(format!(
                "no command \"{word}\": did you mean {meant}? (-d {word} is the database of that name)"
            )));
        }
        Ok((target, named))
    }

    fn conninfo(
        &self,
        target: Option<&str>,
        named: Option<&Target>,
        context: &Context<'_>,
    ) -> Result<ConnInfo, ConnInfoError> {
        let flags = Flags {
            host: self.connect.host.clone(),
            port: self.connect.port.clone(),
            user: self.connect.username.clone(),
            dbname: self.connect.dbname.clone(),
        };
        let text = named.map(|named| named.conninfo.as_str()).or(target);
        let sources =
            Sources { env: context.env, flags_first: named.is_some(), ..Sources::of_process(text, flags) };
        ConnInfo::resolve(&sources)
    }

    /// The Redis servers of the command line, or else of the config. Those that are named one by one are a set, and each list
    /// with commas is one of its own. A URL that is wrong is not repeated.
    fn redis(&self, config: &Redis) -> Result<Redis, SettingsError> {
        let flags = &self.connect;
        let (mut single, mut sets) = (Vec::new(), Vec::new());
        for text in &flags.redis {
            let list = parse_list(text).map_err(|error| SettingsError::Usage(format!("--redis: {error}")))?;
            if list.len() == 1 { single.extend(list) } else { sets.push(list) }
        }
        let mut servers = RedisSets::default();
        for set in std::iter::once(single).chain(sets) {
            let twice = |url| SettingsError::Usage(format!("--redis: {url} is named twice"));
            servers.add(set).map_err(twice)?;
        }
        if servers.is_empty() {
            servers.clone_from(&config.sets);
        }
        let of_flags = !flags.redis_pattern.is_empty();
        let patterns = if of_flags { &flags.redis_pattern } else { &config.patterns }.clone();
        if servers.is_empty() && of_flags {
            return Err(SettingsError::Usage("--redis-pattern needs a server: add --redis URL".to_owned()));
        }
        Ok(Redis { sets: servers, patterns })
    }

    /// Those of the command line, and of the target or else of the whole file.
    fn trusted_owners(&self, named: Option<&Target>, config: &Config) -> TrustedOwners {
        let of_file = named.and_then(|named| named.trusted_owners.as_ref()).unwrap_or(&config.trusted_owners);
        self.connect.trust_owner.iter().chain(of_file).cloned().collect()
    }

    fn prompt(&self) -> Prompt {
        match (self.connect.no_password, self.connect.password) {
            (true, _) => Prompt::Never,
            (false, true) => Prompt::Always,
            (false, false) => Prompt::IfNeeded,
        }
    }

    /// The dashboard's options, before or after `demo`.
    fn view(&self) -> ViewArgs {
        let outer = self.view.clone();
        let inner = match &self.command {
            Some(Command::Demo(demo)) => demo.view.clone(),
            Some(Command::Replay(replay)) => ViewArgs { read_only: true, ..replay.view.clone() },
            _ => return outer,
        };
        ViewArgs {
            refresh: inner.refresh.or(outer.refresh),
            screen: inner.screen.or(outer.screen),
            theme: inner.theme.or(outer.theme),
            ascii: inner.ascii || outer.ascii,
            mouse: inner.mouse || outer.mouse,
            read_only: inner.read_only || outer.read_only,
        }
    }
}

/// The command that somebody meant who wrote a word that may be a database's name.
pub(super) fn meant(word: &str) -> Option<String> {
    let command = super::command::command();
    let mut commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    commands.find(|command| is_nearly(word, command.get_name())).map(|command| command.get_name().to_owned())
}

/// A target in an error: a connection string may hold a password.
fn shown(target: &str) -> &str {
    if is_connection_string(target) { "…" } else { target }
}
