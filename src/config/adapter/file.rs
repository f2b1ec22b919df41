//! The file of an adapter, except queries.

use toml::de::{DeTable, DeValue};

use super::super::reader::{self, ConfigReader, get, integer};
use super::{OWN, is_name, line, queries, setting};
use crate::model::Text;
use crate::model::adapter::{
    Adapter, AdapterColumnKind, Evidence, JobState, Part, Presence, Proof, Setting, TableName, TableRule,
};
use crate::text::parse_duration;

const FORMAT: i64 = 1;
const TEXTS: [&str; 4] = ["name", "title", "licence", "seen"];
const SECTIONS: [&str; 19] = [
    "format",
    "name",
    "title",
    "licence",
    "seen",
    "detect",
    "version",
    "settings",
    "evidence",
    "presence",
    "comes_back",
    "advise",
    "actions",
    "workers",
    "jobs",
    "depth",
    "paused",
    "leases",
    "schedules",
];

pub(super) fn adapter(reader: &mut ConfigReader<'_>, table: &DeTable<'_>) -> Adapter {
    reader.only(table, "", &SECTIONS);
    format(reader, table);
    let mut adapter = Adapter::default();
    let [name, title, licence, seen] = TEXTS.map(|key| text(reader, table, key));
    (adapter.name, adapter.title, adapter.licence, adapter.seen) = (name, title, licence, seen);
    if let Some(value) = get(table, "name")
        && !is_name(&adapter.name)
        && !adapter.name.is_empty()
    {
        reader.expected("name", value, "letters a to z, digits and _");
    }
    adapter.tables = tables(reader, table);
    adapter.settings = settings(reader, table);
    adapter.evidence = evidence(reader, table, &adapter);
    presence(reader, table, &mut adapter);
    adapter.comes_back = named(reader, table, "comes_back", Proof::ALL);
    adapter.advise = named(reader, table, "advise", JobState::OF_ADAPTERS);
    let words = queries::KnownWords::of(&adapter);
    adapter.versions = queries::versions(reader, table, &words);
    adapter.queries = queries::queries(reader, table, &words);
    adapter.actions = queries::actions(reader, table, &words);
    if adapter.queries.is_empty() {
        let parts: Vec<String> = Part::ALL.iter().map(|part| queries::section(*part)).collect();
        reader.mistake(&(0..0), format!("it has no part: expected one of {}", parts.join(", ")));
    }
    adapter
}

fn format(reader: &mut ConfigReader<'_>, table: &DeTable<'_>) {
    match get(table, "format") {
        None => reader.mistake(&(0..0), format!("it has no format: expected format = {FORMAT}")),
        Some(value) if integer(value.get_ref()) == Some(FORMAT) => {}
        Some(value) => reader.expected("format", value, &format!("{FORMAT}, the only one")),
    }
}

/// A mandatory text of one line.
fn text(reader: &mut ConfigReader<'_>, table: &DeTable<'_>, key: &str) -> Text {
    let Some(value) = get(table, key) else {
        reader.mistake(&(0..0), format!("it has no {key}: expected {key} = \"…\""));
        return Text::default();
    };
    line(reader, key, value).unwrap_or_default()
}

fn settings(reader: &mut ConfigReader<'_>, table: &DeTable<'_>) -> Vec<Setting> {
    let Some(settings) = get(table, "settings").and_then(|value| reader.table("settings", value)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (key, value) in settings {
        let name = key.get_ref().as_ref();
        if !is_name(name) || OWN.contains(&name) {
            reader.mistake(
                &key.span(),
                format!(
                    "the name of a setting has letters a to z, digits and _, and is none of {}",
                    OWN.join(", ")
                ),
            );
        }
        if let Some(text) = line(reader, name, value) {
            found.push(setting(name, &text));
        }
    }
    found
}

fn evidence(reader: &mut ConfigReader<'_>, table: &DeTable<'_>, adapter: &Adapter) -> Evidence {
    let mut evidence = Evidence::default();
    let keys = ["key", "worker_absent", "workers", "leader", "beat_limit", "age_limit", "pid"];
    let section = get(table, "evidence").and_then(|value| reader.section("evidence", value, &keys));
    let Some(section) = section else { return evidence };
    evidence.has_key = word(reader, section, "key", ["while running", "never"]);
    evidence.absent_is_lost = word(reader, section, "worker_absent", ["lost", "unknown"]);
    evidence.lists_workers = word(reader, section, "workers", ["listed", "unknown"]);
    evidence.leads_by_lease = word(reader, section, "leader", ["lease", "unknown"]);
    evidence.has_session = word(reader, section, "pid", ["session", "unknown"]);
    (evidence.beat_seconds, evidence.beat_setting) = limit(reader, section, "beat_limit", adapter);
    (evidence.age_seconds, evidence.age_setting) = limit(reader, section, "age_limit", adapter);
    evidence
}

/// `[presence]`: how sessions of workers are recognized, and whether every worker has one.
fn presence(reader: &mut ConfigReader<'_>, table: &DeTable<'_>, adapter: &mut Adapter) {
    let Some(value) = get(table, "presence") else { return };
    let keys = ["query", "application_name", "absent"];
    let Some(section) = reader.section("presence", value, &keys) else { return };
    adapter.presence = Presence {
        queries: words(reader, section, "query"),
        applications: words(reader, section, "application_name"),
    };
    if adapter.presence == Presence::default() {
        reader.mistake(
            &value.span(),
            "[presence] is empty: expected query = [\"LISTEN …\"], the beginning of the last statement of a worker's session, or application_name = [\"…\"]",
        );
    }
    adapter.evidence.has_presence = word(reader, section, "absent", ["lost", "unknown"]);
}

fn words(reader: &mut ConfigReader<'_>, table: &DeTable<'_>, key: &str) -> Vec<Text> {
    const EXPECTED: &str = "a list of texts, none of them empty, such as [\"LISTEN jobs\"]";
    let words = |value| reader.list(key, value, EXPECTED, |item| reader::text(item).map(Text::from));
    get(table, key).and_then(words).unwrap_or_default()
}

/// Whether the value is the first of two words. The default is the second.
fn word(reader: &mut ConfigReader<'_>, table: &DeTable<'_>, key: &str, words: [&str; 2]) -> bool {
    let [yes, no] = words;
    let known = |value: &DeValue<'_>| words.into_iter().find(|word| value.as_str() == Some(word));
    reader.key(table, key, &format!("\"{yes}\" or \"{no}\""), known) == Some(yes)
}

/// A duration in seconds, or the name of a setting that is one.
fn limit(
    reader: &mut ConfigReader<'_>,
    table: &DeTable<'_>,
    key: &str,
    adapter: &Adapter,
) -> (Option<f64>, Option<Text>) {
    let expected = "a duration such as \"5m\", or the name of a setting that is one";
    let read = |value: &DeValue<'_>| {
        let text = value.as_str()?;
        if adapter.setting(text).is_some_and(|setting| setting.seconds.is_some()) {
            return Some((None, Some(text.into())));
        }
        parse_duration(text).map(|time| (Some(time.as_secs_f64()), None))
    };
    reader.key(table, key, expected, read).unwrap_or_default()
}

fn named<T: Copy + Into<&'static str>>(
    reader: &mut ConfigReader<'_>,
    table: &DeTable<'_>,
    section: &str,
    known: &[T],
) -> Vec<(T, Text)> {
    let names: Vec<&str> = known.iter().map(|name| (*name).into()).collect();
    let lines = get(table, section).and_then(|value| reader.section(section, value, &names));
    let mut read = |key: &str, value| {
        let text = line(reader, key, value);
        known.iter().copied().find(|one| (*one).into() == key).zip(text)
    };
    lines.into_iter().flatten().filter_map(|(key, value)| read(key.get_ref(), value)).collect()
}

const KEYS: [&str; 5] = ["name", "suffix", "begins", "columns", "optional"];
/// Least number of columns that must be named: a name such as `jobs` alone is too common.
const FEWEST: usize = 3;
/// Longest name in bytes (`NAMEDATALEN` in `src/include/pg_config_manual.h`, minus the terminating zero).
const LONGEST_NAME: usize = 63;

fn tables(reader: &mut ConfigReader<'_>, table: &DeTable<'_>) -> Vec<TableRule> {
    let Some(value) = get(table, "detect") else {
        reader.mistake(
            &(0..0),
            "it has no tables: expected [detect] with tables.KEY = { name = \"…\", columns = { … } }",
        );
        return Vec::new();
    };
    let Some(detect) = reader.section("detect", value, &["tables"]) else { return Vec::new() };
    let tables = get(detect, "tables").and_then(|value| reader.table("detect.tables", value));
    let mut rules = Vec::new();
    for (key, value) in tables.into_iter().flatten() {
        let name = key.get_ref().as_ref();
        if !is_name(name) || ["limit", "most", "each"].contains(&name) {
            reader.mistake(
                &key.span(),
                "the key of a table has letters a to z, digits and _, and is none of limit, most and each",
            );
        }
        let section = format!("detect.tables.{name}");
        if let Some(table) = reader.section(&section, value, &KEYS) {
            rules.extend(rule(reader, &section, name, table));
        }
    }
    let ends = rules.iter().filter(|rule| matches!(rule.name, TableName::Suffix(_))).count();
    if ends > 0 && ends < rules.len() {
        reader.mistake(&value.span(), "either all tables have a name, or all have a suffix");
    }
    let needed = |is: fn(&TableName) -> bool| rules.iter().any(|rule| !rule.optional && is(&rule.name));
    if rules.iter().any(|rule| matches!(rule.name, TableName::Begins(_)))
        && !(needed(|name| matches!(name, TableName::Begins(_)))
            && needed(|name| matches!(name, TableName::Exact(_))))
    {
        let message = "if tables have begins, one of them must not be optional, and a table with a name must not be optional either";
        reader.mistake(&value.span(), message);
    }
    let needed: usize = rules.iter().filter(|rule| !rule.optional).map(|rule| rule.columns.len()).sum();
    if needed < FEWEST {
        let message = format!(
            "tables that are not optional have {needed} columns: name at least {FEWEST} that other tables of that name do not have"
        );
        reader.mistake(&value.span(), message);
    }
    rules
}

fn rule(reader: &mut ConfigReader<'_>, section: &str, key: &str, table: &DeTable<'_>) -> Option<TableRule> {
    let name = name(reader, section, table);
    let columns = columns(reader, section, table);
    let optional = reader.flag(table, "optional");
    Some(TableRule { key: key.into(), name: name?, columns, optional })
}

fn name(reader: &mut ConfigReader<'_>, section: &str, table: &DeTable<'_>) -> Option<TableName> {
    let ways = ["name", "suffix", "begins"];
    let said: Vec<_> = ways.into_iter().filter_map(|key| Some((key, get(table, key)?))).collect();
    let [(key, value)] = said[..] else {
        let span = said.first().map_or(0..0, |(_, value)| value.span());
        reader.mistake(&span, format!("[{section}] has exactly one of name, suffix and begins"));
        return None;
    };
    let name = reader.string(key, value, "the name of a table, or how it ends or begins")?;
    if name.len() > LONGEST_NAME {
        reader.expected(key, value, &format!("at most {LONGEST_NAME} bytes, the limit of PostgreSQL"));
    }
    Some(match key {
        "name" => TableName::Exact(name.into()),
        "suffix" => TableName::Suffix(name.into()),
        _ => TableName::Begins(name.into()),
    })
}

fn columns(
    reader: &mut ConfigReader<'_>,
    section: &str,
    table: &DeTable<'_>,
) -> Vec<(Text, AdapterColumnKind)> {
    let names: Vec<&str> = AdapterColumnKind::ALL.iter().map(|(name, _)| *name).collect();
    let expected = format!("one of \"{}\"", names.join("\", \""));
    let Some(value) = get(table, "columns") else {
        reader.mistake(
            &(0..0),
            format!("[{section}] has no columns: expected columns = {{ NAME = \"KIND\" }}"),
        );
        return Vec::new();
    };
    let Some(columns) = reader.table(&format!("{section}.columns"), value) else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in columns {
        let read = |value: &DeValue<'_>| {
            AdapterColumnKind::ALL.iter().find(|(word, _)| value.as_str() == Some(word))
        };
        let kind = reader.read(name.get_ref(), value, &expected, read);
        found.extend(kind.map(|(_, kind)| (name.get_ref().as_ref().into(), *kind)));
    }
    found
}
