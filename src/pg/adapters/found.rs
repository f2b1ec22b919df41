use std::collections::BTreeMap;
use std::sync::Arc;

use locktop_tasks::trust::remedy;
use serde::Deserialize;

use crate::model::Text;
use crate::model::adapter::{Adapter, ColumnKind, Need, TableName, TableRule};
use crate::pg::tables::Named;
use crate::text::count;

/// A candidate table of an adapter: a row of `assets/sql/adapters_find.sql`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is something of its own, as the query tells it")]
pub(super) struct FoundTable {
    pub(super) oid: u32,
    pub(super) schema: String,
    pub(super) name: String,
    /// `pg_class.relkind`: `r` for a table, `p` for a partitioned one, and so on.
    kind: String,
    is_temporary: bool,
    /// An owner of the table, of a part of it or of its schema that is not trusted.
    stranger: Option<String>,
    /// The part that belongs to that owner, if it is only one.
    strange_part: Option<String>,
    /// OIDs of the parts of a partitioned table.
    pub(super) parts: Vec<u32>,
    /// A part that is not an ordinary table.
    foreign_part: Option<String>,
    /// The table is partitioned, and itself a part of another table.
    is_inner: bool,
    /// A column type whose owner is not trusted.
    strange_type: Option<StrangeType>,
    has_usage: bool,
    has_select: bool,
    has_row_security: bool,
    columns: Vec<FoundColumn>,
}

/// A type with an untrusted owner: its casts are functions of that owner.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct StrangeType {
    owner: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct FoundColumn {
    name: String,
    #[serde(rename = "type")]
    oid: u32,
    is_enum: bool,
    labels: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundInstallation {
    pub(super) adapter: Arc<Adapter>,
    pub(super) schema: Text,
    /// The text before or after the adapter's part of the table names.
    pub(super) prefix: Text,
    /// Tables by the adapter's keys, without optional tables that cannot be read.
    pub(super) tables: BTreeMap<Text, FoundTable>,
    pub(super) refused: Option<Text>,
}

impl FoundInstallation {
    pub(super) fn of(
        adapter: &Arc<Adapter>,
        schema: &str,
        prefix: &str,
        tables: &BTreeMap<Text, &FoundTable>,
    ) -> Self {
        let is_optional = |key: &str| adapter.table(key).is_some_and(|rule| rule.optional);
        let needed: Vec<&FoundTable> =
            tables.iter().filter(|(key, _)| !is_optional(key)).map(|(_, table)| *table).collect();
        let kept = tables.iter().filter(|(key, table)| !is_optional(key) || refusal(&[table]).is_none());
        Self {
            adapter: Arc::clone(adapter),
            schema: schema.into(),
            prefix: prefix.into(),
            tables: kept.map(|(key, table)| (key.clone(), (*table).clone())).collect(),
            refused: refusal(&needed),
        }
    }

    /// Reports tables that were not checked, in place of an installation.
    pub(super) fn left_out(adapter: &Arc<Adapter>, number: u64) -> Self {
        let tables = if number == 1 { "1 table".to_owned() } else { format!("{} tables", count(number)) };
        let reason = format!(
            "{tables} left out, because at most 1,000 are checked in total, those of trusted owners first"
        );
        Self {
            adapter: Arc::clone(adapter),
            schema: Text::default(),
            prefix: Text::default(),
            tables: BTreeMap::new(),
            refused: Some(reason.into()),
        }
    }

    /// The OID that identifies it: of its first required table that no other installation shares.
    pub(super) fn oid(&self) -> u32 {
        let needed = || self.adapter.tables.iter().filter(|rule| !rule.optional);
        let own = needed().find(|rule| matches!(rule.name, TableName::Begins(_)));
        let first = own.or_else(|| needed().next());
        first.and_then(|rule| self.tables.get(&rule.key)).map_or(0, |table| table.oid)
    }

    pub(super) fn has(&self, needs: &[Need]) -> bool {
        needs.iter().all(|need| {
            let column = self.tables.get(&need.table).and_then(|table| table.column(&need.column));
            column.is_some_and(|column| {
                need.label.as_ref().is_none_or(|label| column.labels.iter().any(|other| **other == **label))
            })
        })
    }
}

/// The worst reason why these tables are not read.
fn refusal(tables: &[&FoundTable]) -> Option<Text> {
    let first =
        |is: fn(&FoundTable) -> bool| tables.iter().find(|table| is(table)).map(|table| table.label());
    if let Some(table) = tables.iter().find(|table| table.is_temporary || !["r", "p"].contains(&&*table.kind))
    {
        let what = match &*table.kind {
            "f" => "a foreign table",
            "v" | "m" => "a view",
            _ => "a temporary table",
        };
        return Some(format!("{} is {what}, which is not read", table.label()).into());
    }
    if let Some((table, part)) = tables.iter().find_map(|table| Some((table, table.foreign_part.as_deref()?)))
    {
        let table = table.label();
        return Some(format!("{part}, a part of {table}, is a foreign table, which is not read").into());
    }
    if let Some((table, stranger)) = tables.iter().find_map(|table| Some((table, table.stranger.as_deref()?)))
    {
        let (label, remedy) = (table.label(), remedy(stranger));
        let what = match &table.strange_part {
            Some(part) => format!("{part}, a part of {label},"),
            None => label,
        };
        return Some(format!("{what} belongs to {stranger}, who is not trusted; {remedy}").into());
    }
    if let Some(table) = first(|table| table.is_inner) {
        return Some(
            format!("{table} is partitioned, and a part of another table; its partitions are not searched")
                .into(),
        );
    }
    if let Some((table, of)) = tables.iter().find_map(|table| Some((table, table.strange_type.as_ref()?))) {
        let (table, StrangeType { owner, name }) = (table.label(), of);
        let remedy = remedy(owner);
        return Some(
            format!("a column of {table} has the type {name} of {owner}, who is not trusted; {remedy}")
                .into(),
        );
    }
    if let Some(table) = tables.iter().find(|table| !table.has_usage) {
        let schema = crate::text::identifier(&table.schema);
        return Some(
            format!("no right to use schema {}; GRANT USAGE ON SCHEMA {schema} is needed", table.schema)
                .into(),
        );
    }
    let unreadable: Vec<String> =
        tables.iter().filter(|table| !table.has_select).map(|table| table.quoted()).collect();
    if let Some(table) = first(|table| !table.has_select) {
        let all = unreadable.join(", ");
        return Some(format!("no right to read {table}; GRANT SELECT ON {all} is needed").into());
    }
    let secured = first(|table| table.has_row_security)?;
    Some(
        format!(
            "row security is in force on {secured}: only its owner, or a role with BYPASSRLS, can read it"
        )
        .into(),
    )
}

impl FoundTable {
    /// `schema.table` without quotes, for messages.
    pub(super) fn label(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// The same as SQL that the user can run.
    fn quoted(&self) -> String {
        let quoted = crate::text::identifier;
        let plain = |name: &str| {
            let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if is_plain { name.to_owned() } else { quoted(name) }
        };
        format!("{}.{}", plain(&self.schema), plain(&self.name))
    }

    pub(super) fn named(&self) -> Named<'_> {
        Named { oid: self.oid, schema: &self.schema, name: &self.name, is_partitioned: self.kind == "p" }
    }

    fn column(&self, name: &str) -> Option<&FoundColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    pub(super) fn fits(&self, rule: &TableRule) -> bool {
        rule.columns.iter().all(|(name, kind)| {
            self.column(name).is_some_and(|column| ColumnKind::of(column.oid, column.is_enum) == Some(*kind))
        })
    }
}
