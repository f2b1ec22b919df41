//! Opens a worker's session; refuses a connection on which its locks would not be safe.

use std::time::Duration;

use futures_util::future::join_all;
use tokio_postgres::{Client, Statement};

use super::error::OpenError;
use super::rights;
use super::source::bytes;
use super::source::{QUIET, Source, Statements};
use crate::schema::{LATEST, Schema, SchemaError, State, state};
use locktop_locks::pooler;
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

#[derive(Debug)]
pub(super) struct All {
    tasks: Statements,
    queue: Statements,
    /// For the queue only: fetching a task includes it.
    pub(super) requeue: Statement,
    pub(super) notify: Statement,
    /// When each source has work, in the order of [`Source::ALL`].
    pub(super) glance: Statement,
    pub(super) observe: Statement,
    pub(super) announce: Statement,
    pub(super) purge: Statement,
    /// For tasks only: an item's advisory lock blocks no other session.
    pub(super) release_idle: Statement,
}

impl All {
    pub(super) fn of(&self, source: Source) -> &Statements {
        match source {
            Source::Tasks => &self.tasks,
            Source::Queue => &self.queue,
        }
    }
}

/// Connects, checks that session locks are safe and that the schema has the expected version, and listens.
pub(super) async fn open(
    info: &ConnInfo,
    schema: &Schema,
    sources: &[Source],
) -> Result<(Listening, All), OpenError> {
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
) -> Result<All, OpenError> {
    client.batch_execute(SETTINGS).await?;
    join_all(WISHES.map(|wish| client.batch_execute(wish))).await;
    check(client, info, schema, sources).await?;
    rights::check(client, &schema.name, sources).await?;
    let statements = statements(client, &schema.quoted()).await?;
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
            let role: String = client.query_one(rights::ROLE, &[]).await?.try_get(0)?;
            Err(OpenError::Forbidden { message, needs: rights::needs(schema, &role, sources) })
        }
        Err(SchemaError::Connection(reason)) => Err(OpenError::Lost(reason)),
        Err(error) => Err(OpenError::Schema(error)),
    }
}

async fn statements(client: &Client, schema: &str) -> Result<All, tokio_postgres::Error> {
    Ok(All {
        tasks: Source::Tasks.statements(client, schema).await?,
        queue: Source::Queue.statements(client, schema).await?,
        requeue: client
            .prepare(&format!(
                "SELECT r.task_id, r.outcome, {} FROM {schema}.requeue_lost_items($1, $2) r",
                bytes("coalesce(r.detail, '')")
            ))
            .await?,
        observe: client.prepare(&format!("SELECT {schema}.observe_lock_waits()")).await?,
        announce: client
            .prepare(&format!("SELECT {schema}.announce_worker($1, $2, $3, $4)::pg_catalog.text"))
            .await?,
        purge: client
            .prepare(&format!(
                "SELECT p.log, p.keep::pg_catalog.text, p.removed, p.may FROM {schema}.purge_step() p"
            ))
            .await?,
        glance: client
            .prepare(&format!(
                "SELECT ({}), ({})",
                Source::Tasks.due(schema, "$1"),
                Source::Queue.due(schema, "$1")
            ))
            .await?,
        notify: client.prepare("SELECT pg_catalog.pg_notify($1, $2)").await?,
        release_idle: client.prepare(&format!("SELECT {schema}.release_idle_task_keys($1)")).await?,
    })
}
