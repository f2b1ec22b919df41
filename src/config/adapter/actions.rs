use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::super::reader::{Reader, Value, get};
use super::line;
use super::queries::{Known, needs, template};
use crate::model::Text;
use crate::model::adapter::{Action, ActionKind, Proof};

const KEYS: [&str; 7] = ["needs", "proof", "hold_key", "writes", "sql", "then", "late"];

pub(super) fn actions(reader: &mut Reader<'_>, table: &DeTable<'_>, known: &Known) -> Vec<Action> {
    let Some(section) = get(table, "actions").and_then(|value| reader.table("actions", value)) else {
        return Vec::new();
    };
    let known_kinds: Vec<&str> = ActionKind::ALL.iter().copied().map(ActionKind::as_str).collect();
    reader.only(section, " in [actions]", &known_kinds);
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
    reader: &mut Reader<'_>,
    kind: ActionKind,
    value: Value<'a, 'i>,
) -> Vec<(Range<usize>, &'a DeTable<'i>)> {
    if value.get_ref().is_array() {
        return reader.tables(&format!("actions.{}", kind.as_str()), value);
    }
    reader.table(kind.as_str(), value).map(|table| (value.span(), table)).into_iter().collect()
}

fn action(
    reader: &mut Reader<'_>,
    kind: ActionKind,
    at: &Range<usize>,
    table: &DeTable<'_>,
    known: &Known,
) -> Option<Action> {
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
    Some(Action { kind, needs, proofs, holds_key, writes, sql, then, late })
}

fn proofs(reader: &mut Reader<'_>, value: Value<'_, '_>) -> Vec<Proof> {
    let known: Vec<&str> =
        Proof::ALL.iter().copied().filter(|proof| *proof != Proof::None).map(Proof::as_str).collect();
    let expected = format!("a list of {}", known.join(", "));
    let read = |item: &DeValue<'_>| item.as_str()?.parse().ok().filter(|proof| *proof != Proof::None);
    reader.list("proof", value, &expected, read).unwrap_or_default()
}

fn tables(reader: &mut Reader<'_>, value: Value<'_, '_>, known: &Known) -> Vec<Text> {
    let expected = format!("a list of {}", known.tables().collect::<Vec<_>>().join(", "));
    let Some(items) = value.get_ref().as_array().filter(|items| !items.is_empty()) else {
        reader.expected("writes", value, &expected);
        return Vec::new();
    };
    let read = |item: &DeValue<'_>| known.tables().find(|key| item.as_str() == Some(key)).map(Text::from);
    items.iter().filter_map(|item| reader.read("writes", item, &expected, read)).collect()
}
