//! Names that look like something else: of columns (d) and of schemas (e).

use super::ground::{Ground, one_version, watchers};
use super::snapshots::{limits, poll_once};
use super::stored::in_schema;
use super::support::versions;

/// A column's name holds a newline and a kind for the next one, whose type is mallory's: so are its casts.
const FORGED: &str = "
    CREATE TABLE scheduled_tasks (id integer PRIMARY KEY, task_name text, \"x int\nlast_run_at time\ny\" integer, last_run_at evil.mood,
                                  \"x int\nnext_run_at time\nz\" integer, next_run_at evil.mood, \"x int\ntimeout number\na\" integer,
                                  timeout evil.mood);
    CREATE TABLE task_execution_log (id bigint PRIMARY KEY, task_id integer, status text, \"x int\nstarted_at time\ny\" integer,
                                     started_at evil.mood, \"x int\nworker_id text\nz\" integer, worker_id evil.mood);
    CREATE TABLE distlock (id text PRIMARY KEY, owner text, \"x int\nts time\ny\" integer, ts evil.mood,
                           \"x int\nexpired_time number\nz\" integer, expired_time evil.mood);
    CREATE TABLE task_queue (id bigint PRIMARY KEY, status text, \"x int\ncreated_at time\ny\" integer, created_at evil.mood,
                             \"x int\nattempt int\nz\" integer, attempt evil.mood);
    CREATE TABLE rate_limit (key text PRIMARY KEY, \"x int\ncount int\ny\" integer, count evil.mood);
    CREATE TABLE id_generator (\"x int\nworker_id int\ny\" integer, worker_id evil.mood PRIMARY KEY, last_timestamp bigint);
    INSERT INTO scheduled_tasks VALUES (1, 'a', 1, 'a', 1, 'a', 1, 'a');
    INSERT INTO task_execution_log VALUES (1, 1, 'running', 1, 'a', 1, 'a');
    INSERT INTO distlock VALUES ('1', 'a', 1, 'a', 1, 'a');
    INSERT INTO task_queue VALUES (1, 'pending', 1, 'a', 1, 'a');
    INSERT INTO rate_limit VALUES ('a', 1, 'a');
    INSERT INTO id_generator VALUES (1, 'a', 1);
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;";

/// Trusted or not: a kind that is part of a name is never read as a kind.
#[tokio::test]
async fn a_kind_in_the_name_of_a_column_is_a_part_of_the_name() {
    for version in versions() {
        let ground = Ground::new(version).await;
        ground.run("mallory", FORGED).await;
        for role in watchers(version) {
            poll_once(&ground.info(role), &limits(&[])).await;
            ground.is_clean(role);
        }
        poll_once(&ground.info("monitor"), &limits(&["mallory"])).await;
        ground.is_clean("with mallory trusted: a table's name still contains no casts");
    }
}

/// The placeholders of the statements, and the values that may replace them.
const PLACEHOLDERS: [(&str, &[&str]); 20] = [
    ("$limit", &["1001", "1000", "1025", "10001", "10000", "501", "500", "50", "20"]),
    ("$order", &["", "ORDER BY t.id", "ORDER BY t.worker_id", "ORDER BY t.key", "ORDER BY t.created_at"]),
    ("$where", &["", "WHERE t.expires_at OPERATOR(pg_catalog.>) pg_catalog.now()"]),
    ("$status", &["'pending'", "'processing'", "'completed'", "'failed'", "pending"]),
    ("$most", &["10000"]),
    ("$tasks", &["400"]),
    ("$each", &["5"]),
    ("$newest", &["1000"]),
    ("$last_run_at", &["t.last_run_at", "NULL"]),
    ("$columns", &["", "NULL"]),
    ("$table", &["ONLY", "distlock"]),
    ("$log", &["ONLY", "task_execution_log"]),
    ("$rest", &["'{\"processing\",\"completed\",\"failed\"}'"]),
    ("$known", &["'{\"pending\",\"processing\",\"completed\",\"failed\"}'"]),
    ("$created", &["created_at", "status"]),
    ("$oldest", &["NULL::pg_catalog.timestamptz"]),
    ("$statuses", &["'{processing,completed,failed}'"]),
    ("$end", &["NULL::pg_catalog.timestamptz"]),
    ("$place", &["t.ctid::pg_catalog.text"]),
    ("@schema@", &["\"locktop\"", "locktop"]),
];
const TABLES: [&str; 6] =
    ["scheduled_tasks", "task_execution_log", "distlock", "task_queue", "rate_limit", "id_generator"];

/// The schemas and tables of those names are a superuser's; under each name that a replaced placeholder would
/// give there is a view of mallory's.
#[tokio::test]
async fn a_schema_with_the_name_of_a_placeholder_is_only_that() {
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.tables("postgres").await;
        let mut sql = String::new();
        for (placeholder, _) in PLACEHOLDERS {
            let schema = format!("\"x{placeholder}\"");
            sql.extend([format!("CREATE SCHEMA {schema}; GRANT USAGE ON SCHEMA {schema} TO PUBLIC;")]);
            for table in TABLES {
                sql.extend([format!(
                    "CREATE TABLE {schema}.{table} (LIKE public.{table} INCLUDING ALL);
                     INSERT INTO {schema}.{table} SELECT * FROM public.{table};"
                )]);
            }
            sql.extend([format!(
                "CREATE TABLE {schema}.states (id bigint PRIMARY KEY, name text, data text);
                 GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO PUBLIC;"
            )]);
        }
        let others: std::collections::BTreeSet<String> = PLACEHOLDERS
            .iter()
            .flat_map(|(_, values)| values.iter().map(|value| format!("x{value}")))
            .collect();
        let mut traps = String::new();
        for other in &others {
            let schema = format!("\"{}\"", other.replace('"', "\"\""));
            sql.extend([format!("CREATE SCHEMA {schema} AUTHORIZATION mallory;")]);
            traps.extend([format!("GRANT USAGE ON SCHEMA {schema} TO PUBLIC;")]);
            for table in TABLES {
                traps.extend([format!(
                    "CREATE VIEW {schema}.{table} AS SELECT *, '(0,1)'::tid AS ctid FROM public.{table} WHERE evil.hit('{table} in another schema');
                     GRANT SELECT ON {schema}.{table} TO PUBLIC;"
                )]);
            }
        }
        ground.run("postgres", &sql).await;
        ground.run("mallory", &traps).await;
        for (placeholder, _) in PLACEHOLDERS {
            let places = in_schema(&format!("x{placeholder}"), limits(&[]));
            poll_once(&ground.info("boss"), &places).await;
            ground.is_clean(placeholder);
        }
    }
}
