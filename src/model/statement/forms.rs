//! The forms of statements and what each takes, as the documentation has it ("Explicit Locking", and the page of each command), and
//! `AlterTableGetLockLevel` in `src/backend/commands/tablecmds.c`. `tests/server/lock_of` runs the example of each on real servers.
//!
//! The first whose pattern fits counts.

use super::form::{Form, Work};
use crate::model::lock::LockMode;

const AS: LockMode = LockMode::AccessShare;
const RS: LockMode = LockMode::RowShare;
const RX: LockMode = LockMode::RowExclusive;
const SUX: LockMode = LockMode::ShareUpdateExclusive;
const S: LockMode = LockMode::Share;
const SRX: LockMode = LockMode::ShareRowExclusive;
const X: LockMode = LockMode::Exclusive;
const AX: LockMode = LockMode::AccessExclusive;

const INDEX_CONCURRENTLY: &str = "CREATE INDEX CONCURRENTLY lets others write meanwhile; it takes longer, and leaves an invalid index behind where it fails";
const REINDEX_CONCURRENTLY: &str = "REINDEX … CONCURRENTLY lets others read and write meanwhile";
const NOT_VALID: &str = "add it NOT VALID, which reads nothing, and then VALIDATE CONSTRAINT, which lets others read and write while it reads";
const USING_INDEX: &str =
    "CREATE UNIQUE INDEX CONCURRENTLY first, then ADD CONSTRAINT … USING INDEX, which is short";
const IN_STEPS: &str = "add another column, have it filled by a trigger and in batches, and change over; or do it when nobody needs the table";
const CONSTANT: &str = "add the column without it, SET DEFAULT, and fill the old rows in batches";
const TRIGGERS: &str = "triggers, and functions that it calls, may take more, which is not seen here";
const FUNCTIONS: &str = "a view is locked with the tables below it; what functions take is not seen here";
const GRANTS: &str = "before 18 it locks no table; from then on each that it is about, in AccessShare";
const PARENTS: &str =
    "checks of foreign keys lock rows of the tables at their other end, in RowShare; triggers may take more";

const fn form(
    name: &'static str,
    pattern: &'static str,
    modes: &'static [LockMode],
    example: &'static str,
) -> Form {
    Form::new(name, pattern, modes, example)
}

// Queries: what they take is found by reading them.
pub(super) static SELECT: Form = form("SELECT", "", &[], "SELECT * FROM t").work(Work::Rows).note(FUNCTIONS);
pub(super) static SELECT_FOR_UPDATE: Form =
    form("SELECT … FOR UPDATE/SHARE", "", &[], "SELECT * FROM t FOR UPDATE").work(Work::Rows).note(FUNCTIONS);
pub(super) static INSERT: Form =
    form("INSERT", "", &[], "INSERT INTO t (id) SELECT id + 1000 FROM u").work(Work::Rows).note(PARENTS);
pub(super) static UPDATE: Form =
    form("UPDATE", "", &[], "UPDATE t SET n = 1 FROM u WHERE u.id = t.id").work(Work::Rows).note(PARENTS);
pub(super) static DELETE: Form =
    form("DELETE", "", &[], "DELETE FROM t USING u WHERE u.id = t.id AND t.id = -1")
        .work(Work::Rows)
        .note(PARENTS);
pub(super) static MERGE: Form =
    form("MERGE", "", &[], "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n = 2")
        .work(Work::Rows)
        .since(15)
        .note(PARENTS);

/// Queries by what they do first.
pub(super) static QUERIES: [&Form; 6] = [&SELECT, &SELECT_FOR_UPDATE, &INSERT, &UPDATE, &DELETE, &MERGE];

/// All statements but ALTER TABLE and queries.
pub(super) static STATEMENTS: &[Form] = &[
    form("COPY … FROM", "COPY @ [()] FROM", &[RX], "COPY t FROM PROGRAM 'true'").work(Work::Rows).note(TRIGGERS),
    form("COPY … TO", "COPY @ [()] TO", &[AS], "COPY t TO '/dev/null'").work(Work::Reads),
    form("LOCK TABLE … ACCESS SHARE", "LOCK [TABLE] @+ IN ACCESS SHARE MODE", &[AS], "LOCK TABLE t IN ACCESS SHARE MODE"),
    form("LOCK TABLE … ROW SHARE", "LOCK [TABLE] @+ IN ROW SHARE MODE", &[RS], "LOCK TABLE t IN ROW SHARE MODE"),
    form("LOCK TABLE … ROW EXCLUSIVE", "LOCK [TABLE] @+ IN ROW EXCLUSIVE MODE", &[RX], "LOCK t IN ROW EXCLUSIVE MODE"),
    form(
        "LOCK TABLE … SHARE UPDATE EXCLUSIVE",
        "LOCK [TABLE] @+ IN SHARE UPDATE EXCLUSIVE MODE",
        &[SUX],
        "LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE",
    ),
    form(
        "LOCK TABLE … SHARE ROW EXCLUSIVE",
        "LOCK [TABLE] @+ IN SHARE ROW EXCLUSIVE MODE",
        &[SRX],
        "LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE",
    ),
    form("LOCK TABLE … SHARE", "LOCK [TABLE] @+ IN SHARE MODE", &[S], "LOCK TABLE t, u IN SHARE MODE"),
    form("LOCK TABLE … EXCLUSIVE", "LOCK [TABLE] @+ IN EXCLUSIVE MODE", &[X], "LOCK TABLE t IN EXCLUSIVE MODE"),
    form(
        "LOCK TABLE … ACCESS EXCLUSIVE",
        "LOCK [TABLE] @+ IN ACCESS EXCLUSIVE MODE",
        &[AX],
        "LOCK TABLE t IN ACCESS EXCLUSIVE MODE",
    ),
    form("LOCK TABLE", "LOCK [TABLE] @+", &[AX], "LOCK TABLE t"),
    form("TRUNCATE", "TRUNCATE [TABLE] @+", &[AX], "TRUNCATE TABLE lone").work(Work::Empties).note(
        "with CASCADE the tables whose foreign keys refer to it as well",
    ),
    form("DROP TABLE", "DROP [FOREIGN] TABLE [IF EXISTS] @+", &[AX], "DROP TABLE t CASCADE")
        .note("tables at the other end of its foreign keys are locked in AccessExclusive, too"),
    form("DROP VIEW", "DROP VIEW [IF EXISTS] @+", &[AX], "DROP VIEW w"),
    form("DROP MATERIALIZED VIEW", "DROP MATERIALIZED VIEW [IF EXISTS] @+", &[AX], "DROP MATERIALIZED VIEW m"),
    form("DROP SEQUENCE", "DROP SEQUENCE [IF EXISTS] @+", &[AX], "DROP SEQUENCE q"),
    form("DROP INDEX CONCURRENTLY", "DROP INDEX CONCURRENTLY [IF EXISTS] @+", &[SUX], "DROP INDEX CONCURRENTLY t_v")
        .on_table_of_index(SUX)
        .waits_for(AX),
    form("DROP INDEX", "DROP INDEX [IF EXISTS] @+", &[AX], "DROP INDEX t_v")
        .on_table_of_index(AX)
        .advice("DROP INDEX CONCURRENTLY lets others read and write meanwhile"),
    form(
        "CREATE INDEX CONCURRENTLY",
        "CREATE [UNIQUE] INDEX CONCURRENTLY [[IF NOT EXISTS] %] ON [ONLY] @",
        &[SUX],
        "CREATE INDEX CONCURRENTLY late ON t (v)",
    )
    .work(Work::BuildsIndex)
    .waits_for(S)
    .note("at its end it waits for all transactions of the database that began before and may still look"),
    form("CREATE INDEX", "CREATE [UNIQUE] INDEX [[IF NOT EXISTS] %] ON [ONLY] @", &[S], "CREATE INDEX late ON t (v)")
        .work(Work::BuildsIndex)
        .advice(INDEX_CONCURRENTLY),
    form("REINDEX TABLE CONCURRENTLY", "REINDEX [()] TABLE CONCURRENTLY @", &[SUX], "REINDEX TABLE CONCURRENTLY t")
        .work(Work::BuildsIndex)
        .waits_for(S),
    form("REINDEX TABLE CONCURRENTLY", "REINDEX (CONCURRENTLY) TABLE @", &[SUX], "REINDEX (CONCURRENTLY) TABLE t")
        .work(Work::BuildsIndex)
        .waits_for(S),
    form("REINDEX INDEX CONCURRENTLY", "REINDEX [()] INDEX CONCURRENTLY @", &[SUX], "REINDEX INDEX CONCURRENTLY t_v")
        .on_table_of_index(SUX)
        .work(Work::BuildsIndex)
        .waits_for(S),
    form("REINDEX INDEX CONCURRENTLY", "REINDEX (CONCURRENTLY) INDEX @", &[SUX], "REINDEX (CONCURRENTLY) INDEX t_v")
        .on_table_of_index(SUX)
        .work(Work::BuildsIndex)
        .waits_for(S),
    form("REINDEX TABLE", "REINDEX [()] TABLE @", &[S], "REINDEX TABLE t")
        .work(Work::BuildsIndex)
        .note("its indexes are locked in AccessExclusive, so that most queries wait, too")
        .advice(REINDEX_CONCURRENTLY),
    form("REINDEX INDEX", "REINDEX [()] INDEX @", &[AX], "REINDEX INDEX t_v")
        .on_table_of_index(S)
        .work(Work::BuildsIndex)
        .note("most queries of the table look at all of its indexes, and wait, too")
        .advice(REINDEX_CONCURRENTLY),
    form(
        "CREATE TABLE … PARTITION OF",
        "CREATE [{TEMP|TEMPORARY|UNLOGGED}] TABLE [IF NOT EXISTS] % PARTITION OF @",
        &[AX],
        "CREATE TABLE p_new PARTITION OF p FOR VALUES IN (9)",
    )
    .advice("CREATE TABLE … (LIKE …) first, then ATTACH PARTITION, which lets others read and write"),
    form(
        "CREATE TABLE … INHERITS",
        "CREATE [{TEMP|TEMPORARY|UNLOGGED}] TABLE [IF NOT EXISTS] % () INHERITS (@+)",
        &[SUX],
        "CREATE TABLE child () INHERITS (t)",
    ),
    form(
        "CREATE OR REPLACE VIEW",
        "CREATE OR REPLACE [{TEMP|TEMPORARY}] [RECURSIVE] VIEW @ * AS",
        &[AX],
        "CREATE OR REPLACE VIEW w AS SELECT id, v FROM t",
    )
    .query(),
    form("CREATE VIEW", "CREATE [{TEMP|TEMPORARY}] [RECURSIVE] VIEW % * AS", &[], "CREATE VIEW w2 AS SELECT * FROM t").query(),
    form(
        "CREATE MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW [IF NOT EXISTS] % * AS",
        &[],
        "CREATE MATERIALIZED VIEW m2 AS SELECT * FROM t",
    )
    .query()
    .work(Work::Rows),
    form(
        "CREATE TABLE AS",
        "CREATE [{TEMP|TEMPORARY|UNLOGGED}] TABLE [IF NOT EXISTS] % [()] AS",
        &[],
        "CREATE TABLE copied AS SELECT * FROM t",
    )
    .query()
    .work(Work::Rows),
    form(
        "CREATE TABLE",
        "CREATE [{TEMP|TEMPORARY|UNLOGGED}] TABLE [IF NOT EXISTS] % ()",
        &[],
        "CREATE TABLE fresh (a int REFERENCES t, LIKE u)",
    )
    .others()
    .note("nobody else sees a new table before its transaction ends"),
    form(
        "REFRESH MATERIALIZED VIEW CONCURRENTLY",
        "REFRESH MATERIALIZED VIEW CONCURRENTLY @",
        &[X],
        "REFRESH MATERIALIZED VIEW CONCURRENTLY m",
    )
    .work(Work::Rows),
    form("REFRESH MATERIALIZED VIEW", "REFRESH MATERIALIZED VIEW @", &[AX], "REFRESH MATERIALIZED VIEW m")
        .work(Work::Rewrites)
        .advice("REFRESH MATERIALIZED VIEW CONCURRENTLY lets others read it meanwhile; it needs a unique index"),
    form(
        "CREATE TRIGGER",
        "CREATE [OR REPLACE] [CONSTRAINT] TRIGGER % * ON @",
        &[SRX],
        "CREATE TRIGGER g2 BEFORE UPDATE OF v ON t FOR EACH ROW EXECUTE FUNCTION nothing()",
    ),
    form("DROP TRIGGER", "DROP TRIGGER [IF EXISTS] % ON @", &[AX], "DROP TRIGGER g ON t"),
    form("ALTER TRIGGER … RENAME", "ALTER TRIGGER % ON @ RENAME TO", &[AX], "ALTER TRIGGER g ON t RENAME TO g3"),
    form(
        "CREATE RULE",
        "CREATE [OR REPLACE] RULE % AS ON * TO @",
        &[AX],
        "CREATE RULE r2 AS ON INSERT TO lone DO NOTHING",
    ),
    form("DROP RULE", "DROP RULE [IF EXISTS] % ON @", &[AX], "DROP RULE r ON lone"),
    form("CREATE POLICY", "CREATE POLICY % ON @", &[AX], "CREATE POLICY o2 ON t USING (true)"),
    form("ALTER POLICY", "ALTER POLICY % ON @", &[AX], "ALTER POLICY o ON t USING (true)"),
    form("DROP POLICY", "DROP POLICY [IF EXISTS] % ON @", &[AX], "DROP POLICY o ON t"),
    form(
        "CREATE STATISTICS",
        "CREATE STATISTICS [[IF NOT EXISTS] %] [()] ON * FROM @",
        &[SUX],
        "CREATE STATISTICS st ON id, v FROM t",
    ),
    form("COMMENT ON TABLE", "COMMENT ON {TABLE|VIEW|MATERIALIZED VIEW|SEQUENCE|INDEX} @ IS", &[SUX], "COMMENT ON TABLE t IS 'x'"),
    form("COMMENT ON COLUMN", "COMMENT ON COLUMN @. IS", &[SUX], "COMMENT ON COLUMN t.v IS 'x'"),
    form("VACUUM FULL", "VACUUM {(FULL)|FULL [FREEZE] [VERBOSE] [{ANALYZE|ANALYSE}]} @+", &[AX], "VACUUM (FULL) t")
        .work(Work::Rewrites)
        .alone()
        .advice("VACUUM without FULL makes the space free for the table's own new rows, and lets others read and write; pg_repack and pg_squeeze give it back so"),
    form("VACUUM", "VACUUM [()] [FREEZE] [VERBOSE] [{ANALYZE|ANALYSE}] @+", &[SUX], "VACUUM t")
        .work(Work::Reads)
        .alone()
        .note("at its end it may take AccessExclusive for a moment, to make the file shorter; it gives up where somebody waits"),
    form("ANALYZE", "{ANALYZE|ANALYSE} [()] [VERBOSE] @+", &[SUX], "ANALYZE t (v)").note("it reads a sample of the rows"),
    form("CLUSTER", "CLUSTER [()] [VERBOSE] @", &[AX], "CLUSTER t USING t_pkey").work(Work::Rewrites).advice(
        "pg_repack orders a table while others read and write it",
    ),
    form("REPACK CONCURRENTLY", "REPACK (CONCURRENTLY) @", &[SUX], "REPACK (CONCURRENTLY) t")
        .work(Work::Rewrites)
        .since(19)
        .note("at its end it takes AccessExclusive for a moment"),
    form("REPACK", "REPACK [()] @", &[AX], "REPACK t")
        .work(Work::Rewrites)
        .since(19)
        .advice("REPACK (CONCURRENTLY) lets others read and write meanwhile"),
    form("ALTER INDEX … RENAME", "ALTER INDEX [IF EXISTS] @ RENAME TO", &[SUX], "ALTER INDEX t_v RENAME TO t_w"),
    form("ALTER INDEX … SET (…)", "ALTER INDEX [IF EXISTS] @ {SET|RESET} ()", &[SUX], "ALTER INDEX t_v SET (fillfactor = 70)"),
    form(
        "ALTER INDEX … SET STATISTICS",
        "ALTER INDEX [IF EXISTS] @ ALTER [COLUMN] 1 SET STATISTICS",
        &[SUX],
        "",
    ),
    form(
        "ALTER INDEX … SET TABLESPACE",
        "ALTER INDEX [IF EXISTS] @ SET TABLESPACE",
        &[AX],
        "ALTER INDEX t_v SET TABLESPACE pg_default",
    )
    .work(Work::Copies),
    form("ALTER VIEW", "ALTER VIEW [IF EXISTS] @", &[AX], "ALTER VIEW w ALTER COLUMN id SET DEFAULT 1"),
    form(
        "ALTER SEQUENCE … OWNER, RENAME, SET SCHEMA",
        "ALTER SEQUENCE [IF EXISTS] @ {OWNER TO|RENAME TO|SET SCHEMA}",
        &[AX],
        "ALTER SEQUENCE q RENAME TO q2",
    ),
    form("ALTER SEQUENCE", "ALTER SEQUENCE [IF EXISTS] @", &[SRX], "ALTER SEQUENCE q INCREMENT BY 2"),
    form(
        "CREATE PUBLICATION … FOR TABLE",
        "CREATE PUBLICATION % FOR TABLE @+",
        &[SUX],
        "CREATE PUBLICATION b2 FOR TABLE t",
    ),
    form(
        "ALTER PUBLICATION … TABLE",
        "ALTER PUBLICATION % {ADD|SET|DROP} TABLE @+",
        &[SUX],
        "ALTER PUBLICATION b ADD TABLE t",
    ),
    form("GRANT … ON", "GRANT * ON [{TABLE|SEQUENCE}] @+ TO", &[AS], "GRANT SELECT ON t TO public").note(GRANTS),
    form("REVOKE … ON", "REVOKE * ON [{TABLE|SEQUENCE}] @+ FROM", &[AS], "REVOKE SELECT ON t FROM public").note(GRANTS),
    form("GRANT", "GRANT * TO", &[], "").note(GRANTS),
    form("REVOKE", "REVOKE * FROM", &[], "").note(GRANTS),
    form("ALTER TABLE … RENAME TO", "ALTER [FOREIGN] TABLE [IF EXISTS] @ RENAME TO", &[AX], "ALTER TABLE lone RENAME TO alone"),
    form(
        "ALTER TABLE … RENAME CONSTRAINT",
        "ALTER TABLE [IF EXISTS] @ RENAME CONSTRAINT",
        &[AX],
        "ALTER TABLE t RENAME CONSTRAINT t_n TO t_m",
    ),
    form(
        "ALTER TABLE … RENAME COLUMN",
        "ALTER [FOREIGN] {TABLE|MATERIALIZED VIEW} [IF EXISTS] @ RENAME [COLUMN] %",
        &[AX],
        "ALTER TABLE t RENAME v TO w",
    ),
    form(
        "ALTER TABLE … SET SCHEMA",
        "ALTER [FOREIGN] {TABLE|MATERIALIZED VIEW} [IF EXISTS] @ SET SCHEMA",
        &[AX],
        "ALTER TABLE lone SET SCHEMA other",
    ),
    form(
        "ALTER TABLE … ATTACH PARTITION",
        "ALTER TABLE [IF EXISTS] @ ATTACH PARTITION @",
        &[SUX, AX],
        "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2)",
    )
    .work(Work::Reads)
    .note("it reads the new partition, unless a valid CHECK says the same as its bounds; a default partition is locked in AccessExclusive and read, too"),
    form(
        "ALTER TABLE … DETACH PARTITION CONCURRENTLY",
        "ALTER TABLE [IF EXISTS] @ DETACH PARTITION @ CONCURRENTLY",
        &[SUX, AX],
        "ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY",
    )
    .waits_for(AX)
    .note("the partition is locked in ShareUpdateExclusive first, and at the end in AccessExclusive"),
    form(
        "ALTER TABLE … DETACH PARTITION FINALIZE",
        "ALTER TABLE [IF EXISTS] @ DETACH PARTITION @ FINALIZE",
        &[SUX, AX],
        "",
    ),
    form(
        "ALTER TABLE … DETACH PARTITION",
        "ALTER TABLE [IF EXISTS] @ DETACH PARTITION @",
        &[AX, AX],
        "ALTER TABLE p DETACH PARTITION p1",
    )
    .advice("DETACH PARTITION … CONCURRENTLY lets others read and write meanwhile"),
    form(
        "ALTER TABLE … SPLIT, MERGE PARTITIONS",
        "ALTER TABLE [IF EXISTS] @ {SPLIT PARTITION|MERGE PARTITIONS}",
        &[AX],
        "",
    )
    .work(Work::Rewrites)
    .since(19),
    form("BEGIN, COMMIT, …", "{BEGIN|START TRANSACTION|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE}", &[], "SAVEPOINT s"),
    form("SET, SHOW, …", "{SET|RESET|SHOW|LISTEN|UNLISTEN|NOTIFY|DEALLOCATE}", &[], "SET lock_timeout = '2s'"),
];

/// Actions of ALTER TABLE, of which one statement may have several. Each example is an action alone, on the table `t`, or a whole statement.
pub(super) static ACTIONS: &[Form] = &[
    action("ADD CHECK NOT VALID", "ADD [CONSTRAINT %] CHECK () * NOT VALID", "ADD CHECK (n > 5) NOT VALID"),
    action("ADD CHECK", "ADD [CONSTRAINT %] CHECK ()", "ADD CONSTRAINT c CHECK (n < 5)").work(Work::Reads).advice(NOT_VALID),
    form(
        "ADD FOREIGN KEY NOT VALID",
        "ADD [CONSTRAINT %] FOREIGN KEY () REFERENCES @ * NOT VALID",
        &[SRX],
        "ADD FOREIGN KEY (n) REFERENCES u NOT VALID",
    ),
    form(
        "ADD FOREIGN KEY",
        "ADD [CONSTRAINT %] FOREIGN KEY () REFERENCES @",
        &[SRX],
        "ALTER TABLE u ADD CONSTRAINT f2 FOREIGN KEY (t_id) REFERENCES t",
    )
    .work(Work::Reads)
    .advice(NOT_VALID),
    action(
        "ADD UNIQUE, PRIMARY KEY USING INDEX",
        "ADD [CONSTRAINT %] {UNIQUE|PRIMARY KEY} USING INDEX",
        "ADD CONSTRAINT t_u UNIQUE USING INDEX t_unique",
    )
    .note("a primary key reads the table where one of its columns may be NULL"),
    action("ADD UNIQUE, PRIMARY KEY", "ADD [CONSTRAINT %] {UNIQUE|PRIMARY KEY}", "ADD UNIQUE (v)")
        .work(Work::BuildsIndex)
        .advice(USING_INDEX),
    action("ADD EXCLUDE", "ADD [CONSTRAINT %] EXCLUDE", "ADD EXCLUDE USING btree (v WITH =)").work(Work::BuildsIndex),
    action("ADD NOT NULL NOT VALID", "ADD [CONSTRAINT %] NOT NULL % * NOT VALID", "ADD NOT NULL v NOT VALID").since(18),
    action("ADD NOT NULL", "ADD [CONSTRAINT %] NOT NULL %", "ADD CONSTRAINT t_v_set NOT NULL v")
        .since(18)
        .work(Work::Reads)
        .advice(NOT_VALID),
    action("ADD COLUMN … GENERATED STORED", "ADD [COLUMN] [IF NOT EXISTS] % * GENERATED ALWAYS AS () STORED", "ADD g int GENERATED ALWAYS AS (n + 1) STORED")
        .work(Work::Rewrites)
        .advice(IN_STEPS),
    action("ADD COLUMN … GENERATED VIRTUAL", "ADD [COLUMN] [IF NOT EXISTS] % * GENERATED ALWAYS AS ()", "ADD g int GENERATED ALWAYS AS (n + 1)")
        .since(18),
    action("ADD COLUMN … IDENTITY", "ADD [COLUMN] [IF NOT EXISTS] % * GENERATED * AS IDENTITY", "ADD g int GENERATED BY DEFAULT AS IDENTITY")
        .work(Work::Rewrites)
        .advice(CONSTANT),
    action(
        "ADD COLUMN serial",
        "ADD [COLUMN] [IF NOT EXISTS] % {SERIAL|BIGSERIAL|SMALLSERIAL|SERIAL2|SERIAL4|SERIAL8}",
        "ADD g bigserial",
    )
    .work(Work::Rewrites)
    .advice(CONSTANT),
    action("ADD COLUMN … UNIQUE, PRIMARY KEY", "ADD [COLUMN] [IF NOT EXISTS] % * {UNIQUE|PRIMARY}", "ADD g int UNIQUE")
        .work(Work::BuildsIndex)
        .advice("add the column alone, then a unique index CONCURRENTLY"),
    action("ADD COLUMN … CHECK", "ADD [COLUMN] [IF NOT EXISTS] % * CHECK", "ADD g int CHECK (g > 0)")
        .work(Work::Reads)
        .advice(NOT_VALID),
    action("ADD COLUMN … DEFAULT, volatile", "ADD [COLUMN] [IF NOT EXISTS] % * DEFAULT ~", "ADD g float DEFAULT random()")
        .work(Work::MayRewrite)
        .note("each row gets a value of its own where the default is volatile (random(), nextval(), gen_random_uuid(), clock_timestamp()), and one that is not does not make it write the table")
        .advice(CONSTANT),
    action("ADD COLUMN … DEFAULT", "ADD [COLUMN] [IF NOT EXISTS] % * DEFAULT =", "ADD g timestamptz NOT NULL DEFAULT now()")
        .note("a column of a domain with a constraint makes it write the table"),
    action("ADD COLUMN", "ADD [COLUMN] [IF NOT EXISTS] %", "ADD COLUMN g int")
        .note("a column of a domain with a constraint makes it write the table"),
    form("VALIDATE CONSTRAINT", "VALIDATE CONSTRAINT", &[SUX], "VALIDATE CONSTRAINT t_late")
        .work(Work::Reads)
        .note("of a foreign key the table at its other end is locked in RowShare"),
    action("DROP CONSTRAINT", "DROP CONSTRAINT", "DROP CONSTRAINT t_n")
        .note("of a foreign key the table at its other end is locked in AccessExclusive, too"),
    action("DROP COLUMN", "DROP [COLUMN] [IF EXISTS] %", "DROP COLUMN v CASCADE")
        .note("the space comes back as rows are written anew"),
    action("ALTER COLUMN TYPE", "ALTER [COLUMN] % [SET DATA] TYPE", "ALTER n TYPE bigint")
        .work(Work::MayRewrite)
        .note("it does not write the table where the old values are valid as they are: varchar to text or a longer varchar, a numeric with more digits of the same scale; indexes may be built anew all the same")
        .advice(IN_STEPS),
    action("ALTER COLUMN SET, DROP DEFAULT", "ALTER [COLUMN] % {SET|DROP} DEFAULT", "ALTER n SET DEFAULT 1"),
    action("ALTER COLUMN SET NOT NULL", "ALTER [COLUMN] % SET NOT NULL", "ALTER COLUMN v SET NOT NULL")
        .work(Work::Reads)
        .note("it does not read the table where a valid CHECK (column IS NOT NULL) proves it")
        .advice("ADD CHECK (column IS NOT NULL) NOT VALID, VALIDATE CONSTRAINT, then SET NOT NULL; from 18 ADD NOT NULL … NOT VALID and VALIDATE CONSTRAINT"),
    action("ALTER COLUMN DROP NOT NULL", "ALTER [COLUMN] % DROP NOT NULL", "ALTER n DROP NOT NULL"),
    form("ALTER COLUMN SET STATISTICS", "ALTER [COLUMN] % SET STATISTICS", &[SUX], "ALTER v SET STATISTICS 500"),
    action("ALTER COLUMN SET STORAGE", "ALTER [COLUMN] % SET STORAGE", "ALTER v SET STORAGE EXTERNAL"),
    action("ALTER COLUMN SET COMPRESSION", "ALTER [COLUMN] % SET COMPRESSION", "ALTER v SET COMPRESSION pglz"),
    form("ALTER COLUMN SET (…)", "ALTER [COLUMN] % {SET|RESET} (N_DISTINCT)", &[SUX], "ALTER v SET (n_distinct = 5)"),
    action("ALTER COLUMN ADD IDENTITY", "ALTER [COLUMN] % ADD GENERATED", "ALTER TABLE lone ALTER a ADD GENERATED ALWAYS AS IDENTITY"),
    action("ALTER COLUMN DROP IDENTITY", "ALTER [COLUMN] % DROP IDENTITY", "ALTER n DROP IDENTITY IF EXISTS"),
    action("ALTER COLUMN SET EXPRESSION", "ALTER [COLUMN] % SET EXPRESSION", "ALTER TABLE gen ALTER made SET EXPRESSION AS (n + 2)")
        .since(17)
        .work(Work::MayRewrite)
        .note("of a virtual column, from 18, it does not write the table"),
    action("ALTER COLUMN DROP EXPRESSION", "ALTER [COLUMN] % DROP EXPRESSION", "ALTER TABLE gen ALTER made DROP EXPRESSION"),
    action("ALTER CONSTRAINT", "ALTER CONSTRAINT", "ALTER TABLE ref ALTER CONSTRAINT ref_t DEFERRABLE"),
    form("ENABLE, DISABLE TRIGGER", "{ENABLE|DISABLE} [{REPLICA|ALWAYS}] TRIGGER", &[SRX], "DISABLE TRIGGER g"),
    action("ENABLE, DISABLE RULE", "{ENABLE|DISABLE} [{REPLICA|ALWAYS}] RULE", ""),
    action("ROW LEVEL SECURITY", "{ENABLE|DISABLE|FORCE|NO FORCE} ROW LEVEL SECURITY", "ENABLE ROW LEVEL SECURITY"),
    form("CLUSTER ON", "CLUSTER ON", &[SUX], "CLUSTER ON t_pkey"),
    form("SET WITHOUT CLUSTER", "SET WITHOUT CLUSTER", &[SUX], "SET WITHOUT CLUSTER"),
    action("SET ACCESS METHOD", "SET ACCESS METHOD", "SET ACCESS METHOD other_heap").since(15).work(Work::Rewrites),
    action("SET TABLESPACE", "SET TABLESPACE", "SET TABLESPACE pg_default").work(Work::Copies),
    action("SET LOGGED, UNLOGGED", "SET {LOGGED|UNLOGGED}", "SET LOGGED").work(Work::MayRewrite).note("it writes nothing where it is so already"),
    action("SET (user_catalog_table)", "{SET|RESET} (USER_CATALOG_TABLE)", "SET (user_catalog_table = true)"),
    form("SET (…)", "{SET|RESET} ()", &[SUX], "SET (fillfactor = 70, autovacuum_enabled = false)"),
    form("INHERIT", "INHERIT @", &[AX, SUX], "ALTER TABLE heir INHERIT lone"),
    form("NO INHERIT", "NO INHERIT @", &[AX, AS], "ALTER TABLE kid NO INHERIT folk"),
    action("OF, NOT OF", "{OF %|NOT OF}", ""),
    action("OWNER TO", "OWNER TO", "OWNER TO CURRENT_USER"),
    action("REPLICA IDENTITY", "REPLICA IDENTITY", "REPLICA IDENTITY FULL"),
];

/// An action of ALTER TABLE that takes `AccessExclusive`, as most do.
const fn action(name: &'static str, pattern: &'static str, example: &'static str) -> Form {
    form(name, pattern, &[AX], example)
}
