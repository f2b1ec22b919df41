//! Everything that a connection needs before its first poll, in one round trip.

use std::sync::Arc;

use futures_util::future::{join, join3, join4};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Statement};

use super::known::ChangesToSend;
use super::link::{self, value};
use super::names::{self, NameCache, by_oid};
use super::opening::{self, clock_of, encoding_of, identity_of};
use super::{OpenError, PollError, PollLimits};
use crate::clock;
use crate::model::Timestamp;
use crate::model::snapshot::Server;
use crate::pg::Scope;
use crate::pg::decode::Texts;
use crate::pg::jobs::adapters::Adapters;
use crate::pg::jobs::sources::{self, Search, Sources};
use crate::pg::sql;
use pg_connect::connect::SearchPath;
use pg_connect::{message, refusal};

/// The oldest major version that has what a poll reads (`pg_locks.waitstart`).
const OLDEST: u32 = 14;

#[derive(Debug, Clone)]
pub(super) struct PollStatements {
    pub(super) tick: Statement,
    pub(super) blocking: Option<Statement>,
    pub(super) known: Statement,
    pub(super) locks: LockStatements,
    pub(super) backends: Statement,
    pub(super) prepared: Statement,
}

impl PollStatements {
    /// Takes one round trip.
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let (main, (blocking, known)) = join(
            Box::pin(join4(
                client.prepare_typed(sql::TICK, &[Type::OID_ARRAY]),
                LockStatements::prepare(client),
                client.prepare(sql::BACKENDS),
                client.prepare(sql::PREPARED),
            )),
            Box::pin(join(
                client.prepare_typed(sql::BLOCKING, &[Type::INT4_ARRAY; 2]),
                client.prepare_typed(sql::KNOWN, &[Type::TEXT; 3]),
            )),
        )
        .await;
        let (tick, locks, backends, prepared) = main;
        Ok(Self {
            tick: tick?,
            locks: locks?,
            backends: backends?,
            prepared: prepared?,
            blocking: blocking.ok(),
            known: known?,
        })
    }
}

#[derive(Debug, Clone)]
pub(super) struct LockStatements {
    whole: [Statement; 2],
    narrow: [Statement; 2],
}

impl LockStatements {
    async fn prepare(client: &Client) -> Result<Self, Error> {
        let prepare = async |narrow, quiet| client.prepare(&sql::locks(narrow, quiet)).await;
        let all =
            join4(prepare(false, false), prepare(false, true), prepare(true, false), prepare(true, true));
        let (whole, whole_quiet, narrow, narrow_quiet) = all.await;
        Ok(Self { whole: [whole?, whole_quiet?], narrow: [narrow?, narrow_quiet?] })
    }

    /// The statement that matches what the server receives.
    pub(super) fn of(&self, telling: &ChangesToSend) -> &Statement {
        let [all, without_quiet] = if telling.narrow { &self.narrow } else { &self.whole };
        if telling.sends_since() { without_quiet } else { all }
    }
}

#[derive(Debug)]
pub(super) struct PreparedStatements {
    /// None if they ended with the transaction in which they were made.
    pub(super) statements: Option<PollStatements>,
    pub(super) own_path: SearchPath,
    pub(super) server: Server,
    pub(super) names: NameCache,
    pub(super) sources: Sources,
    pub(super) adapters: Adapters,
    /// The server's clock, and locktop's.
    pub(super) clock: Option<(Timestamp, std::time::Instant)>,
}

/// Sends everything at once, then splits the answers.
pub(super) async fn prepare(
    client: &Client,
    limits: &PollLimits,
    scope: Scope,
) -> Result<PreparedStatements, OpenError> {
    let own_path = opening::pinned(client).await?;
    let path: Arc<[String]> = own_path.schemas().into();
    let reading = sql::reading(&limits.trusted_owners);
    let search = Search {
        find: sql::tables_find(&limits.trusted_owners).into(),
        names: sources::names().into(),
        places: limits.tables.clone(),
        path: with_public(&path),
        scope,
    };
    let began = clock::monotonic();
    // Joined futures send in the order in which they are written: the settings apply to all that follows.
    let ((version, settings), (identity, databases, roles), statements, (plans, tables)) = join4(
        join(client.simple_query("SHOW server_version"), opening::settings(client, limits, &own_path, scope)),
        join3(
            client.query_typed_one(sql::IDENTITY, &[]),
            scope.alone(client, client.query_typed(sql::DATABASES, &[])),
            scope.alone(client, client.query_typed(sql::ROLES, &[])),
        ),
        Box::pin(PollStatements::prepare(client)),
        Box::pin(join(client.batch_execute(&reading), search.rows(client))),
    )
    .await;
    // An old server refuses some of the rest with errors that do not mention its version.
    if let Some(version) = value(&version.map_err(|error| setup(&error))?).and_then(too_old) {
        return Err(OpenError::TooOld(version.to_owned()));
    }
    settings.map_err(|error| setup(&error))?;
    let identity = identity.map_err(|error| setup(&error))?;
    let server = identity_of(&identity);
    let encoding = encoding_of(&identity);
    let names = NameCache::new(
        server.datid,
        encoding,
        names::databases(&databases.unwrap_or_default(), encoding),
        by_oid(&roles.unwrap_or_default(), encoding),
        Arc::clone(&path),
    );
    let statements = Some(statements.map_err(|error| setup(&error))?);
    let clock = clock_of(&identity).map(|at| (at, clock::monotonic()));
    plans.map_err(|error| match error.code() {
        Some(&SqlState::DUPLICATE_PSTATEMENT) if scope == Scope::Own => OpenError::Pooled,
        _ => setup(&error),
    })?;
    let sources = Sources::open(client, search, (tables, began), Texts::of(encoding)).await;
    let adapters = Adapters::new(limits, scope, Texts::of(encoding));
    Ok(PreparedStatements { statements, own_path, server, names, sources, adapters, clock })
}

/// Schemas for bare table names: the search path, then `public`, where an application without a path has its tables. The
/// path is set by the owner of the database or by the role, and could hide those tables.
fn with_public(path: &[String]) -> Arc<[String]> {
    let public = "public".to_owned();
    path.iter().cloned().chain(Some(public).filter(|name| !path.contains(name))).collect()
}

fn setup(error: &tokio_postgres::Error) -> OpenError {
    OpenError::Setup(message(error))
}

/// The version without the packager's suffix, if it is too old.
fn too_old(version: &str) -> Option<&str> {
    let number = version.split_whitespace().next()?;
    let end = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
    let major: u32 = number.get(..end)?.parse().ok()?;
    (major < OLDEST).then_some(number)
}

// A poll behind a pooler in transaction mode.
// Each poll is one transaction: it makes the session's settings, prepares its statements, reads and returns the
// session. The settings end with the transaction (PostgreSQL's documentation, "SET"). Prepared statements do not, and
// are closed by name before. If the connection breaks in between, the pooler closes the session, since a transaction
// is open in it.

/// Nothing else is sent before its answer: outside of a transaction a setting would persist.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY";

/// How sessions are borrowed, poll by poll.
#[derive(Debug)]
pub(super) struct PooledTransaction {
    path: SearchPath,
    /// The guard of tables, as in [`sql::reading`].
    reading: String,
    limits: PollLimits,
}

/// Everything that a connection needs before its first poll, in one transaction. The statements end with it.
pub(super) async fn prepare_pooled(
    client: &Client,
    limits: &PollLimits,
) -> Result<PreparedStatements, OpenError> {
    // A pooler in statement mode reports a protocol violation.
    client.batch_execute(BEGIN).await.map_err(|error| match error.code() {
        Some(&SqlState::PROTOCOL_VIOLATION) => link::refused("statement", "a poll takes a transaction"),
        _ => setup(&error),
    })?;
    let mut ready = Box::pin(prepare(client, limits, Scope::Open)).await?;
    give_back(client, ready.statements.take(), true).await.map_err(|error| setup(&error))?;
    Ok(ready)
}

impl PooledTransaction {
    pub(super) fn new(path: SearchPath, limits: &PollLimits) -> Self {
        Self { path, reading: sql::reading(&limits.trusted_owners), limits: limits.clone() }
    }

    /// The process ID of the session, and its statements. Takes two round trips. `reads`: there are tables to read.
    pub(super) async fn begin(
        &self,
        client: &Client,
        reads: bool,
    ) -> Result<(i32, PollStatements), PollError> {
        let lost = |error: Error| PollError::Lost(message(&error));
        let own_pid = begin(client).await.map_err(lost)?;
        let (set, reading, statements) = join3(
            opening::settings(client, &self.limits, &self.path, Scope::Open),
            client.batch_execute(if reads { &self.reading } else { "" }),
            Box::pin(PollStatements::prepare(client)),
        )
        .await;
        set.and(reading).map_err(lost)?;
        Ok((own_pid, statements.map_err(lost)?))
    }
}

/// Begins, and returns the process ID of the session. Its state is left by other clients, so the settings are made each
/// time.
async fn begin(client: &Client) -> Result<i32, Error> {
    let begin =
        format!("{BEGIN}; {} SELECT pg_catalog.pg_backend_pid()", pg_connect::connect::local_settings());
    let answer = client.simple_query(&begin).await?;
    Ok(value(&answer).and_then(|pid| pid.parse().ok()).unwrap_or_default())
}

/// Restores and returns the session; `reads` as in the call of `begin`.
pub(super) async fn give_back(
    client: &Client,
    statements: Option<PollStatements>,
    reads: bool,
) -> Result<(), Error> {
    // The driver closes each statement when its last reference is dropped, in the order of sending.
    drop(statements);
    let guard = if reads { format!("; DEALLOCATE {}", sql::guard()) } else { String::new() };
    match client.batch_execute(&format!("ROLLBACK{guard}")).await {
        // If the guard never existed, there is nothing to undo.
        Err(error) if refusal(&error).is_none() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_before_14_are_too_old() {
        for (version, expected) in [
            ("13.14 (Debian 13.14-1.pgdg120+1)", Some("13.14")),
            ("13beta1", Some("13beta1")),
            ("9.6.24", Some("9.6.24")),
            ("14.0", None),
            ("14beta1", None),
            ("18devel", None),
            ("", None),
            ("somebody's own", None),
        ] {
            assert_eq!(too_old(version), expected, "{version}");
        }
        let error = OpenError::TooOld("13.14".to_owned());
        assert_eq!(error.to_string(), "PostgreSQL 13.14: locktop needs 14 or later");
        assert!(!error.is_temporary());
    }
}
