//! Names of advisory keys that are learned from a real server.

#[path = "../support/suite.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use locktop::demo::postgres::EmbeddedServer;
use locktop::feed::acting::ActingConnection;
use locktop::feed::learn::{self, Learned, Learner, NameQuery, Way};
use locktop::feed::live::{FeedSettings, Live, PollControl};
use locktop::feed::once::once_learning;
use locktop::model::finding::Severity;
use locktop::model::lock_key::LockKey;
use locktop::model::lock_name::{LockNames, NameContext};
use locktop::model::thresholds::Thresholds;
use locktop::model::view::View;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollLimits, open_plain};
use support::{TIMEOUT, database, open, server, server_of, versions};
use tokio::sync::watch;

/// Rounds follow one another closely.
const EVERY: Duration = Duration::from_millis(50);

fn query(sql: &str, place: &str) -> NameQuery {
    NameQuery { sql: sql.to_owned(), database: None, place: place.to_owned() }
}

fn learner(info: &ConnInfo, queries: &[NameQuery]) -> Learner {
    Learner::new(info.clone(), PollLimits::default(), LockNames::default(), queries.to_vec())
}

/// One round, with as much time as a busy machine may need.
async fn learned(info: &ConnInfo, queries: &[NameQuery]) -> Learned {
    learn::once(learner(info, queries), TIMEOUT).await
}

/// The name of a key in the database of `info`.
fn name(learned: &Learned, info: &ConnInfo, key: LockKey) -> Option<String> {
    let context = NameContext { database: Some(info.dbname()), ..NameContext::default() };
    learned.names.resolve(key, context).map(|name| name.to_string())
}

fn bigint(learned: &Learned, info: &ConnInfo, key: i64) -> Option<String> {
    name(learned, info, LockKey::Bigint(key))
}

fn notes(learned: &Learned) -> Vec<&str> {
    learned.notes.iter().map(|note| &**note).collect()
}

/// The name that the screens show for a key that is held.
fn shown(view: &View, key: LockKey) -> Option<String> {
    let snapshot = view.snapshot.as_deref()?;
    let lock = snapshot.locks.last_rows().iter().find(|lock| lock.tag.advisory_key() == Some(key))?;
    let database = snapshot.names.databases.get(&lock.tag.database()?)?;
    let context = NameContext { database: Some(database), ..NameContext::default() };
    view.lock_names.resolve(key, context).map(|name| name.to_string())
}

/// A running poll that learns.
struct Running {
    views: watch::Receiver<Arc<View>>,
    _acting: Option<Arc<ActingConnection>>,
}

async fn run(info: &ConnInfo, queries: &[NameQuery], read_only: bool) -> Running {
    let (names_in, names) = watch::channel(Learned::default());
    let settings = FeedSettings { learned: Some(names), ..FeedSettings::default() };
    let live = Live::connect(info.clone(), settings, |_| {}).await.unwrap();
    let (views_in, views) = watch::channel(live.view());
    let acting = (!read_only)
        .then(|| Arc::new(ActingConnection::keep(info.clone(), PollLimits::default(), views.clone())));
    let way = acting.clone().map_or(Way::Own, Way::Acting);
    tokio::spawn(live.run(PollControl::every(EVERY).1, views_in));
    tokio::spawn(learn::keep(learner(info, queries), way, EVERY, names_in));
    Running { views, _acting: acting }
}

impl Running {
    async fn until(&mut self, what: &str, done: impl Fn(&View) -> bool) -> Arc<View> {
        let found = tokio::time::timeout(TIMEOUT, self.views.wait_for(|view| done(view))).await;
        Arc::clone(&found.unwrap_or_else(|_| panic!("timed out waiting for {what}")).unwrap())
    }
}

#[tokio::test]
async fn a_query_of_the_config_names_a_key_that_is_held() {
    let info = database(server().await).await;
    let holder = open(&info).await.client;
    holder
        .batch_execute(
            "CREATE TABLE jobs (name text); INSERT INTO jobs VALUES ('invoices'), (NULL);
             SELECT pg_advisory_lock(hashtext('invoices'))",
        )
        .await
        .unwrap();
    let key: i64 = holder.query_one("SELECT hashtext('invoices')::bigint", &[]).await.unwrap().get(0);
    for read_only in [false, true] {
        let queries = [query("select hashtext(name), name from jobs;", "config.toml:1:1")];
        let mut running = run(&info, &queries, read_only).await;
        let named = |view: &View| shown(view, LockKey::Bigint(key)).as_deref() == Some("invoices");
        let view = running.until("the name", named).await;
        assert!(
            view.findings.iter().all(|finding| finding.check != "lock_name_query"),
            "{:?}",
            view.findings
        );
    }
}

#[tokio::test]
async fn a_single_snapshot_shows_learned_names_and_failed_queries() {
    let info = database(server().await).await;
    let holder = open(&info).await.client;
    holder.batch_execute("SELECT pg_advisory_lock(3, -4)").await.unwrap();
    let queries = [
        query("values (3::smallint, -4, 'shard\u{1b}[31m'::varchar)", "config.toml:1:1"),
        query("select 1, 'x' from nowhere", "config.toml:4:1"),
    ];
    let learner = learner(&info, &queries);
    let view = Box::pin(once_learning(&info, PollLimits::default(), Thresholds::default(), learner, None));
    let view = view.await.unwrap();
    assert_eq!(shown(&view, LockKey::Pair(3, -4)).as_deref(), Some("shard\u{1b}[31m"));
    let finding = view.findings.iter().find(|finding| finding.check == "lock_name_query").unwrap();
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(
        &*finding.summary,
        "lock_name_queries (config.toml:4:1): relation \"nowhere\" does not exist (SQLSTATE 42P01)"
    );
    for text in [
        locktop::output::json::to_string(&view).unwrap().unwrap(),
        locktop::app::print::render(&view, None).unwrap(),
    ] {
        assert!(text.contains("shard") && !text.contains('\u{1b}'), "{text}");
    }
}

#[tokio::test]
async fn a_query_that_fails_leaves_the_rest() {
    let info = database(server().await).await;
    let queries = [
        query("select 1, 'one'", "a"),
        query("select true, 'x'", "b"),
        query("select 1, 'x'; select 2, 'y'", "c"),
        query("select 1 / 0, 'x'", "d"),
        query("select 'many', 'x'", "e"),
        query("select pg_sleep(60)::text, 'x'", "f"),
        query("with gone as (delete from pg_depend returning 1) select 1, 'x'", "g"),
        query("select nextval('numbers'), 'x'", "h"),
        query("selec", "i"),
        query("select 2, 'two'", "j"),
    ];
    let admin = open(&info).await.client;
    admin.batch_execute("CREATE SEQUENCE numbers").await.unwrap();
    let learned = learned(&info, &queries).await;
    assert_eq!(bigint(&learned, &info, 1).as_deref(), Some("one"));
    assert_eq!(bigint(&learned, &info, 2).as_deref(), Some("two"));
    let expected = [
        "(b): expected (key bigint, name text) or (classid int, objid int, name text), got (?column? bool, ?column? text)",
        "(c): cannot insert multiple commands into a prepared statement (SQLSTATE 42601)",
        "(d): division by zero (SQLSTATE 22012)",
        "(e): row 1: \"many\" is no 64-bit number",
        "(f): canceling statement due to statement timeout (SQLSTATE 57014)",
        "(g): WITH clause containing a data-modifying statement must be at the top level (SQLSTATE 0A000)",
        "(h): cannot execute nextval() in a read-only transaction (SQLSTATE 25006)",
        "(i): syntax error at or near \"selec\" (SQLSTATE 42601)",
    ];
    assert_eq!(notes(&learned), expected.map(|note| format!("lock_name_queries {note}")));
}

#[tokio::test]
async fn a_locked_table_stops_nothing_and_takes_no_name_away() {
    let info = database(server().await).await;
    let admin = open(&info).await.client;
    admin
        .batch_execute(
            "CREATE TABLE jobs AS SELECT 11::bigint AS key, 'eleven' AS name; SELECT pg_advisory_lock(11)",
        )
        .await
        .unwrap();
    let queries = [query("select key, name from jobs", "config.toml:1:1")];
    let mut running = run(&info, &queries, false).await;
    let named = |view: &View| shown(view, LockKey::Bigint(11)).as_deref() == Some("eleven");
    running.until("the name", named).await;
    admin.batch_execute("BEGIN; LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let failed = |view: &View| {
        let message = "canceling statement due to lock timeout (SQLSTATE 55P03)";
        view.findings.iter().any(|finding| finding.summary.ends_with(message))
    };
    let view = running.until("the failure", failed).await;
    assert!(named(&view), "the names learned before are still known");
    let id = view.id;
    running.until("further polls", |view| view.id > id + 3).await;
    admin.batch_execute("COMMIT").await.unwrap();
    running.until("the end of the failure", |view| !failed(view) && named(view)).await;
}

#[tokio::test]
async fn a_query_without_end_is_cut_and_harmless() {
    let info = database(server().await).await;
    let queries = [
        query("select n, 'number ' || n from (select generate_series(1, 10000000) n) s", "a"),
        query("select -g, repeat('名', 100000) from generate_series(1, 20) g", "b"),
        // The server keeps all rows of this one before it hands out the first.
        query("select g, 'x' from generate_series(1, 1000000000) g", "c"),
    ];
    let learned = learned(&info, &queries).await;
    assert_eq!(bigint(&learned, &info, 10_000).as_deref(), Some("number 10000"));
    assert_eq!(bigint(&learned, &info, 10_001), None);
    assert_eq!(bigint(&learned, &info, -20), Some("名".repeat(200)));
    let expected = [
        "lock_name_queries (a): more than 10,000 rows, the others are not read",
        "lock_name_queries (c): canceling statement due to statement timeout (SQLSTATE 57014)",
    ];
    assert_eq!(notes(&learned), expected);
}

#[tokio::test]
async fn nothing_is_left_on_the_connection() {
    let info = database(server().await).await;
    let limits = PollLimits::default();
    let client = open_plain(&info, &limits).await.unwrap().client;
    let state = async || {
        let row = client
            .query_one(
                "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name), pg_current_xact_id_if_assigned() IS NULL,
                        (SELECT count(*) FROM pg_cursors)
                        + (SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'locktop%')
                 FROM pg_settings
                 WHERE name IN ('statement_timeout', 'lock_timeout', 'row_security', 'search_path', 'jit',
                                'transaction_read_only', 'client_encoding')",
                &[],
            )
            .await
            .unwrap();
        (row.get::<_, String>(0), row.get::<_, bool>(1), row.get::<_, i64>(2))
    };
    let before = state().await;
    learn_on(&client, &limits, "select 1, set_config('statement_timeout', '0', false)").await.unwrap();
    assert_eq!(state().await, before);
    learn_on(&client, &limits, "select 1 / 0, set_config('jit', 'on', false)").await.unwrap_err();
    assert_eq!(state().await, before);
    locktop::pg::learn::installed_software(&client, &limits).await.unwrap();
    // No transaction is open: this may write.
    client.batch_execute("SET TRANSACTION READ WRITE; CREATE TABLE public.written (a int)").await.unwrap();
    assert_eq!(state().await, before);
}

async fn learn_on(client: &tokio_postgres::Client, limits: &PollLimits, sql: &str) -> Result<(), String> {
    locktop::pg::learn::ask(client, limits, sql).await.map(drop).map_err(|error| error.to_string())
}

/// A cast is a function of its type's owner, who may be any role even if the owner of the table is trusted.
#[tokio::test]
async fn a_table_with_a_column_of_a_strangers_type_is_not_asked() {
    let info = database(server().await).await;
    let role = format!("typist_{}", info.dbname());
    let admin = open(&info).await.client;
    let planted = format!(
        "CREATE ROLE {role}; CREATE SCHEMA s AUTHORIZATION {role}; SET ROLE {role};
         CREATE TYPE s.words AS ENUM ('m');
         CREATE FUNCTION s.as_text(s.words) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'PWNED'; END $$;
         CREATE CAST (s.words AS text) WITH FUNCTION s.as_text(s.words) AS IMPLICIT;
         RESET ROLE; CREATE TABLE jobs (key int, names s.words[], name s.words); INSERT INTO jobs VALUES (5, NULL, 'm')"
    );
    admin.batch_execute(&planted).await.unwrap();
    let asked = "select key, name::text from jobs";
    let limits = PollLimits::default();
    let client = open_plain(&info, &limits).await.unwrap().client;
    let refused = learn_on(&client, &limits, asked).await.unwrap_err();
    assert!(
        refused.contains(&format!("of a column of public.jobs belongs to {role}, who is not trusted")),
        "{refused}"
    );
    let trusted_owners = [role].into_iter().collect();
    let run = learn_on(&client, &PollLimits { trusted_owners, ..limits }, asked).await.unwrap_err();
    assert!(run.contains("PWNED"), "the trap works: {run}");
}

#[tokio::test]
async fn a_query_with_a_database_runs_in_that_database() {
    let server = server().await;
    let (here, there) = (database(server).await, database(server).await);
    let admin = open(&there).await.client;
    admin.batch_execute("CREATE TABLE jobs AS SELECT 5 AS key, 'five' AS name").await.unwrap();
    let elsewhere = |name: &str| NameQuery {
        database: Some(name.to_owned()),
        ..query("select key, name from jobs", "config.toml:1:1")
    };
    let learned = learned(&here, &[elsewhere(there.dbname()), elsewhere("nowhere")]).await;
    assert_eq!(bigint(&learned, &there, 5).as_deref(), Some("five"));
    assert_eq!(bigint(&learned, &here, 5), None);
    let [note] = &notes(&learned)[..] else { panic!("{:?}", learned.notes) };
    assert!(note.contains("database \"nowhere\" does not exist"), "{note}");
}

/// With operators that would be chosen instead of the intended ones.
const SOFTWARE: &str = "
    CREATE FUNCTION trap(text, varchar) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trap''; END';
    CREATE FUNCTION trap(name, text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trap''; END';
    CREATE OPERATOR || (LEFTARG = name, RIGHTARG = text, FUNCTION = trap);
    CREATE SCHEMA pgmq;
    CREATE OPERATOR pgmq.|| (LEFTARG = text, RIGHTARG = varchar, FUNCTION = trap);
    CREATE TABLE pgmq.meta (queue_name varchar UNIQUE NOT NULL, is_partitioned boolean NOT NULL);
    INSERT INTO pgmq.meta VALUES ('mails', false);
    CREATE SCHEMA \"Jobs\";
    CREATE TABLE \"Jobs\".good_jobs (id uuid PRIMARY KEY, active_job_id uuid, serialized_params jsonb,
                                   performed_at timestamp, finished_at timestamp);
    INSERT INTO \"Jobs\".good_jobs VALUES
        ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002',
         '{\"job_class\": \"MailJob\"}', now(), NULL),
        ('00000000-0000-0000-0000-000000000003', NULL, NULL, now(), now());
    CREATE TABLE good_job_processes (id uuid PRIMARY KEY, state jsonb);
    INSERT INTO good_job_processes VALUES
        ('00000000-0000-0000-0000-000000000004', '{\"hostname\": \"web\", \"pid\": 12}');
    CREATE TABLE que_jobs (id bigint PRIMARY KEY, job_class text, run_at timestamptz);
    INSERT INTO que_jobs SELECT g, 'Charge', now() FROM generate_series(1, 6000) g;
    SELECT pg_advisory_lock(17);
    CREATE SCHEMA app;
    CREATE TABLE app.own_migrations (version bigint, dirty boolean);
    CREATE SCHEMA terraform_remote_state;
    CREATE TABLE terraform_remote_state.states (id bigint PRIMARY KEY, name text, data text);
    INSERT INTO terraform_remote_state.states VALUES (70001, 'default', '');";

#[tokio::test]
async fn well_known_software_is_recognized_by_its_tables() {
    for version in versions() {
        recognizes_software(server_of(version).await).await;
    }
}

async fn recognizes_software(server: &EmbeddedServer) {
    let info = database(server).await;
    let admin = open(&info).await.client;
    admin.batch_execute(SOFTWARE).await.unwrap();
    let learned = learned(&info, &[]).await;
    let names = async |sql: &str| {
        let key: i64 = admin.query_one(&format!("SELECT ({sql})::bigint"), &[]).await.unwrap().get(0);
        bigint(&learned, &info, key).unwrap_or_default()
    };
    let id = "00000000-0000-0000-0000-00000000000";
    let md5 = |text: String| format!("('x' || substr(md5('{text}'), 1, 16))::bit(64)");
    assert_eq!(names("hashtext('pg_partman run_maintenance')").await, "pg_partman run_maintenance");
    assert_eq!(names("hashtext('pgmq.queue_mails')").await, "pgmq queue mails");
    assert_eq!(names(&md5(format!("good_jobs-{id}1"))).await, format!("GoodJob MailJob {id}1"));
    assert_eq!(names(&md5(format!("good_jobs-{id}2"))).await, format!("GoodJob MailJob {id}2"));
    assert_eq!(names(&md5(format!("good_jobs-{id}3"))).await, format!("GoodJob job {id}3 (finished)"));
    assert_eq!(names("77431436970681").await, "Flyway app.flyway_schema_history");
    assert_eq!(names("77433833903597").await, "Flyway");
    let golang = |names: &str| {
        crc32fast::hash(format!("{names}\0{}", info.dbname()).as_bytes()).wrapping_mul(1_486_364_155)
    };
    assert_eq!(names(&golang("app\0own_migrations").to_string()).await, "golang-migrate app.own_migrations");
    assert_eq!(
        names(&golang("app\0schema_migrations").to_string()).await,
        "golang-migrate app.schema_migrations"
    );
    assert_eq!(names(&md5(format!("good_job_processes-{id}4"))).await, "GoodJob process web:12");
    assert_eq!(names("6000").await, "Que Charge 6000?", "one of the newest");
    assert_eq!(names("17").await, "Que Charge 17?", "an old one that is locked");
    assert_eq!(names("18").await, "", "an old one that is not");
    assert_eq!(names("70001").await, "Terraform state default?");
    assert_eq!(notes(&learned), Vec::<&str>::new());
}

#[tokio::test]
async fn tables_that_only_resemble_known_software_are_not_read() {
    let info = database(server().await).await;
    let admin = open(&info).await.client;
    // Reading any of these would run code of its owner, or fail.
    admin
        .batch_execute(
            "CREATE FUNCTION trap() RETURNS bigint LANGUAGE sql AS 'SELECT pg_sleep(60)::text::bigint';
             CREATE VIEW que_jobs AS SELECT trap() AS id, 'x'::text AS job_class, now() AS run_at;
             CREATE TABLE states (id text, name text, data text);
             CREATE DOMAIN own AS jsonb;
             CREATE TABLE good_job_processes (id uuid, state own);
             CREATE SCHEMA pgmq; CREATE TABLE pgmq.meta (queue_name int, is_partitioned boolean)",
        )
        .await
        .unwrap();
    let places = locktop::pg::learn::installed_software(&admin, &PollLimits::default()).await.unwrap();
    assert_eq!(&*places.0, info.dbname());
    assert_eq!(places.1.len(), 3, "pg_partman, Flyway and golang-migrate need no table: {:?}", places.1);
    assert_eq!(notes(&learned(&info, &[]).await), Vec::<&str>::new());
}

#[tokio::test]
async fn a_role_without_rights_is_no_failure() {
    let info = database(server().await).await;
    let admin = open(&info).await.client;
    admin.batch_execute(SOFTWARE).await.unwrap();
    let role = format!("nobody_{}", info.dbname());
    admin.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
    let places = {
        admin.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
        locktop::pg::learn::installed_software(&admin, &PollLimits::default()).await.unwrap().1
    };
    assert_eq!(places.len(), 3, "{places:?}");
    admin.batch_execute(&format!("SET TRANSACTION READ WRITE; RESET ROLE; DROP ROLE {role}")).await.unwrap();
}

#[tokio::test]
async fn no_connection_is_a_note() {
    let info = database(server().await).await;
    let missing = info.clone().with_dbname("gone");
    let learned = learned(&missing, &[query("select 1, 'x'", "a")]).await;
    let [note] = &notes(&learned)[..] else { panic!("{:?}", learned.notes) };
    assert!(note.starts_with("lock names: no connection to read them on: "), "{note}");
}
