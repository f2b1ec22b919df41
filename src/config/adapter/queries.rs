use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::line;
use crate::config::reader::{ConfigReader, TomlValue, get};
use crate::model::Text;
use crate::model::adapter::{
    ActionKind, Adapter, AdapterAction, AdapterQuery, Part, Proof, RequiredColumn, Template, TemplateWords,
    Version,
};

pub(super) struct KnownWords {
    tables: Vec<Text>,
    settings: Vec<Text>,
    has_each: bool,
}

impl KnownWords {
    pub(super) fn of(adapter: &Adapter) -> Self {
        Self {
            tables: adapter.tables.iter().map(|table| table.key.clone()).collect(),
            settings: adapter.settings.iter().map(|setting| setting.name.clone()).collect(),
            has_each: adapter.has_each(),
        }
    }
}

pub(crate) fn section(part: Part) -> String {
    let name = part.as_str();
    if Part::JOBS.contains(&part) { format!("[[jobs.{name}]]") } else { format!("[[{name}]]") }
}

pub(super) fn versions(
    reader: &mut ConfigReader<'_>,
    table: &DeTable<'_>,
    known: &KnownWords,
) -> Vec<Version> {
    let Some(value) = get(table, "version") else { return Vec::new() };
    let mut versions = Vec::new();
    for (span, table) in reader.tables("version", value) {
        reader.only(table, " in [[version]]", &["text", "needs", "sql"]);
        let Some(text) = get(table, "text") else {
            reader.mistake(&span, "[[version]] has no text: expected text = \"4.15 or later\"");
            continue;
        };
        let text = line(reader, "text", text).unwrap_or_default();
        let needs = needs(reader, table, known);
        let sql = get(table, "sql").and_then(|value| template(reader, value, known, None));
        if text.contains("{0}") && get(table, "sql").is_none() {
            reader.mistake(&span, "{0} in the text is what sql brings: expected sql = \"SELECT …\"");
        }
        versions.push(Version { text, needs, sql });
    }
    versions
}

pub(super) fn queries(
    reader: &mut ConfigReader<'_>,
    table: &DeTable<'_>,
    known: &KnownWords,
) -> Vec<AdapterQuery> {
    let mut queries = Vec::new();
    let jobs = get(table, "jobs");
    let jobs = jobs.and_then(|value| reader.section("jobs", value, &Part::JOBS.map(Part::as_str)));
    for &part in Part::ALL {
        let name = part.as_str();
        let value = match jobs {
            _ if !Part::JOBS.contains(&part) => get(table, name),
            Some(jobs) => get(jobs, name),
            None => None,
        };
        let Some(value) = value else { continue };
        for (span, table) in reader.tables(name, value) {
            queries.extend(query(reader, part, &span, table, known));
        }
    }
    queries
}

fn query(
    reader: &mut ConfigReader<'_>,
    part: Part,
    span: &Range<usize>,
    table: &DeTable<'_>,
    known: &KnownWords,
) -> Option<AdapterQuery> {
    let section = section(part);
    reader.only(table, &format!(" in {section}"), &["needs", "sql"]);
    let needs = needs(reader, table, known);
    let Some(value) = get(table, "sql") else {
        reader.mistake(span, format!("{section} has no query: expected sql = \"SELECT …\""));
        return None;
    };
    Some(AdapterQuery { part, needs, sql: template(reader, value, known, None)? })
}

fn template(
    reader: &mut ConfigReader<'_>,
    value: TomlValue<'_, '_>,
    known: &KnownWords,
    action: Option<ActionKind>,
) -> Option<Template> {
    let (what, example) = match action {
        None => ("query", "a query in quotes: \"SELECT …\""),
        Some(_) => ("action", "a statement in quotes: \"UPDATE …\""),
    };
    let text = reader.string("sql", value, example)?;
    let KnownWords { tables, settings, has_each } = known;
    match Template::parse(&text, TemplateWords { tables, settings, has_each: *has_each, action }) {
        Ok(template) => Some(template),
        Err(why) => {
            let why = crate::text::one_line(&why);
            reader.mistake(&value.span(), format!("sql is no {what} of an adapter: {why}"));
            None
        }
    }
}

fn needs(reader: &mut ConfigReader<'_>, table: &DeTable<'_>, known: &KnownWords) -> Vec<RequiredColumn> {
    const EXPECTED: &str = "a list such as [\"TABLE.column\", \"TABLE.column=label\"]";
    let Some(value) = get(table, "needs") else { return Vec::new() };
    let mut needs = Vec::new();
    for item in reader.read("needs", value, EXPECTED, DeValue::as_array).into_iter().flatten() {
        match reader.read("needs", item, EXPECTED, |value| value.as_str().and_then(need)) {
            None => {}
            Some(need) if known.tables.contains(&need.table) => needs.push(need),
            Some(need) => {
                let message = format!(
                    "needs names the table \"{}\": expected one of {}",
                    crate::text::one_line(&need.table),
                    known.tables.join(", ")
                );
                reader.mistake(&item.span(), message);
            }
        }
    }
    needs
}

fn need(text: &str) -> Option<RequiredColumn> {
    let (table, rest) = text.split_once('.')?;
    let (column, label) = match rest.split_once('=') {
        Some((column, label)) => (column, Some(label.into())),
        None => (rest, None),
    };
    let is_whole = !table.is_empty()
        && !column.is_empty()
        && label.as_ref().is_none_or(|label: &Text| !label.is_empty());
    is_whole.then(|| RequiredColumn { table: table.into(), column: column.into(), label })
}

const KEYS: [&str; 7] = ["needs", "proof", "hold_key", "writes", "sql", "then", "late"];

pub(super) fn actions(
    reader: &mut ConfigReader<'_>,
    table: &DeTable<'_>,
    known: &KnownWords,
) -> Vec<AdapterAction> {
    let kinds: Vec<&str> = ActionKind::ALL.iter().copied().map(ActionKind::as_str).collect();
    let section = get(table, "actions").and_then(|value| reader.section("actions", value, &kinds));
    let Some(section) = section else { return Vec::new() };
    let mut actions = Vec::new();
    for &kind in ActionKind::ALL {
        let Some(value) = get(section, kind.as_str()) else { continue };
        for (span, table) in alternatives(reader, kind, value) {
            actions.extend(action(reader, kind, &span, table, known));
        }
    }
    actions
}

/// A single `[actions.recover]`, or each `[[actions.recover]]`.
fn alternatives<'a, 'i>(
    reader: &mut ConfigReader<'_>,
    kind: ActionKind,
    value: TomlValue<'a, 'i>,
) -> Vec<(Range<usize>, &'a DeTable<'i>)> {
    if value.get_ref().is_array() {
        return reader.tables(&format!("actions.{}", kind.as_str()), value);
    }
    reader.table(kind.as_str(), value).map(|table| (value.span(), table)).into_iter().collect()
}

fn action(
    reader: &mut ConfigReader<'_>,
    kind: ActionKind,
    at: &Range<usize>,
    table: &DeTable<'_>,
    known: &KnownWords,
) -> Option<AdapterAction> {
    let section = format!("[actions.{}]", kind.as_str());
    reader.only(table, &format!(" in {section}"), &KEYS);
    let mut needed = |key: &str, example: &str| {
        let value = get(table, key);
        if value.is_none() {
            reader.mistake(at, format!("{section} has no {key}: expected {key} = {example}"));
        }
        value
    };
    let sql = needed("sql", "\"UPDATE {TABLE} …\"");
    let writes = needed("writes", "[\"TABLE\"]");
    let then = needed("then", "\"result of the action\"");
    let proof = if kind == ActionKind::Recover { needed("proof", "[\"heartbeat\"]") } else { None };
    let needs = needs(reader, table, known);
    let proofs = proof.map(|value| proofs(reader, value)).unwrap_or_default();
    let holds_key = reader.flag(table, "hold_key");
    let late = get(table, "late").and_then(|value| line(reader, "late", value));
    let writes = tables(reader, writes?, known);
    let then = line(reader, "then", then?)?;
    let sql_value = sql?;
    let sql = template(reader, sql_value, known, Some(kind))?;
    for key in writes.iter().filter(|key| !sql.tables().contains(key)) {
        reader.mistake(&sql_value.span(), format!("writes names {{{key}}}, and sql does not"));
    }
    Some(AdapterAction { kind, needs, proofs, holds_key, writes, sql, then, late })
}

fn proofs(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> Vec<Proof> {
    let known: Vec<&str> =
        Proof::ALL.iter().copied().filter(|proof| *proof != Proof::None).map(Proof::as_str).collect();
    let expected = format!("a list of {}", known.join(", "));
    let read = |item: &DeValue<'_>| item.as_str()?.parse().ok().filter(|proof| *proof != Proof::None);
    reader.list("proof", value, &expected, read).unwrap_or_default()
}

fn tables(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>, known: &KnownWords) -> Vec<Text> {
    let expected = format!("a list of {}", known.tables.join(", "));
    let Some(items) = value.get_ref().as_array().filter(|items| !items.is_empty()) else {
        reader.expected("writes", value, &expected);
        return Vec::new();
    };
    let read = |item: &DeValue<'_>| known.tables.iter().find(|key| item.as_str() == Some(&***key)).cloned();
    items.iter().filter_map(|item| reader.read("writes", item, &expected, read)).collect()
}
