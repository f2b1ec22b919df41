use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::reader::{Reader, Value, get, integer, number};
use super::{Checks, Colour, Config, KeyBinding, LockNameQuery, MAX_REFRESH, MIN_REFRESH, NamedLock, Target};
use super::{adapter, expected, history, redis_servers};
use crate::model::alert::Ways;
use crate::model::lock_key::LockKey;
use crate::model::thresholds::Thresholds;
use crate::text::parse_duration;
use pg_connect::conninfo::{ConnInfo, Flags, Sources, is_connection_string};
use pg_connect::error::ConnInfoError;

const REFRESH_EXPECTED: &str = "a duration from \"0.1s\" to \"60s\", such as \"1s\"";

const SECTIONS: [&str; 17] = [
    "refresh",
    "server_load",
    "remember",
    "notify",
    "trusted_owners",
    "targets",
    "tables",
    "thresholds",
    "history",
    "check",
    "lock_names",
    "lock_name_queries",
    "expected",
    "redis",
    "adapters",
    "keys",
    "theme",
];
const TABLES: [&str; 6] =
    ["scheduled_tasks", "task_execution_log", "task_queue", "distlock", "rate_limit", "id_generator"];
/// Settings of `[tables]` that give the advisory lock key of a row.
const KEYS: [&str; 2] = ["task_key", "queue_key"];
const BASES: [&str; 4] = ["dark", "light", "mono", "ansi"];

pub(super) fn root(reader: &mut Reader<'_>, table: &DeTable<'_>, checks: &Checks<'_>) -> Config {
    reader.only(table, "", &SECTIONS);
    let mut config = Config::default();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "refresh" => config.refresh = refresh(reader, value).unwrap_or(config.refresh),
            "server_load" => {
                config.server_load = server_load(reader, value).unwrap_or(config.server_load);
            }
            "remember" => config.remember = reader.boolean("remember", value).unwrap_or(config.remember),
            "notify" => config.notify = notify(reader, value),
            "trusted_owners" => config.trusted_owners = owners(reader, value).unwrap_or_default(),
            "targets" => targets(reader, value, &mut config),
            "tables" => tables(reader, value, &mut config),
            "thresholds" => thresholds(reader, value, &mut config.thresholds),
            "check" => check(reader, value, &mut config),
            "history" => config.history = history::history(reader, value),
            "lock_names" => lock_names(reader, value, &mut config),
            "lock_name_queries" => lock_name_queries(reader, value, &mut config),
            "expected" => config.thresholds.expected = expected::blockers(reader, value),
            "redis" => config.redis = redis_servers::redis(reader, "redis", value).unwrap_or_default(),
            "adapters" => config.adapters = adapter::choices(reader, value),
            "keys" => keys(reader, value, &mut config, checks),
            "theme" => theme(reader, value, &mut config, checks),
            _ => {}
        }
    }
    config
}

fn refresh(reader: &mut Reader<'_>, value: Value<'_, '_>) -> Option<Duration> {
    let found = value.get_ref().as_str().and_then(parse_duration);
    let found = found.filter(|found| (MIN_REFRESH..=MAX_REFRESH).contains(found));
    if found.is_none() {
        reader.expected("refresh", value, REFRESH_EXPECTED);
    }
    found
}

fn server_load(reader: &mut Reader<'_>, value: Value<'_, '_>) -> Option<f64> {
    let found = number(value.get_ref()).filter(|share| *share > 0.0 && *share <= 1.0);
    if found.is_none() {
        reader.expected("server_load", value, "a share of one core above 0 and up to 1, such as 0.02");
    }
    found
}

fn notify(reader: &mut Reader<'_>, value: Value<'_, '_>) -> Ways {
    const EXPECTED: &str = "a list of \"bell\", \"title\", \"osc9\", \"osc777\", such as [\"bell\"]";
    let mut ways = Ways::default();
    let Some(items) = value.get_ref().as_array() else {
        reader.expected("notify", value, EXPECTED);
        return ways;
    };
    for item in items {
        match item.get_ref().as_str() {
            Some("bell") => ways.bell = true,
            Some("title") => ways.title = true,
            Some("osc9") => ways.osc9 = true,
            Some("osc777") => ways.osc777 = true,
            _ => reader.expected("notify", item, EXPECTED),
        }
    }
    ways
}

/// Role names, spelled as in the catalog.
fn owners(reader: &mut Reader<'_>, value: Value<'_, '_>) -> Option<Vec<String>> {
    const EXPECTED: &str = "a list of roles, such as [\"app\"]";
    let Some(items) = value.get_ref().as_array() else {
        reader.expected("trusted_owners", value, EXPECTED);
        return None;
    };
    Some(items.iter().filter_map(|item| reader.string("trusted_owners", item, EXPECTED)).collect())
}

fn check(reader: &mut Reader<'_>, value: Value<'_, '_>, config: &mut Config) {
    const EXPECTED: &str = "a list of sections, such as [\"rate_limits\", \"adapters River\"]";
    let Some(table) = reader.table("check", value) else { return };
    reader.only(table, " in [check]", &["exclude"]);
    let Some(value) = get(table, "exclude") else { return };
    match value.get_ref().as_array() {
        Some(items) => {
            let names = items.iter().filter_map(|item| reader.string("exclude", item, EXPECTED));
            config.check_exclude = names.collect();
        }
        None => reader.expected("exclude", value, EXPECTED),
    }
}

fn targets(reader: &mut Reader<'_>, value: Value<'_, '_>, config: &mut Config) {
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
        let Some(text) = reader.string("conninfo", conninfo, "a URI, a key=value string or a database name")
        else {
            continue;
        };
        if let Err(error) = understand(&text) {
            reader.mistake(&conninfo.span(), error.to_string());
        }
        let target = Target {
            conninfo: text,
            read_only: get(table, "read_only")
                .and_then(|value| reader.boolean("read_only", value))
                .unwrap_or(false),
            refresh: get(table, "refresh").and_then(|value| refresh(reader, value)),
            trusted_owners: get(table, "trusted_owners").and_then(|value| owners(reader, value)),
            redis: get(table, "redis")
                .and_then(|value| redis_servers::redis(reader, &format!("{section}.redis"), value)),
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

fn tables(reader: &mut Reader<'_>, value: Value<'_, '_>, config: &mut Config) {
    let Some(table) = reader.table("tables", value) else { return };
    reader.only(table, " in [tables]", &[&TABLES[..], &KEYS[..]].concat());
    for name in KEYS {
        let Some(value) = get(table, name) else { continue };
        let expected =
            "\"id\", \"lock_id\" or an SQL expression over the row, such as \"hashtext(task_name)\"";
        if let Some(key) = reader.string(name, value, expected) {
            config.tables.insert(name, key);
        }
    }
    for name in TABLES {
        let Some(value) = get(table, name) else { continue };
        if let Some(place) = reader.string(name, value, "the name of a table, such as \"jobs.tasks\"") {
            config.tables.insert(name, place);
        }
    }
}

fn thresholds(reader: &mut Reader<'_>, value: Value<'_, '_>, limits: &mut Thresholds) {
    let Some(table) = reader.table("thresholds", value) else { return };
    let durations: [(&str, &mut f64); 8] = [
        ("wait", &mut limits.wait),
        ("idle_in_transaction", &mut limits.idle_in_transaction),
        ("idle_lock", &mut limits.idle_lock),
        ("task_timeout", &mut limits.task_timeout),
        ("orphan_grace", &mut limits.orphan_grace),
        ("task_overdue", &mut limits.task_overdue),
        ("queue_pending", &mut limits.queue_pending),
        ("id_ahead", &mut limits.id_ahead),
    ];
    let counts: [(&str, &mut u32); 3] =
        [("blocked", &mut limits.blocked), ("convoy", &mut limits.convoy), ("pile_up", &mut limits.pile_up)];
    let mut names: Vec<&str> = durations.iter().map(|(name, _)| *name).collect();
    names.extend(counts.iter().map(|(name, _)| *name));
    names.push("connections");
    reader.only(table, " in [thresholds]", &names);
    for (name, limit) in durations {
        let Some(value) = get(table, name) else { continue };
        match value.get_ref().as_str().and_then(parse_duration) {
            Some(found) => *limit = found.as_secs_f64(),
            None => reader.expected(name, value, "a duration such as \"30s\", \"1m\" or \"2h\""),
        }
    }
    for (name, limit) in counts {
        let Some(value) = get(table, name) else { continue };
        match integer(value.get_ref())
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| *number > 0)
        {
            Some(found) => *limit = found,
            None => reader.expected(name, value, "a whole number from 1"),
        }
    }
    if let Some(value) = get(table, "connections") {
        match number(value.get_ref()).filter(|share| (0.0..=1.0).contains(share)) {
            Some(found) => limits.connections = found,
            None => reader.expected("connections", value, "a share of max_connections from 0.0 to 1.0"),
        }
    }
}

fn lock_names(reader: &mut Reader<'_>, value: Value<'_, '_>, config: &mut Config) {
    for (span, table) in reader.tables("lock_names", value) {
        reader.only(table, " in [[lock_names]]", &["key", "name", "database"]);
        let (Some(key), Some(name)) = (get(table, "key"), get(table, "name")) else {
            reader.mistake(
                &span,
                "[[lock_names]] needs a key and a name: key = 815 or key = [1, 100], name = \"…\"",
            );
            continue;
        };
        let found = lock_key(key.get_ref());
        if found.is_none() {
            reader.expected("key", key, "a 64-bit number or two 32-bit numbers: key = 815 or key = [1, 100]");
        }
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

fn optional_name(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Option<String> {
    get(table, "database")
        .and_then(|value| reader.string("database", value, "the name of a database in quotes"))
}

fn lock_key(value: &DeValue<'_>) -> Option<LockKey> {
    let Some(pair) = value.as_array() else { return integer(value).map(LockKey::Bigint) };
    let mut halves = pair.iter().map(|half| i32::try_from(integer(half.get_ref())?).ok());
    match (halves.next(), halves.next(), halves.next()) {
        (Some(Some(high)), Some(Some(low)), None) => Some(LockKey::Pair(high, low)),
        _ => None,
    }
}

fn lock_name_queries(reader: &mut Reader<'_>, value: Value<'_, '_>, config: &mut Config) {
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

fn keys(reader: &mut Reader<'_>, value: Value<'_, '_>, config: &mut Config, checks: &Checks<'_>) {
    let Some(table) = reader.table("keys", value) else { return };
    for (action, value) in table {
        let name = action.get_ref().to_string();
        if checks.actions.is_some_and(|actions| !actions.contains(&name.as_str())) {
            reader.unknown("action", " in [keys]", action, checks.actions.unwrap_or_default());
            continue;
        }
        let single = std::slice::from_ref(value);
        let items = value.get_ref().as_array().map_or(single, |array| array.as_ref());
        let mut bound = Vec::new();
        for item in items {
            let Some(key) = reader.string(
                &name,
                item,
                "a key in quotes or a list of keys, such as \"K\" or [\"q\", \"ctrl-c\"]",
            ) else {
                continue;
            };
            match (checks.key)(&key) {
                Ok(()) => bound.push((key, reader.position(&item.span()))),
                Err(expected) => reader.expected(&name, item, &expected),
            }
        }
        config.keys.push(KeyBinding { action: name, keys: bound, at: reader.position(&action.span()) });
    }
}

fn theme(reader: &mut Reader<'_>, value: Value<'_, '_>, config: &mut Config, checks: &Checks<'_>) {
    let Some(table) = reader.table("theme", value) else { return };
    for (meaning, value) in table {
        let name = meaning.get_ref().to_string();
        if name == "base" {
            match value.get_ref().as_str().filter(|base| BASES.contains(base)) {
                Some(base) => base.clone_into(&mut config.theme.base),
                None => reader.expected("base", value, "\"dark\", \"light\", \"mono\" or \"ansi\""),
            }
            continue;
        }
        if let Some(meanings) = checks.meanings.filter(|meanings| !meanings.contains(&name.as_str())) {
            let mut allowed = vec!["base"];
            allowed.extend(meanings);
            reader.unknown("key", " in [theme]", meaning, &allowed);
            continue;
        }
        let Some(colour) = reader.string(&name, value, "a color in quotes, such as \"red\" or \"#ff8800\"")
        else {
            continue;
        };
        match (checks.colour)(&colour) {
            Ok(()) => config.theme.colours.push(Colour {
                meaning: name,
                colour,
                at: reader.position(&value.span()),
            }),
            Err(expected) => reader.expected(&name, value, &expected),
        }
    }
}
