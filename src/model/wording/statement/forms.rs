//! Statements on relations and their locks, from the documentation ("Explicit Locking" and the page of each command) and
//! `AlterTableGetLockLevel` in `src/backend/commands/tablecmds.c`. `tests/server/lock_of` compares them with `pg_locks`.
//!
//! The first matching pattern counts.

use super::form::{Also, Form, Role, StatementWork, form};
use crate::model::lock::LockMode;

pub(super) const AS: LockMode = LockMode::AccessShare;
pub(super) const RS: LockMode = LockMode::RowShare;
pub(super) const RX: LockMode = LockMode::RowExclusive;
pub(super) const SUX: LockMode = LockMode::ShareUpdateExclusive;
pub(super) const S: LockMode = LockMode::Share;
pub(super) const SRX: LockMode = LockMode::ShareRowExclusive;
pub(super) const X: LockMode = LockMode::Exclusive;
pub(super) const AX: LockMode = LockMode::AccessExclusive;

pub(super) const BELOW: &[Also] = &[Also::same(Role::Below)];
pub(super) const PARTITIONS: &[Also] = &[Also::same(Role::Partitions)];
const READ: &[Also] = &[Also::same(Role::Below), Also::same(Role::Base)];
/// The planner opens every index of a table (`get_relation_info` in `src/backend/optimizer/util/plancat.c`).
const QUERIED: &[Also] = &[Also::same(Role::Below), Also::same(Role::Base), Also::same(Role::Indexes)];
/// A partition is added: the constraint of a default partition changes (`src/backend/commands/tablecmds.c`), and foreign keys
/// to the table refer to the new one.
const ADDED: &[Also] = &[Also::of(Role::Default, AX), Also::of(Role::Referencing, SRX).from(15)];
const CHANGED: &[Also] = &[
    Also::same(Role::Below),
    Also::same(Role::Base),
    Also::of(Role::Referenced, RS),
    Also::of(Role::Referencing, RS),
    Also::of(Role::Cascading, RX),
    Also::same(Role::Indexes),
];
pub(super) const SEQUENCES: &[Also] = &[Also::of(Role::Sequences, AX)];

const INDEX_CONCURRENTLY: &str = "CREATE INDEX CONCURRENTLY does not block writers; it takes longer, and leaves an invalid index if it fails";
const REINDEX_CONCURRENTLY: &str = "REINDEX … CONCURRENTLY does not block readers and writers";
pub(super) const NOT_VALID: &str = "add it NOT VALID, which reads nothing, then VALIDATE CONSTRAINT, which blocks neither readers nor writers";
pub(super) const USING_INDEX: &str =
    "CREATE UNIQUE INDEX CONCURRENTLY first, then ADD CONSTRAINT … USING INDEX, which is short";
pub(super) const IN_STEPS: &str = "add another column, fill it with a trigger and in batches, then switch; or do it in a maintenance window";
pub(super) const CONSTANT: &str = "add the column without it, SET DEFAULT, and fill the old rows in batches";
const TRIGGERS: &str = "triggers, and functions that it calls, can take more locks: not known";
const FUNCTIONS: &str = "functions that it calls can take more locks: not known";
const PARENTS: &str = "foreign keys: the check locks the referenced rows, and their table in RowShare; triggers can take more locks: not known";
const SEQUENCE: &str = "nextval() and setval() of other sessions wait meanwhile";
const GRANTS: &str = "before 18 it locks only catalogs";

// Locks of queries are found by reading their text.
pub(super) static SELECT: Form =
    form("SELECT", "", &[], "SELECT * FROM t").work(StatementWork::Rows).also(QUERIED).note(FUNCTIONS);
pub(super) static SELECT_FOR_UPDATE: Form =
    form("SELECT … FOR UPDATE/SHARE", "", &[], "SELECT * FROM t FOR UPDATE")
        .work(StatementWork::Rows)
        .also(QUERIED)
        .note(FUNCTIONS);
pub(super) static INSERT: Form = form("INSERT", "", &[], "INSERT INTO t (id) SELECT id + 1000 FROM u")
    .work(StatementWork::Rows)
    .also(&[
        Also::same(Role::Partitions),
        Also::same(Role::Base),
        Also::of(Role::Referenced, RS),
        Also::of(Role::Sequences, RX),
        Also::same(Role::Indexes),
    ])
    .note(PARENTS);
pub(super) static UPDATE: Form = form("UPDATE", "", &[], "UPDATE t SET n = 1 FROM u WHERE u.id = t.id")
    .work(StatementWork::Rows)
    .also(CHANGED)
    .note(PARENTS);
pub(super) static DELETE: Form = form("DELETE", "", &[], "DELETE FROM t USING u WHERE u.id = t.id AND t.id = -1")
    .work(StatementWork::Rows)
    .also(&[
        Also::same(Role::Below),
        Also::same(Role::Base),
        Also::of(Role::Referencing, RS),
        Also::of(Role::Cascading, RX),
        Also::same(Role::Indexes),
    ])
    .note("foreign keys: the check locks rows that refer to a deleted row, and with ON DELETE CASCADE deletes them; triggers can take more locks: not known");
pub(super) static MERGE: Form =
    form("MERGE", "", &[], "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n = 2")
        .work(StatementWork::Rows)
        .since(15)
        .also(CHANGED)
        .note(PARENTS);

pub(super) static QUERIES: [&Form; 6] = [&SELECT, &SELECT_FOR_UPDATE, &INSERT, &UPDATE, &DELETE, &MERGE];

const fn lock(
    name: &'static str,
    pattern: &'static str,
    mode: &'static [LockMode],
    example: &'static str,
) -> Form {
    form(name, pattern, mode, example).also(READ)
}

pub(super) static STATEMENTS: &[Form] = &[
    form("COPY … FROM", "COPY @ [()] FROM *", &[RX], "COPY t FROM PROGRAM 'true'")
        .work(StatementWork::Rows)
        .also(&[Also::same(Role::Partitions), Also::of(Role::Referenced, RS), Also::of(Role::Sequences, RX)])
        .note(TRIGGERS),
    form("COPY … TO", "COPY @ [()] TO *", &[AS], "COPY t TO '/dev/null'").work(StatementWork::Reads),
    lock("LOCK TABLE … ACCESS SHARE", "LOCK [TABLE] @+ IN ACCESS SHARE MODE [NOWAIT]", &[AS], "LOCK TABLE t IN ACCESS SHARE MODE"),
    lock("LOCK TABLE … ROW SHARE", "LOCK [TABLE] @+ IN ROW SHARE MODE [NOWAIT]", &[RS], "LOCK TABLE t IN ROW SHARE MODE"),
    lock("LOCK TABLE … ROW EXCLUSIVE", "LOCK [TABLE] @+ IN ROW EXCLUSIVE MODE [NOWAIT]", &[RX], "LOCK t IN ROW EXCLUSIVE MODE"),
    lock(
        "LOCK TABLE … SHARE UPDATE EXCLUSIVE",
        "LOCK [TABLE] @+ IN SHARE UPDATE EXCLUSIVE MODE [NOWAIT]",
        &[SUX],
        "LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE",
    ),
    lock(
        "LOCK TABLE … SHARE ROW EXCLUSIVE",
        "LOCK [TABLE] @+ IN SHARE ROW EXCLUSIVE MODE [NOWAIT]",
        &[SRX],
        "LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE",
    ),
    lock("LOCK TABLE … SHARE", "LOCK [TABLE] @+ IN SHARE MODE [NOWAIT]", &[S], "LOCK TABLE t, u IN SHARE MODE"),
    lock("LOCK TABLE … EXCLUSIVE", "LOCK [TABLE] @+ IN EXCLUSIVE MODE [NOWAIT]", &[X], "LOCK TABLE t IN EXCLUSIVE MODE"),
    lock(
        "LOCK TABLE … ACCESS EXCLUSIVE",
        "LOCK [TABLE] @+ IN ACCESS EXCLUSIVE MODE [NOWAIT]",
        &[AX],
        "LOCK TABLE t IN ACCESS EXCLUSIVE MODE NOWAIT",
    ),
    lock("LOCK TABLE", "LOCK [TABLE] @+ [NOWAIT]", &[AX], "LOCK TABLE t"),
    form("TRUNCATE", "TRUNCATE [TABLE] @+ [{RESTART|CONTINUE} IDENTITY] [{CASCADE|RESTRICT}]", &[AX], "TRUNCATE TABLE lone")
        .work(StatementWork::Empties)
        .also(&[
            Also::same(Role::Below),
            Also::of(Role::Sequences, AX).with("RESTART"),
            Also::of(Role::Referencing, AX).with("CASCADE"),
        ]),
    form("DROP TABLE", "DROP [FOREIGN] TABLE [IF EXISTS] @+ [{CASCADE|RESTRICT}]", &[AX], "DROP TABLE t CASCADE").also(&[
        Also::same(Role::Below),
        Also::of(Role::Parent, AX),
        Also::of(Role::Referenced, AX),
        Also::of(Role::Sequences, AX),
        Also::of(Role::Referencing, AX).with("CASCADE"),
        Also::of(Role::Views, AX).with("CASCADE"),
    ]),
    form("DROP VIEW", "DROP VIEW [IF EXISTS] @+ [{CASCADE|RESTRICT}]", &[AX], "DROP VIEW w")
        .also(&[Also::of(Role::Views, AX).with("CASCADE")]),
    form("DROP MATERIALIZED VIEW", "DROP MATERIALIZED VIEW [IF EXISTS] @+ [{CASCADE|RESTRICT}]", &[AX], "DROP MATERIALIZED VIEW m")
        .also(&[Also::of(Role::Views, AX).with("CASCADE")]),
    form("DROP SEQUENCE", "DROP SEQUENCE [IF EXISTS] @+ [{CASCADE|RESTRICT}]", &[AX], "DROP SEQUENCE q")
        .unseen("CASCADE", "tables with a default that uses it"),
    form("DROP INDEX CONCURRENTLY", "DROP INDEX CONCURRENTLY [IF EXISTS] @+ [RESTRICT]", &[SUX], "DROP INDEX CONCURRENTLY t_v")
        .on_table_of_index(SUX)
        .waits_for(AX),
    form("DROP INDEX", "DROP INDEX [IF EXISTS] @+ [{CASCADE|RESTRICT}]", &[AX], "DROP INDEX t_v")
        .on_table_of_index(AX)
        .also(BELOW)
        .advice("DROP INDEX CONCURRENTLY does not block readers and writers"),
    form(
        "CREATE INDEX CONCURRENTLY",
        "CREATE [UNIQUE] INDEX CONCURRENTLY [[IF NOT EXISTS] $] ON @ {USING|()} *",
        &[SUX],
        "CREATE INDEX CONCURRENTLY late ON t (v)",
    )
    .work(StatementWork::BuildsIndex)
    .waits_for(S)
    .waits_for_snapshots(),
    form("CREATE INDEX", "CREATE [UNIQUE] INDEX [[IF NOT EXISTS] $] ON @ {USING|()} *", &[S], "CREATE INDEX late ON t (v)")
        .work(StatementWork::BuildsIndex)
        .also(PARTITIONS)
        .advice(INDEX_CONCURRENTLY),
    form("REINDEX TABLE CONCURRENTLY", "REINDEX [()] TABLE CONCURRENTLY @", &[SUX], "REINDEX TABLE CONCURRENTLY t")
        .work(StatementWork::BuildsIndex)
        .waits_for(AX)
        .waits_for_snapshots(),
    form("REINDEX TABLE CONCURRENTLY", "REINDEX (CONCURRENTLY) TABLE @", &[SUX], "REINDEX (CONCURRENTLY) TABLE t")
        .work(StatementWork::BuildsIndex)
        .waits_for(AX)
        .waits_for_snapshots(),
    form("REINDEX INDEX CONCURRENTLY", "REINDEX [()] INDEX CONCURRENTLY @", &[SUX], "REINDEX INDEX CONCURRENTLY t_v")
        .on_table_of_index(SUX)
        .work(StatementWork::BuildsIndex)
        .waits_for(AX)
        .waits_for_snapshots(),
    form("REINDEX INDEX CONCURRENTLY", "REINDEX (CONCURRENTLY) INDEX @", &[SUX], "REINDEX (CONCURRENTLY) INDEX t_v")
        .on_table_of_index(SUX)
        .work(StatementWork::BuildsIndex)
        .waits_for(AX)
        .waits_for_snapshots(),
    form("REINDEX TABLE", "REINDEX [()] TABLE @", &[S], "REINDEX TABLE t")
        .work(StatementWork::BuildsIndex)
        .also(&[Also::of(Role::Indexes, AX)])
        .note("its indexes are locked in AccessExclusive; of a partitioned table each partition in a transaction of its own")
        .advice(REINDEX_CONCURRENTLY),
    form("REINDEX INDEX", "REINDEX [()] INDEX @", &[AX], "REINDEX INDEX t_v")
        .on_table_of_index(S)
        .work(StatementWork::BuildsIndex)
        .advice(REINDEX_CONCURRENTLY),
    form("REINDEX SCHEMA, DATABASE, SYSTEM", "REINDEX [()] {SCHEMA|DATABASE|SYSTEM} *", &[], "REINDEX SCHEMA other")
        .alone()
        .unseen("", "each table in a transaction of its own, as REINDEX TABLE"),
    form(
        "CREATE TABLE … PARTITION OF",
        "CREATE [{TEMP|TEMPORARY|UNLOGGED|FOREIGN}] TABLE [IF NOT EXISTS] ^ PARTITION OF @ *",
        &[AX],
        "CREATE TABLE p_new PARTITION OF p FOR VALUES IN (9)",
    )
    .also(ADDED)
    .note("a default partition is locked in AccessExclusive and read, too")
    .advice("CREATE TABLE … (LIKE …) first, then ATTACH PARTITION, which does not block readers and writers, except of a default partition"),
    form(
        "CREATE TABLE … INHERITS",
        "CREATE [{TEMP|TEMPORARY|UNLOGGED}] TABLE [IF NOT EXISTS] ^ () INHERITS (@+) *",
        &[SUX],
        "CREATE TABLE child () INHERITS (t)",
    )
    .others(),
    form(
        "CREATE OR REPLACE VIEW",
        "CREATE OR REPLACE [{TEMP|TEMPORARY}] [RECURSIVE] VIEW ^ * AS *",
        &[AX],
        "CREATE OR REPLACE VIEW w AS SELECT id, v FROM t",
    )
    .replaces()
    .keeps("AS"),
    form("CREATE VIEW", "CREATE [{TEMP|TEMPORARY}] [RECURSIVE] VIEW ^ * AS *", &[], "CREATE VIEW w2 AS SELECT * FROM t").keeps("AS"),
    form(
        "CREATE MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW [IF NOT EXISTS] ^ * AS *",
        &[],
        "CREATE MATERIALIZED VIEW m2 AS SELECT * FROM t",
    )
    .runs("AS")
    .also(READ)
    .work(StatementWork::Rows),
    form(
        "CREATE TABLE AS",
        "CREATE [{TEMP|TEMPORARY|UNLOGGED}] TABLE [IF NOT EXISTS] ^ [()] {AS|USING|WITH|ON|TABLESPACE} *",
        &[],
        "CREATE TABLE copied AS SELECT * FROM t",
    )
    .runs("AS")
    .also(READ)
    .work(StatementWork::Rows),
    form("CREATE TABLE … OF", "CREATE [{TEMP|TEMPORARY|UNLOGGED}] TABLE [IF NOT EXISTS] ^ OF @ *", &[AS], "CREATE TABLE typed OF pair")
        .others(),
    form("CREATE TABLE", "CREATE [{TEMP|TEMPORARY|UNLOGGED}] TABLE [IF NOT EXISTS] ^ () *", &[], "CREATE TABLE fresh (a int REFERENCES t, LIKE u)")
        .others()
        .note("no other session sees a new table before its transaction commits"),
    form("CREATE FOREIGN TABLE", "CREATE FOREIGN TABLE [IF NOT EXISTS] ^ () *", &[], "CREATE FOREIGN TABLE far2 (a int) SERVER remote"),
    form(
        "REFRESH MATERIALIZED VIEW CONCURRENTLY",
        "REFRESH MATERIALIZED VIEW CONCURRENTLY @ [WITH DATA]",
        &[X],
        "REFRESH MATERIALIZED VIEW CONCURRENTLY m",
    )
    .also(&[Also::of(Role::Source, AS)])
    .work(StatementWork::Rows),
    form("REFRESH MATERIALIZED VIEW WITH NO DATA", "REFRESH MATERIALIZED VIEW @ WITH NO DATA", &[AX], "REFRESH MATERIALIZED VIEW m WITH NO DATA")
        .work(StatementWork::Empties),
    form("REFRESH MATERIALIZED VIEW", "REFRESH MATERIALIZED VIEW @ [WITH DATA]", &[AX], "REFRESH MATERIALIZED VIEW m")
        .work(StatementWork::Rewrites)
        .also(&[Also::of(Role::Source, AS)])
        .advice("REFRESH MATERIALIZED VIEW CONCURRENTLY does not block readers; it needs a unique index"),
    form(
        "CREATE CONSTRAINT TRIGGER",
        "CREATE [OR REPLACE] CONSTRAINT TRIGGER % * ON @ FROM @ *",
        &[SRX, AS],
        "CREATE CONSTRAINT TRIGGER g4 AFTER INSERT ON t FROM u FOR EACH ROW EXECUTE FUNCTION nothing()",
    )
    .also(&[Also::same(Role::Partitions).with("ROW")]),
    form(
        "CREATE TRIGGER",
        "CREATE [OR REPLACE] [CONSTRAINT] TRIGGER % * ON @ *",
        &[SRX],
        "CREATE TRIGGER g2 BEFORE UPDATE OF v ON t FOR EACH ROW EXECUTE FUNCTION nothing()",
    )
    .also(&[Also::same(Role::Partitions).with("ROW")]),
    form("DROP TRIGGER", "DROP TRIGGER [IF EXISTS] % ON @ [{CASCADE|RESTRICT}]", &[AX], "DROP TRIGGER g ON t"),
    form("ALTER TRIGGER … RENAME", "ALTER TRIGGER % ON @ RENAME TO %", &[AX], "ALTER TRIGGER g ON t RENAME TO g3").also(PARTITIONS),
    form("ALTER TRIGGER … DEPENDS ON EXTENSION", "ALTER TRIGGER % ON @ [NO] DEPENDS ON EXTENSION #EXTENSION", &[AX, AX], ""),
    form("CREATE RULE", "CREATE [OR REPLACE] RULE % AS ON * TO @ * DO *", &[AX], "CREATE RULE r2 AS ON INSERT TO lone DO NOTHING")
        .keeps("DO"),
    form("ALTER RULE … RENAME", "ALTER RULE % ON @ RENAME TO %", &[AX], "ALTER RULE r ON lone RENAME TO r4"),
    form("DROP RULE", "DROP RULE [IF EXISTS] % ON @ [{CASCADE|RESTRICT}]", &[AX], "DROP RULE r ON lone"),
    form("CREATE POLICY", "CREATE POLICY % ON @ *", &[AX], "CREATE POLICY o2 ON t USING (true)").keeps("ON"),
    form("ALTER POLICY", "ALTER POLICY % ON @ *", &[AX], "ALTER POLICY o ON t USING (true)").keeps("ON"),
    form("DROP POLICY", "DROP POLICY [IF EXISTS] % ON @ [{CASCADE|RESTRICT}]", &[AX], "DROP POLICY o ON t"),
    form(
        "CREATE STATISTICS",
        "CREATE STATISTICS [[IF NOT EXISTS] %] [()] ON * FROM @",
        &[SUX],
        "CREATE STATISTICS st ON id, v FROM t",
    ),
    form(
        "COMMENT ON TABLE",
        "COMMENT ON {TABLE|VIEW|MATERIALIZED VIEW|FOREIGN TABLE|SEQUENCE|INDEX} @ IS *",
        &[SUX],
        "COMMENT ON TABLE t IS 'x'",
    ),
    form("COMMENT ON COLUMN", "COMMENT ON COLUMN @. IS *", &[SUX], "COMMENT ON COLUMN t.v IS 'x'"),
    form("COMMENT ON CONSTRAINT … ON DOMAIN", "COMMENT ON CONSTRAINT % ON DOMAIN % IS *", &[], "COMMENT ON CONSTRAINT small_c ON DOMAIN small IS 'x'"),
    form("COMMENT ON CONSTRAINT, TRIGGER, …", "COMMENT ON {CONSTRAINT|TRIGGER|RULE|POLICY} % ON @ IS *", &[AS], "COMMENT ON TRIGGER g ON t IS 'x'"),
    form(
        "SECURITY LABEL ON TABLE",
        "SECURITY LABEL [FOR %] ON {TABLE|VIEW|MATERIALIZED VIEW|FOREIGN TABLE|SEQUENCE} @ IS *",
        &[SUX],
        "",
    ),
    form("SECURITY LABEL ON COLUMN", "SECURITY LABEL [FOR %] ON COLUMN @. IS *", &[SUX], ""),
    form("VACUUM FULL", "VACUUM {(FULL)|FULL [FREEZE] [VERBOSE] [{ANALYZE|ANALYSE}]} @+", &[AX], "VACUUM (FULL) t")
        .work(StatementWork::Rewrites)
        .also(PARTITIONS)
        .alone()
        .advice("VACUUM without FULL frees space for new rows of the table and does not block readers and writers; pg_repack and pg_squeeze also return it to the file system"),
    form("VACUUM", "VACUUM [()] [FREEZE] [VERBOSE] [{ANALYZE|ANALYSE}] @+", &[SUX], "VACUUM t")
        .work(StatementWork::Reads)
        .also(PARTITIONS)
        .alone()
        .note("at its end it tries to take AccessExclusive to truncate the file; it gives up if another session waits"),
    form("VACUUM of the database", "VACUUM [()] [FULL] [FREEZE] [VERBOSE] [{ANALYZE|ANALYSE}]", &[], "VACUUM")
        .alone()
        .unseen("", "each table of the database in a transaction of its own"),
    form("ANALYZE", "{ANALYZE|ANALYSE} [()] [VERBOSE] @+", &[SUX], "ANALYZE t (v)")
        .also(&[Also::same(Role::Partitions)])
        .note("it reads a sample of the rows; from 18 it also locks children in ShareUpdateExclusive"),
    form("ANALYZE of the database", "{ANALYZE|ANALYSE} [()] [VERBOSE]", &[], "ANALYZE").unseen("", "each table of the database"),
    form("CLUSTER", "CLUSTER [()] [VERBOSE] @ [USING %]", &[AX], "CLUSTER t USING t_pkey")
        .work(StatementWork::Rewrites)
        .advice("pg_repack orders a table and does not block readers and writers"),
    form("CLUSTER of the database", "CLUSTER [()] [VERBOSE]", &[], "CLUSTER").alone().unseen("", "each table that was clustered before"),
    form("REPACK CONCURRENTLY", "REPACK (CONCURRENTLY) @ *", &[SUX], "REPACK (CONCURRENTLY) t")
        .work(StatementWork::Rewrites)
        .since(19)
        .note("at its end it takes AccessExclusive for a moment"),
    form("REPACK", "REPACK [()] @ *", &[AX], "REPACK t")
        .work(StatementWork::Rewrites)
        .since(19)
        .advice("REPACK (CONCURRENTLY) does not block readers and writers"),
    form("ALTER INDEX … RENAME", "ALTER INDEX [IF EXISTS] @ RENAME TO %", &[SUX], "ALTER INDEX t_v RENAME TO t_w"),
    form("ALTER INDEX … SET (…)", "ALTER INDEX [IF EXISTS] @ {SET|RESET} ()", &[SUX], "ALTER INDEX t_v SET (fillfactor = 70)"),
    form("ALTER INDEX … SET STATISTICS", "ALTER INDEX [IF EXISTS] @ ALTER [COLUMN] * SET STATISTICS *", &[SUX], ""),
    form("ALTER INDEX … SET TABLESPACE", "ALTER INDEX [IF EXISTS] @ SET TABLESPACE *", &[AX], "ALTER INDEX t_v SET TABLESPACE pg_default")
        .work(StatementWork::Copies),
    form("ALTER INDEX … ATTACH PARTITION", "ALTER INDEX @ ATTACH PARTITION @", &[SUX, AX], "ALTER INDEX p_a ATTACH PARTITION p1_a_idx")
        .on_table_of_index(AS),
    form("ALTER INDEX … DEPENDS ON EXTENSION", "ALTER INDEX @ [NO] DEPENDS ON EXTENSION #EXTENSION", &[AX, AX], "ALTER INDEX t_v DEPENDS ON EXTENSION plpgsql"),
    form("ALTER INDEX, TABLE ALL IN TABLESPACE", "ALTER {INDEX|TABLE|MATERIALIZED VIEW} ALL IN TABLESPACE *", &[], "").unseen("", "each relation in it in AccessExclusive"),
    form("ALTER VIEW … SET SCHEMA", "ALTER VIEW [IF EXISTS] @ SET SCHEMA #SCHEMA", &[AX, AS], "ALTER VIEW w SET SCHEMA other"),
    form("ALTER VIEW", "ALTER VIEW [IF EXISTS] @ {ALTER|RENAME|OWNER|SET|RESET} *", &[AX], "ALTER VIEW w ALTER COLUMN id SET DEFAULT 1"),
    form("CREATE SEQUENCE", "CREATE [{TEMP|TEMPORARY|UNLOGGED}] SEQUENCE [IF NOT EXISTS] ^ * OWNED BY {NONE|@.} *", &[AS], "CREATE SEQUENCE q2 OWNED BY t.id"),
    form("CREATE SEQUENCE", "CREATE [{TEMP|TEMPORARY|UNLOGGED}] SEQUENCE [IF NOT EXISTS] ^ *", &[], "CREATE SEQUENCE q2"),
    form("ALTER SEQUENCE … OWNER, RENAME, SET SCHEMA", "ALTER SEQUENCE [IF EXISTS] @ SET SCHEMA #SCHEMA", &[AX, AS], "ALTER SEQUENCE q SET SCHEMA other"),
    form("ALTER SEQUENCE … OWNER, RENAME, SET SCHEMA", "ALTER SEQUENCE [IF EXISTS] @ {OWNER|RENAME|SET} {TO|LOGGED|UNLOGGED} *", &[AX], "ALTER SEQUENCE q RENAME TO q2"),
    form("ALTER SEQUENCE", "ALTER SEQUENCE [IF EXISTS] @ * OWNED BY {NONE|@.} *", &[SRX, AS], "ALTER SEQUENCE q OWNED BY t.id")
        .note(SEQUENCE),
    form("ALTER SEQUENCE", "ALTER SEQUENCE [IF EXISTS] @ *", &[SRX], "ALTER SEQUENCE q INCREMENT BY 2").note(SEQUENCE),
    form("CREATE PUBLICATION … FOR TABLE", "CREATE PUBLICATION % FOR TABLE @+ *", &[SUX], "CREATE PUBLICATION b2 FOR TABLE t"),
    form("ALTER PUBLICATION … TABLE", "ALTER PUBLICATION #PUBLICATION {ADD|SET|DROP} TABLE @+ *", &[AX, SUX], "ALTER PUBLICATION b ADD TABLE t")
        .from(&[15]),
    form("GRANT … ON", "GRANT * ON [{TABLE|SEQUENCE}] @+ TO *", &[AS], "GRANT SELECT ON t TO public").from(&[18]).note(GRANTS),
    form("REVOKE … ON", "REVOKE * ON [{TABLE|SEQUENCE}] @+ FROM *", &[AS], "REVOKE SELECT ON t FROM public").from(&[18]).note(GRANTS),
    form("ALTER TABLE … RENAME TO", "ALTER [FOREIGN] {TABLE|MATERIALIZED VIEW} [IF EXISTS] @ RENAME TO $", &[AX], "ALTER TABLE lone RENAME TO alone"),
    form("ALTER TABLE … RENAME CONSTRAINT", "ALTER TABLE [IF EXISTS] @ RENAME CONSTRAINT % TO %", &[AX], "ALTER TABLE t RENAME CONSTRAINT t_n TO t_m")
        .also(BELOW),
    form(
        "ALTER TABLE … RENAME COLUMN",
        "ALTER [FOREIGN] {TABLE|MATERIALIZED VIEW} [IF EXISTS] @ RENAME [COLUMN] % TO %",
        &[AX],
        "ALTER TABLE t RENAME v TO w",
    )
    .also(BELOW),
    form(
        "ALTER TABLE … SET SCHEMA",
        "ALTER [FOREIGN] {TABLE|MATERIALIZED VIEW} [IF EXISTS] @ SET SCHEMA #SCHEMA",
        &[AX, AS],
        "ALTER TABLE lone SET SCHEMA other",
    )
    .also(SEQUENCES),
    form("ALTER MATERIALIZED VIEW … DEPENDS ON EXTENSION", "ALTER MATERIALIZED VIEW @ [NO] DEPENDS ON EXTENSION #EXTENSION", &[AX, AX], ""),
    form(
        "ALTER TABLE … ATTACH PARTITION",
        "ALTER TABLE [IF EXISTS] @ ATTACH PARTITION @ *",
        &[SUX, AX],
        "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2)",
    )
    .work(StatementWork::Reads)
    .also(ADDED)
    .note("it reads the new partition, unless a valid CHECK implies its bounds; a default partition is locked in AccessExclusive and read, too"),
    form(
        "ALTER TABLE … DETACH PARTITION CONCURRENTLY",
        "ALTER TABLE [IF EXISTS] @ DETACH PARTITION @ CONCURRENTLY",
        &[SUX, AX],
        "ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY",
    )
    .waits_for(AX)
    .note("the partition is locked in ShareUpdateExclusive first, and at the end in AccessExclusive"),
    form("ALTER TABLE … DETACH PARTITION FINALIZE", "ALTER TABLE [IF EXISTS] @ DETACH PARTITION @ FINALIZE", &[SUX, AX], ""),
    form("ALTER TABLE … DETACH PARTITION", "ALTER TABLE [IF EXISTS] @ DETACH PARTITION @", &[AX, AX], "ALTER TABLE p DETACH PARTITION p1")
        .also(&[Also::of(Role::Default, AX), Also::of(Role::Referencing, AX)])
        .advice("DETACH PARTITION … CONCURRENTLY does not block readers and writers; it fails if there is a default partition"),
    form("ALTER TABLE … SPLIT, MERGE PARTITIONS", "ALTER TABLE [IF EXISTS] @ {SPLIT PARTITION|MERGE PARTITIONS} *", &[AX], "")
        .work(StatementWork::Rewrites)
        .also(BELOW)
        .since(19),
];
