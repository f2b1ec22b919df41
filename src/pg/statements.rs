//! All statements that search, count or read, by name: the handling of a failure is tested for each of them.
//!
//! A message is recognized by text that occurs only in this statement, as sent.

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
