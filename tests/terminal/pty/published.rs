//! `R` on published tables: the session of a slow row and its row in one step; and immediately after a `K`.

use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use tokio_postgres::Client;

use super::dashboard::{Dashboard, becomes, session_exists};
use super::incident::Incident;
use super::support;

const STATUS: &str = "SELECT string_agg(status, ' ' ORDER BY task_id) FROM task_execution_log";

/// A session with a task of the first article, which began two hours ago.
async fn worker(info: &ConnInfo, admin: &Client, task: i32, application: &str) -> (Client, i32) {
    let client = support::open(info).await.client;
    client.batch_execute(&format!("SET application_name = '{application}'")).await.unwrap();
    // With the worker's name in its statement the session would be linked to the worker.
    client.execute("SELECT try_acquire_task_lock($1, $2)", &[&task, &"worker-001"]).await.unwrap();
    admin.batch_execute("UPDATE task_execution_log SET started_at = now() - interval '2 h'").await.unwrap();
    let pid = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    (client, pid)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_slow_row_is_recovered_in_one_step_and_at_once_after_its_session_was_terminated() {
    let incident = Incident::none().await;
    let info = incident.info();
    let admin = support::open(&info).await.client;
    let article = include_str!("../../server/schema/article.sql");
    for name in ["tables", "acquire"] {
        let block = article.split("--@ ").find_map(|block| block.strip_prefix(name)).unwrap();
        admin.batch_execute(block).await.unwrap();
    }
    let (_linked, first) = worker(&info, &admin, 1, "worker-001").await;
    let target = incident.server.conninfo();
    let mut dashboard = Dashboard::at((120, 35), &target, &["--screen", "tasks"]);
    dashboard.screen.shows("slow");
    dashboard.select_first("slow");
    dashboard.question("R", &format!("type {first}, its pid, to confirm"));
    dashboard.screen.shows(&format!("pg_terminate_backend({first}), then UPDATE"));
    assert!(session_exists(&admin, first).await && dashboard.asked() == 0);
    dashboard.screen.keys(&format!("{first}<enter>"));
    becomes(&admin, STATUS, "failed").await;
    assert!(!session_exists(&admin, first).await);
    dashboard.screen.shows("recovered");

    // Nothing links this one to the worker: K decides, and R follows without a grace period.
    let (_alone, second) = worker(&info, &admin, 2, "jobs").await;
    dashboard.screen.shows("slow?");
    dashboard.take_away("recovered");
    dashboard.select_first("slow?");
    dashboard.screen.keys("R");
    dashboard.screen.shows("nothing links it to worker-001");
    dashboard.take_away("nothing links it");
    dashboard.question("K", &format!("type {second}, its pid, to confirm"));
    dashboard.screen.keys(&format!("{second}<enter>"));
    support::wait_until("the session to end", async || !session_exists(&admin, second).await).await;
    dashboard.screen.shows("settling");
    dashboard.screen.shows("R recover");
    dashboard.take_away("terminated");
    dashboard.screen.keys("R");
    dashboard.screen.shows("type recover to confirm");
    dashboard.screen.keys("recover<enter>");
    becomes(&admin, STATUS, "failed failed").await;
    dashboard.done(3);
    dashboard.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn so_is_a_row_of_our_own_tables_after_its_session_was_terminated() {
    let incident = Incident::none().await;
    let info = incident.info();
    let mut connection = support::open(&info).await;
    schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
    let admin = connection.client;
    let task = "SET search_path = locktop; INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('report', 'x', now())";
    admin.batch_execute(task).await.unwrap();
    let worker = support::open(&info).await.client;
    worker.execute("SELECT locktop.try_acquire_task_lock(1, 'w1')", &[]).await.unwrap();
    let pid: i32 = worker.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let mut dashboard = Dashboard::at((120, 35), &incident.server.conninfo(), &["--screen", "tasks"]);
    dashboard.screen.shows("running");
    dashboard.select_first("running");
    dashboard.question("K", &format!("type {pid}, its pid, to confirm"));
    dashboard.screen.keys(&format!("{pid}<enter>"));
    dashboard.screen.shows("settling");
    dashboard.take_away("terminated");
    becomes(&admin, "SELECT state FROM running_tasks", "settling").await;
    dashboard.screen.shows("R recover");
    dashboard.question("R", "y recover");
    dashboard.screen.keys("y");
    becomes(&admin, "SELECT status FROM task_execution_log", "failed").await;
    dashboard.done(2);
    dashboard.quit();
}
