//! `[detect]`: how the tables of a system are told.

use toml::de::DeTable;

use super::super::reader::{Reader, get};
use super::file::is_name;
use crate::model::Text;
use crate::model::adapter::{ColumnKind, TableName, TableRule};

const KEYS: [&str; 4] = ["name", "suffix", "columns", "optional"];
/// Tables and columns that a name alone may not stand for: `jobs` is anybody's.
const FEWEST: usize = 3;
/// Bytes of a name in the catalog (`NAMEDATALEN` in `src/include/pg_config_manual.h`, less its end).
const LONGEST_NAME: usize = 63;

/// The tables.
pub(super) fn tables(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Vec<TableRule> {
    let Some(value) = get(table, "detect") else {
        reader.mistake(
            &(0..0),
            "it has no tables: expected [detect] with tables.KEY = { name = \"…\", columns = { … } }",
        );
        return Vec::new();
    };
    let Some(detect) = reader.table("detect", value) else { return Vec::new() };
    reader.only(detect, " in [detect]", &["tables"]);
    let tables = get(detect, "tables").and_then(|value| reader.table("detect.tables", value));
    let mut rules = Vec::new();
    for (key, value) in tables.into_iter().flatten() {
        let name = key.get_ref().as_ref();
        if !is_name(name) || ["limit", "most"].contains(&name) {
            reader.mistake(
                &key.span(),
                "the key of a table has letters a to z, digits and _, and is neither limit nor most",
            );
        }
        let section = format!("detect.tables.{name}");
        if let Some(table) = reader.table(&section, value) {
            rules.extend(rule(reader, &section, name, table));
        }
    }
    let ends = rules.iter().filter(|rule| matches!(rule.name, TableName::Suffix(_))).count();
    if ends > 0 && ends < rules.len() {
        reader.mistake(&value.span(), "tables are told all by name, or all by suffix");
    }
    let needed: usize = rules.iter().filter(|rule| !rule.optional).map(|rule| rule.columns.len()).sum();
    if needed < FEWEST {
        let message = format!(
            "tables that are not optional have {needed} columns: name at least {FEWEST}, of those that tables of others with that name lack"
        );
        reader.mistake(&value.span(), message);
    }
    rules
}

fn rule(reader: &mut Reader<'_>, section: &str, key: &str, table: &DeTable<'_>) -> Option<TableRule> {
    reader.only(table, &format!(" in [{section}]"), &KEYS);
    let name = match (get(table, "name"), get(table, "suffix")) {
        (Some(value), None) => reader.string("name", value, "the name of a table").map(|name| (name, value)),
        (None, Some(value)) => {
            reader.string("suffix", value, "the end of the name of a table").map(|name| (name, value))
        }
        (name, suffix) => {
            let span = name.or(suffix).map_or(0..0, toml::Spanned::span);
            reader.mistake(&span, format!("[{section}] has name or suffix, one of them"));
            None
        }
    };
    if let Some((name, value)) = &name
        && name.len() > LONGEST_NAME
    {
        reader.expected("name", value, &format!("at most {LONGEST_NAME} bytes, as PostgreSQL has names"));
    }
    let columns = columns(reader, section, table);
    let optional =
        get(table, "optional").and_then(|value| reader.boolean("optional", value)).unwrap_or_default();
    let name: Text = name?.0.into();
    let name = if get(table, "suffix").is_some() { TableName::Suffix(name) } else { TableName::Exact(name) };
    Some(TableRule { key: key.into(), name, columns, optional })
}

fn columns(reader: &mut Reader<'_>, section: &str, table: &DeTable<'_>) -> Vec<(Text, ColumnKind)> {
    let names: Vec<&str> = ColumnKind::ALL.iter().map(|(name, _)| *name).collect();
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
        let kind = value.get_ref().as_str();
        match ColumnKind::ALL.iter().find(|(word, _)| Some(*word) == kind) {
            Some((_, kind)) => found.push((name.get_ref().as_ref().into(), *kind)),
            None => reader.expected(name.get_ref(), value, &expected),
        }
    }
    found
}
