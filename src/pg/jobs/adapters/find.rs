use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use postgres_protocol::escape::escape_literal;
use serde::Deserialize;
use tokio_postgres::Client;

use crate::model::Text;
use crate::model::adapter::{Adapter, AdapterColumnKind, RequiredColumn, TableName, TableRule};
use crate::pg::decode::value::{raw, text};
use crate::pg::jobs::tables::NamedTable;
use crate::pg::sql;
use crate::pg::trust::TrustedOwners;
use crate::pg::{Scope, SectionError};
use crate::text::count;
use locktop_tasks::trust::remedy;

/// Number of candidate tables of an adapter that were not checked: another kind of row of the answer.
#[derive(Debug, Deserialize)]
struct LeftOut {
    adapter: String,
    left_out: u64,
}

pub(super) async fn find(
    client: &Client,
    owners: &TrustedOwners,
    scope: Scope,
    adapters: &[Arc<Adapter>],
) -> Result<Vec<FoundInstallation>, SectionError> {
    if adapters.is_empty() {
        return Ok(Vec::new());
    }
    let rows = scope.alone(client, client.query_typed(&statement(owners, adapters), &[])).await?;
    Ok(found_in(adapters, rows.iter().filter_map(|row| text(raw(row, 0)))))
}

/// The search statement, which returns a JSON row per table. Its operators have no schema, so it needs a pinned search
/// path.
pub(super) fn statement(owners: &TrustedOwners, adapters: &[Arc<Adapter>]) -> String {
    let (wanted, types) = (escape_literal(&wanted(adapters)), owners.types("trusted"));
    owners.filled(sql::ADAPTERS_FIND, &[("$wanted", &wanted), ("$types", &types)])
}

pub(super) fn found_in(
    adapters: &[Arc<Adapter>],
    rows: impl Iterator<Item = impl AsRef<str>>,
) -> Vec<FoundInstallation> {
    let (mut tables, mut left) = (Vec::<AdapterTable>::new(), Vec::<LeftOut>::new());
    for row in rows {
        match serde_json::from_str(row.as_ref()) {
            Ok(table) => tables.push(table),
            Err(_) => left.extend(serde_json::from_str::<LeftOut>(row.as_ref()).ok()),
        }
    }
    let left_of = |adapter: &Arc<Adapter>| {
        let left = left.iter().find(|left| left.adapter == *adapter.name)?;
        Some(FoundInstallation::left_out(adapter, left.left_out))
    };
    adapters
        .iter()
        .flat_map(|adapter| installations(adapter, &tables).into_iter().chain(left_of(adapter)))
        .collect()
}

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

fn needs(adapter: &Adapter) -> impl Iterator<Item = &RequiredColumn> {
    let versions = adapter.versions.iter().flat_map(|version| &version.needs);
    let queries = adapter.queries.iter().flat_map(|query| &query.needs);
    versions.chain(queries).chain(adapter.actions.iter().flat_map(|action| &action.needs))
}

fn installations(adapter: &Arc<Adapter>, tables: &[AdapterTable]) -> Vec<FoundInstallation> {
    let mut places = TablesBySchema::new();
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
    let is_whole = |tables: &BTreeMap<Text, &AdapterTable>| {
        adapter.tables.iter().all(|rule| rule.optional || tables.contains_key(&rule.key))
    };
    let whole = places.into_iter().filter(|(_, tables)| is_whole(tables));
    let found =
        whole.map(|((schema, prefix), tables)| FoundInstallation::of(adapter, schema, prefix, &tables));
    if adapter.has_each() { at_most(found) } else { found.collect() }
}

/// A candidate table of an adapter: a row of `assets/sql/adapters_find.sql`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is something of its own, as the query tells it")]
pub(super) struct AdapterTable {
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
    pub(super) tables: BTreeMap<Text, AdapterTable>,
    pub(super) refused: Option<Text>,
}

impl FoundInstallation {
    pub(super) fn of(
        adapter: &Arc<Adapter>,
        schema: &str,
        prefix: &str,
        tables: &BTreeMap<Text, &AdapterTable>,
    ) -> Self {
        let is_optional = |key: &str| adapter.table(key).is_some_and(|rule| rule.optional);
        let needed: Vec<&AdapterTable> =
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

    pub(super) fn has(&self, needs: &[RequiredColumn]) -> bool {
        needs.iter().all(|need| {
            let column = self.tables.get(&need.table).and_then(|table| table.column(&need.column));
            column.is_some_and(|column| {
                need.label.as_ref().is_none_or(|label| column.labels.iter().any(|other| **other == **label))
            })
        })
    }
}

type Rule<'a> = &'a dyn Fn(&AdapterTable, String) -> Option<String>;

fn refusal(tables: &[&AdapterTable]) -> Option<Text> {
    // The earlier rules come first, whichever table they are about.
    let rules: [Rule<'_>; 8] = [
        &|table, label| {
            let what = match &*table.kind {
                "r" | "p" if !table.is_temporary => return None,
                "f" => "a foreign table",
                "v" | "m" => "a view",
                _ => "a temporary table",
            };
            Some(format!("{label} is {what}, which is not read"))
        },
        &|table, label| {
            let part = table.foreign_part.as_deref()?;
            Some(format!("{part}, a part of {label}, is a foreign table, which is not read"))
        },
        &|table, label| {
            let stranger = table.stranger.as_deref()?;
            let what = match &table.strange_part {
                Some(part) => format!("{part}, a part of {label},"),
                None => label,
            };
            Some(format!("{what} belongs to {stranger}, who is not trusted; {}", remedy(stranger)))
        },
        &|table, label| {
            let why = "is partitioned, and a part of another table; its partitions are not searched";
            table.is_inner.then(|| format!("{label} {why}"))
        },
        &|table, label| {
            let StrangeType { owner, name } = table.strange_type.as_ref()?;
            let remedy = remedy(owner);
            Some(format!("a column of {label} has the type {name} of {owner}, who is not trusted; {remedy}"))
        },
        &|table, _| {
            let (schema, quoted) = (&table.schema, crate::text::identifier(&table.schema));
            let needed = format!("no right to use schema {schema}; GRANT USAGE ON SCHEMA {quoted} is needed");
            (!table.has_usage).then_some(needed)
        },
        &|table, label| {
            let unreadable = tables.iter().filter(|table| !table.has_select).map(|table| table.quoted());
            let all = || unreadable.collect::<Vec<_>>().join(", ");
            (!table.has_select)
                .then(|| format!("no right to read {label}; GRANT SELECT ON {} is needed", all()))
        },
        &|table, label| {
            let why = "only its owner, or a role with BYPASSRLS, can read it";
            table.has_row_security.then(|| format!("row security is in force on {label}: {why}"))
        },
    ];
    rules.iter().find_map(|why| tables.iter().find_map(|table| why(table, table.label()))).map(Text::from)
}

impl AdapterTable {
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

    pub(super) fn named(&self) -> NamedTable<'_> {
        NamedTable { oid: self.oid, schema: &self.schema, name: &self.name, is_partitioned: self.kind == "p" }
    }

    fn column(&self, name: &str) -> Option<&FoundColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    pub(super) fn fits(&self, rule: &TableRule) -> bool {
        rule.columns.iter().all(|(name, kind)| {
            self.column(name)
                .is_some_and(|column| AdapterColumnKind::of(column.oid, column.is_enum) == Some(*kind))
        })
    }
}

// Systems that have one table per queue: each queue is an installation.

/// Number of queues read per schema, for systems that have one table per queue.
const EACH: usize = 20;

/// Tables of an adapter by schema and rest of the table name, then by the adapter's key.
pub(super) type TablesBySchema<'a> = BTreeMap<(&'a str, &'a str), BTreeMap<Text, &'a AdapterTable>>;

/// Adds the tables that exist once to each queue.
fn with_common(places: &mut TablesBySchema<'_>) {
    let all = std::mem::take(places).into_iter();
    let (common, each): (TablesBySchema<'_>, TablesBySchema<'_>) =
        all.partition(|((_, rest), _)| rest.is_empty());
    *places = each;
    for ((schema, _), tables) in places {
        tables.extend(
            common.get(&(*schema, "")).into_iter().flatten().map(|(key, table)| (key.clone(), *table)),
        );
    }
}

/// The queues of a schema that are read, by name, and one more entry that reports the rest. Refused queues do not use up
/// the limit, and have the same limit of their own.
pub(super) fn at_most(found: impl Iterator<Item = FoundInstallation>) -> Vec<FoundInstallation> {
    let (mut kept, mut left) = (Vec::new(), Vec::<FoundInstallation>::new());
    let mut counts: BTreeMap<(Text, bool), usize> = BTreeMap::new();
    for one in found {
        let count = counts.entry((one.schema.clone(), one.refused.is_none())).or_default();
        *count += 1;
        match (*count > EACH, left.last()) {
            (false, _) => kept.push(one),
            (true, Some(last)) if last.schema == one.schema => {}
            (true, _) => left.push(one),
        }
    }
    for one in &mut left {
        let count = |is_read| counts.get(&(one.schema.clone(), is_read)).copied().unwrap_or_default();
        let more = count(true).saturating_sub(EACH) + count(false).saturating_sub(EACH);
        one.refused = Some(
            format!(
                "it is one of {more} queues that are not read: only the first {EACH} of a schema are, by name"
            )
            .into(),
        );
    }
    kept.extend(left);
    kept
}
