//! Which installations there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use locktop_tasks::sql::{fill, without_comments};
use locktop_tasks::trust::remedy;
use postgres_protocol::escape::escape_literal;
use serde::Deserialize;
use tokio_postgres::Client;

use super::each::{Places, at_most, with_common};
use crate::model::Text;
use crate::model::adapter::{Adapter, ColumnKind, Need, TableName, TableRule};
use crate::pg::decode::value::text;
use crate::pg::poll::raw;
use crate::pg::scope::Scope;
use crate::pg::section_error::SectionError;
use crate::pg::sql;
use crate::pg::trust::TrustedOwners;
use crate::text::count;

/// A table that may be one of theirs: a row of `assets/sql/adapters_find.sql`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is something of its own, as the query tells it")]
pub(super) struct FoundTable {
    pub(super) oid: u32,
    pub(super) schema: String,
    pub(super) name: String,
    /// `relkind`.
    kind: String,
    is_temporary: bool,
    /// Who owns it, a part of it or its schema, and is not trusted.
    stranger: Option<String>,
    /// The part of it that is his, where it is one alone.
    strange_part: Option<String>,
    /// OIDs of the parts of a partitioned one.
    pub(super) parts: Vec<u32>,
    /// One of them that is no ordinary table.
    foreign_part: Option<String>,
    /// The type of a column whose owner is not trusted.
    strange_type: Option<StrangeType>,
    has_usage: bool,
    has_select: bool,
    has_row_security: bool,
    columns: Vec<FoundColumn>,
}

/// The tables that may be of an adapter and are not among those that were looked at: another row of it.
#[derive(Debug, Deserialize)]
struct LeftOut {
    adapter: String,
    left_out: u64,
}

/// A type of somebody: casts of it are his functions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct StrangeType {
    owner: String,
    name: String,
}

/// A column of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct FoundColumn {
    name: String,
    #[serde(rename = "type")]
    oid: u32,
    is_enum: bool,
    labels: Vec<String>,
}

/// A schema in which the tables of an adapter are.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) adapter: Arc<Adapter>,
    pub(super) schema: Text,
    /// What stands before or behind what the adapter has of the names of its tables.
    pub(super) prefix: Text,
    /// Its tables by the adapter's keys; those that may be missing and cannot be read are not among them.
    pub(super) tables: BTreeMap<Text, FoundTable>,
    /// Why nothing of it is read.
    pub(super) refused: Option<Text>,
}

/// Looks for all adapters at once.
pub(super) async fn find(
    client: &Client,
    owners: &TrustedOwners,
    scope: Scope,
    adapters: &[Arc<Adapter>],
) -> Result<Vec<Found>, SectionError> {
    if adapters.is_empty() {
        return Ok(Vec::new());
    }
    let rows = scope.alone(client, client.query_typed(&statement(owners, adapters), &[])).await?;
    Ok(found_in(adapters, rows.iter().filter_map(|row| text(raw(row, 0)))))
}

/// The statement that looks for them: a row of JSON for each table. It names no schema of its operators, and is for a search path that is pinned.
pub(super) fn statement(owners: &TrustedOwners, adapters: &[Arc<Adapter>]) -> String {
    fill(
        &without_comments(sql::ADAPTERS_FIND),
        &[
            ("$wanted", &escape_literal(&wanted(adapters))),
            ("$trusts_table", &owners.trusts("c.relowner")),
            ("$trusts_part", &owners.trusts("p.relowner")),
            ("$trusts_schema", &owners.trusts("n.nspowner")),
            ("$table_owner", &TrustedOwners::name("c.relowner")),
            ("$part_owner", &TrustedOwners::name("p.relowner")),
            ("$schema_owner", &TrustedOwners::name("n.nspowner")),
            ("$types", &TrustedOwners::types("candidates")),
            ("$trusts_type", &owners.trusts("y.typowner")),
            ("$type_owner", &TrustedOwners::name("y.typowner")),
        ],
    )
}

/// What its answer tells.
pub(super) fn found_in(adapters: &[Arc<Adapter>], rows: impl Iterator<Item = impl AsRef<str>>) -> Vec<Found> {
    let (mut tables, mut left) = (Vec::<FoundTable>::new(), Vec::<LeftOut>::new());
    for row in rows {
        match serde_json::from_str(row.as_ref()) {
            Ok(table) => tables.push(table),
            Err(_) => left.extend(serde_json::from_str::<LeftOut>(row.as_ref()).ok()),
        }
    }
    let left_of = |adapter: &Arc<Adapter>| {
        let left = left.iter().find(|left| left.adapter == *adapter.name)?;
        Some(Found::left_out(adapter, left.left_out))
    };
    adapters
        .iter()
        .flat_map(|adapter| installations(adapter, &tables).into_iter().chain(left_of(adapter)))
        .collect()
}

/// What is looked for, as JSON.
fn wanted(adapters: &[Arc<Adapter>]) -> String {
    let each = adapters.iter().flat_map(|adapter| {
        let beside = adapter.tables.iter().filter(|rule| !rule.optional).find_map(|rule| match &rule.name {
            TableName::Exact(name) => Some(&**name),
            _ => None,
        });
        adapter.tables.iter().map(move |rule| {
            let columns: Vec<&str> = rule.columns.iter().map(|(name, _)| &**name).collect();
            let (name, suffix, begins) = match &rule.name {
                TableName::Exact(name) => (Some(&**name), None, None),
                TableName::Suffix(suffix) => (None, Some(&**suffix), None),
                TableName::Begins(begins) => (None, None, Some(&**begins)),
            };
            let needs = || needs(adapter).filter(|need| need.table == rule.key);
            let uses: BTreeSet<&str> =
                columns.iter().copied().chain(needs().map(|need| &*need.column)).collect();
            let labels: BTreeSet<&str> = needs().filter_map(|need| need.label.as_deref()).collect();
            serde_json::json!({"adapter": &*adapter.name, "name": name, "suffix": suffix, "begins": begins, "beside": beside, "schema": adapter.schema.as_deref(), "columns": columns,
                "uses": uses, "labels": labels})
        })
    });
    serde_json::Value::Array(each.collect()).to_string()
}

/// All that its versions and queries need.
fn needs(adapter: &Adapter) -> impl Iterator<Item = &Need> {
    let versions = adapter.versions.iter().flat_map(|version| &version.needs);
    let queries = adapter.queries.iter().flat_map(|query| &query.needs);
    versions.chain(queries).chain(adapter.actions.iter().flat_map(|action| &action.needs))
}

/// The installations of one adapter among these tables.
fn installations(adapter: &Arc<Adapter>, tables: &[FoundTable]) -> Vec<Found> {
    let mut places = Places::new();
    for table in tables {
        if adapter.schema.as_ref().is_some_and(|schema| **schema != *table.schema) {
            continue;
        }
        for rule in &adapter.tables {
            if let Some(rest) = rule.name.rest(&table.name)
                && table.fits(rule)
            {
                places.entry((&table.schema, rest)).or_default().insert(rule.key.clone(), table);
            }
        }
    }
    if adapter.has_each() {
        with_common(&mut places);
    }
    let is_whole = |tables: &BTreeMap<Text, &FoundTable>| {
        adapter.tables.iter().all(|rule| rule.optional || tables.contains_key(&rule.key))
    };
    let whole = places.into_iter().filter(|(_, tables)| is_whole(tables));
    let found = whole.map(|((schema, prefix), tables)| Found::of(adapter, schema, prefix, &tables));
    if adapter.has_each() { at_most(found) } else { found.collect() }
}

impl Found {
    fn of(adapter: &Arc<Adapter>, schema: &str, prefix: &str, tables: &BTreeMap<Text, &FoundTable>) -> Self {
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

    /// What nobody has looked at: in place of an installation, to say so.
    fn left_out(adapter: &Arc<Adapter>, number: u64) -> Self {
        let tables = if number == 1 { "1 table".to_owned() } else { format!("{} tables", count(number)) };
        let reason = format!(
            "{tables} left out, since no more than 1,000 are looked at, of all systems together, those of trusted owners first"
        );
        Self {
            adapter: Arc::clone(adapter),
            schema: Text::default(),
            prefix: Text::default(),
            tables: BTreeMap::new(),
            refused: Some(reason.into()),
        }
    }

    /// What identifies it: its first table, of those that no other installation has.
    pub(super) fn oid(&self) -> u32 {
        let needed = || self.adapter.tables.iter().filter(|rule| !rule.optional);
        let own = needed().find(|rule| matches!(rule.name, TableName::Begins(_)));
        let first = own.or_else(|| needed().next());
        first.and_then(|rule| self.tables.get(&rule.key)).map_or(0, |table| table.oid)
    }

    /// Whether it has what is needed.
    pub(super) fn has(&self, needs: &[Need]) -> bool {
        needs.iter().all(|need| {
            let column = self.tables.get(&need.table).and_then(|table| table.column(&need.column));
            column.is_some_and(|column| {
                need.label.as_ref().is_none_or(|label| column.labels.iter().any(|other| **other == **label))
            })
        })
    }
}

/// Why these tables are not read, the worst reason first.
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
            format!("no right to use schema {}; GRANT USAGE ON SCHEMA {schema} would help", table.schema)
                .into(),
        );
    }
    let unreadable: Vec<String> =
        tables.iter().filter(|table| !table.has_select).map(|table| table.quoted()).collect();
    if let Some(table) = first(|table| !table.has_select) {
        let all = unreadable.join(", ");
        return Some(format!("no right to read {table}; GRANT SELECT ON {all} would help").into());
    }
    let secured = first(|table| table.has_row_security)?;
    Some(format!("row security is in force on {secured}: only its owner, or a role with BYPASSRLS, sees what is in it").into())
}

impl FoundTable {
    /// `schema.table` for people.
    pub(super) fn label(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// The same as SQL that people may run.
    fn quoted(&self) -> String {
        let quoted = crate::text::identifier;
        let plain = |name: &str| {
            let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if is_plain { name.to_owned() } else { quoted(name) }
        };
        format!("{}.{}", plain(&self.schema), plain(&self.name))
    }

    pub(super) fn is_partitioned(&self) -> bool {
        self.kind == "p"
    }

    fn column(&self, name: &str) -> Option<&FoundColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Whether it has all columns of a rule, each of its kind.
    fn fits(&self, rule: &TableRule) -> bool {
        rule.columns.iter().all(|(name, kind)| {
            self.column(name).is_some_and(|column| ColumnKind::of(column.oid, column.is_enum) == Some(*kind))
        })
    }
}
