//! Converts settings of the config into the types of other modules: theme, keys, lock names, limits, Redis, the executor
//! of actions and its record.

use super::super::settings::CliSettings;
use super::env;
use crate::action::audit::{self, AuditLog, ServerName, Unfinished};
use crate::action::{self, Actor};
use crate::app::keymap::{KeyMap, binding};
use crate::clock;
use crate::config::{Config, ConfigError, KeyBinding, LockNameQuery, NamedLock};
use crate::feed::EventSender;
use crate::feed::learn::{Learner, NameQuery};
use crate::model::event::{EventKind, ExternalEvent};
use crate::model::finding::Severity;
use crate::model::lock_name::LockNames;
use crate::model::view::TargetId;
use crate::pg::jobs::sources::TableLocations;
use crate::pg::poll::PollLimits;
use crate::pg::trust::TrustedOwners;
use crate::redis::{RedisOptions, RedisSets};
use crate::text::one_line;
use crate::ui::theme::{ColorDepth, Theme};
use pg_connect::conninfo::ConnInfo;

/// The key map with the changes from the config. A key that two actions have is a mistake at the second.
pub(super) fn keymap(config: &Config) -> Result<KeyMap, ConfigError> {
    let keys = |binding: &KeyBinding| binding.keys.iter().map(|(key, _)| *key).collect();
    KeyMap::with(config.keys.iter().map(|binding| (binding.action, keys(binding)))).map_err(|twice| {
        let second = config.keys.iter().find(|binding| binding.action.name == twice.second.name);
        let mut keys = second.into_iter().flat_map(|binding| &binding.keys);
        let at = keys.find(|(key, _)| *key == twice.key).map(|(_, at)| *at);
        config.mistake(at.unwrap_or_default(), twice.to_string())
    })
}

/// Notes about keys that a change has taken from actions the config does not name.
pub(super) fn taken_keys(config: &Config, keymap: &KeyMap) -> Vec<String> {
    let is_named = |name: &str| config.keys.iter().any(|binding| binding.action.name == name);
    let taken = keymap.taken().filter(|(before, ..)| !is_named(before.name));
    taken
        .map(|(before, key, now)| {
            let keys: Vec<String> = keymap.keys(before.action).iter().map(ToString::to_string).collect();
            let left = if keys.is_empty() { "no key".to_owned() } else { keys.join(" ") };
            let now = binding(now).map_or("", |binding| binding.name);
            format!("note: {key} is {now} now; {} has {left}", before.name)
        })
        .collect()
}

pub(super) fn theme(settings: &CliSettings) -> Theme {
    let depth = ColorDepth::detect(env);
    Theme::new(settings.theme.base, depth, is_ascii(settings)).with_colors(&settings.theme.colours, depth)
}

/// Whether to write only ASCII: on request, or if the locale is not UTF-8.
pub(super) fn is_ascii(settings: &CliSettings) -> bool {
    settings.ascii || !is_utf8(&env)
}

/// The locale of a category, such as `LC_CTYPE`, in lower case: the first of these variables that is set decides (POSIX,
/// 8.2).
pub(super) fn locale(category: &str, env: &dyn Fn(&str) -> Option<String>) -> String {
    let set = |name: &&str| env(name).filter(|value| !value.is_empty());
    ["LC_ALL", category, "LANG"].iter().find_map(set).unwrap_or_default().to_ascii_lowercase()
}

fn is_utf8(env: &dyn Fn(&str) -> Option<String>) -> bool {
    let locale = locale("LC_CTYPE", env);
    locale.contains("utf-8") || locale.contains("utf8")
}

pub(super) fn learner(settings: &CliSettings, info: &ConnInfo) -> Learner {
    let file = settings.config.path.as_deref().and_then(|path| path.file_name()).unwrap_or_default();
    let query = |query: &LockNameQuery| NameQuery {
        sql: query.sql.clone(),
        database: query.database.clone(),
        place: format!("{}:{}:{}", file.to_string_lossy(), query.at.line, query.at.column),
    };
    let queries = settings.config.lock_name_queries.iter().map(query).collect();
    let limits = PollLimits { trusted_owners: settings.trusted_owners.clone(), ..PollLimits::default() };
    Learner::new(info.clone(), limits, lock_names(settings), queries)
}

/// Names of advisory lock keys: those of the config, then those of well-known software.
pub(super) fn lock_names(settings: &CliSettings) -> LockNames {
    let (everywhere, somewhere): (Vec<_>, Vec<_>) =
        settings.config.lock_names.iter().partition(|named| named.database.is_none());
    let pair = |named: &NamedLock| (named.key, named.name.as_str().into());
    let names = LockNames::new(everywhere.into_iter().map(pair));
    somewhere.into_iter().fold(names, |names, named| {
        names.with_database(named.database.as_deref().unwrap_or_default().into(), [pair(named)])
    })
}

pub(super) fn limits(settings: &CliSettings) -> PollLimits {
    let (trusted_owners, tables) =
        (settings.trusted_owners.clone(), TableLocations(settings.config.tables.clone()));
    let adapters = settings.adapters.clone().into();
    PollLimits { trusted_owners, tables, adapters, ..PollLimits::default() }
}

pub(super) fn redis(settings: &CliSettings) -> Option<(RedisSets, RedisOptions)> {
    let servers = settings.redis.sets.clone();
    let default = RedisOptions::default();
    let named = settings.redis.patterns.clone();
    let patterns = if named.is_empty() { default.patterns } else { named };
    (!servers.is_empty()).then_some((servers, RedisOptions { patterns, ..default }))
}

pub(super) fn executor(settings: &CliSettings, info: &ConnInfo) -> action::ExecutorSettings {
    action::ExecutorSettings {
        server: TargetId::default(),
        actor: actor(info),
        offset: clock::offset(),
        redis: settings.redis.sets.servers().cloned().collect(),
        trusted_owners: settings.trusted_owners.clone(),
    }
}

/// The record of actions, which nothing opens before its first use.
pub(super) fn audit_log(info: &ConnInfo, actor: Actor, trusted_owners: TrustedOwners) -> AuditLog {
    let mut log = AuditLog::new(audit::directory(&env), actor, ServerName::of(info));
    log.trusted_owners = trusted_owners;
    log
}

pub(super) fn actor(info: &ConnInfo) -> Actor {
    Actor::of_process("locktop", info.user())
}

/// Reports actions that an earlier process requested but whose result it did not record, and whether the audit log cannot
/// be written.
pub(super) async fn report_unfinished(info: ConnInfo, event_sender: EventSender) {
    match audit_log(&info, actor(&info), TrustedOwners::default()).unfinished().await {
        Ok(lost) => lost.iter().for_each(|lost| event_sender.send(of_lost(lost))),
        Err(error) => event_sender.send(warning(&error.to_string())),
    }
}

fn of_lost(lost: &Unfinished) -> ExternalEvent {
    let at = lost.at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let verb = lost.verb.replace('_', " ");
    warning(&format!("{verb} {} outcome unknown: asked at {at} by a locktop that has exited", lost.name))
}

fn warning(text: &str) -> ExternalEvent {
    let text = one_line(text).into_owned();
    ExternalEvent { kind: EventKind::ActionResult, severity: Severity::Warning, text, subject: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides_about_utf8() {
        for (variables, expected) in [
            (vec![("LANG", "en_US.UTF-8")], true),
            (vec![("LANG", "C.utf8")], true),
            (vec![("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], false),
            (vec![("LC_ALL", ""), ("LANG", "en_US.UTF-8")], true),
            (vec![("LC_CTYPE", "de_DE.UTF-8"), ("LANG", "C")], true),
            (vec![], false),
        ] {
            let env = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(is_utf8(&env), expected, "{variables:?}");
        }
    }

    #[test]
    fn two_actions_bound_to_one_key_are_reported_at_the_second() {
        let check = |text: &str| {
            let config = Config::parse(text, std::path::Path::new("c.toml")).unwrap();
            keymap(&config).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(check("[keys]\nquit = \"x\"\nzoom = \"Z\"\n"), Ok(()));
        let error = check("[keys]\nquit = \"x\"\nzoom = [\"Z\", \"x\"]\npause = \"P\"\n").unwrap_err();
        assert!(error.contains(":3:14: the key x is bound to both quit and zoom"), "{error}");
    }
}
