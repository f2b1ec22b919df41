//! What is not adopted: what somebody works on, what is not as published, and what belongs to somebody who is not trusted.

use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{Adopt, LATEST, Schema, SchemaError, SchemaName, adopt as adopt_into, install_up_to};

use super::adopt::{adopt, filled, from};
use super::article::block;
use super::db::{Session, installed};
use super::support::{database, oldest, open, server_of, versions};

async fn refused(session: &Session, asked: &Adopt) -> String {
    let error = adopt(&session.info, asked).await.unwrap_err().to_string();
    let there =
        "SELECT (SELECT count(*) FROM locktop.scheduled_tasks) + (SELECT count(*) FROM locktop.task_queue)";
    assert_eq!(session.ask(there).await, "0", "{error}");
    error
}

#[tokio::test]
async fn what_somebody_works_on_is_named() {
    for version in versions() {
        let session = filled(version).await;
        let worker = Session::open_plain(&session.info).await;
        worker.run("SELECT try_acquire_task_lock(1, 'w1'); SELECT * FROM consume_task()").await;
        let pid = worker.pid;
        // Task 3 and item 3 claim one number: nobody can tell whose it is.
        let error = refused(&session, &from("public")).await;
        assert_eq!(
            error,
            format!(
                "the tables of the schema \"public\" are in use: task 1 runs: {pid} holds key 1; task 3 runs: {pid} holds key 3; \
                 item 3 runs: {pid} holds key 3. \
                 Wait until that ends, or stop the workers; then run this again"
            ),
            "{version}"
        );
        // What does not run by its row may be about to: that matters where it would run here, too.
        worker.run("SELECT release_task_lock(1, 'w1', 'completed'); SELECT pg_advisory_unlock_all()").await;
        worker.run("SELECT pg_advisory_lock(2); SELECT pg_advisory_lock(4)").await;
        let error = refused(&session, &Adopt { enable: true, ..from("public") }).await;
        assert!(
            error.contains(&format!(
                "task 2: {pid} holds key 2; item 2 runs: {pid} holds key 2; item 4: {pid} holds key 4"
            )),
            "{error}"
        );
        worker.run("SELECT pg_advisory_unlock_all()").await;
        // A key that is computed from the name.
        let key = "('x' || substr(md5(task_name), 1, 16))::bit(64)::bigint";
        worker.run(&format!("SELECT pg_advisory_lock({key}) FROM scheduled_tasks WHERE id = 3")).await;
        let error = refused(&session, &from("public")).await;
        assert!(error.contains(&format!("task 3 runs: {pid} holds key ")), "{version}: {error}");
        worker.run("SELECT pg_advisory_unlock_all()").await;
        // Free for a moment only: a worker that was cut off may not know it yet.
        session
            .run(&format!("ALTER DATABASE {} SET locktop.orphan_grace = '1 day'", session.info.dbname()))
            .await;
        let error = refused(&session, &from("public")).await;
        assert!(
            error
                .contains("task 3 may still run: key 3 is free, but not surely for longer than orphan_grace"),
            "{error}"
        );
        session.run(&format!("ALTER DATABASE {} RESET locktop.orphan_grace", session.info.dbname())).await;
        // Who is in the middle of writing is waited for, not long.
        worker.run("BEGIN; UPDATE scheduled_tasks SET last_run_at = now()").await;
        let error = refused(&session, &from("public")).await;
        assert!(error.starts_with("could not get a lock within 3 s"), "{version}: {error}");
    }
}

#[tokio::test]
async fn what_is_not_as_published_is_said() {
    for version in versions() {
        let session = Session::open_plain(&installed(version).await).await;
        let of = |error: String| error.replace("the tables of the schema ", "");
        for (source, sql, expected) in [
            ("absent", "", "no such schema"),
            ("locktop", "", "it is locktop's own"),
            ("public", "", "neither scheduled_tasks nor task_queue"),
            ("public", "CREATE VIEW scheduled_tasks AS SELECT 1 AS id", "scheduled_tasks is not a table"),
            (
                "public",
                "DROP VIEW scheduled_tasks; CREATE TABLE scheduled_tasks (id int, task_name text)",
                "no column task_type",
            ),
            (
                "public",
                "DROP TABLE scheduled_tasks; CREATE TABLE scheduled_tasks (id int) PARTITION BY HASH (id)",
                "is partitioned",
            ),
        ] {
            session.run(sql).await;
            let error = of(refused(&session, &from(source)).await);
            assert!(error.contains(expected), "{version}: {sql}: {error}");
        }
    }
}

#[tokio::test]
async fn our_schema_has_to_be_there_and_the_latest() {
    let version = oldest();
    let info = database(server_of(version).await).await;
    let session = Session::open_plain(&info).await;
    session.run(block("tables")).await;
    let error = adopt(&info, &from("public")).await.unwrap_err().to_string();
    assert_eq!(error, "there is no schema \"locktop\": run \"locktop schema install\"");
    install_up_to(&mut open(&info).await.client, &SchemaName::default(), LATEST - 1).await.unwrap();
    let error = adopt(&info, &from("public")).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("version {}", LATEST - 1))
            && error.contains("run \"locktop schema install\" to upgrade it"),
        "{error}"
    );
    install_up_to(&mut open(&info).await.client, &SchemaName::default(), LATEST).await.unwrap();
    session.run("DROP FUNCTION locktop.next_due_at(text[])").await;
    assert!(matches!(adopt(&info, &from("public")).await, Err(SchemaError::NotOurs { .. })));
}

/// The tables of a role that nobody named, with something in an index that says so when it is run.
async fn theirs(session: &Session) -> String {
    let role = format!("mallory_of_{}", session.info.dbname());
    session
        .run(&format!(
            "CREATE ROLE {role}; CREATE SCHEMA theirs AUTHORIZATION {role}; SET ROLE {role}; SET search_path = theirs; {};
             CREATE FUNCTION trap(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END';
             CREATE INDEX ON scheduled_tasks (id) WHERE trap(1);
             CREATE OR REPLACE FUNCTION trap(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
                 'BEGIN RAISE EXCEPTION ''trapped''; END';
             RESET ROLE; RESET search_path",
            block("tables")
        ))
        .await;
    role
}

#[tokio::test]
async fn nothing_of_a_strangers_runs() {
    for version in versions() {
        let session = Session::open_plain(&installed(version).await).await;
        let role = theirs(&session).await;
        let error = refused(&session, &from("theirs")).await;
        let expected = format!(
            "table theirs.scheduled_tasks belongs to {role}, who is not trusted; --trust-owner {role}"
        );
        assert!(error.contains(&expected), "{version}: {error}");
        // A trusted table in a schema of theirs can be replaced by them.
        session.run("ALTER TABLE theirs.scheduled_tasks OWNER TO CURRENT_USER").await;
        session.run("ALTER TABLE theirs.task_execution_log OWNER TO CURRENT_USER").await;
        let error = refused(&session, &from("theirs")).await;
        assert!(
            error.contains(&format!("schema theirs belongs to {role}, who is not trusted")),
            "{version}: {error}"
        );
        // Naming them is to trust them: the server comes to what they wrote.
        let trusting = Schema { trusted_owners: [role.clone()].into_iter().collect(), ..Schema::default() };
        let error =
            adopt_into(&mut open(&session.info).await.client, &trusting, &from("theirs")).await.unwrap_err();
        assert!(error.to_string().contains("trapped"), "{version}: {error}");
        session.run("DROP INDEX theirs.scheduled_tasks_id_idx").await;
        let done =
            adopt_into(&mut open(&session.info).await.client, &trusting, &from("theirs")).await.unwrap();
        assert_eq!(done.tables[0].rows, 3, "{version}");
    }
}

#[tokio::test]
async fn a_strangers_trigger_on_our_tables_is_not_run() {
    for version in versions() {
        let session = Session::open_plain(&installed(version).await).await;
        session.run(block("tables")).await;
        let role = format!("trent_of_{}", session.info.dbname());
        session
            .run(&format!(
                "CREATE ROLE {role}; CREATE SCHEMA theirs AUTHORIZATION {role}; SET ROLE {role};
                 CREATE FUNCTION theirs.trap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped''; END';
                 RESET ROLE;
                 CREATE TRIGGER trap BEFORE INSERT ON locktop.scheduled_tasks FOR EACH STATEMENT EXECUTE FUNCTION theirs.trap()"
            ))
            .await;
        let error = refused(&session, &from("public")).await;
        let expected = format!("code of a trigger on locktop.scheduled_tasks runs belongs to {role}");
        assert!(error.contains(&expected), "{version}: {error}");
        session.run(&format!("DROP TRIGGER trap ON locktop.scheduled_tasks; ALTER TABLE public.scheduled_tasks OWNER TO {role}")).await;
        let error = refused(&session, &from("public")).await;
        assert!(
            error.contains(&format!("table public.scheduled_tasks belongs to {role}")),
            "{version}: {error}"
        );
    }
}

/// Who may only read is told what is lacking.
#[tokio::test]
async fn what_the_role_lacks_is_named() {
    let version = oldest();
    let session = Session::open_plain(&installed(version).await).await;
    session.run(block("tables")).await;
    let role = format!("reader_of_{}", session.info.dbname());
    let owner = session.ask("SELECT current_user").await;
    session
        .run(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA locktop TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA locktop, public TO {role}"
        ))
        .await;
    let text = server_of(version).await.conninfo().replace("user=postgres", &format!("user={role}"));
    let info = ConnInfo::parse(&text).unwrap().with_dbname(session.info.dbname());
    let place = Schema { trusted_owners: [owner].into_iter().collect(), ..Schema::default() };
    let error =
        adopt_into(&mut open(&info).await.client, &place, &from("public")).await.unwrap_err().to_string();
    let grant = format!("GRANT SELECT, UPDATE ON \"public\".\"scheduled_tasks\" TO \"{role}\"");
    assert!(error.contains("permission denied") && error.contains(&grant), "{error}");
}
