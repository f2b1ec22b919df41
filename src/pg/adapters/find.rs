use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use postgres_protocol::escape::escape_literal;
use serde::Deserialize;
use tokio_postgres::Client;

use super::each::{Places, at_most, with_common};
use super::found::{FoundInstallation, FoundTable};
use crate::model::Text;
use crate::model::adapter::{Adapter, Need, TableName};
use crate::pg::decode::value::text;
use crate::pg::poll::raw;
use crate::pg::scope::Scope;
use crate::pg::section_error::SectionError;
use crate::pg::sql;
use crate::pg::trust::TrustedOwners;

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
    let (mut tables, mut left) = (Vec::<FoundTable>::new(), Vec::<LeftOut>::new());
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

fn needs(adapter: &Adapter) -> impl Iterator<Item = &Need> {
    let versions = adapter.versions.iter().flat_map(|version| &version.needs);
    let queries = adapter.queries.iter().flat_map(|query| &query.needs);
    versions.chain(queries).chain(adapter.actions.iter().flat_map(|action| &action.needs))
}

fn installations(adapter: &Arc<Adapter>, tables: &[FoundTable]) -> Vec<FoundInstallation> {
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
    let found =
        whole.map(|((schema, prefix), tables)| FoundInstallation::of(adapter, schema, prefix, &tables));
    if adapter.has_each() { at_most(found) } else { found.collect() }
}
