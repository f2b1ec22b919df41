use std::sync::Arc;
use std::time::Duration;

use super::args::{Cli, CliCommand, Screen, ViewArgs};
use super::password::PasswordPrompt;
use crate::config::adapter::adapters;
use crate::config::{Config, ConfigError, ConfigTarget, Location, Redis, ThemeConfig, locate};
use crate::model::adapter::Adapter;
use crate::pg::trust::TrustedOwners;
use crate::redis::{RedisSets, parse_list};
use pg_connect::conninfo::{ConnInfo, Flags, Sources, has_password, is_connection_string, is_nearly};
use pg_connect::error::ConnInfoError;

/// Returns an environment variable; `None` if it is not set or not valid text.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

#[derive(Debug, Clone)]
pub struct CliSettings {
    /// `None` for a demo on its own server.
    pub conninfo: Option<ConnInfo>,
    pub prompt: PasswordPrompt,
    /// Name of the target in the config, if one was used.
    pub target: Option<String>,
    pub refresh: Duration,
    /// Whether no action on the server is possible.
    pub read_only: bool,
    pub screen: Option<Screen>,
    pub theme: ThemeConfig,
    pub ascii: bool,
    pub mouse: bool,
    /// Roles whose tables and functions are used, in addition to those of superusers and of the connected role.
    pub trusted_owners: TrustedOwners,
    pub adapters: Vec<Arc<Adapter>>,
    pub redis: Redis,
    /// The config as read; a demo adds to it.
    pub config: Config,
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    ConnInfo(#[from] ConnInfoError),
    #[error("{0}")]
    Usage(String),
}

impl SettingsError {
    /// 1 for an invalid config file, 2 for invalid usage.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Config(_) => 1,
            Self::ConnInfo(_) | Self::Usage(_) => 2,
        }
    }
}

impl Cli {
    pub fn config_location(&self, env: Env<'_>) -> Result<Location, SettingsError> {
        locate(self.config.clone(), env).ok_or_else(|| {
            SettingsError::Usage("no home directory and no config file: name one with --config".to_owned())
        })
    }

    pub fn settings(&self, env: Env<'_>) -> Result<CliSettings, SettingsError> {
        let location = locate(self.config.clone(), env);
        let config = location.as_ref().map(Config::load).transpose()?.unwrap_or_default();
        let adapters = adapters(&config.adapters, location.as_ref().map(|location| &*location.path))?;
        let (target, named) = self.target(&config)?;
        let conninfo = match &self.command {
            _ if self.has_own_server() => None,
            Some(CliCommand::Replay(_)) => None,
            _ => Some(self.conninfo(target, named, env)?),
        };
        let view = self.view();
        Ok(CliSettings {
            conninfo,
            prompt: self.prompt(),
            target: named.and(target.map(str::to_owned)),
            refresh: view.refresh.or(named.and_then(|named| named.refresh)).unwrap_or(config.refresh),
            read_only: view.read_only || named.is_some_and(|named| named.read_only),
            screen: view.screen,
            theme: ThemeConfig { base: view.theme.unwrap_or(config.theme.base), ..config.theme.clone() },
            ascii: view.ascii,
            mouse: view.mouse,
            trusted_owners: self.trusted_owners(named, &config),
            adapters,
            redis: self.redis(named.and_then(|named| named.redis.as_ref()).unwrap_or(&config.redis))?,
            config,
        })
    }

    /// Whether the command line names a server; otherwise the environment does.
    pub fn names_server(&self) -> bool {
        self.target.is_some() || self.own_target().is_some() || self.has_place()
    }

    fn has_place(&self) -> bool {
        let flags = &self.connect;
        [&flags.host, &flags.port, &flags.username, &flags.dbname].into_iter().any(Option::is_some)
    }

    /// The target that was given after the command.
    fn own_target(&self) -> Option<&str> {
        self.command.as_ref()?.own().0
    }

    /// Whether the command line contains a password, which is visible to other users. Passwords of targets in the config are
    /// not.
    pub fn shows_password(&self, config: &Config) -> bool {
        let target = self.target(config).ok().and_then(|(target, named)| target.filter(|_| named.is_none()));
        [target, self.connect.dbname.as_deref()].into_iter().flatten().any(has_password)
    }

    /// The target as given, and its config entry if it is a name from there.
    fn target<'a>(
        &'a self,
        config: &'a Config,
    ) -> Result<(Option<&'a str>, Option<&'a ConfigTarget>), SettingsError> {
        let target = match (self.target.as_deref(), self.own_target()) {
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
        if self.has_own_server() && (target.is_some() || self.has_place()) {
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
        named: Option<&ConfigTarget>,
        env: Env<'_>,
    ) -> Result<ConnInfo, ConnInfoError> {
        let flags = Flags {
            host: self.connect.host.clone(),
            port: self.connect.port.clone(),
            user: self.connect.username.clone(),
            dbname: self.connect.dbname.clone(),
        };
        let text = named.map(|named| named.conninfo.as_str()).or(target);
        let sources = Sources { env, flags_first: named.is_some(), ..Sources::of_process(text, flags) };
        ConnInfo::resolve(&sources)
    }

    /// The Redis servers of the command line, otherwise of the config. Servers given one by one form a set; each list separated
    /// by commas is a set of its own. An invalid URL is not repeated in the error.
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

    /// The roles of the command line, plus those of the target or else of the whole config.
    fn trusted_owners(&self, named: Option<&ConfigTarget>, config: &Config) -> TrustedOwners {
        let of_file = named.and_then(|named| named.trusted_owners.as_ref()).unwrap_or(&config.trusted_owners);
        self.connect.trust_owner.iter().chain(of_file).cloned().collect()
    }

    fn prompt(&self) -> PasswordPrompt {
        match (self.connect.no_password, self.connect.password) {
            (true, _) => PasswordPrompt::Never,
            (false, true) => PasswordPrompt::Always,
            (false, false) => PasswordPrompt::IfNeeded,
        }
    }

    /// A demo without `--url`.
    fn has_own_server(&self) -> bool {
        match &self.command {
            #[cfg(feature = "demo")]
            Some(CliCommand::Demo(demo)) => demo.url.is_none(),
            _ => false,
        }
    }

    /// The dashboard options, which can be given before or after `demo`.
    fn view(&self) -> ViewArgs {
        let outer = self.view.clone();
        let inner = match &self.command {
            #[cfg(feature = "demo")]
            Some(CliCommand::Demo(demo)) => demo.view.clone(),
            Some(CliCommand::Replay(replay)) => ViewArgs { read_only: true, ..replay.view.clone() },
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

/// The command that a mistyped word, parsed as a database name, was probably meant to be.
pub(super) fn meant(word: &str) -> Option<String> {
    let command = super::command::command();
    let mut commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    commands.find(|command| is_nearly(word, command.get_name())).map(|command| command.get_name().to_owned())
}

/// The target for an error message. A connection string can contain a password, so it is not shown.
fn shown(target: &str) -> &str {
    if is_connection_string(target) { "…" } else { target }
}
