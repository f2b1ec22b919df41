use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::reader::{ConfigReader, TomlValue, duration, get, integer, number, text};
use super::{
    Config, ConfigTarget, KeyBinding, LockNameQuery, MAX_REFRESH, MIN_REFRESH, NamedLock, adapter,
    tables as own,
};
use crate::app::keymap::BINDINGS;
use crate::app::line::Tone;
use crate::keys::Key;
use crate::model::finding::AlertWays;
use crate::model::lock_key::LockKey;
use crate::model::thresholds::{Limit, Thresholds};
use crate::order::SortExt;
use crate::ui::theme::BaseTheme;
use clap::ValueEnum;
use pg_connect::conninfo::{ConnInfo, Flags, Sources, is_connection_string};
use pg_connect::error::ConnInfoError;
use strum::VariantNames;

type ReadEntry = fn(&mut ConfigReader<'_>, TomlValue<'_, '_>, &mut Config);

/// The keys of the file, and how each is read.
const SECTIONS: [(&str, ReadEntry); 17] = [
    ("refresh", |r, value, c| c.refresh = refresh(r, value).unwrap_or(c.refresh)),
    ("server_load", |r, value, c| c.server_load = server_load(r, value).unwrap_or(c.server_load)),
    ("remember", |r, value, c| c.remember = r.boolean("remember", value).unwrap_or(c.remember)),
    ("notify", |r, value, c| c.notify = notify(r, value)),
    ("trusted_owners", |r, value, c| c.trusted_owners = owners(r, value).unwrap_or_default()),
    ("targets", targets),
    ("tables", tables),
    ("thresholds", |r, value, c| thresholds(r, value, &mut c.thresholds)),
    ("history", |r, value, c| c.history = own::history(r, value)),
    ("check", check),
    ("lock_names", lock_names),
    ("lock_name_queries", lock_name_queries),
    ("expected", |r, value, c| c.thresholds.expected = own::blockers(r, value)),
    ("redis", |r, value, c| c.redis = own::redis(r, "redis", value).unwrap_or_default()),
    ("adapters", |r, value, c| c.adapters = adapter::choices(r, value)),
    ("keys", keys),
    ("theme", theme),
];
const TABLES: [&str; 6] =
    ["scheduled_tasks", "task_execution_log", "task_queue", "distlock", "rate_limit", "id_generator"];
/// Settings of `[tables]` that give the advisory lock key of a row.
const KEYS: [&str; 2] = ["task_key", "queue_key"];

pub(super) fn root(reader: &mut ConfigReader<'_>, table: &DeTable<'_>) -> Config {
    reader.only(table, "", &SECTIONS.map(|(name, _)| name));
    let mut config = Config::default();
    for (key, value) in table {
        let section = SECTIONS.iter().find(|(name, _)| *name == key.get_ref().as_ref());
        if let Some((_, read)) = section {
            read(reader, value, &mut config);
        }
    }
    config
}

fn refresh(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> Option<Duration> {
    let expected = "a duration from \"0.1s\" to \"60s\", such as \"1s\"";
    let read =
        |value: &DeValue<'_>| duration(value).filter(|found| (MIN_REFRESH..=MAX_REFRESH).contains(found));
    reader.read("refresh", value, expected, read)
}

fn server_load(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> Option<f64> {
    let expected = "a share of one core above 0 and up to 1, such as 0.02";
    reader.read("server_load", value, expected, |value| {
        number(value).filter(|share| *share > 0.0 && *share <= 1.0)
    })
}

fn notify(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> AlertWays {
    const EXPECTED: &str = "a list of \"bell\", \"title\", \"osc9\", \"osc777\", such as [\"bell\"]";
    let known = ["bell", "title", "osc9", "osc777"];
    let read = |value: &DeValue<'_>| known.into_iter().find(|way| value.as_str() == Some(way));
    let found = reader.list("notify", value, EXPECTED, read).unwrap_or_default();
    let [bell, title, osc9, osc777] = known.map(|way| found.contains(&way));
    AlertWays { bell, title, osc9, osc777 }
}

/// Role names, spelled as in the catalog.
fn owners(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> Option<Vec<String>> {
    let expected = "a list of roles, such as [\"app\"]";
    reader.list("trusted_owners", value, expected, |item| text(item).map(str::to_owned))
}

fn check(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>, config: &mut Config) {
    let expected = "a list of sections, such as [\"rate_limits\", \"adapters River\"]";
    let Some(table) = reader.section("check", value, &["exclude"]) else { return };
    let Some(value) = get(table, "exclude") else { return };
    let found = reader.list("exclude", value, expected, |item| text(item).map(str::to_owned));
    config.check_exclude = found.unwrap_or_default();
}

fn targets(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>, config: &mut Config) {
    let Some(all) = reader.table("targets", value) else { return };
    for (name, value) in all {
        let section = format!("targets.{}", name.get_ref());
        if is_connection_string(name.get_ref()) || name.get_ref().is_empty() {
            reader.mistake(
                &name.span(),
                "the name of a target has no \"=\" and no \"://\" in it, and is not empty",
            );
        }
        let Some(table) = value.get_ref().as_table() else {
            // The value can contain a password, so it is not repeated.
            reader.mistake(
                &value.span(),
                format!("{section} is not a table: expected [{section}] with conninfo = \"…\""),
            );
            continue;
        };
        reader.only(
            table,
            &format!(" in [{section}]"),
            &["conninfo", "read_only", "refresh", "trusted_owners", "redis"],
        );
        let Some(conninfo) = get(table, "conninfo") else {
            reader.mistake(
                &name.span(),
                format!("[{section}] has no conninfo: expected conninfo = \"host=… dbname=…\""),
            );
            continue;
        };
        let Some(given) = reader.string("conninfo", conninfo, "a URI, a key=value string or a database name")
        else {
            continue;
        };
        if let Err(error) = understand(&given) {
            reader.mistake(&conninfo.span(), error.to_string());
        }
        let target = ConfigTarget {
            conninfo: given,
            read_only: reader.flag(table, "read_only"),
            refresh: get(table, "refresh").and_then(|value| refresh(reader, value)),
            trusted_owners: get(table, "trusted_owners").and_then(|value| owners(reader, value)),
            redis: get(table, "redis")
                .and_then(|value| own::redis(reader, &format!("{section}.redis"), value)),
        };
        config.targets.insert(name.get_ref().to_string(), target);
    }
}

/// Checks the syntax of a conninfo. Unsupported settings and the contents of files are checked when the target is used.
fn understand(conninfo: &str) -> Result<(), ConnInfoError> {
    let sources = Sources {
        target: Some(conninfo),
        flags: Flags::default(),
        flags_first: true,
        env: &|_| None,
        home: None,
        os_user: Some(String::new()),
    };
    match ConnInfo::resolve(&sources) {
        Err(
            ConnInfoError::Unsupported { .. } | ConnInfoError::Service(_) | ConnInfoError::ServiceFile { .. },
        )
        | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

fn tables(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>, config: &mut Config) {
    let names = [&TABLES[..], &KEYS[..]].concat();
    let Some(table) = reader.section("tables", value, &names) else { return };
    let key = "\"id\", \"lock_id\" or an SQL expression over the row, such as \"hashtext(task_name)\"";
    let place = "the name of a table, such as \"jobs.tasks\"";
    for (name, expected) in KEYS.map(|name| (name, key)).into_iter().chain(TABLES.map(|name| (name, place))) {
        let found = reader.key(table, name, expected, text);
        config.tables.extend(found.map(|found| (name, found.to_owned())));
    }
}

fn thresholds(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>, thresholds: &mut Thresholds) {
    let mut limits = thresholds.limits();
    limits.order_by_key(|(_, limit)| match limit {
        Limit::Seconds(_) => 0,
        Limit::Count(_) => 1,
        Limit::Share(_) => 2,
    });
    let names: Vec<&str> = limits.iter().map(|(name, _)| *name).collect();
    let Some(table) = reader.section("thresholds", value, &names) else { return };
    let count =
        |value: &DeValue<'_>| integer(value).and_then(|found| u32::try_from(found).ok()).filter(|n| *n > 0);
    let share = |value: &DeValue<'_>| number(value).filter(|share| (0.0..=1.0).contains(share));
    for (name, limit) in limits {
        match limit {
            Limit::Seconds(limit) => {
                let expected = "a duration such as \"30s\", \"1m\" or \"2h\"";
                let found = reader.key(table, name, expected, duration);
                *limit = found.map_or(*limit, |found| found.as_secs_f64());
            }
            Limit::Count(limit) => {
                *limit = reader.key(table, name, "a whole number from 1", count).unwrap_or(*limit);
            }
            Limit::Share(limit) => {
                let expected = "a share of max_connections from 0.0 to 1.0";
                *limit = reader.key(table, name, expected, share).unwrap_or(*limit);
            }
        }
    }
}

fn lock_names(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>, config: &mut Config) {
    for (span, table) in reader.tables("lock_names", value) {
        reader.only(table, " in [[lock_names]]", &["key", "name", "database"]);
        let (Some(key), Some(name)) = (get(table, "key"), get(table, "name")) else {
            reader.mistake(
                &span,
                "[[lock_names]] needs a key and a name: key = 815 or key = [1, 100], name = \"…\"",
            );
            continue;
        };
        let expected = "a 64-bit number or two 32-bit numbers: key = 815 or key = [1, 100]";
        let found = reader.read("key", key, expected, lock_key);
        let name = reader.string("name", name, "a name in quotes");
        let database = optional_name(reader, table);
        if let (Some(key), Some(name)) = (found, name) {
            if config.lock_names.iter().any(|other| other.key == key && other.database == database) {
                reader.mistake(&span, format!("key {key} already has a name"));
            }
            config.lock_names.push(NamedLock { key, name, database });
        }
    }
}

fn optional_name(reader: &mut ConfigReader<'_>, table: &DeTable<'_>) -> Option<String> {
    reader.key(table, "database", "the name of a database in quotes", text).map(str::to_owned)
}

fn lock_key(value: &DeValue<'_>) -> Option<LockKey> {
    let Some(pair) = value.as_array() else { return integer(value).map(LockKey::Bigint) };
    let mut halves = pair.iter().map(|half| i32::try_from(integer(half.get_ref())?).ok());
    match (halves.next(), halves.next(), halves.next()) {
        (Some(Some(high)), Some(Some(low)), None) => Some(LockKey::Pair(high, low)),
        _ => None,
    }
}

fn lock_name_queries(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>, config: &mut Config) {
    for (span, table) in reader.tables("lock_name_queries", value) {
        reader.only(table, " in [[lock_name_queries]]", &["sql", "database"]);
        let Some(sql) = get(table, "sql") else {
            reader.mistake(&span, "[[lock_name_queries]] needs sql = \"select key, name from …\"");
            continue;
        };
        let database = optional_name(reader, table);
        if let Some(sql) = reader.string("sql", sql, "a query in quotes: \"select key, name from …\"") {
            config.lock_name_queries.push(LockNameQuery { sql, database, at: reader.position(&span) });
        }
    }
}

fn keys(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>, config: &mut Config) {
    let Some(table) = reader.table("keys", value) else { return };
    for (name, value) in table {
        let Some(action) = BINDINGS.iter().find(|binding| binding.name == name.get_ref().as_ref()) else {
            let names: Vec<&str> = BINDINGS.iter().map(|binding| binding.name).collect();
            reader.unknown("action", " in [keys]", name, &names);
            continue;
        };
        let single = std::slice::from_ref(value);
        let items = value.get_ref().as_array().map_or(single, |array| array.as_ref());
        let text = "a key in quotes or a list of keys, such as \"K\" or [\"q\", \"ctrl-c\"]";
        let key = "one character (K), a name (esc, enter, space, pgup, f1), or either after ctrl- or alt-";
        let bound = items.iter().filter_map(|item| {
            let found = reader.parsed(action.name, item, (text, key), |text| Key::parse(text).ok())?;
            Some((found, reader.position(&item.span())))
        });
        let keys = bound.collect();
        config.keys.push(KeyBinding { action, keys });
    }
}

/// The meaning whose colour is the background of the selected row.
const SELECTED: &str = "selected";

fn theme(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>, config: &mut Config) {
    let Some(table) = reader.table("theme", value) else { return };
    let meanings = [&["base"], Tone::VARIANTS, &[SELECTED]].concat();
    reader.only(table, " in [theme]", &meanings);
    for (meaning, value) in table {
        let name = meaning.get_ref().as_ref();
        let tone = name.parse::<Tone>().ok();
        if name == "base" {
            let expected = "\"dark\", \"light\", \"mono\" or \"ansi\"";
            let known = |value: &DeValue<'_>| BaseTheme::from_str(value.as_str()?, false).ok();
            config.theme.base = reader.read(name, value, expected, known).unwrap_or(config.theme.base);
        } else if tone.is_some() || name == SELECTED {
            let text = "a color in quotes, such as \"red\" or \"#ff8800\"";
            let color = "a name (red, light-blue), a number (0 to 255) or #rrggbb";
            let found = reader.parsed(name, value, (text, color), |text| text.parse().ok());
            config.theme.colours.extend(found.map(|color| (tone, color)));
        }
    }
}
