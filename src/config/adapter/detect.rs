//! `[detect]`: how the tables of a system are recognized.

use toml::de::{DeTable, DeValue};

use super::super::reader::{Reader, get};
use super::is_name;
use crate::model::Text;
use crate::model::adapter::{ColumnKind, TableName, TableRule};

const KEYS: [&str; 5] = ["name", "suffix", "begins", "columns", "optional"];
/// Least number of columns that must be named: a name such as `jobs` alone is too common.
const FEWEST: usize = 3;
/// Longest name in bytes (`NAMEDATALEN` in `src/include/pg_config_manual.h`, minus the terminating zero).
const LONGEST_NAME: usize = 63;

pub(super) fn tables(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Vec<TableRule> {
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

fn rule(reader: &mut Reader<'_>, section: &str, key: &str, table: &DeTable<'_>) -> Option<TableRule> {
    let name = name(reader, section, table);
    let columns = columns(reader, section, table);
    let optional = reader.flag(table, "optional");
    Some(TableRule { key: key.into(), name: name?, columns, optional })
}

fn name(reader: &mut Reader<'_>, section: &str, table: &DeTable<'_>) -> Option<TableName> {
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
        let read =
            |value: &DeValue<'_>| ColumnKind::ALL.iter().find(|(word, _)| value.as_str() == Some(word));
        let kind = reader.read(name.get_ref(), value, &expected, read);
        found.extend(kind.map(|(_, kind)| (name.get_ref().as_ref().into(), *kind)));
    }
    found
}
