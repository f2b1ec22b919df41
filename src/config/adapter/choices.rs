use toml::de::{DeTable, DeValue};

use super::super::reader::{ConfigReader, TomlValue, get};
use super::{OWN, line, setting};
use crate::config::{Mistake, Position};
use crate::model::Text;
use crate::model::adapter::Adapter;
use crate::text::one_line;
use pg_connect::conninfo::nearest;

/// The time zone of timestamps without time zone.
const TIME_ZONE: &str = "time_zone";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterChoices {
    /// `enabled`: whether to search for other job systems at all.
    pub is_enabled: bool,
    /// `off`: adapters to ignore, with their positions in the file.
    pub off: Vec<(String, Position)>,
    pub each: Vec<AdapterChoice>,
}

impl Default for AdapterChoices {
    fn default() -> Self {
        Self { is_enabled: true, off: Vec::new(), each: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterChoice {
    pub name: String,
    pub at: Position,
    /// The only schema to search.
    pub schema: Option<Text>,
    pub allows_actions: bool,
    pub settings: Vec<(String, Text, Position)>,
}

/// Reads the section. Names of adapters and settings are checked later, when the adapter files are read.
pub(in crate::config) fn choices(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> AdapterChoices {
    let mut choices = AdapterChoices::default();
    let Some(table) = reader.table("adapters", value) else { return choices };
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "enabled" => choices.is_enabled = reader.boolean("enabled", value).unwrap_or(true),
            "off" => choices.off = off(reader, value),
            name if value.get_ref().as_table().is_none() => {
                let name = one_line(name).into_owned();
                let message =
                    format!("adapters.{name} is not a table: expected enabled, off or [adapters.NAME]");
                reader.mistake(&value.span(), message);
            }
            name => {
                let section = format!("adapters.{}", one_line(name));
                if let Some(table) = reader.table(&section, value) {
                    let at = reader.position(&key.span());
                    choices.each.push(choice(reader, name, at, table));
                }
            }
        }
    }
    choices
}

fn off(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> Vec<(String, Position)> {
    const EXPECTED: &str = "a list of adapters, such as [\"river\"]";
    let items = reader.read("off", value, EXPECTED, DeValue::as_array);
    let name = |item| Some((reader.string("off", item, EXPECTED)?, reader.position(&item.span())));
    items.into_iter().flatten().filter_map(name).collect()
}

fn choice(reader: &mut ConfigReader<'_>, name: &str, at: Position, table: &DeTable<'_>) -> AdapterChoice {
    let schema = get(table, "schema").and_then(|value| line(reader, "schema", value));
    let allows_actions = reader.flag(table, "allow_actions");
    let mut settings = Vec::new();
    for (key, value) in table.iter().filter(|(key, _)| !OWN.contains(&key.get_ref().as_ref())) {
        let at = reader.position(&key.span());
        if let Some(text) = line(reader, key.get_ref(), value) {
            settings.push((key.get_ref().to_string(), text, at));
        }
    }
    AdapterChoice { name: name.to_owned(), at, schema, allows_actions, settings }
}

impl AdapterChoices {
    /// Applies the settings, and removes adapters that are off. Returns the mistakes.
    pub(super) fn apply(&self, adapters: &mut Vec<Adapter>) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let names: Vec<Text> = adapters.iter().map(|adapter| adapter.name.clone()).collect();
        for (name, at) in &self.off {
            if !names.iter().any(|other| **other == **name) {
                mistakes.push(Mistake { at: *at, message: unknown("adapter", name, &names) });
            }
        }
        for choice in &self.each {
            match adapters.iter_mut().find(|adapter| *adapter.name == *choice.name) {
                Some(adapter) => choice.set(adapter, &mut mistakes),
                None => mistakes
                    .push(Mistake { at: choice.at, message: unknown("adapter", &choice.name, &names) }),
            }
        }
        adapters.retain(|adapter| !self.off.iter().any(|(name, _)| **name == *adapter.name));
        mistakes.sort();
        mistakes
    }
}

impl AdapterChoice {
    fn set(&self, adapter: &mut Adapter, mistakes: &mut Vec<Mistake>) {
        adapter.schema.clone_from(&self.schema);
        adapter.allows_actions = self.allows_actions;
        let mut names: Vec<Text> = adapter.settings.iter().map(|setting| setting.name.clone()).collect();
        adapter.time_zone = None;
        for (name, value, at) in &self.settings {
            let Some(old) = adapter.settings.iter_mut().find(|setting| *setting.name == **name) else {
                // Some adapters have a setting of this name, for a part of their timestamps.
                if name == TIME_ZONE {
                    zone(adapter, value, *at, mistakes);
                    continue;
                }
                names.extend(OWN.iter().chain([&TIME_ZONE]).map(|name| Text::from(*name)));
                let what = format!("setting of {}", adapter.name);
                mistakes.push(Mistake { at: *at, message: unknown(&what, name, &names) });
                continue;
            };
            let new = setting(name, value);
            if old.seconds.is_some() && new.seconds.is_none() {
                let message = format!(
                    "{name} is \"{}\": expected a duration such as \"30s\", \"1m\" or \"2h\"",
                    one_line(value)
                );
                mistakes.push(Mistake { at: *at, message });
            }
            *old = new;
        }
    }
}

/// Only the server knows the valid zone names.
fn zone(adapter: &mut Adapter, value: &Text, at: Position, mistakes: &mut Vec<Mistake>) {
    if value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+')) {
        adapter.time_zone = Some(value.clone());
    } else {
        let message =
            format!("{TIME_ZONE} is \"{}\": expected a zone such as America/New_York", one_line(value));
        mistakes.push(Mistake { at, message });
    }
}

fn unknown(what: &str, name: &str, known: &[Text]) -> String {
    let name = one_line(name);
    match nearest(&name, known.iter().map(|name| &**name)) {
        Some(meant) => format!("unknown {what} \"{name}\": did you mean \"{meant}\"?"),
        None => format!("unknown {what} \"{name}\": expected one of {}", known.join(", ")),
    }
}
