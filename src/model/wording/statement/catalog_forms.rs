//! Statements on objects other than relations, and statements whose locks do not conflict with other requests. The locks on
//! objects are those that `pg_locks` shows (`tests/server/lock_of`). And the actions of ALTER TABLE.

use super::form::{self, Also, Form, Role, StatementWork};
use super::forms::{
    AS, AX, BELOW, CONSTANT, IN_STEPS, NOT_VALID, PARTITIONS, S, SEQUENCES, SRX, SUX, USING_INDEX, X,
};
use crate::model::lock::LockMode;

const NOTHING: &[LockMode] = &[];
const TWICE: &str = "if two sessions change the same object, the second fails: tuple concurrently updated";
const DEPENDENTS: &str = "objects that depend on it, in AccessExclusive";
const CODE: &str = "objects that its code locks";

const fn form(name: &'static str, pattern: &'static str, modes: &'static [LockMode]) -> Form {
    form::form(name, pattern, modes, "")
}

/// Matched in this order, after the forms on relations.
pub(super) static STATEMENTS: &[Form] = &[
    form("COMMENT ON", "COMMENT ON # IS *", &[SUX]),
    form("SECURITY LABEL ON", "SECURITY LABEL [FOR %] ON # IS *", &[SUX]),
    form("GRANT … ON ALL … IN SCHEMA", "GRANT * ON ALL * IN SCHEMA *", NOTHING)
        .unseen("", "from 18 each object in the schema, in AccessShare"),
    form("REVOKE … ON ALL … IN SCHEMA", "REVOKE * ON ALL * IN SCHEMA *", NOTHING)
        .unseen("", "from 18 each object in the schema, in AccessShare"),
    form("GRANT … ON object", "GRANT * ON #+ TO *", &[AS]).from(&[18]),
    form("REVOKE … ON object", "REVOKE * ON #+ FROM *", &[AS]).from(&[18]),
    form("GRANT … ON PARAMETER", "GRANT * ON PARAMETER * TO *", NOTHING).since(15),
    form("REVOKE … ON PARAMETER", "REVOKE * ON PARAMETER * FROM *", NOTHING).since(15),
    form("GRANT", "GRANT #ROLE+ TO *", &[SUX]).from(&[16]),
    form("REVOKE", "REVOKE [{ADMIN|INHERIT|SET} OPTION FOR] #ROLE+ FROM *", &[SUX]).from(&[16]),
    form("ALTER DEFAULT PRIVILEGES", "ALTER DEFAULT PRIVILEGES * {GRANT|REVOKE} *", NOTHING),
    form("REASSIGN OWNED", "REASSIGN OWNED BY *", NOTHING).unseen("", "everything that the role owns"),
    form("DROP OWNED", "DROP OWNED BY *", NOTHING).unseen("", "everything that the role owns"),
    // Schemas, extensions, types.
    form("CREATE SCHEMA", "CREATE SCHEMA [IF NOT EXISTS] *", NOTHING),
    form("ALTER SCHEMA", "ALTER SCHEMA % {RENAME TO %|OWNER TO *}", NOTHING).note(TWICE),
    form("DROP SCHEMA", "DROP SCHEMA #SCHEMA+ [{CASCADE|RESTRICT}]", &[AX])
        .unseen("CASCADE", "everything in it, in AccessExclusive"),
    form("CREATE EXTENSION", "CREATE EXTENSION [IF NOT EXISTS] *", NOTHING).unseen("", "objects that its script locks"),
    form("ALTER EXTENSION … UPDATE", "ALTER EXTENSION % UPDATE *", NOTHING).unseen("", "objects that its script locks"),
    form("ALTER EXTENSION … SET SCHEMA", "ALTER EXTENSION #EXTENSION SET SCHEMA #SCHEMA", &[AX])
        .unseen("", "its members"),
    form(
        "ALTER EXTENSION … ADD, DROP",
        "ALTER EXTENSION #EXTENSION {ADD|DROP} {TABLE|VIEW|MATERIALIZED VIEW|SEQUENCE|FOREIGN TABLE} @",
        &[AS, SUX],
    ),
    form("ALTER EXTENSION … ADD, DROP", "ALTER EXTENSION #EXTENSION {ADD|DROP} #", &[AS, SUX]),
    form("DROP EXTENSION", "DROP EXTENSION #EXTENSION+ [{CASCADE|RESTRICT}]", &[AX])
        .unseen("", "its members, and with CASCADE what depends on them, in AccessExclusive"),
    form("CREATE TYPE … AS", "CREATE TYPE ^ AS ()", NOTHING),
    form("CREATE TYPE", "CREATE TYPE % *", NOTHING),
    form("ALTER TYPE … VALUE", "ALTER TYPE #TYPE {ADD|RENAME} VALUE *", &[X]),
    form("ALTER TYPE … ATTRIBUTE", "ALTER TYPE @ {ADD|DROP|ALTER|RENAME} ATTRIBUTE *", &[AX])
        .also(&[Also::of(Role::Columns, AX).with("CASCADE")]),
    form("ALTER TYPE … RENAME", "ALTER TYPE #TYPE RENAME TO %", NOTHING).composite(),
    form("ALTER TYPE … OWNER, SET SCHEMA", "ALTER TYPE % {OWNER TO|SET SCHEMA} *", NOTHING),
    form("ALTER TYPE … SET (…)", "ALTER TYPE % SET ()", NOTHING),
    form("DROP TYPE", "DROP TYPE #TYPE+ [{CASCADE|RESTRICT}]", &[AX])
        .composite()
        .also(&[Also::of(Role::Columns, AX).with("CASCADE")])
        .unseen("CASCADE", DEPENDENTS),
    form("CREATE DOMAIN", "CREATE DOMAIN % *", NOTHING),
    form("ALTER DOMAIN … NOT VALID", "ALTER DOMAIN #DOMAIN ADD * NOT VALID", NOTHING),
    form("ALTER DOMAIN … ADD, SET NOT NULL", "ALTER DOMAIN #DOMAIN {ADD *|SET NOT NULL}", NOTHING)
        .work(StatementWork::Reads)
        .also(&[Also::of(Role::Columns, S)]),
    form("ALTER DOMAIN … VALIDATE CONSTRAINT", "ALTER DOMAIN #DOMAIN VALIDATE CONSTRAINT %", NOTHING)
        .work(StatementWork::Reads)
        .also(&[Also::of(Role::Columns, S)]),
    form("ALTER DOMAIN", "ALTER DOMAIN % {DROP|SET|RENAME|OWNER} *", NOTHING),
    form("DROP DOMAIN", "DROP DOMAIN #DOMAIN+ [{CASCADE|RESTRICT}]", &[AX])
        .also(&[Also::of(Role::Columns, AX).with("CASCADE")])
        .unseen("CASCADE", DEPENDENTS),
    form("CREATE COLLATION", "CREATE COLLATION [IF NOT EXISTS] *", NOTHING)
        .fixed("", "pg_collation", SRX)
        .note("it locks the catalog of collations: only one session at a time can create one"),
    // Functions and other code.
    form("CREATE FUNCTION, PROCEDURE", "CREATE [OR REPLACE] {FUNCTION|PROCEDURE} % () *", NOTHING)
        .note("its body is not run; a body in BEGIN ATOMIC is parsed, which locks what it names"),
    form("CREATE AGGREGATE, CAST, OPERATOR, …", "CREATE [OR REPLACE] {AGGREGATE|CAST|OPERATOR|TRANSFORM} *", NOTHING),
    form("CREATE TEXT SEARCH, ACCESS METHOD, …", "CREATE {TEXT SEARCH|ACCESS METHOD|CONVERSION|DEFAULT CONVERSION|EVENT TRIGGER} *", NOTHING),
    form("CREATE LANGUAGE", "CREATE [OR REPLACE] [TRUSTED] [PROCEDURAL] LANGUAGE *", NOTHING),
    form("ALTER OPERATOR FAMILY … ADD, DROP", "ALTER OPERATOR FAMILY % USING % {ADD|DROP} *", NOTHING),
    form("ALTER … DEPENDS ON EXTENSION", "ALTER # [NO] DEPENDS ON EXTENSION #EXTENSION", &[AX, AX]),
    // Servers, publications, roles, databases.
    form("CREATE FOREIGN DATA WRAPPER, SERVER, …", "CREATE {FOREIGN DATA WRAPPER|SERVER|USER MAPPING} *", NOTHING),
    form("ALTER EVENT TRIGGER, SERVER, … OWNER", "ALTER {EVENT TRIGGER|FOREIGN DATA WRAPPER|SERVER|PUBLICATION|SUBSCRIPTION} % OWNER TO *", NOTHING)
        .note(TWICE),
    form("IMPORT FOREIGN SCHEMA", "IMPORT FOREIGN SCHEMA *", NOTHING).unseen("", "the schema that the tables are created in, in AccessShare"),
    form("CREATE PUBLICATION", "CREATE PUBLICATION % *", NOTHING),
    form("ALTER PUBLICATION … TABLES IN SCHEMA", "ALTER PUBLICATION #PUBLICATION {ADD|SET|DROP} TABLES IN SCHEMA #SCHEMA+ *", &[AX, AS]).since(15),
    form("CREATE SUBSCRIPTION", "CREATE SUBSCRIPTION % CONNECTION *", NOTHING)
        .note("unless connect or create_slot is false, it connects to the publisher and cannot run in a transaction block"),
    form("ALTER SUBSCRIPTION … RENAME", "ALTER SUBSCRIPTION #SUBSCRIPTION RENAME TO %", &[AX]),
    form("ALTER SUBSCRIPTION", "ALTER SUBSCRIPTION #SUBSCRIPTION {SET|ADD|DROP|REFRESH|ENABLE|DISABLE|CONNECTION|SKIP} *", &[AX]),
    form("DROP SUBSCRIPTION", "DROP SUBSCRIPTION #SUBSCRIPTION [{CASCADE|RESTRICT}]", &[AX])
        .note("if it has a replication slot, it drops that on the publisher, and cannot run in a transaction block"),
    form("CREATE ROLE … IN ROLE", "CREATE {ROLE|USER|GROUP} % * {IN ROLE|IN GROUP} #ROLE+ *", &[SUX]).from(&[16]),
    form("CREATE ROLE", "CREATE {ROLE|USER|GROUP} % *", NOTHING),
    form("ALTER ROLE … SET", "ALTER {ROLE|USER} {ALL|%} [IN DATABASE %] {SET|RESET} *", NOTHING),
    form("ALTER GROUP … USER", "ALTER GROUP #GROUP {ADD|DROP} USER *", &[SUX]).from(&[16]),
    form("ALTER ROLE … RENAME", "ALTER {ROLE|USER|GROUP} % RENAME TO %", NOTHING),
    form("ALTER ROLE", "ALTER {ROLE|USER} % *", NOTHING),
    form("CREATE DATABASE", "CREATE DATABASE % * TEMPLATE [=] #DATABASE *", &[S]).alone().note(TEMPLATE),
    form("CREATE DATABASE", "CREATE DATABASE % *", NOTHING).alone().fixed("DATABASE", "template1", S).note(TEMPLATE),
    form("ALTER DATABASE … RENAME", "ALTER DATABASE #DATABASE RENAME TO %", &[AX])
        .note("it fails while any session is connected to the database"),
    form("ALTER DATABASE … SET TABLESPACE", "ALTER DATABASE #DATABASE SET TABLESPACE *", &[AX])
        .alone()
        .note("it fails while any session is connected to the database"),
    form("ALTER DATABASE", "ALTER DATABASE % *", NOTHING).note(TWICE),
    form("DROP DATABASE … FORCE", "DROP DATABASE #DATABASE [WITH] ()", &[AX])
        .alone()
        .note("it terminates the sessions of the database; from 15 it waits until every process of the server has accepted a barrier"),
    form("DROP DATABASE", "DROP DATABASE #DATABASE *", &[AX])
        .alone()
        .note("without FORCE it fails while any session is connected to the database; from 15 it waits until every process of the server has accepted a barrier"),
    form("CREATE TABLESPACE", "CREATE TABLESPACE % *", NOTHING).alone(),
    form("ALTER TABLESPACE", "ALTER TABLESPACE % *", NOTHING),
    form("DROP TABLESPACE", "DROP TABLESPACE [IF EXISTS] %", NOTHING).alone(),
    form("ALTER SYSTEM", "ALTER SYSTEM {SET|RESET} *", NOTHING).alone(),
    // The same for all kinds of objects.
    form("DROP", "DROP #+ [{CASCADE|RESTRICT}]", &[AX]).unseen("CASCADE", DEPENDENTS),
    form("ALTER … SET SCHEMA", "ALTER # SET SCHEMA %", &[AX]),
    form("ALTER … RENAME, OWNER", "ALTER # {RENAME TO %|OWNER TO *}", &[AX]),
    form("ALTER", "ALTER # {CALLED|RETURNS|IMMUTABLE|STABLE|VOLATILE|NOT|LEAKPROOF|SECURITY|EXTERNAL|PARALLEL|COST|ROWS|SUPPORT|SET|RESET|STRICT|ADD|ALTER|DROP|()|VERSION|OPTIONS|REFRESH|DISABLE|ENABLE|HANDLER|VALIDATOR|NO} *", NOTHING)
        .note(TWICE),
    form("ALTER USER MAPPING", "ALTER USER MAPPING *", NOTHING),
    // Statements that run code outside their text.
    form("DO", "DO *", NOTHING).unseen("", CODE),
    form("CALL", "CALL % ()", NOTHING).unseen("", CODE),
    form("EXECUTE", "EXECUTE $ [()]", NOTHING).unseen("", "objects that its statement locks: it is not prepared in this text"),
    form("FETCH, MOVE, CLOSE", "{FETCH|MOVE|CLOSE} *", NOTHING)
        .note("the locks were taken by DECLARE; rows of FOR UPDATE are locked as they are fetched"),
    // Notifications, settings, transactions.
    form("NOTIFY", "NOTIFY *", NOTHING).note(NOTIFY),
    form("LISTEN, UNLISTEN", "{LISTEN|UNLISTEN} *", NOTHING),
    form("SET CONSTRAINTS", "SET CONSTRAINTS * {DEFERRED|IMMEDIATE}", NOTHING)
        .note("IMMEDIATE checks foreign keys at once, which locks the referenced rows"),
    form("DISCARD ALL", "DISCARD ALL", NOTHING).alone(),
    form("DISCARD", "DISCARD {PLANS|SEQUENCES|TEMP|TEMPORARY}", NOTHING),
    form("CHECKPOINT", "CHECKPOINT *", NOTHING),
    form("LOAD", "LOAD *", NOTHING),
    form("PREPARE TRANSACTION", "PREPARE TRANSACTION *", NOTHING)
        .note("its locks stay, without a session, until COMMIT PREPARED or ROLLBACK PREPARED"),
    form("COMMIT, ROLLBACK PREPARED", "{COMMIT|ROLLBACK} PREPARED *", NOTHING).alone(),
    form(
        "BEGIN, COMMIT, …",
        "{BEGIN|START TRANSACTION|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE} *",
        NOTHING,
    ),
    form("SET, SHOW, …", "{SET|RESET|SHOW|DEALLOCATE} *", NOTHING),
];

pub(super) static PSQL: Form = form("psql command", "", NOTHING);

const TEMPLATE: &str =
    "it fails while other sessions are connected to the template; new connections to it wait";
pub(super) const NOTIFY: &str =
    "its COMMIT locks the queue of notifications, one lock for all databases, until the commit has ended";

const fn own(name: &'static str, pattern: &'static str, example: &'static str) -> Form {
    form::form(name, pattern, &[AX], example)
}

/// An action that takes `AccessExclusive` also on partitions and children, as most do.
const fn action(name: &'static str, pattern: &'static str, example: &'static str) -> Form {
    own(name, pattern, example).also(BELOW)
}

const DOMAIN: &str = "a column of a domain with a constraint makes it rewrite the table";
/// Foreign keys of the named constraint or column.
const ITS_KEYS: &[Also] = &[
    Also::same(Role::Below),
    Also::of(Role::Referenced, AX),
    Also::of(Role::Referencing, AX).with("CASCADE"),
    Also::of(Role::Views, AX).with("CASCADE"),
    Also::of(Role::Sequences, AX),
];

/// Actions of ALTER TABLE, of which a statement may have several. Each example is either a single action on the table `t`,
/// or a whole statement. The first matching pattern counts.
pub(super) static ACTIONS: &[Form] = &[
    action("ADD CHECK NOT VALID", "ADD [CONSTRAINT %] CHECK () * NOT VALID", "ADD CHECK (n > 5) NOT VALID"),
    action("ADD CHECK", "ADD [CONSTRAINT %] CHECK () *", "ADD CONSTRAINT c CHECK (n < 5)").work(StatementWork::Reads).advice(NOT_VALID),
    form::form(
        "ADD FOREIGN KEY NOT VALID",
        "ADD [CONSTRAINT %] FOREIGN KEY () REFERENCES @ * NOT VALID",
        &[SRX],
        "ADD FOREIGN KEY (n) REFERENCES u NOT VALID",
    ),
    form::form(
        "ADD FOREIGN KEY",
        "ADD [CONSTRAINT %] FOREIGN KEY () REFERENCES @ *",
        &[SRX],
        "ALTER TABLE u ADD CONSTRAINT f2 FOREIGN KEY (t_id) REFERENCES t",
    )
    .also(PARTITIONS)
    .work(StatementWork::Reads)
    .advice(NOT_VALID),
    own(
        "ADD UNIQUE, PRIMARY KEY USING INDEX",
        "ADD [CONSTRAINT %] {UNIQUE|PRIMARY KEY} USING INDEX % *",
        "ADD CONSTRAINT t_u UNIQUE USING INDEX t_unique",
    )
    .note("a primary key reads the table if one of its columns may be NULL"),
    action("ADD UNIQUE, PRIMARY KEY", "ADD [CONSTRAINT %] {UNIQUE|PRIMARY KEY} *", "ADD UNIQUE (v)")
        .work(StatementWork::BuildsIndex)
        .advice(USING_INDEX),
    own("ADD EXCLUDE", "ADD [CONSTRAINT %] EXCLUDE *", "ADD EXCLUDE USING btree (v WITH =)").work(StatementWork::BuildsIndex),
    action("ADD NOT NULL NOT VALID", "ADD [CONSTRAINT %] NOT NULL % * NOT VALID", "ADD NOT NULL v NOT VALID").since(18),
    action("ADD NOT NULL", "ADD [CONSTRAINT %] NOT NULL % *", "ADD CONSTRAINT t_v_set NOT NULL v")
        .since(18)
        .work(StatementWork::Reads)
        .advice(NOT_VALID),
    action("ADD COLUMN … GENERATED STORED", "ADD [COLUMN] [IF NOT EXISTS] % * GENERATED ALWAYS AS () STORED *", "ADD g int GENERATED ALWAYS AS (n + 1) STORED")
        .work(StatementWork::Rewrites)
        .advice(IN_STEPS),
    action("ADD COLUMN … GENERATED VIRTUAL", "ADD [COLUMN] [IF NOT EXISTS] % * GENERATED ALWAYS AS () *", "ADD g int GENERATED ALWAYS AS (n + 1)")
        .since(18),
    action("ADD COLUMN … IDENTITY", "ADD [COLUMN] [IF NOT EXISTS] % * GENERATED * AS IDENTITY *", "ADD g int GENERATED BY DEFAULT AS IDENTITY")
        .work(StatementWork::Rewrites)
        .advice(CONSTANT),
    action(
        "ADD COLUMN serial",
        "ADD [COLUMN] [IF NOT EXISTS] % {SERIAL|BIGSERIAL|SMALLSERIAL|SERIAL2|SERIAL4|SERIAL8} *",
        "ADD g bigserial",
    )
    .work(StatementWork::Rewrites)
    .advice(CONSTANT),
    action("ADD COLUMN … UNIQUE, PRIMARY KEY", "ADD [COLUMN] [IF NOT EXISTS] % * {UNIQUE|PRIMARY} *", "ADD g int UNIQUE")
        .work(StatementWork::BuildsIndex)
        .advice("add the column alone, then a unique index CONCURRENTLY"),
    action("ADD COLUMN … CHECK", "ADD [COLUMN] [IF NOT EXISTS] % * CHECK () *", "ADD g int CHECK (g > 0)")
        .work(StatementWork::Reads)
        .advice(NOT_VALID),
    action("ADD COLUMN … DEFAULT, volatile", "ADD [COLUMN] [IF NOT EXISTS] % * DEFAULT ~ *", "ADD g float DEFAULT random()")
        .work(StatementWork::MayRewrite)
        .note("a volatile default (random(), nextval(), gen_random_uuid(), clock_timestamp()) gives each row a value of its own and rewrites the table; any other default does not")
        .advice(CONSTANT),
    action("ADD COLUMN … DEFAULT", "ADD [COLUMN] [IF NOT EXISTS] % * DEFAULT = *", "ADD g timestamptz NOT NULL DEFAULT now()").note(DOMAIN),
    action("ADD COLUMN", "ADD [COLUMN] [IF NOT EXISTS] % % *", "ADD COLUMN g int").note(DOMAIN),
    form::form("VALIDATE CONSTRAINT", "VALIDATE CONSTRAINT %", &[SUX], "VALIDATE CONSTRAINT t_late")
        .also(BELOW)
        .work(StatementWork::Reads)
        .note("for a foreign key the referenced table is locked in RowShare"),
    own("DROP CONSTRAINT", "DROP CONSTRAINT [IF EXISTS] $ [{CASCADE|RESTRICT}]", "DROP CONSTRAINT t_n")
        .also(ITS_KEYS)
        .by_name()
        .note("for a foreign key the table at its other end is locked in AccessExclusive, too"),
    own("DROP COLUMN", "DROP [COLUMN] [IF EXISTS] $ [{CASCADE|RESTRICT}]", "DROP COLUMN v CASCADE")
        .also(ITS_KEYS)
        .by_name()
        .note("the space is freed when rows are rewritten"),
    own("ALTER COLUMN TYPE", "ALTER [COLUMN] $ [SET DATA] TYPE % *", "ALTER n TYPE bigint")
        .also(&[Also::same(Role::Below), Also::of(Role::Referenced, AX), Also::of(Role::Referencing, AX)])
        .by_name()
        .work(StatementWork::MayRewrite)
        .note("it does not rewrite the table if the old values are valid as they are: varchar to text or a longer varchar, a numeric with more digits of the same scale; indexes may be rebuilt all the same")
        .advice(IN_STEPS),
    action("ALTER COLUMN SET, DROP DEFAULT", "ALTER [COLUMN] % {SET|DROP} DEFAULT *", "ALTER n SET DEFAULT 1"),
    action("ALTER COLUMN SET NOT NULL", "ALTER [COLUMN] % SET NOT NULL", "ALTER COLUMN v SET NOT NULL")
        .work(StatementWork::Reads)
        .note("it does not read the table if a valid CHECK (column IS NOT NULL) proves it")
        .advice("ADD CHECK (column IS NOT NULL) NOT VALID, VALIDATE CONSTRAINT, then SET NOT NULL; from 18 ADD NOT NULL … NOT VALID and VALIDATE CONSTRAINT"),
    action("ALTER COLUMN DROP NOT NULL", "ALTER [COLUMN] % DROP NOT NULL", "ALTER n DROP NOT NULL"),
    form::form("ALTER COLUMN SET STATISTICS", "ALTER [COLUMN] % SET STATISTICS *", &[SUX], "ALTER v SET STATISTICS 500").also(BELOW),
    action("ALTER COLUMN SET STORAGE", "ALTER [COLUMN] % SET STORAGE %", "ALTER v SET STORAGE EXTERNAL"),
    action("ALTER COLUMN SET COMPRESSION", "ALTER [COLUMN] % SET COMPRESSION %", "ALTER v SET COMPRESSION pglz"),
    form::form("ALTER COLUMN SET (…)", "ALTER [COLUMN] % {SET|RESET} (N_DISTINCT)", &[SUX], "ALTER v SET (n_distinct = 5)"),
    own("ALTER COLUMN ADD IDENTITY", "ALTER [COLUMN] % ADD GENERATED *", "ALTER TABLE lone ALTER a ADD GENERATED ALWAYS AS IDENTITY"),
    own("ALTER COLUMN SET IDENTITY", "ALTER [COLUMN] $ {RESTART|SET {GENERATED|INCREMENT|START|RESTART|MINVALUE|MAXVALUE|NO|CACHE|CYCLE}} *", "ALTER n SET GENERATED ALWAYS")
        .also(&[Also::of(Role::Sequences, SRX)])
        .by_name(),
    own("ALTER COLUMN DROP IDENTITY", "ALTER [COLUMN] $ DROP IDENTITY [IF EXISTS]", "ALTER n DROP IDENTITY IF EXISTS")
        .also(SEQUENCES)
        .by_name(),
    action("ALTER COLUMN SET EXPRESSION", "ALTER [COLUMN] % SET EXPRESSION AS ()", "ALTER TABLE gen ALTER made SET EXPRESSION AS (n + 2)")
        .since(17)
        .work(StatementWork::MayRewrite)
        .note("for a virtual column, from 18, it does not rewrite the table"),
    action("ALTER COLUMN DROP EXPRESSION", "ALTER [COLUMN] % DROP EXPRESSION [IF EXISTS]", "ALTER TABLE gen ALTER made DROP EXPRESSION"),
    own("ALTER CONSTRAINT", "ALTER CONSTRAINT % *", "ALTER TABLE ref ALTER CONSTRAINT ref_t DEFERRABLE").also(PARTITIONS),
    form::form("ENABLE, DISABLE TRIGGER", "{ENABLE|DISABLE} [{REPLICA|ALWAYS}] TRIGGER %", &[SRX], "DISABLE TRIGGER g").note("a row trigger of a partitioned table is changed on its partitions, which are locked, too"),
    own("ENABLE, DISABLE RULE", "{ENABLE|DISABLE} [{REPLICA|ALWAYS}] RULE %", ""),
    own("ROW LEVEL SECURITY", "{ENABLE|DISABLE|FORCE|NO FORCE} ROW LEVEL SECURITY", "ENABLE ROW LEVEL SECURITY"),
    form::form("CLUSTER ON", "CLUSTER ON %", &[SUX], "CLUSTER ON t_pkey"),
    form::form("SET WITHOUT CLUSTER", "SET WITHOUT CLUSTER", &[SUX], "SET WITHOUT CLUSTER"),
    own("SET WITHOUT OIDS", "SET WITHOUT OIDS", ""),
    own("SET ACCESS METHOD", "SET ACCESS METHOD %", "SET ACCESS METHOD other_heap").since(15).work(StatementWork::Rewrites),
    own("SET TABLESPACE", "SET TABLESPACE % [NOWAIT]", "SET TABLESPACE pg_default").work(StatementWork::Copies),
    own("SET LOGGED, UNLOGGED", "SET {LOGGED|UNLOGGED}", "SET LOGGED")
        .also(&[Also::of(Role::Sequences, AX)])
        .work(StatementWork::MayRewrite)
        .note("it rewrites nothing if the table already is that"),
    own("SET (user_catalog_table)", "{SET|RESET} (USER_CATALOG_TABLE)", "SET (user_catalog_table = true)"),
    form::form("SET (…)", "{SET|RESET} ()", &[SUX], "SET (fillfactor = 70, autovacuum_enabled = false)"),
    form::form("INHERIT", "INHERIT @", &[AX, SUX], "ALTER TABLE heir INHERIT lone"),
    form::form("NO INHERIT", "NO INHERIT @", &[AX, AS], "ALTER TABLE kid NO INHERIT folk"),
    form::form("OF", "OF @", &[AX, AS], ""),
    own("NOT OF", "NOT OF", ""),
    own("OWNER TO", "OWNER TO *", "OWNER TO CURRENT_USER").also(SEQUENCES),
    own("OPTIONS", "OPTIONS ()", "ALTER FOREIGN TABLE far OPTIONS (ADD x 'y')"),
    own("ALTER COLUMN OPTIONS", "ALTER [COLUMN] % OPTIONS ()", ""),
    own("REPLICA IDENTITY", "REPLICA IDENTITY {FULL|NOTHING|DEFAULT|USING INDEX %}", "REPLICA IDENTITY FULL"),
];
