//! Every verb except those for sessions, by its shortcut, on the tables that locktop installs.

use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use tokio_postgres::Client;

use super::dashboard::{Dashboard, becomes};
use super::incident::Incident;
use super::support;

/// The smallest terminal in which questions are asked.
const SIZE: (u16, u16) = (80, 24);

async fn session(info: &ConnInfo) -> Client {
    let client = support::open(info).await.client;
    client.batch_execute("SET search_path = locktop").await.unwrap();
    client
}

/// A task whose worker's session has ended, a held lease, and an item that is pending.
pub(super) async fn play(info: &ConnInfo) -> Client {
    let mut connection = support::open(info).await;
    schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
    let admin = session(info).await;
    let setup = format!(
        "ALTER DATABASE {} SET locktop.orphan_grace = '0'; SET locktop.orphan_grace = '0';
        INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('report', 'x', now());
        SELECT lease_acquire(7, 'node1', '1 hour');
        INSERT INTO task_queue (task_name) VALUES ('mail');",
        info.dbname()
    );
    admin.batch_execute(&setup).await.unwrap();
    let worker = session(info).await;
    worker.execute("SELECT try_acquire_task_lock(1, 'w1')", &[]).await.unwrap();
    admin
        .batch_execute("UPDATE task_execution_log SET started_at = now() - interval '31 min'")
        .await
        .unwrap();
    drop(worker);
    becomes(&admin, "SELECT state FROM running_tasks", "orphan").await;
    admin
}

/// Waits until the screen contains these words, in this order, regardless of line breaks.
fn shows(dashboard: &Dashboard, words: &str) {
    let bare = |text: &str| text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    dashboard.screen.wait_for(words, |screen| bare(&screen.contents()).contains(words));
}

/// Presses a shortcut on the first row of a screen, which contains `row`, and checks the question.
fn ask(dashboard: &mut Dashboard, screen: &str, row: &str, key: &str, words: &[&str]) {
    dashboard.screen.keys(screen);
    dashboard.select_first(row);
    dashboard.screen.keys(key);
    for part in words {
        shows(dashboard, part);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_shortcut_runs_the_action_its_question_describes() {
    let incident = Incident::none().await;
    let db = play(&incident.info()).await;
    let target = incident.server.conninfo();
    let mut dashboard =
        Dashboard::with(SIZE, &target, &["--screen", "tasks"], "[thresholds]\norphan_grace = \"0s\"\n");
    tasks(&mut dashboard, &db).await;
    leases(&mut dashboard, &db).await;
    items(&mut dashboard, &db).await;

    // Each action is among the events, and recorded with its request and its result.
    dashboard.screen.keys("8");
    for (asked, done, row) in [
        ("recover", "recovered", "report"),
        ("disable", "disabled", "report"),
        ("enable", "enabled", "report"),
        ("make due", "made due", "report"),
        ("put off", "postponed", "report"),
        ("unlock", "ended", "lease 7"),
        ("set aside", "set aside", "item 1"),
        ("put off", "postponed", "item 1"),
    ] {
        for event in [format!("{asked} {row}"), format!("{done} {row}")] {
            dashboard.screen.keys(&format!("/\"{event}\"<enter>"));
            dashboard.screen.shows(&format!("/\"{event}\" shows {} of", if asked == done { 2 } else { 1 }));
            dashboard.screen.keys("<esc>");
            dashboard.screen.hides("/\"");
        }
    }
    dashboard.done(9);
    assert_eq!(dashboard.asked(), 9);
    dashboard.quit();
}

async fn tasks(dashboard: &mut Dashboard, db: &Client) {
    dashboard.screen.shows("orphan");
    ask(dashboard, "4", "report", "R", &["y recover"]);
    dashboard.screen.keys("y");
    becomes(db, "SELECT status FROM task_execution_log", "failed").await;
    dashboard.screen.hides("orphan");

    for (enabled, does) in [("false", "disable"), ("true", "enable")] {
        let set = format!("UPDATE locktop.scheduled_tasks SET is_enabled = {enabled} WHERE id = 1");
        ask(dashboard, "4", "report", "E", &[&set, &format!("y {does}")]);
        dashboard.screen.keys("y");
        becomes(db, "SELECT is_enabled FROM scheduled_tasks", enabled).await;
        dashboard.screen.shows(&format!("report {does}d"));
        // With the current values, not those of the last snapshot.
        let is_off = |line: &str| line.get(1..).is_some_and(|line| line.starts_with(" disabled report"));
        dashboard.screen.wait_for("its new state", |screen| {
            screen.contents().lines().any(is_off) == (enabled == "false")
        });
    }

    db.batch_execute("UPDATE scheduled_tasks SET next_run_at = now() + interval '1 day'").await.unwrap();
    // With the current values, not those of the last snapshot.
    let day = ["in 23h", "in 24h", "in 1d"];
    dashboard
        .screen
        .wait_for("its new date", |screen| day.iter().any(|text| screen.contents().contains(text)));
    ask(dashboard, "4", "report", "T", &["SET next_run_at = now WHERE id = 1", "y make due"]);
    dashboard.screen.keys("y");
    becomes(db, "SELECT next_run_at <= now() FROM scheduled_tasks", "true").await;
    // With the current values, not those of the last snapshot.
    dashboard
        .screen
        .wait_for("its new date", |screen| !day.iter().any(|text| screen.contents().contains(text)));
    let sql = "SET next_run_at = greatest(next_run_at, now) + 1 hour WHERE id = 1";
    ask(dashboard, "4", "report", "D", &[sql, "y postpone 1h"]);
    dashboard.screen.keys("y");
    becomes(db, "SELECT next_run_at > now() + interval '59 min' FROM scheduled_tasks", "true").await;
}

async fn leases(dashboard: &mut Dashboard, db: &Client) {
    ask(dashboard, "5", "node1", "U", &["lease_force_release(7, token ", "type 7, the lease, to confirm"]);
    // Any other input is no confirmation.
    dashboard.screen.keys("8<enter>");
    shows(dashboard, "does not match: not confirmed");
    becomes(db, "SELECT state FROM leases", "held").await;
    dashboard.screen.keys("7<enter>");
    becomes(db, "SELECT state FROM leases", "released").await;
    becomes(db, "SELECT count(*) FROM locktop_audit WHERE action = 'unlocked'", "1").await;
}

async fn items(dashboard: &mut Dashboard, db: &Client) {
    ask(dashboard, "6", "mail", "X", &["set_aside_queue_item(1)", "y set aside"]);
    dashboard.screen.keys("y");
    becomes(db, "SELECT status FROM task_queue", "failed").await;
    dashboard.screen.shows("1 failed");
    ask(dashboard, "6", "mail", "R", &["requeue_queue_item(1)", "y requeue"]);
    dashboard.screen.keys("y");
    becomes(db, "SELECT status FROM task_queue", "pending").await;
    dashboard.screen.shows("1 pending");
    ask(dashboard, "6", "mail", "D", &["SET not_before = greatest(not_before,", "y postpone 1h"]);
    dashboard.screen.keys("y");
    becomes(db, "SELECT not_before > now() + interval '59 min' FROM task_queue", "true").await;
}
