//! What a connection needs before its first poll, in one round trip.

use std::sync::Arc;

use futures_util::future::{join, join3, join4, join5};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row, SimpleQueryMessage, Statement};

use super::identity::{clock_of, encoding_of, identity_of};
use super::known::Telling;
use super::names::{self, Lookups, NameCache, by_oid};
use super::opening;
use super::{Limits, OpenError};
use crate::clock;
use crate::model::Timestamp;
use crate::model::snapshot::Server;
use crate::pg::decode::texts::Texts;
use crate::pg::sql;
use crate::pg::systems::{self, Systems};
use crate::pg::tables::Search;
use crate::pg::tasks::{self, Tasks};
use pg_connect::message;

/// The oldest major version that has what a poll reads (`pg_locks.waitstart`).
const OLDEST: u32 = 14;

/// The statements of a poll.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) tick: Statement,
    pub(super) blocking: Option<Statement>,
    pub(super) known: Statement,
    pub(super) locks: LockStatements,
    pub(super) backends: Statement,
    pub(super) prepared: Statement,
}

/// The ways to read `pg_locks`: [`sql::locks`].
#[derive(Debug)]
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

    /// The one for what the server is told.
    pub(super) fn of(&self, telling: &Telling) -> &Statement {
        let [all, without_quiet] = if telling.narrow { &self.narrow } else { &self.whole };
        if telling.tells_since() { without_quiet } else { all }
    }
}

/// What a session begins with.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) statements: Statements,
    pub(super) lookups: Lookups,
    pub(super) server: Server,
    pub(super) names: NameCache,
    pub(super) tasks: Tasks,
    pub(super) systems: Systems,
    /// The server's clock, and ours.
    pub(super) clock: Option<(Timestamp, std::time::Instant)>,
}

/// Sends everything at once, and takes what came back apart.
pub(super) async fn prepare(client: &Client, limits: &Limits) -> Result<Prepared, OpenError> {
    let own_path = opening::pinned(client).await?;
    let path: Arc<[String]> = own_path.schemas().into();
    let places = &limits.task_tables;
    let (finding, reading) = (sql::tables_find(&limits.trusted_owners), sql::reading(&limits.trusted_owners));
    let found = |places: Vec<Option<String>>, names: &'static [&'static str]| {
        found(client, &finding, places, names, &path)
    };
    // Joined futures send in the order they are written: the settings hold for all that follows.
    let ((version, settings), (identity, databases, roles), main, (blocking, known), (lookups, find)) =
        join5(
            join(client.simple_query("SHOW server_version"), opening::settings(client, limits, &own_path)),
            join3(
                client.query_typed_one(sql::IDENTITY, &[]),
                client.query_typed(sql::DATABASES, &[]),
                client.query_typed(sql::ROLES, &[]),
            ),
            Box::pin(join4(
                client.prepare_typed(sql::TICK, &[Type::OID_ARRAY]),
                LockStatements::prepare(client),
                client.prepare(sql::BACKENDS),
                client.prepare(sql::PREPARED),
            )),
            Box::pin(join(
                client.prepare_typed(sql::BLOCKING, &[Type::INT4_ARRAY]),
                client.prepare_typed(sql::KNOWN, &[Type::TEXT; 3]),
            )),
            join(
                join4(
                    client.prepare(sql::DATABASES),
                    client.prepare(sql::ROLES),
                    client.prepare_typed(sql::RELATIONS, &[Type::OID_ARRAY, Type::TEXT_ARRAY]),
                    client.prepare(sql::RIGHTS),
                ),
                Box::pin(join4(
                    client.batch_execute(&reading),
                    client.prepare_typed(&finding, &[Type::TEXT_ARRAY; 3]),
                    found(places.list(), &tasks::NAMES),
                    found(limits.system_tables.list(), &systems::NAMES),
                )),
            ),
        )
        .await;
    // An old server refuses some of the rest, in words that say nothing of its age.
    if let Some(version) = too_old(&shown(&version.map_err(|error| setup(&error))?)) {
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
    );
    let statements = Statements {
        tick: main.0.map_err(|error| setup(&error))?,
        locks: main.1.map_err(|error| setup(&error))?,
        backends: main.2.map_err(|error| setup(&error))?,
        prepared: main.3.map_err(|error| setup(&error))?,
        blocking: blocking.ok(),
        known: known.map_err(|error| setup(&error))?,
    };
    let lookups = Lookups {
        path: Arc::clone(&path),
        databases: lookups.0.ok(),
        roles: lookups.1.ok(),
        relations: lookups.2.ok(),
        rights: lookups.3.ok(),
    };
    let clock = clock_of(&identity).map(|at| (at, clock::monotonic()));
    let (plans, find, task_tables, system_tables) = find;
    plans.map_err(|error| setup(&error))?;
    let find = find.ok();
    let search = |find: Statement| Search {
        find,
        places: places.list(),
        names: tasks::NAMES.to_vec(),
        path: Arc::clone(&path),
    };
    let tasks = Tasks::open(client, places.clone(), find.clone().map(search), task_tables).await;
    let systems =
        Systems::open(client, limits.system_tables.clone(), (find, Arc::clone(&path)), system_tables).await;
    let (tasks, systems) = (tasks.with(Texts::of(encoding)), systems.with(Texts::of(encoding)));
    Ok(Prepared { statements, lookups, server, names, tasks, systems, clock })
}

/// Looks for tables, before the statement for that is prepared.
async fn found(
    client: &Client,
    find: &str,
    places: Vec<Option<String>>,
    names: &[&str],
    path: &[String],
) -> Result<Vec<Row>, Error> {
    let (places, names, path) =
        ((&places, Type::TEXT_ARRAY), (&names, Type::TEXT_ARRAY), (&path, Type::TEXT_ARRAY));
    client.query_typed(find, &[(places.0, places.1), (names.0, names.1), (path.0, path.1)]).await
}

fn setup(error: &tokio_postgres::Error) -> OpenError {
    OpenError::Setup(message(error))
}

/// The one value that `SHOW` answers with.
fn shown(messages: &[SimpleQueryMessage]) -> String {
    let value = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten(),
        _ => None,
    });
    value.unwrap_or_default().to_owned()
}

/// The version without the packager's words, where it is older than the oldest that will do.
fn too_old(version: &str) -> Option<&str> {
    let number = version.split_whitespace().next()?;
    let end = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
    let major: u32 = number.get(..end)?.parse().ok()?;
    (major < OLDEST).then_some(number)
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
