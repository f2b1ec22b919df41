//! Install, upgrade and drop, and when they are refused.

use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, Found, LATEST, SchemaError, SchemaName, State};

use super::db::Session;
use super::support::{all_versions, database, server_of, versions};

async fn empty(version: u32) -> (ConnInfo, Session) {
    let info = database(server_of(version).await).await;
    let session = Session::open_plain(&info).await;
    (info, session)
}

/// All relations and functions in the database, with the transaction that wrote each.
const EVERYTHING: &str = "SELECT n.nspname, c.relname, c.relkind, c.xmin FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
    UNION ALL SELECT n.nspname, proname, prokind, p.xmin FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
    WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1, 2, 3";

#[tokio::test]
async fn install_and_drop_are_complete_with_any_schema_name() {
    for version in versions() {
        let (_, mut session) = empty(version).await;
        for name in ["locktop", "My \"own\" 'jobs' @schema@"] {
            let schema = SchemaName::new(name).unwrap();
            let client = &mut session.connection.client;
            assert_eq!(schema::state(client, &schema).await.unwrap(), State::Absent);
            let done = schema::install(client, &schema).await.unwrap();
            assert_eq!((done.from, done.to, done.odd.len()), (None, LATEST, 0), "{version} {name}");
            assert!(schema::state(client, &schema).await.unwrap().is_current(), "{version} {name}");
            // With any search_path, and with a hostile one.
            let quoted = schema.quoted();
            session.run("SET search_path = pg_temp").await;
            session.run(&format!(
                "INSERT INTO {quoted}.scheduled_tasks (task_name, task_type, schedule_cron, next_run_at) VALUES ('a', 'x', '@daily', now())"
            )).await;
            assert_eq!(
                session
                    .ask(&format!("SELECT acquired FROM {quoted}.worker_fetch_and_execute_task('w')"))
                    .await,
                "t"
            );
            session
                .run(&format!(
                    "SELECT {quoted}.release_task_lock(1, 'w', 'completed'); CALL {quoted}.recover_orphans()"
                ))
                .await;
            session
                .run(&format!(
                    "INSERT INTO {quoted}.task_queue (task_name) VALUES ('a');
                     SELECT * FROM {quoted}.consume_task();
                     SELECT {quoted}.finish_queue_item(1, 'local', 1, 'completed');
                     SELECT {quoted}.requeue_lost_items('w'), {quoted}.heartbeat_queue_items('w');
                     SELECT {quoted}.check_rate_limit('k', 1, 60), {quoted}.purge_rate_limits();
                     SELECT {quoted}.lease_acquire(1, 'a', '1 hour');
                     SELECT {quoted}.lease_renew(1, token), {quoted}.lease_release(1, token) FROM {quoted}.distlock;
                     UPDATE {quoted}.distlock SET owner = 'b';
                     INSERT INTO {quoted}.id_generator (worker_id) VALUES (1);
                     SELECT {quoted}.generate_snowflake_id(1);
                     INSERT INTO {quoted}.accounts (username, balance) VALUES ('a', 5), ('b', 0);
                     SELECT {quoted}.transfer_optimistic(1, 2, 5);
                     SELECT {quoted}.announce_worker('w', '{{a,b}}'), {quoted}.announce_worker('w');
                     SELECT {quoted}.observe_lock_waits(), {quoted}.purge_step()"
                ))
                .await;
            session.run(&format!("CALL {quoted}.purge('1 day')")).await;
            for view in [
                "running_queue_items",
                "queue_depth",
                "queue_workers",
                "rate_limits",
                "id_generators",
                "running_tasks",
                "task_locks",
                "leaked_task_locks",
                "overdue_tasks",
                "lock_waits",
                "task_history",
                "advisory_locks",
                "leases",
                "lock_contention",
            ] {
                session.run(&format!("SELECT * FROM {quoted}.{view}")).await;
            }
            // Again: nothing happens.
            let before = session.ask(EVERYTHING).await;
            let again = schema::install(&mut session.connection.client, &schema).await.unwrap();
            assert_eq!((again.from, again.to, again.made), (Some(LATEST), LATEST, 0));
            assert_eq!(session.ask(EVERYTHING).await, before);
            let mut removed = schema::remove(&mut session.connection.client, &schema).await.unwrap().unwrap();
            // Other tests wait for locks on this server too.
            let observed = ["contended_locks", "observed_waits"];
            removed.rows.retain(|(table, _)| !observed.contains(&table.as_str()));
            assert_eq!(
                removed.rows,
                [
                    ("accounts", 2),
                    ("distlock", 1),
                    ("id_generator", 1),
                    ("locktop_audit", 0),
                    ("locktop_workers", 1),
                    ("rate_limit", 1),
                    ("refusals", 0),
                    ("scheduled_tasks", 1),
                    ("task_execution_log", 1),
                    ("task_queue", 1)
                ]
                .map(|(table, rows)| (table.to_owned(), rows))
            );
            assert_eq!(removed.objects, done.made);
            assert_eq!(session.ask(EVERYTHING).await, "", "{version} {name}: nothing is left");
            assert_eq!(schema::remove(&mut session.connection.client, &schema).await.unwrap(), None);
        }
    }
}

fn versions_up_to(last: u32) -> String {
    (1..=last).map(|version| version.to_string()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn an_upgraded_schema_equals_a_new_one() {
    for version in versions() {
        let (info, mut session) = empty(version).await;
        let (old, new) = (SchemaName::default(), SchemaName::new("fresh").unwrap());
        let client = &mut session.connection.client;
        assert_eq!(schema::install_up_to(client, &old, 1).await.unwrap().to, 1);
        let State::Installed { version: found, .. } = schema::state(client, &old).await.unwrap() else {
            panic!()
        };
        assert_eq!(found, 1);
        assert!(!schema::state(client, &old).await.unwrap().is_current());
        client
            .batch_execute("INSERT INTO locktop.locktop_audit (action, actor) VALUES ('kept', 'me')")
            .await
            .unwrap();
        let done = schema::install(client, &old).await.unwrap();
        assert_eq!((done.from, done.to), (Some(1), LATEST), "{version}");
        schema::install(client, &new).await.unwrap();
        let (State::Installed { objects: upgraded, .. }, State::Installed { objects: fresh, .. }) =
            (schema::state(client, &old).await.unwrap(), schema::state(client, &new).await.unwrap())
        else {
            panic!()
        };
        assert_eq!(upgraded, fresh);
        assert_eq!(
            session.ask("SELECT version FROM locktop.locktop_schema ORDER BY 1").await,
            versions_up_to(LATEST)
        );
        assert_eq!(session.ask("SELECT action FROM locktop.locktop_audit").await, "kept");
        // Two at once: the second has nothing to do.
        let mut second = Session::open_plain(&info).await;
        let third = SchemaName::new("third").unwrap();
        let (first, second) = tokio::join!(
            schema::install(&mut session.connection.client, &third),
            schema::install(&mut second.connection.client, &third)
        );
        let mut from = [first.unwrap().from, second.unwrap().from];
        from.sort_unstable();
        assert_eq!(from, [None, Some(LATEST)], "{version}");
    }
}

/// Rows for each table of a version, and a query for their content.
const ROWS: [(u32, &str); 2] = [
    (1, "INSERT INTO locktop.locktop_audit (action, actor, detail) SELECT 'kept', 'me', g FROM generate_series(1, 3) g"),
    (
        2,
        "INSERT INTO locktop.scheduled_tasks (task_name, task_type, schedule_cron, next_run_at)
         VALUES ('a', 'x', '@daily', now()), ('b', 'y', NULL, NULL);
         SELECT locktop.try_acquire_task_lock(1, 'w'); SELECT locktop.release_task_lock(1, 'w', 'failed', 'why')",
    ),
];
const CONTENT: &str = "SELECT relname, query_to_xml(format('SELECT * FROM locktop.%I t ORDER BY t::text', relname), true, false, '')
     FROM pg_class WHERE relnamespace = 'locktop'::regnamespace AND relkind = 'r' AND relname !~ '^locktop_(schema|objects)$'
       AND relname NOT IN (SELECT unnest('{NEW}'::text[])) ORDER BY 1";

#[tokio::test]
async fn an_upgrade_loses_no_row() {
    for version in versions() {
        for from in 1..LATEST {
            let (_, mut session) = empty(version).await;
            let schema = SchemaName::default();
            schema::install_up_to(&mut session.connection.client, &schema, from).await.unwrap();
            for (_, sql) in ROWS.iter().filter(|(of, _)| *of <= from) {
                session.run(sql).await;
            }
            let tables = session.ask("SELECT array_agg(relname ORDER BY relname) FROM pg_class WHERE relnamespace = 'locktop'::regnamespace AND relkind = 'r'").await;
            let before = session.ask(&CONTENT.replace("{NEW}", "{}")).await;
            assert!(before.contains("kept") && (from < 2 || before.contains("why")), "{before}");
            let done = schema::install(&mut session.connection.client, &schema).await.unwrap();
            assert_eq!((done.from, done.to, done.odd.len()), (Some(from), LATEST, 0), "{version}");
            let new = format!(
                "SELECT array_agg(relname) FROM pg_class WHERE relnamespace = 'locktop'::regnamespace AND relkind = 'r'
                    AND relname <> ALL ('{tables}')"
            );
            let new = session.ask(&new).await;
            assert_eq!(new.contains("task_queue"), from < 3, "{new}");
            let new = if new == "-" { "{}".to_owned() } else { new };
            assert_eq!(session.ask(&CONTENT.replace("{NEW}", &new)).await, before, "{version} from {from}");
            assert!(
                schema::state(&mut session.connection.client, &schema).await.unwrap().is_current(),
                "{version} from {from}"
            );
            assert!(schema::remove(&mut session.connection.client, &schema).await.unwrap().is_some());
            assert_eq!(session.ask(EVERYTHING).await, "", "{version} from {from}: nothing is left");
        }
    }
}

#[tokio::test]
async fn objects_not_created_by_locktop_are_left_alone() {
    for version in versions() {
        let (_, mut session) = empty(version).await;
        let schema = SchemaName::default();
        session.run("CREATE SCHEMA locktop; CREATE TABLE locktop.scheduled_tasks (id int)").await;
        // A name proves nothing, nor does a comment alone.
        for comment in ["NULL", "'ours'", "'locktop: made by me'"] {
            session.run(&format!("COMMENT ON SCHEMA locktop IS {comment}")).await;
            let before = session.ask(EVERYTHING).await;
            let client = &mut session.connection.client;
            assert_eq!(schema::state(client, &schema).await.unwrap(), State::Foreign, "{version} {comment}");
            assert!(matches!(schema::install(client, &schema).await, Err(SchemaError::Foreign(_))));
            assert!(matches!(schema::remove(client, &schema).await, Err(SchemaError::Foreign(_))));
            assert_eq!(session.ask(EVERYTHING).await, before);
        }
        session.run("DROP SCHEMA locktop CASCADE").await;
        schema::install(&mut session.connection.client, &schema).await.unwrap();
        for (make, drop, named) in [
            ("CREATE TABLE locktop.mine ()", "DROP TABLE locktop.mine", "table mine"),
            ("CREATE VIEW locktop.mine AS SELECT 1", "DROP VIEW locktop.mine", "view mine"),
            ("CREATE SEQUENCE locktop.mine", "DROP SEQUENCE locktop.mine", "sequence mine"),
            ("CREATE TYPE locktop.mine AS ENUM ()", "DROP TYPE locktop.mine", "type mine"),
            (
                "CREATE FUNCTION locktop.lock_key(text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
                "DROP FUNCTION locktop.lock_key(text)",
                "function lock_key(text)",
            ),
        ] {
            session.run(make).await;
            let before = session.ask(EVERYTHING).await;
            let client = &mut session.connection.client;
            assert!(!schema::state(client, &schema).await.unwrap().is_current(), "{make}");
            let error = schema::remove(client, &schema).await.unwrap_err().to_string();
            assert_eq!(
                error,
                format!("the schema \"locktop\" has objects that were not created by locktop: {named}"),
                "{version}"
            );
            assert_eq!(schema::install(client, &schema).await.unwrap().odd[0].found, Found::Foreign);
            assert_eq!(session.ask(EVERYTHING).await, before);
            session.run(drop).await;
        }
        // A function of locktop with another body was changed by the user.
        session.run("CREATE OR REPLACE FUNCTION locktop.orphan_grace() RETURNS interval LANGUAGE sql AS 'SELECT interval ''1 day'''").await;
        let client = &mut session.connection.client;
        let error = schema::remove(client, &schema).await.unwrap_err().to_string();
        assert!(
            error.ends_with("that were changed since the installation: function orphan_grace()"),
            "{error}"
        );
        session.run("DROP FUNCTION locktop.orphan_grace() CASCADE").await;
        assert!(!schema::state(&mut session.connection.client, &schema).await.unwrap().is_current());
        assert!(
            schema::remove(&mut session.connection.client, &schema).await.unwrap().is_some(),
            "a function that was dropped does not stop it"
        );
    }
}

#[tokio::test]
async fn an_upgrade_stops_at_conflicting_and_changed_objects() {
    for version in versions() {
        let (_, mut session) = empty(version).await;
        let schema = SchemaName::default();
        schema::install_up_to(&mut session.connection.client, &schema, 1).await.unwrap();
        session.run("CREATE VIEW locktop.running_tasks AS SELECT 1").await;
        let before = session.ask(EVERYTHING).await;
        let error = schema::install(&mut session.connection.client, &schema).await.unwrap_err().to_string();
        assert!(error.contains("\"running_tasks\" already exists"), "{version}: {error}");
        assert_eq!(session.ask(EVERYTHING).await, before, "{version}: the upgrade leaves nothing");
        session.run("DROP VIEW locktop.running_tasks").await;
        session.run("CREATE OR REPLACE FUNCTION locktop.own_backend_start() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'").await;
        let error = schema::install(&mut session.connection.client, &schema).await.unwrap_err().to_string();
        assert!(error.contains("changed since the installation: function own_backend_start()"), "{error}");
        session.run("INSERT INTO locktop.locktop_schema (version) VALUES (99)").await;
        let error = schema::install(&mut session.connection.client, &schema).await.unwrap_err();
        assert!(matches!(error, SchemaError::Newer { found: 99, .. }), "{error}");
    }
}

#[tokio::test]
async fn a_drop_stops_at_dependents_work_in_progress_and_locks() {
    for version in versions() {
        let (info, mut session) = empty(version).await;
        let schema = SchemaName::default();
        schema::install(&mut session.connection.client, &schema).await.unwrap();
        let before = session.ask(EVERYTHING).await;
        for (make, drop, named) in [
            (
                "CREATE VIEW public.mine AS SELECT * FROM locktop.running_tasks",
                "DROP VIEW public.mine",
                "view public.mine depends on view",
            ),
            (
                "CREATE TABLE public.mine (task int REFERENCES locktop.scheduled_tasks)",
                "DROP TABLE public.mine",
                "on table public.mine depends on table",
            ),
            (
                "CREATE TABLE public.mine (t timestamptz DEFAULT locktop.cron_next('@daily', now()))",
                "DROP TABLE public.mine",
                "depends on function",
            ),
        ] {
            session.run(make).await;
            let error = schema::remove(&mut session.connection.client, &schema).await.unwrap_err();
            assert!(
                matches!(error, SchemaError::Dependents { .. }) && error.to_string().contains(named),
                "{version}: {error}"
            );
            session.run(drop).await;
            assert_eq!(session.ask(EVERYTHING).await, before);
        }
        let other = Session::open_plain(&info).await;
        other.run(super::db::DUE).await;
        other.run("SELECT * FROM locktop.fetch_tasks('w')").await;
        let error = schema::remove(&mut session.connection.client, &schema).await.unwrap_err();
        assert!(matches!(error, SchemaError::InUse { count: 1, .. }), "{version}: {error}");
        other.run("SELECT pg_advisory_unlock_all()").await;
        other.run("SELECT locktop.lease_acquire(1, 'node1', '1 hour')").await;
        let error = schema::remove(&mut session.connection.client, &schema).await.unwrap_err();
        assert!(matches!(error, SchemaError::InUse { count: 1, .. }), "{version}: {error}");
        other.run("SELECT locktop.lease_release(id, token) FROM locktop.distlock").await;
        other
            .run("INSERT INTO locktop.task_queue (task_name) VALUES ('x'); SELECT locktop.consume_task()")
            .await;
        let error = schema::remove(&mut session.connection.client, &schema).await.unwrap_err();
        assert!(matches!(error, SchemaError::InUse { count: 1, .. }), "{version}: {error}");
        other.run("SELECT locktop.finish_queue_item(1, 'local', 1, 'completed')").await;
        other.run("BEGIN; LOCK TABLE locktop.task_execution_log IN ACCESS SHARE MODE").await;
        if all_versions().last() == Some(&version) {
            let error = schema::remove(&mut session.connection.client, &schema).await.unwrap_err();
            assert!(matches!(error, SchemaError::Locked(_)), "{error}");
            assert_eq!(session.ask(EVERYTHING).await, before);
        }
    }
}

#[tokio::test]
async fn the_printed_script_makes_the_same() {
    for version in versions() {
        let (_, mut session) = empty(version).await;
        let (printed, installed) = (SchemaName::new("a \"b\"").unwrap(), SchemaName::default());
        session.run(&schema::script(&printed)).await;
        let client = &mut session.connection.client;
        schema::install(client, &installed).await.unwrap();
        assert_eq!(
            schema::state(client, &printed).await.unwrap(),
            schema::state(client, &installed).await.unwrap(),
            "{version}"
        );
        assert!(client.batch_execute(&schema::script(&printed)).await.is_err(), "it exists");
    }
}
