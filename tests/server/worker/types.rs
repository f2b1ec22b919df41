//! Work of a type that a worker does not take is left alone.

use std::time::Duration;

use locktop::locks::work_session::{News, Source, Types, WorkSession};
use locktop::schema::{self, SchemaName};
use rustix::process::Signal;

use super::db::{Session, ask, installed};
use super::hand::task;
use super::process::{Process, target};
use super::queue::item;
use super::support::{database, open, server, server_of, versions, wait_until};

/// Type and attempts of what was taken.
const TAKEN: &str = "SELECT what, string_agg(n::text, ',' ORDER BY n) FROM (
    SELECT 'task ' || t.task_type AS what, t.id AS n FROM task_execution_log e JOIN scheduled_tasks t ON t.id = e.task_id
    UNION ALL SELECT 'item ' || task_name, id FROM task_queue WHERE attempt > 0) x GROUP BY 1 ORDER BY 1";

#[tokio::test]
async fn the_functions_take_the_types_that_they_are_asked_for() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        session
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, priority, next_run_at)
                 SELECT 't' || n, (ARRAY['mail', 'sql', 'sleep'])[n % 3 + 1], n / 20, clock_timestamp() FROM generate_series(1, 60) n;
                 INSERT INTO task_queue (task_name) SELECT (ARRAY['mail', 'sql', 'sleep', NULL])[n % 4 + 1] FROM generate_series(1, 8) n",
            )
            .await;
        let fetched =
            "SELECT string_agg(DISTINCT task_type, ','), count(*) FROM fetch_tasks('w', 100, '{sql,none}')";
        assert_eq!(session.ask(fetched).await, "sql|20", "{version}");
        assert_eq!(session.ask("SELECT count(*) FROM fetch_tasks('w', 100, '{}')").await, "0");
        let due = "SELECT next_due_at('{none}') IS NULL, next_due_at('{sql}') IS NULL, next_due_at('{mail}') <= now(), next_due_at() <= now()";
        assert_eq!(session.ask(due).await, "t|t|t|t", "{version}: those of sql are run");
        let one = "SELECT task_type, acquired FROM worker_fetch_and_execute_task('w', '{sleep}')";
        assert_eq!(session.ask(one).await, "sleep|t");
        assert_eq!(
            session.ask("SELECT acquired FROM worker_fetch_and_execute_task('w', '{sql}')").await,
            "f"
        );
        let some = "SELECT count(*) FROM try_acquire_multiple_tasks('w', p_types => '{mail}')";
        assert_eq!(session.ask(some).await, "3", "{version}");
        // Of several types the oldest, whatever their names.
        let claimed = "SELECT string_agg(task_id::text, ',' ORDER BY task_id) FROM claim_queue_items('w', 3, '{sleep,sql,sql,none}')";
        assert_eq!(session.ask(claimed).await, "1,2,5", "{version}");
        assert_eq!(session.ask("SELECT task_id FROM consume_task('{none}')").await, "");
        let due = "SELECT next_item_due_at('{sleep}') <= now(), next_item_due_at('{mail}') <= now(), next_item_due_at('{sql}') > now()";
        assert_eq!(session.ask(due).await, "t|t|t", "{version}: an item in progress may be lost one day");
        assert_eq!(session.ask("SELECT task_id FROM consume_task('{sleep}')").await, "6");
        assert_eq!(
            session.ask("SELECT count(*) FROM claim_queue_items('w', 9)").await,
            "4",
            "all that is left"
        );
    }
}

/// It shares the tables with other workers.
#[tokio::test]
async fn a_worker_takes_only_known_permitted_and_selected_types() {
    let version = server().await.version();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    let place = target(version, &info).await;
    for kind in ["mail", "sleep", "sql", "command", "http"] {
        let payload = "'{\"seconds\": 0, \"statement\": \"SELECT 1\"}'";
        task(&session, kind, kind, payload).await;
        item(&session, kind, payload).await;
    }
    let one = Process::start("one", &["--types", "sleep"], &place);
    wait_until("it to take its own", async || session.ask(TAKEN).await == "item sleep|2\ntask sleep|2").await;
    let two = Process::start("two", &[], &place);
    let expected = "item sleep|2\nitem sql|3\ntask sleep|2\ntask sql|3";
    wait_until("the other to take work of its types", async || session.ask(TAKEN).await == expected).await;
    for worker in [one, two] {
        worker.signal(Signal::TERM);
        let left = worker.ended().await;
        assert_eq!(left.status, Some(0), "{}", left.err);
        assert!(!left.err.contains("WARN") && !left.err.contains("ERROR"), "{}", left.err);
    }
    assert_eq!(session.ask(TAKEN).await, expected, "and nothing else");
    assert_eq!(session.ask("SELECT sum(attempts) FROM scheduled_tasks").await, "0");
}

/// A worker of other types has not polled for these.
#[tokio::test]
async fn a_quiet_notification_only_concerns_workers_of_the_same_types() {
    let info = installed(server().await.version()).await;
    let schema = SchemaName::default();
    let session = async |id: &str, types: Types| {
        let session = WorkSession::open(&info, &schema, &id.parse().unwrap(), &Source::ALL).await.unwrap();
        session.with_types(types)
    };
    let one = session("one", Types::only(["a", "b"])).await;
    let mut same = session("same", Types::only(["b", "a"])).await;
    let mut other = session("other", Types::only(["a"])).await;
    let mut all = session("all", Types::all()).await;
    one.next_due_notifying(Source::Tasks, None).await.unwrap();
    assert_eq!(same.news().await, News::Quiet(Source::Tasks, None));
    one.notify_due(Source::Tasks).await.unwrap();
    for session in [&mut other, &mut all] {
        assert_eq!(session.news().await, News::Due(Source::Tasks), "the first notification that it receives");
    }
    // Due work of another type is not available to them.
    let tables = Session::open(&info).await;
    task(&tables, "t", "c", "NULL").await;
    item(&tables, "c", "NULL").await;
    assert_eq!(one.glance().await, Ok([None, None]));
    assert_eq!(all.glance().await, Ok([Some(Duration::ZERO), Some(Duration::ZERO)]));
}

/// An upgrade replaces functions: their owners and privileges stay.
#[tokio::test]
async fn an_upgrade_keeps_the_owners_and_privileges_of_functions() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let mut connection = open(&info).await;
        let schema = SchemaName::new("own's \"jobs\"").unwrap();
        schema::install_up_to(&mut connection.client, &schema, 4).await.unwrap();
        let name = schema.quoted();
        let owner = format!("owner_{}", info.dbname());
        let roles = format!(
            "CREATE ROLE {owner} SUPERUSER; CREATE ROLE \"{owner} x\";
             ALTER FUNCTION {name}.fetch_tasks(text, integer) OWNER TO {owner};
             REVOKE ALL ON FUNCTION {name}.fetch_tasks(text, integer), {name}.consume_task() FROM PUBLIC;
             GRANT EXECUTE ON FUNCTION {name}.fetch_tasks(text, integer) TO \"{owner} x\" WITH GRANT OPTION;
             ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"
        );
        connection.client.batch_execute(&roles).await.unwrap();
        schema::install(&mut connection.client, &schema).await.unwrap();
        let rights = format!(
            "SELECT p.proname, pg_get_userbyid(p.proowner), (SELECT string_agg(
                    CASE WHEN a.grantee = 0 THEN 'all' ELSE replace(pg_get_userbyid(a.grantee), '{owner}', 'it') END || CASE WHEN a.is_grantable THEN '*' ELSE '' END, ',' ORDER BY a.grantee)
               FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee <> p.proowner)
               FROM pg_proc p WHERE p.pronamespace = to_regnamespace($name${name}$name$)
                AND p.proname IN ('fetch_tasks', 'consume_task', 'claim_queue_items') ORDER BY 1"
        );
        let found = ask(&connection.client, &rights).await.unwrap().replace(&owner, "it");
        let expected = "claim_queue_items|postgres|all\nconsume_task|postgres|-\nfetch_tasks|it|it x*";
        assert_eq!(found, expected, "{version}");
        let drop = format!(
            "DROP SCHEMA {name} CASCADE; ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC;
             DROP ROLE {owner}; DROP ROLE \"{owner} x\""
        );
        connection.client.batch_execute(&drop).await.unwrap();
    }
}
