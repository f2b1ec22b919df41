//! Statements on objects other than relations, and statements whose locks do not conflict with other requests. The locks on
//! objects are those that `pg_locks` shows (`tests/server/lock_of`).

use super::form::{Also, Form, Role, Work};
use super::forms::{AS, AX, S, SRX, SUX, X};
use crate::model::lock::LockMode;

const NOTHING: &[LockMode] = &[];
const TWICE: &str = "if two sessions change the same object, the second fails: tuple concurrently updated";
const DEPENDENTS: &str = "objects that depend on it, in AccessExclusive";
const CODE: &str = "objects that its code locks";

const fn form(name: &'static str, pattern: &'static str, modes: &'static [LockMode]) -> Form {
    Form::new(name, pattern, modes, "")
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
        .work(Work::Reads)
        .also(&[Also::of(Role::Columns, S)]),
    form("ALTER DOMAIN … VALIDATE CONSTRAINT", "ALTER DOMAIN #DOMAIN VALIDATE CONSTRAINT %", NOTHING)
        .work(Work::Reads)
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
