//! The states of a client's session.

use locktop::model::consequence::DataEffect;

/// How the state is recognized on the server, in addition to `state`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    None,
    Is(&'static str),
}

pub(super) struct Case {
    pub(super) name: &'static str,
    /// Another session, which the victim may wait for.
    pub(super) other: &'static str,
    /// Statements that are answered at once.
    pub(super) before: &'static str,
    /// One that is not.
    pub(super) then: &'static str,
    pub(super) state: &'static str,
    pub(super) event: Event,
    pub(super) cancel: DataEffect,
    pub(super) terminate: DataEffect,
}

const IDLE: Case = Case {
    name: "idle",
    other: "",
    before: "SELECT 1",
    then: "",
    state: "idle",
    event: Event::None,
    cancel: DataEffect::Refused,
    terminate: DataEffect::Nothing,
};

pub(super) const WRITES: &str = "BEGIN; INSERT INTO t VALUES (99, 0)";
const ROW: &str = "BEGIN; UPDATE t SET v = 7 WHERE id = 1";
/// A query has workers, however small its table is.
const PARALLEL: &str =
    "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
    BEGIN; INSERT INTO t VALUES (99, 0)";
const SLEEP: Event = Event::Is("PgSleep");

pub(super) const CASES: &[Case] = &[
    IDLE,
    Case { name: "idle with a session lock", before: "SELECT pg_advisory_lock(5)", ..IDLE },
    Case { name: "has committed", before: "INSERT INTO t VALUES (98, 0)", ..IDLE },
    Case {
        name: "idle in transaction",
        before: WRITES,
        state: "idle in transaction",
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "idle in transaction, only read",
        before: "BEGIN; SELECT * FROM t",
        state: "idle in transaction",
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "idle in a failed transaction",
        before: "BEGIN; INSERT INTO t VALUES (99, 0); SELECT 1 / 0",
        state: "idle in transaction (aborted)",
        terminate: DataEffect::Failed,
        ..IDLE
    },
    Case {
        name: "a statement after a savepoint has failed",
        before: "BEGIN; INSERT INTO t VALUES (99, 0); SAVEPOINT s; SELECT 1 / 0",
        state: "idle in transaction (aborted)",
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "one statement",
        then: "INSERT INTO t SELECT 99, 0 FROM pg_sleep(600)",
        state: "active",
        event: SLEEP,
        cancel: DataEffect::RollsBack,
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "in a transaction block",
        before: WRITES,
        then: "SELECT pg_sleep(600)",
        state: "active",
        event: SLEEP,
        cancel: DataEffect::RollsBack,
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "waits for a row",
        other: ROW,
        before: WRITES,
        then: "UPDATE t SET v = 8 WHERE id = 1",
        state: "active",
        event: Event::Is("transactionid"),
        cancel: DataEffect::RollsBack,
        terminate: DataEffect::RollsBack,
    },
    Case {
        name: "waits for a table",
        other: "BEGIN; LOCK TABLE t IN ACCESS SHARE MODE",
        then: "ALTER TABLE t ADD COLUMN more int",
        state: "active",
        event: Event::Is("relation"),
        cancel: DataEffect::RollsBack,
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "waits for an advisory lock",
        other: "SELECT pg_advisory_lock(5)",
        before: WRITES,
        then: "SELECT pg_advisory_lock(5)",
        state: "active",
        event: Event::Is("advisory"),
        cancel: DataEffect::RollsBack,
        terminate: DataEffect::RollsBack,
    },
    Case {
        name: "CREATE INDEX CONCURRENTLY behind a transaction",
        other: ROW,
        then: "CREATE INDEX CONCURRENTLY new ON t (v)",
        state: "active",
        event: Event::Is("virtualxid"),
        cancel: DataEffect::HalfDone,
        terminate: DataEffect::HalfDone,
        ..IDLE
    },
    Case {
        name: "CREATE INDEX CONCURRENTLY before its first lock",
        other: "BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE",
        then: "CREATE INDEX CONCURRENTLY new ON t (v)",
        state: "active",
        event: Event::Is("relation"),
        cancel: DataEffect::RollsBack,
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "DROP INDEX CONCURRENTLY",
        other: ROW,
        then: "DROP INDEX CONCURRENTLY old",
        state: "active",
        event: Event::Is("virtualxid"),
        cancel: DataEffect::HalfDone,
        terminate: DataEffect::HalfDone,
        ..IDLE
    },
    Case {
        name: "REINDEX CONCURRENTLY",
        other: ROW,
        then: "REINDEX INDEX CONCURRENTLY old",
        state: "active",
        event: Event::Is("virtualxid"),
        cancel: DataEffect::HalfDone,
        terminate: DataEffect::HalfDone,
        ..IDLE
    },
    Case {
        name: "VACUUM",
        before: "SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1",
        then: "VACUUM big",
        state: "active",
        event: Event::Is("VacuumDelay"),
        cancel: DataEffect::Stops,
        terminate: DataEffect::Stops,
        ..IDLE
    },
    Case {
        name: "VACUUM that waits for a page",
        other: "BEGIN; DECLARE c CURSOR FOR SELECT * FROM big; FETCH 1 FROM c",
        then: "VACUUM (FREEZE) big",
        state: "active",
        event: Event::Is("BufferPin"),
        cancel: DataEffect::Stops,
        terminate: DataEffect::Stops,
        ..IDLE
    },
    Case {
        name: "VACUUM FULL",
        other: "BEGIN; LOCK TABLE big IN ACCESS SHARE MODE",
        then: "VACUUM FULL big",
        state: "active",
        event: Event::Is("relation"),
        cancel: DataEffect::RollsBack,
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "waits for a safe snapshot",
        other: "BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE t SET v = 7 WHERE id = 1",
        then: "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT * FROM t",
        state: "active",
        event: Event::Is("SafeSnapshot"),
        cancel: DataEffect::RollsBack,
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "DETACH PARTITION CONCURRENTLY",
        other: "BEGIN; LOCK TABLE part IN ACCESS SHARE MODE",
        then: "ALTER TABLE whole DETACH PARTITION part CONCURRENTLY",
        state: "active",
        event: Event::Is("relation"),
        cancel: DataEffect::HalfDone,
        terminate: DataEffect::HalfDone,
        ..IDLE
    },
    Case {
        name: "a parallel query",
        before: PARALLEL,
        then: "SELECT count(*) FROM big WHERE pg_sleep(600) IS NOT NULL",
        state: "active",
        event: SLEEP,
        cancel: DataEffect::RollsBack,
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "a commit that waits for a standby",
        before: "SET synchronous_commit = on; BEGIN; INSERT INTO t VALUES (97, 0)",
        then: "COMMIT",
        state: "active",
        event: Event::Is("SyncRep"),
        cancel: DataEffect::Committed,
        terminate: DataEffect::Committed,
        ..IDLE
    },
    Case {
        name: "a client that does not read",
        then: "COPY (SELECT repeat('x', 8000) FROM generate_series(1, 100000)) TO STDOUT",
        state: "active",
        event: Event::Is("ClientWrite"),
        cancel: DataEffect::NoneYet,
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
    Case {
        name: "a client that does not send",
        before: WRITES,
        then: "COPY t FROM STDIN",
        state: "active",
        event: Event::Is("ClientRead"),
        cancel: DataEffect::NoneYet,
        terminate: DataEffect::RollsBack,
        ..IDLE
    },
];
