//! Converts settings of the config into the types of other modules: theme, keys, lock names, limits, Redis.

use super::super::settings::Settings;
use super::{Failure, env};
use crate::app::keymap::{BINDINGS, KeyMap, KeyMapError};
use crate::config::{Checks, Config, ConfigError, LockNameQuery, Position};
use crate::feed::learn::{Learner, Query};
use crate::keys::Key;
use crate::model::lock_name::LockNames;
use crate::pg::poll::Limits;
use crate::pg::sources::Places;
use crate::redis::{RedisOptions, RedisSets};
use crate::ui::theme::{Base, Depth, Theme};
use pg_connect::conninfo::ConnInfo;

const MEANINGS: [&str; 9] =
    ["plain", "title", "dim", "critical", "warning", "good", "key", "past", "selected"];

pub(super) struct Names {
    pub(super) actions: Vec<&'static str>,
    pub(super) meanings: Vec<&'static str>,
}

pub(super) fn checks() -> Names {
    Names { actions: BINDINGS.iter().map(|binding| binding.name).collect(), meanings: MEANINGS.to_vec() }
}

pub(super) fn parsers() -> Checks<'static> {
    Checks {
        actions: None,
        meanings: None,
        key: &|text| {
            Key::parse(text).map(drop).map_err(|_| {
                "one character (K), a name (esc, enter, space, pgup, f1), or either after ctrl- or alt-"
                    .to_owned()
            })
        },
        colour: &|text| {
            Theme::new(Base::Dark, Depth::Rgb, false)
                .with_colors(&[("plain".to_owned(), text.to_owned())], Depth::Rgb)
                .map(drop)
                .map_err(|_| "a name (red, light-blue), a number (0 to 255) or #rrggbb".to_owned())
        },
    }
}

/// The key map with the changes from the config.
///
/// # Errors
/// One key is bound to two actions; reported at the key of the second.
pub(super) fn keymap(config: &Config) -> Result<KeyMap, ConfigError> {
    let changes: Vec<(String, Vec<String>)> = config
        .keys
        .iter()
        .map(|binding| (binding.action.clone(), binding.keys.iter().map(|(key, _)| key.clone()).collect()))
        .collect();
    KeyMap::with(&changes)
        .map_err(|error| config.mistake(place(config, &error).unwrap_or(START), error.to_string()))
}

/// Notes about keys that a change has taken from actions the config does not name.
pub(super) fn taken_keys(config: &Config, keymap: &KeyMap) -> Vec<String> {
    let is_named = |name: &str| config.keys.iter().any(|binding| binding.action == name);
    let taken = keymap.taken().filter(|(before, ..)| !is_named(before.name));
    taken
        .map(|(before, key, now)| {
            let keys: Vec<String> = keymap.keys(before.action).iter().map(ToString::to_string).collect();
            let left = if keys.is_empty() { "no key".to_owned() } else { keys.join(" ") };
            let now =
                BINDINGS.iter().find(|binding| binding.action == now).map_or("", |binding| binding.name);
            format!("note: {key} is {now} now; {} has {left}", before.name)
        })
        .collect()
}

const START: Position = Position { line: 1, column: 1 };

fn place(config: &Config, error: &KeyMapError) -> Option<Position> {
    let action = |name: &str| config.keys.iter().find(|binding| binding.action == name);
    match error {
        KeyMapError::UnknownAction(name) => action(name).map(|binding| binding.at),
        KeyMapError::Twice { key, second, .. } => {
            let binding = action(second)?;
            let same = |text: &str| Key::parse(text).is_ok_and(|parsed| parsed.to_string() == *key);
            let at = binding.keys.iter().find(|(text, _)| same(text)).map(|(_, at)| *at);
            Some(at.unwrap_or(binding.at))
        }
        // Single keys are checked with the rest of the config.
        KeyMapError::Key(_) => None,
    }
}

pub(super) fn theme(settings: &Settings) -> Result<Theme, Failure> {
    let depth = Depth::detect(env);
    let base = Base::parse(&settings.theme.base).unwrap_or_default();
    let colors: Vec<(String, String)> =
        settings.theme.colours.iter().map(|color| (color.meaning.clone(), color.colour.clone())).collect();
    Theme::new(base, depth, is_ascii(settings)).with_colors(&colors, depth).map_err(|error| {
        match settings.theme.colours.last() {
            Some(color) => settings.config.mistake(color.at, error.to_string()).into(),
            None => Failure::Other(error.to_string()),
        }
    })
}

/// Whether to write only ASCII: on request, or if the locale is not UTF-8.
pub(super) fn is_ascii(settings: &Settings) -> bool {
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

pub(super) fn learner(settings: &Settings, info: &ConnInfo) -> Learner {
    let file = settings.config.path.as_deref().and_then(|path| path.file_name()).unwrap_or_default();
    let query = |query: &LockNameQuery| Query {
        sql: query.sql.clone(),
        database: query.database.clone(),
        place: format!("{}:{}:{}", file.to_string_lossy(), query.at.line, query.at.column),
    };
    let queries = settings.config.lock_name_queries.iter().map(query).collect();
    let limits = Limits { trusted_owners: settings.trusted_owners.clone(), ..Limits::default() };
    Learner::new(info.clone(), limits, lock_names(settings), queries)
}

/// Names of advisory lock keys: those of the config, then those of well-known software.
pub(super) fn lock_names(settings: &Settings) -> LockNames {
    let (everywhere, somewhere): (Vec<_>, Vec<_>) =
        settings.config.lock_names.iter().partition(|named| named.database.is_none());
    let mut names =
        LockNames::new(everywhere.into_iter().map(|named| (named.key, named.name.as_str().into())));
    for named in somewhere {
        if let Some(database) = &named.database {
            names = names.with_database(database.as_str().into(), [(named.key, named.name.as_str().into())]);
        }
    }
    names
}

pub(super) fn limits(settings: &Settings) -> Limits {
    let (trusted_owners, tables) = (settings.trusted_owners.clone(), Places(settings.config.tables.clone()));
    let adapters = settings.adapters.clone().into();
    Limits { trusted_owners, tables, adapters, ..Limits::default() }
}

pub(super) fn redis(settings: &Settings) -> Option<(RedisSets, RedisOptions)> {
    let servers = settings.redis.sets.clone();
    let default = RedisOptions::default();
    let named = settings.redis.patterns.clone();
    let patterns = if named.is_empty() { default.patterns } else { named };
    (!servers.is_empty()).then_some((servers, RedisOptions { patterns, ..default }))
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
    fn two_actions_on_one_key_are_told_at_the_second() {
        let check = |text: &str| {
            let names = checks();
            let all = Checks { actions: Some(&names.actions), meanings: Some(&names.meanings), ..parsers() };
            let config = Config::parse(text, std::path::Path::new("c.toml"), &all).unwrap();
            keymap(&config).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(check("[keys]\nquit = \"x\"\nzoom = \"Z\"\n"), Ok(()));
        let error = check("[keys]\nquit = \"x\"\nzoom = [\"Z\", \"x\"]\npause = \"P\"\n").unwrap_err();
        assert!(error.contains(":3:14: the key x is bound to both quit and zoom"), "{error}");
    }

    #[test]
    fn every_meaning_is_one_of_the_theme() {
        for meaning in MEANINGS {
            let colors = [(meaning.to_owned(), "red".to_owned())];
            assert!(
                Theme::new(Base::Dark, Depth::Rgb, false).with_colors(&colors, Depth::Rgb).is_ok(),
                "{meaning}"
            );
        }
    }
}
