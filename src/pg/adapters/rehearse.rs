//! Checks that the statements of actions can be parsed and planned for their tables. None of them runs: they are in one
//! read-only transaction, whose tables are checked first, as before every action.

use std::fmt::Write as _;

use locktop_tasks::sql::{fill, without_comments};
use tokio_postgres::Client;

use super::ask::asked;
use super::found::FoundInstallation;
use super::frame::{Filled, statement_name, zone};
use crate::model::Text;
use crate::model::adapter::{Action, ActionKind, Rehearsal, Value};
use crate::pg::scope::Scope;
use crate::pg::section_error::SectionError;
use crate::pg::sql;
use crate::pg::tables::locked;
use crate::pg::trust::{MARK, TrustedOwners};

pub(super) async fn rehearsed(
    client: &Client,
    owners: &TrustedOwners,
    found: &FoundInstallation,
) -> Result<Vec<Rehearsal>, SectionError> {
    let mut all = Vec::new();
    if found.refused.is_some() {
        return Ok(all);
    }
    let each = ActionKind::ALL.iter().flat_map(|kind| found.adapter.actions_of(*kind));
    for (number, action) in each.filter(|(_, action)| found.has(&action.needs)) {
        let (kind, at) = (action.kind, None);
        let Some(statement) = Filled::of(found, &action.sql, |value| Some(unknown(value).to_owned())) else {
            let outcome = Err("a table that it names does not exist".into());
            all.push(Rehearsal { kind, number, outcome, at });
            continue;
        };
        let name = statement_name();
        let message = message(owners, found, action, (&name, &statement.sql));
        let (outcome, at) = match asked(client, Scope::Own, &message).await? {
            Ok(_) => (Ok(()), at),
            Err(unread) => {
                // A prepared statement survives a failed transaction.
                let _ = client.batch_execute(&format!("DEALLOCATE {name}")).await;
                (Err(unread.reason), unread.position.and_then(|at| statement.origin(&message, at)))
            }
        };
        all.push(Rehearsal { kind, number, outcome, at });
    }
    Ok(all)
}

/// A NULL of the type that the value has.
fn unknown(value: Value) -> &'static str {
    match value {
        Value::Id | Value::Worker | Value::Owner => "NULL::pg_catalog.text",
        Value::Attempt => "NULL::pg_catalog.int8",
        Value::StartedAt | Value::AcquiredAt | Value::ExpiresAt => "NULL::pg_catalog.timestamptz",
    }
}

fn message(
    owners: &TrustedOwners,
    found: &FoundInstallation,
    action: &Action,
    (name, statement): (&str, &str),
) -> String {
    let mut sql = without_comments(sql::ADAPTERS_FRAME) + &zone(found);
    let tables: Vec<_> =
        action.sql.tables().into_iter().filter_map(|key| Some((key, found.tables.get(key)?))).collect();
    sql += &locked(&tables.iter().map(|(_, table)| table.named()).collect::<Vec<_>>());
    for (key, table) in &tables {
        let [oid, schema, name] = table.named().literals();
        let _ = write!(sql, "\n{};", owners.table_guard(&oid, &schema, &name, action.writes.contains(key)));
    }
    let oids = |is_meant: &dyn Fn(&Text) -> bool| {
        let those = tables.iter().filter(|(key, _)| is_meant(key));
        those.map(|(_, table)| table.oid.to_string()).collect::<Vec<_>>().join(", ")
    };
    let written = oids(&|key| action.writes.contains(key));
    let keys = fill(&without_comments(sql::ADAPTERS_KEYS), &[("$oids", written.as_str()), ("$mark", MARK)]);
    let all = oids(&|_| true);
    let named = fill(&without_comments(sql::ADAPTERS_NAMED), &[("$oids", all.as_str()), ("$mark", MARK)]);
    let statement = format!("{statement} RETURNING 'done'::pg_catalog.text");
    let _ = write!(
        sql,
        "\n{keys};\nPREPARE {name} AS\n{statement};\n{named};\nDEALLOCATE {name};\nEXPLAIN {statement}"
    );
    sql
}
