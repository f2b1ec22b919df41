//! Opens a worker's session; refuses a connection on which its locks would not be safe.

use std::time::Duration;

use futures_util::future::join_all;
use postgres_protocol::escape::escape_identifier;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::error::OpenError;
use super::source::{QUIET, Source, Statements};
use crate::schema::{LATEST, Schema, SchemaError, State, state};
use locktop_locks::{SchemaName, pooler};
use pg_connect::connect::{Listening, listen, pin};
use pg_connect::conninfo::ConnInfo;

/// Time limit for the whole setup after the connection is made.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Required settings: no timeout for idle sessions, short statements, and an isolation level in which the functions see
/// what other sessions have committed, regardless of the role's defaults.
const SETTINGS: &str = "\
SET statement_timeout = '8s';
SET lock_timeout = '3s';
SET idle_session_timeout = 0;
SET default_transaction_isolation = 'read committed';
SET default_transaction_deferrable = off";

/// Optional settings: the server detects within a minute that the client host is lost, and within seconds that the
/// client process is. Some platforms refuse them.
const WISHES: [&str; 5] = [
    "SET client_connection_check_interval = '5s'",
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
    "SET tcp_user_timeout = '60s'",
];

/// Connects, checks that session locks are safe and that the schema has the expected version, and listens.
pub(super) async fn open(
    info: &ConnInfo,
    schema: &Schema,
    sources: &[Source],
) -> Result<(Listening, Statements), OpenError> {
    let mut connection = listen(info).await.map_err(OpenError::Connect)?;
    let setup = async {
        // First of all: a setting would stay on a pooled server connection.
        pooler::refuse_transaction_mode(&connection.client, info).await.map_err(OpenError::Pooler)?;
        pin(&connection.client).await?;
        prepare(&mut connection.client, info, schema, sources).await
    };
    let statements = tokio::time::timeout(TIMEOUT, setup)
        .await
        .map_err(|_| OpenError::Lost(format!("no answer within {} s", TIMEOUT.as_secs())))??;
    Ok((connection, statements))
}

async fn prepare(
    client: &mut Client,
    info: &ConnInfo,
    schema: &Schema,
    sources: &[Source],
) -> Result<Statements, OpenError> {
    client.batch_execute(SETTINGS).await?;
    join_all(WISHES.map(|wish| client.batch_execute(wish))).await;
    check(client, info, schema, sources).await?;
    check_rights(client, &schema.name, sources).await?;
    let statements = Statements::prepare(client, &schema.quoted()).await?;
    // A role that may not see its own session fails here, not at the first task.
    client.batch_execute(&format!("SELECT {}.own_backend_start()", schema.quoted())).await?;
    // Before the first poll, so that no notification is missed.
    let channels = sources.iter().map(|source| source.channel()).chain([QUIET]);
    let listen: Vec<_> = channels.map(|channel| format!("LISTEN {channel}")).collect();
    client.batch_execute(&listen.join("; ")).await?;
    Ok(statements)
}

async fn check(
    client: &mut Client,
    info: &ConnInfo,
    place: &Schema,
    sources: &[Source],
) -> Result<(), OpenError> {
    let schema = &place.name;
    let standby = client.query_one("SELECT pg_catalog.pg_is_in_recovery()", &[]).await?;
    if standby.try_get(0)? {
        return Err(OpenError::Standby);
    }
    match state(client, place.clone()).await {
        Ok(State::Installed { version, .. }) if version == LATEST => Ok(()),
        Ok(State::Installed { version, .. }) if version < LATEST => {
            Err(OpenError::OldSchema { schema: schema.clone(), found: version })
        }
        Ok(State::Installed { version, .. }) => Err(OpenError::Schema(SchemaError::Newer {
            schema: schema.clone(),
            found: version,
            known: LATEST,
        })),
        Ok(State::Foreign) => Err(OpenError::Schema(SchemaError::Foreign(schema.clone()))),
        Ok(State::Absent) => {
            Err(OpenError::NoSchema { schema: schema.clone(), database: info.dbname().to_owned() })
        }
        Err(SchemaError::Forbidden { message, .. }) => {
            let role: String = client.query_one(ROLE, &[]).await?.try_get(0)?;
            Err(OpenError::Forbidden { message, needs: needs(schema, &role, sources) })
        }
        Err(SchemaError::Connection(reason)) => Err(OpenError::Lost(reason)),
        Err(error) => Err(OpenError::Schema(error)),
    }
}

/// Tables and sequences, with the privileges needed whenever there is work.
const TASKS: [(&str, &str); 6] = [
    ("scheduled_tasks", "SELECT"),
    ("scheduled_tasks", "UPDATE"),
    ("task_execution_log", "SELECT"),
    ("task_execution_log", "INSERT"),
    ("task_execution_log", "UPDATE"),
    ("task_execution_log_id_seq", "USAGE"),
];
const QUEUE: [(&str, &str); 2] = [("task_queue", "SELECT"), ("task_queue", "UPDATE")];

const ROLE: &str = "SELECT current_user::pg_catalog.text";

/// A privilege on some of the columns is enough, for roles with column grants.
const LACKS: &str = "SELECT current_user::pg_catalog.text, w.what || ' on ' || w.name
  FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.text[])) WITH ORDINALITY AS w (name, what, place)
  JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
  JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = w.name
 WHERE NOT CASE WHEN c.relkind = 'S' THEN pg_catalog.has_sequence_privilege(c.oid, w.what)
                ELSE pg_catalog.has_any_column_privilege(c.oid, w.what) END
 ORDER BY w.place";

/// Checks the privileges of the role at the start, before a task fails for lack of one.
async fn check_rights(client: &Client, schema: &SchemaName, sources: &[Source]) -> Result<(), OpenError> {
    let wanted = sources.iter().flat_map(|source| match source {
        Source::Tasks => &TASKS[..],
        Source::Queue => &QUEUE[..],
    });
    let (names, rights): (Vec<&str>, Vec<&str>) = wanted.copied().unzip();
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&schema.as_str(), Type::TEXT), (&names, Type::TEXT_ARRAY), (&rights, Type::TEXT_ARRAY)];
    let rows = client.query_typed(LACKS, &values).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let (role, first): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let more = if rows.len() > 1 { format!(" and {} more rights", rows.len() - 1) } else { String::new() };
    let message = format!("role {} has no {first}{more}", escape_identifier(&role));
    Err(OpenError::Forbidden { message, needs: needs(schema, &role, sources) })
}

/// The GRANT statements for everything that a worker needs, including what it only does after a crash.
fn needs(schema: &SchemaName, role: &str, sources: &[Source]) -> String {
    let (name, role) = (schema.quoted(), escape_identifier(role));
    let mut tables = Vec::new();
    for source in sources {
        tables.extend(match source {
            Source::Tasks => &["scheduled_tasks", "task_execution_log"][..],
            Source::Queue => &["task_queue"][..],
        });
    }
    let full =
        |tables: &[&str]| tables.iter().map(|table| format!("{name}.{table}")).collect::<Vec<_>>().join(", ");
    tables.push("locktop_workers");
    let added: &[&str] = if sources.contains(&Source::Tasks) {
        &["task_execution_log", "locktop_audit", "locktop_workers"]
    } else {
        &["locktop_audit", "locktop_workers"]
    };
    [
        format!("GRANT USAGE ON SCHEMA {name} TO {role}"),
        format!("GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role}"),
        format!("GRANT UPDATE ON {} TO {role}", full(&tables)),
        format!("GRANT INSERT ON {} TO {role}", full(added)),
        format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO {role}"),
    ]
    .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_needs_its_own_tables() {
        let of = |sources: &[Source]| needs(&SchemaName::default(), "w", sources);
        assert_eq!(
            of(&[Source::Queue]),
            "GRANT USAGE ON SCHEMA \"locktop\" TO \"w\"; GRANT SELECT ON ALL TABLES IN SCHEMA \"locktop\" TO \"w\"; \
             GRANT UPDATE ON \"locktop\".task_queue, \"locktop\".locktop_workers TO \"w\"; \
             GRANT INSERT ON \"locktop\".locktop_audit, \"locktop\".locktop_workers TO \"w\"; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA \"locktop\" TO \"w\""
        );
        let both = of(&Source::ALL);
        assert!(both.contains("GRANT UPDATE ON \"locktop\".scheduled_tasks, \"locktop\".task_execution_log, \"locktop\".task_queue, "));
        assert!(
            both.contains("GRANT INSERT ON \"locktop\".task_execution_log, \"locktop\".locktop_audit, \"locktop\".locktop_workers TO")
        );
    }
}
