//! The statements of a poll, as they are in `assets/sql`.
//!
//! They read the functions below the system views (`src/backend/catalog/system_views.sql`) wherever there is one,
//! so that a poll opens no catalog and waits for no lock on one.

use std::sync::LazyLock;
use std::time::Duration;

use locktop_tasks::sql::{fill, without_comments};
use locktop_tasks::trust::TrustedOwners;

/// Session settings; see [`settings`].
const SETTINGS: &str = include_str!("../../assets/sql/settings.sql");
/// What stays the same for as long as a connection lives.
pub(super) const IDENTITY: &str = include_str!("../../assets/sql/identity.sql");
/// The server's clock and counters.
pub(super) const TICK: &str = include_str!("../../assets/sql/tick.sql");
/// `pg_blocking_pids` and `pg_safe_snapshot_blocking_pids` of some waiters.
pub(super) const BLOCKING: &str = include_str!("../../assets/sql/blocking.sql");
/// What this poll knows from the last.
pub(super) const KNOWN: &str = include_str!("../../assets/sql/known.sql");
const LOCKS: &str = include_str!("../../assets/sql/locks.sql");
const LOCKS_NARROW: &str = include_str!("../../assets/sql/locks_narrow.sql");
/// Whose locks need not come again.
const QUIET: &str = include_str!("../../assets/sql/quiet.sql");
/// The same where nothing is known: it reads nothing, so that locks are there also where sessions may not be read.
const NOBODY: &str = "SELECT NULL::pg_catalog.int4 AS signed, NULL::pg_catalog.int4 AS pid WHERE false";
/// `pg_stat_activity`: the groups of sessions in which something has changed since the last poll.
pub(super) const BACKENDS: &str = include_str!("../../assets/sql/backends.sql");
/// `pg_prepared_xacts`: all prepared transactions, with the OIDs of owner and database.
pub(super) const PREPARED: &str = include_str!("../../assets/sql/prepared.sql");
/// Names and encodings of all databases, by OID.
pub(super) const DATABASES: &str = include_str!("../../assets/sql/databases.sql");
/// Names of all roles, by OID.
pub(super) const ROLES: &str = include_str!("../../assets/sql/roles.sql");
/// What the role may do and see.
pub(super) const RIGHTS: &str = include_str!("../../assets/sql/rights.sql");
/// Names of these relations, which are of the session's database or shared; with the schema off the search
/// path.
pub(super) const RELATIONS: &str = include_str!("../../assets/sql/relations.sql");

/// Names of these objects, of the session's database or shared.
pub(super) const OBJECTS: &str = include_str!("../../assets/sql/objects.sql");

/// The relations that a statement names.
pub(super) const LOCK_OF: &str = include_str!("../../assets/sql/lock_of.sql");
pub(super) const LOCK_OF_FOUND: &str = include_str!("../../assets/sql/lock_of_found.sql");
pub(super) const LOCK_OF_OTHERS: &str = include_str!("../../assets/sql/lock_of_others.sql");
pub(super) const LOCK_OF_OBJECTS: &str = include_str!("../../assets/sql/lock_of_objects.sql");
pub(super) const LOCK_OF_ELSEWHERE: &str = include_str!("../../assets/sql/lock_of_elsewhere.sql");

/// The tables there are of those that a poll reads.
const TABLES_FIND: &str = include_str!("../../assets/sql/tables_find.sql");

/// The tables there are that may belong to the job systems of others.
pub(super) const ADAPTERS_FIND: &str = include_str!("../../assets/sql/adapters_find.sql");
/// What a query of an adapter is sent behind.
pub(super) const ADAPTERS_FRAME: &str = include_str!("../../assets/sql/adapters_frame.sql");
/// Nothing else is named than its tables.
pub(super) const ADAPTERS_NAMED: &str = include_str!("../../assets/sql/adapters_named.sql");
/// Foreign keys of the tables that an action writes.
pub(super) const ADAPTERS_KEYS: &str = include_str!("../../assets/sql/adapters_keys.sql");
/// How many rows the relations of an adapter's queries have, by the planner's statistics, and which indexes
/// are partial.
pub(super) const ADAPTERS_SIZES: &str = include_str!("../../assets/sql/adapters_sizes.sql");

/// What the statement is called that guards a table before it is read.
pub(super) fn guard() -> &'static str {
    // Random: a session that a pooler lends may have one left by somebody.
    static NAME: LazyLock<String> = LazyLock::new(|| format!("locktop_guard_{:016x}", fastrand::u64(..)));
    &NAME
}

/// `pg_locks`: all of it, or, where it is `narrow`, advisory and awaited locks only; without those of `quiet` sessions.
pub(super) fn locks(narrow: bool, quiet: bool) -> String {
    let sql = if narrow { LOCKS_NARROW } else { LOCKS };
    let quiet = if quiet { without_comments(QUIET) } else { NOBODY.to_owned() };
    fill(&without_comments(sql), &[("$quiet", &quiet)])
}

/// Looks for tables: `assets/sql/tables_find.sql`.
pub(super) fn tables_find(owners: &TrustedOwners) -> String {
    owners.filled(TABLES_FIND, &[])
}

/// Prepares what guards a table before it is read, under the name [`guard`].
pub(super) fn prepare_guard(owners: &TrustedOwners) -> String {
    let guard = owners.table_guard("$1", "$2", "$3", false);
    format!("PREPARE {} (pg_catalog.oid, pg_catalog.name, pg_catalog.name) AS {guard}", self::guard())
}

/// The same, and says how tables are read from then on.
pub(super) fn reading(owners: &TrustedOwners) -> String {
    format!("{}; {PLANS}", prepare_guard(owners))
}

/// How the tables of users are read: by an index wherever there is one, whatever the planner believes of their rows. Its numbers
/// are old right after a crowd of rows came or went, and a poll must not read a million rows then.
const PLANS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off";

/// What a query for names is sent in; see [`crate::pg::learn`].
pub(super) const LEARN_FRAME: &str = include_str!("../../assets/sql/learn/frame.sql");
/// Which of the tables below there are, and where.
pub(super) const LEARN_TABLES: &str = include_str!("../../assets/sql/learn/tables.sql");
/// The key that `pg_partman` locks for its maintenance, in the form `(key, name)`.
pub(super) const LEARN_PG_PARTMAN: &str = include_str!("../../assets/sql/learn/pg_partman.sql");
/// Keys of pgmq's queues, from its table `meta`.
pub(super) const LEARN_PGMQ: &str = include_str!("../../assets/sql/learn/pgmq.sql");
/// Keys of `GoodJob`'s jobs, by the ids of their rows.
pub(super) const LEARN_GOOD_JOBS: &str = include_str!("../../assets/sql/learn/good_jobs.sql");
/// Keys of `GoodJob`'s jobs, by the ids of Active Job.
pub(super) const LEARN_GOOD_JOBS_ACTIVE: &str = include_str!("../../assets/sql/learn/good_jobs_active.sql");
/// Keys of `GoodJob`'s jobs that are done.
pub(super) const LEARN_GOOD_JOBS_FINISHED: &str =
    include_str!("../../assets/sql/learn/good_jobs_finished.sql");
/// What Flyway hashes to a key.
pub(super) const LEARN_FLYWAY: &str = include_str!("../../assets/sql/learn/flyway.sql");
/// What golang-migrate hashes to a key.
pub(super) const LEARN_GOLANG_MIGRATE: &str = include_str!("../../assets/sql/learn/golang_migrate.sql");
/// Keys of `GoodJob`'s processes, from its table `good_job_processes`.
pub(super) const LEARN_GOOD_JOB_PROCESSES: &str =
    include_str!("../../assets/sql/learn/good_job_processes.sql");
/// Keys of Que's jobs, from its table `que_jobs`.
pub(super) const LEARN_QUE: &str = include_str!("../../assets/sql/learn/que.sql");
/// Keys of Terraform's states, from its table `states`.
pub(super) const LEARN_TERRAFORM: &str = include_str!("../../assets/sql/learn/terraform.sql");

/// For a connection that asks nothing about other databases: the server's words arrive in UTF-8 wherever it can convert them.
pub(super) const WORDS: &str = "SELECT pg_catalog.set_config('client_encoding', \
     CASE WHEN pg_catalog.getdatabaseencoding() IN ('UTF8', 'SQL_ASCII', 'MULE_INTERNAL') THEN 'SQL_ASCII' ELSE 'UTF8' END, false)";

/// The statements that limit a session, for the simple protocol, and the search path. None of them reads a catalog.
pub(super) fn timeouts(statement_timeout: Duration, lock_timeout: Duration) -> String {
    let (statement, lock) = (statement_timeout.as_millis(), lock_timeout.as_millis());
    format!(
        "SET search_path = pg_catalog, pg_temp; SET statement_timeout = {statement}; SET lock_timeout = {lock}"
    )
}

/// The statement that sets a session up, for the simple protocol.
pub(super) fn settings() -> String {
    without_comments(SETTINGS)
}

/// Where nobody goes on with a transaction behind a pooler, it must not keep the session of others for long.
pub(super) const IDLE: &str = "SET idle_in_transaction_session_timeout = 10000";

/// A long text, for glibc: once a block of its size was freed, it no longer gives memory back after every statement, to take it again page by
/// page (`mallopt(3)`, `M_MMAP_THRESHOLD`), which costs a tenth of the server's time for a poll. It takes 15 ms, once in a session.
pub(super) const KEEP_MEMORY: &str =
    "SELECT pg_catalog.octet_length(pg_catalog.repeat(pg_catalog.repeat(' ', 1000), 8000))";

/// Both, for the end of a longer message.
pub(super) fn all_settings(statement_timeout: Duration, lock_timeout: Duration) -> String {
    format!("{}; {}", timeouts(statement_timeout, lock_timeout), settings())
}
