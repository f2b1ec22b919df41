//! What a worker does in addition to its work: it records the types it takes, and removes rows past their retention.

use std::time::Duration;

use locktop::pg::conninfo::ConnInfo;
use locktop::worker::Options;
use rustix::process::Signal;
use serde_json::Value;

use super::binary::{locktop, run_beside};
use super::db::{Session, installed};
use super::hand::{Held, Worker};
use super::process::{Process, target};
use super::support::{server, versions, wait_until};

const WORKERS: &str =
    "SELECT worker_id, takes_tasks, takes_items, types FROM locktop_workers ORDER BY worker_id";

/// Work that has been due for two minutes: of a type that a plain worker does not take.
const LATE: &str = "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at)
    VALUES ('weekly mail', 'mail', now() - interval '2 min');
    INSERT INTO task_queue (task_name, created_at) VALUES ('push', now() - interval '2 min')";

async fn findings(target: &str) -> Vec<String> {
    let left = run_beside(locktop(&["snapshot", "--format", "json", target])).await;
    let json: Value = serde_json::from_str(&left.out).unwrap_or_else(|_| panic!("{}", left.err));
    let all = json["findings"].as_array().unwrap().iter();
    let mine = all.filter(|finding| finding["check"] == "unserved_type");
    mine.map(|finding| format!("{} | {}", finding["summary"], finding["about"])).collect()
}

#[tokio::test]
async fn unserved_types_are_reported_until_a_worker_takes_them() {
    let version = server().await.version();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    let place = target(version, &info).await;
    session.run(LATE).await;
    assert_eq!(findings(&place).await, Vec::<String>::new(), "no worker exists");
    let one = Process::start("one", &["--types", "sleep,sql"], &place);
    wait_until("it to record its types", async || session.ask(WORKERS).await == "one|t|t|{sleep,sql}").await;
    let found = findings(&place).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("weekly mail overdue 2m") && found[0].contains(": no worker takes type mail"));
    assert!(found[1].contains("queue item 1 of type push due 2m") && found[1].contains("no worker takes it"));
    assert!(found.iter().all(|finding| finding.contains("the one worker takes sleep, sql")), "{found:?}");
    let text = run_beside(locktop(&["snapshot", &place])).await;
    assert!(text.out.contains("no worker takes type mail"), "{}", text.out);
    let check =
        run_beside(locktop(&["check", &place, "--only", "types_unserved", "-w", "types_unserved=0"])).await;
    assert_eq!(check.status, Some(1), "{}{}", check.out, check.err);
    assert!(
        check.out.contains("types_unserved=2;0;;0") && check.out.contains("no worker takes"),
        "{}",
        check.out
    );
    // A worker of all types may take these. It is busy with one, and takes no other.
    let held = Held::new();
    let all = Worker::start(Worker::options(&info, "all"), held.clone());
    wait_until("it to record that", async || session.ask(WORKERS).await.starts_with("all|t|t|-")).await;
    assert_eq!(findings(&place).await, Vec::<String>::new());
    held.end(Ok(()));
    all.quit().await;
    // The row of an ended worker is reused: there are as many rows as there were workers at once.
    one.signal(Signal::KILL);
    one.ended().await;
    let two = Process::start("two", &["--only", "queue"], &place);
    wait_until("the next to record its types", async || {
        session.ask(WORKERS).await.contains("two|f|t|{notify,sleep,sql}")
    })
    .await;
    assert_eq!(session.ask("SELECT count(*) FROM locktop_workers").await, "2");
    two.signal(Signal::TERM);
    assert_eq!(two.ended().await.status, Some(0));
}

/// Executions that ended sixty days ago, and completed items of that age.
const OLD: &str = "INSERT INTO scheduled_tasks (task_name, task_type) VALUES ('t', 'sql');
    INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at)
    SELECT 1, 'w', 'completed', now() - interval '60 days' + g * interval '1 second', now() - interval '60 days' + g * interval '1 second'
      FROM generate_series(1, 2500) g;
    INSERT INTO task_queue (task_name, status, created_at, completed_at)
    SELECT 'x', 'completed', now() - interval '60 days', now() - interval '60 days' FROM generate_series(1, 5)";

fn set(session: &Session, what: &str) -> String {
    format!("ALTER DATABASE {} {what}", session.info.dbname())
}

#[tokio::test]
async fn rows_past_their_retention_are_removed_while_the_setting_exists() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        session.run(OLD).await;
        let step = "SELECT log, keep, removed, may FROM purge_step(1000)";
        assert_eq!(session.ask(step).await, "", "{version}: no retention is set");
        let options = Worker::options(&session.info, "w");
        let worker =
            Worker::start(Options { purge: Some(Duration::from_millis(50)), ..options }, Held::new());
        worker.events.wait_for("connected").await;
        // The worker's session is older than the setting.
        session.run(&set(&session, "SET locktop.keep_executions = '30 days'")).await;
        worker.events.wait_for("removed 2490 rows of task_execution_log that were older than 30 days").await;
        assert_eq!(session.ask("SELECT count(*) FROM task_execution_log").await, "10", "{version}");
        assert_eq!(
            session.ask("SELECT count(*) FROM task_queue").await,
            "5",
            "{version}: no retention is set for them"
        );
        let record = "SELECT count(*) FROM locktop_audit WHERE action = 'purged'";
        assert_eq!(session.ask(record).await, "3", "{version}: in small steps");
        worker.quit().await;
        session.run(&set(&session, "SET locktop.keep_queue = '30 days'")).await;
        let other = Session::open(&session.info).await;
        other.run("BEGIN; SELECT * FROM purge_step(2)").await;
        assert_eq!(session.ask(step).await, "", "{version}: one at a time");
        other.run("COMMIT").await;
        assert_eq!(session.ask(step).await, "executions|30 days|0|t\nqueue|30 days|3|t", "{version}");
        // A setting that was reset does not count, whatever a session had when it began.
        session.run(&set(&session, "RESET locktop.keep_executions")).await;
        session.run(&set(&session, "RESET locktop.keep_queue")).await;
        let late = Session::open(&session.info).await;
        late.run("SET locktop.keep_queue = '0 s'").await;
        assert_eq!(late.ask(step).await, "", "{version}");
    }
}

#[tokio::test]
async fn a_worker_without_delete_reports_the_missing_grant_and_continues() {
    let version = server().await.version();
    let session = Session::open(&installed(version).await).await;
    let role = format!("worker_{}", session.info.dbname());
    session.run(OLD).await;
    session.run(&set(&session, "SET locktop.keep_executions = '30 days'")).await;
    session
        .run(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA locktop TO {role};
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA locktop TO {role};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA locktop TO {role}"
        ))
        .await;
    let place = target(version, &session.info).await.replace("user=postgres", &format!("user={role}"));
    let options = Worker::options(&ConnInfo::parse(&place).unwrap(), "w");
    let worker = Worker::start(Options { purge: Some(Duration::from_millis(50)), ..options }, Held::new());
    worker
        .events
        .wait_for("old rows of task_execution_log are kept: this role is not permitted to delete them; GRANT DELETE ON \"locktop\".task_execution_log")
        .await;
    session.run(&format!("GRANT DELETE ON task_execution_log TO {role}")).await;
    worker.events.wait_for("removed 2490 rows").await;
    let lines = worker.events.lines();
    assert_eq!(lines.iter().filter(|line| line.contains("are kept")).count(), 1, "once: {lines:?}");
    worker.quit().await;
    session.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

/// An upgrade grants the new tables to the roles that had privileges on the old ones.
#[tokio::test]
async fn an_upgrade_grants_new_tables_to_roles_with_privileges_on_old_ones() {
    for version in versions() {
        let info = super::support::database(super::support::server_of(version).await).await;
        let mut session = Session::open_plain(&info).await;
        let schema = locktop::schema::SchemaName::new("own's \"jobs\"").unwrap();
        locktop::schema::install_up_to(&mut session.connection.client, &schema, 6).await.unwrap();
        let (name, role) = (schema.quoted(), format!("r_{}", info.dbname()));
        session
            .run(&format!(
                "CREATE ROLE {role}; CREATE ROLE {role}_looks;
                 GRANT SELECT, INSERT, UPDATE ON {name}.task_execution_log TO {role};
                 GRANT SELECT ON {name}.task_execution_log TO {role}_looks"
            ))
            .await;
        locktop::schema::install(&mut session.connection.client, &schema).await.unwrap();
        let may = |role: &str, table: &str, what: &str| {
            format!("has_table_privilege('{role}', '{}.{table}', '{what}')", name.replace('\'', "''"))
        };
        let reader = format!("{role}_looks");
        let asked = [
            may(&role, "locktop_workers", "INSERT"),
            may(&role, "locktop_workers", "UPDATE"),
            may(&reader, "locktop_workers", "SELECT"),
            may(&reader, "contended_locks", "SELECT"),
            may(&reader, "locktop_workers", "INSERT"),
            may(&role, "contended_locks", "UPDATE"),
        ];
        assert_eq!(session.ask(&format!("SELECT {}", asked.join(", "))).await, "t|t|t|t|f|f", "{version}");
        session.run(&format!("DROP SCHEMA {name} CASCADE; DROP ROLE {role}; DROP ROLE {role}_looks")).await;
    }
}
