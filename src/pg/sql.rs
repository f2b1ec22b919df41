//! The statements of a poll, from `assets/sql`.
//!
//! They read the functions below the system views (`src/backend/catalog/system_views.sql`) if there is one, so that a
//! poll opens no catalog and waits for no lock on one.

use std::sync::LazyLock;
use std::time::Duration;

use locktop_tasks::sql::{fill, without_comments};
use locktop_tasks::trust::TrustedOwners;

const SETTINGS: &str = include_str!("../../assets/sql/settings.sql");
pub(super) const IDENTITY: &str = include_str!("../../assets/sql/identity.sql");
pub(super) const TICK: &str = include_str!("../../assets/sql/tick.sql");
/// `pg_blocking_pids` and `pg_safe_snapshot_blocking_pids` of some waiters.
pub(super) const BLOCKING: &str = include_str!("../../assets/sql/blocking.sql");
pub(super) const KNOWN: &str = include_str!("../../assets/sql/known.sql");
const LOCKS: &str = include_str!("../../assets/sql/locks.sql");
const LOCKS_NARROW: &str = include_str!("../../assets/sql/locks_narrow.sql");
/// Sessions that need not send their locks again.
const QUIET: &str = include_str!("../../assets/sql/quiet.sql");
/// The same if nothing is known. It reads nothing, so that locks are also available if sessions may not be read.
const NO_BLOCKERS: &str = "SELECT NULL::pg_catalog.int4 AS signed, NULL::pg_catalog.int4 AS pid WHERE false";
/// `pg_stat_activity`: the groups of sessions that have changed since the last poll.
pub(super) const BACKENDS: &str = include_str!("../../assets/sql/backends.sql");
pub(super) const PREPARED: &str = include_str!("../../assets/sql/prepared.sql");
pub(super) const DATABASES: &str = include_str!("../../assets/sql/databases.sql");
pub(super) const ROLES: &str = include_str!("../../assets/sql/roles.sql");
pub(super) const RIGHTS: &str = include_str!("../../assets/sql/rights.sql");
/// Names of these relations, of the session's database or shared; with the schema if it is not on the search path.
pub(super) const RELATIONS: &str = include_str!("../../assets/sql/relations.sql");

pub(super) const OBJECTS: &str = include_str!("../../assets/sql/objects.sql");

pub(super) const LOCK_OF: &str = include_str!("../../assets/sql/lock_of.sql");
pub(super) const LOCK_OF_FOUND: &str = include_str!("../../assets/sql/lock_of_found.sql");
pub(super) const LOCK_OF_OTHERS: &str = include_str!("../../assets/sql/lock_of_others.sql");
pub(super) const LOCK_OF_OBJECTS: &str = include_str!("../../assets/sql/lock_of_objects.sql");
pub(super) const LOCK_OF_ELSEWHERE: &str = include_str!("../../assets/sql/lock_of_elsewhere.sql");

const TABLES_FIND: &str = include_str!("../../assets/sql/tables_find.sql");

pub(super) const ADAPTERS_FIND: &str = include_str!("../../assets/sql/adapters_find.sql");
pub(super) const ADAPTERS_FRAME: &str = include_str!("../../assets/sql/adapters_frame.sql");
pub(super) const ADAPTERS_NAMED: &str = include_str!("../../assets/sql/adapters_named.sql");
pub(super) const ADAPTERS_KEYS: &str = include_str!("../../assets/sql/adapters_keys.sql");
/// Rows of the relations in an adapter's queries, from the planner's statistics, and which indexes are partial.
pub(super) const ADAPTERS_SIZES: &str = include_str!("../../assets/sql/adapters_sizes.sql");

/// Name of the prepared statement that guards a table before it is read.
pub(super) fn guard() -> &'static str {
    // Random: a session from a pooler may have a guard left by another client.
    static NAME: LazyLock<String> = LazyLock::new(|| format!("locktop_guard_{:016x}", fastrand::u64(..)));
    &NAME
}

/// `pg_locks`: all of it or, if `narrow`, only advisory and awaited locks; without those of `quiet` sessions.
pub(super) fn locks(narrow: bool, quiet: bool) -> String {
    let sql = if narrow { LOCKS_NARROW } else { LOCKS };
    let quiet = if quiet { without_comments(QUIET) } else { NO_BLOCKERS.to_owned() };
    fill(&without_comments(sql), &[("$quiet", &quiet)])
}

pub(super) fn tables_find(owners: &TrustedOwners) -> String {
    owners.filled(TABLES_FIND, &[])
}

pub(super) fn prepare_guard(owners: &TrustedOwners) -> String {
    let guard = owners.table_guard("$1", "$2", "$3", false);
    format!("PREPARE {} (pg_catalog.oid, pg_catalog.name, pg_catalog.name) AS {guard}", self::guard())
}

/// The same, and sets how tables are read from then on.
pub(super) fn reading(owners: &TrustedOwners) -> String {
    format!("{}; {PLANS}", prepare_guard(owners))
}

/// User tables are read by an index if there is one, whatever the planner estimates. Its statistics are outdated right
/// after many rows were added or removed, and a poll must not read a million rows then.
const PLANS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off";

pub(super) const LEARN_FRAME: &str = include_str!("../../assets/sql/learn/frame.sql");
pub(super) const LEARN_TABLES: &str = include_str!("../../assets/sql/learn/tables.sql");

/// For a connection that reads nothing about other databases: the server's messages arrive in UTF-8 if the server can
/// convert them.
pub(super) const WORDS: &str = "SELECT pg_catalog.set_config('client_encoding', \
     CASE WHEN pg_catalog.getdatabaseencoding() IN ('UTF8', 'SQL_ASCII', 'MULE_INTERNAL') THEN 'SQL_ASCII' ELSE 'UTF8' END, false)";

/// Sets the time limits and the search path of a session, in the simple protocol. No statement reads a catalog.
pub(super) fn timeouts(statement_timeout: Duration, lock_timeout: Duration) -> String {
    let (statement, lock) = (statement_timeout.as_millis(), lock_timeout.as_millis());
    format!(
        "SET search_path = pg_catalog, pg_temp; SET statement_timeout = {statement}; SET lock_timeout = {lock}"
    )
}

pub(super) fn settings() -> String {
    without_comments(SETTINGS)
}

/// An abandoned transaction behind a pooler must not hold the session of other clients for long.
pub(super) const IDLE: &str = "SET idle_in_transaction_session_timeout = 10000";

/// A long text, for glibc: once a block of its size was freed, memory is no longer returned after every statement and
/// requested again page by page (`mallopt(3)`, `M_MMAP_THRESHOLD`), which costs a tenth of the server's time for a poll.
/// It takes 15 ms, once per session.
pub(super) const KEEP_MEMORY: &str =
    "SELECT pg_catalog.octet_length(pg_catalog.repeat(pg_catalog.repeat(' ', 1000), 8000))";

/// Time limits and settings, for the end of a longer message.
pub(super) fn all_settings(statement_timeout: Duration, lock_timeout: Duration) -> String {
    format!("{}; {}", timeouts(statement_timeout, lock_timeout), settings())
}

// All statements that search, count or read, by name: the handling of a failure is tested for each of them.
// A message is recognized by text that occurs only in this statement, as sent.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Connecting,
    /// While connecting, and again at intervals.
    Detecting,
    Polling,
    /// At each poll, or after some skipped polls: a table of tasks, leases and the other lock systems.
    Table,
    /// Between two polls: job systems of other software, and names.
    Between,
    Command,
}

#[derive(Debug)]
pub struct ReadingStatement {
    /// The name of its file in `assets/sql`, if it has its own.
    pub name: &'static str,
    pub when: When,
    has: &'static [&'static str],
    lacks: &'static [&'static str],
}

const fn statement(name: &'static str, when: When, has: &'static [&'static str]) -> ReadingStatement {
    ReadingStatement { name, when, has, lacks: &[] }
}

/// The query of one kind of table, after its guard.
const fn table(
    name: &'static str,
    has: &'static [&'static str],
    lacks: &'static [&'static str],
) -> ReadingStatement {
    ReadingStatement { name, when: When::Table, has, lacks }
}

pub const STATEMENTS: &[ReadingStatement] = &[
    statement("identity", When::Connecting, &["pg_catalog.pg_postmaster_start_time()"]),
    statement("databases", When::Detecting, &["pg_catalog.pg_encoding_to_char(encoding)"]),
    statement("roles", When::Detecting, &["SELECT oid, rolname::pg_catalog.text FROM pg_catalog.pg_roles"]),
    statement("rights", When::Detecting, &["'no_inherit'"]),
    statement("relations", When::Detecting, &["c.relisshared"]),
    statement("objects", When::Detecting, &["pg_catalog.pg_identify_object("]),
    statement("tables_find", When::Detecting, &["AS has_function"]),
    statement("table_size", When::Detecting, &["pg_catalog.pg_table_size("]),
    statement("adapters_find", When::Detecting, &["AS strange_type"]),
    statement("blocking", When::Polling, &["pg_catalog.pg_blocking_pids("]),
    statement("known", When::Polling, &["set_config('locktop.poll'"]),
    statement(
        "locks_narrow",
        When::Polling,
        &["WITH l AS MATERIALIZED (SELECT * FROM pg_catalog.pg_lock_status())"],
    ),
    statement("locks", When::Polling, &["FROM pg_catalog.pg_lock_status()"]),
    statement("backends", When::Polling, &["pg_catalog.hash_record_extended("]),
    statement("prepared", When::Polling, &["FROM pg_catalog.pg_prepared_xact()"]),
    statement("tick", When::Polling, &["pg_catalog.pg_last_xact_replay_timestamp()"]),
    table("copy", &["COPY \"", "TO STDOUT (FORMAT binary)"], &[]),
    table("offsets", &["::pg_catalog.timestamp[]) WITH ORDINALITY AS h"], &[]),
    table("tasks", &[GUARD, ".\"scheduled_tasks\""], &[".\"task_execution_log\""]),
    table("executions", &[GUARD, ".\"task_execution_log\""], &[]),
    table("leases", &[GUARD, ".\"distlock\""], &[]),
    table("queue_count", &[GUARD, ".\"task_queue\"", "pg_catalog.count("], &[]),
    table("queue_items", &[GUARD, ".\"task_queue\""], &["pg_catalog.count("]),
    table("rate_limits", &[GUARD, ".\"rate_limit\""], &[]),
    table("id_generators", &[GUARD, ".\"id_generator\""], &[]),
    table("task_workers", &[GUARD, ".\"locktop_workers\""], &[]),
    table("contended_locks", &[GUARD, ".\"contended_locks\""], &[]),
    statement("adapter_understood", When::Between, &["PREPARE locktop_adapter_"]),
    statement("adapter_planned", When::Between, &["EXPLAIN (FORMAT JSON, VERBOSE) DECLARE locktop_adapter"]),
    statement("adapter_part", When::Between, &["DECLARE locktop_adapter NO SCROLL CURSOR FOR"]),
    statement(
        "learn_tables",
        When::Between,
        &["DECLARE locktop_learn", "AS known (software, relation, columns)"],
    ),
    statement("learn", When::Between, &["DECLARE locktop_learn"]),
    statement("lock_of_elsewhere", When::Command, &["'^pg_(toast_)?temp_'"]),
    statement(
        "lock_of",
        When::Command,
        &["SELECT a.number, c.oid, a.nspname, c.relkind, c.reltuples, c.relpages, i.indrelid"],
    ),
    statement(
        "lock_of_others",
        When::Command,
        &["SELECT a.number, o.role, c.oid, n.nspname, c.relname, o.names"],
    ),
    statement("lock_of_objects", When::Command, &["SELECT a.number, 'object' AS role, c.oid"]),
];

/// Precedes the query of a table (`crates/locktop-tasks/assets/sql/trust/table.sql`).
const GUARD: &str = "EXECUTE locktop_guard_";

pub fn named(sql: &str) -> Option<&'static ReadingStatement> {
    let is = |statement: &&ReadingStatement| {
        statement.has.iter().all(|mark| sql.contains(mark))
            && !statement.lacks.iter().any(|mark| sql.contains(mark))
    };
    STATEMENTS.iter().find(is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pg::sql;
    use crate::pg::trust::TrustedOwners;

    #[test]
    fn a_statement_is_recognized_as_it_is_sent() {
        let owners = TrustedOwners::default();
        for (name, text) in [
            ("identity", sql::IDENTITY),
            ("databases", sql::DATABASES),
            ("roles", sql::ROLES),
            ("rights", sql::RIGHTS),
            ("relations", sql::RELATIONS),
            ("objects", sql::OBJECTS),
            ("tables_find", &sql::tables_find(&owners)),
            ("adapters_find", &owners.filled(sql::ADAPTERS_FIND, &[])),
            ("blocking", sql::BLOCKING),
            ("known", sql::KNOWN),
            ("locks", &sql::locks(false, false)),
            ("locks", &sql::locks(false, true)),
            ("locks_narrow", &sql::locks(true, false)),
            ("locks_narrow", &sql::locks(true, true)),
            ("backends", sql::BACKENDS),
            ("prepared", sql::PREPARED),
            ("tick", sql::TICK),
            ("lock_of", sql::LOCK_OF),
            ("lock_of_elsewhere", sql::LOCK_OF_ELSEWHERE),
            ("lock_of_others", sql::LOCK_OF_OTHERS),
            ("lock_of_objects", sql::LOCK_OF_OBJECTS),
        ] {
            assert_eq!(named(text).map(|statement| statement.name), Some(name), "{text}");
        }
        for text in [&sql::settings(), &sql::prepare_guard(&owners), sql::KEEP_MEMORY, "SHOW server_version"]
        {
            assert!(named(text).is_none(), "{text}");
        }
    }
}
