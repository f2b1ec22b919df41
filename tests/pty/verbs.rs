//! Every verb beside those about sessions, by its key, on the tables that locktop installs.

use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use tokio_postgres::Client;

use crate::desk::{Desk, becomes};
use crate::incident::Incident;
use crate::support;

/// The smallest terminal in which questions are asked.
const SIZE: (u16, u16) = (80, 24);

async fn session(info: &ConnInfo) -> Client {
    let client = support::open(info).await.client;
    client.batch_execute("SET search_path = locktop").await.unwrap();
    client
}

/// A task whose worker's session is gone, a lease of somebody's, and an item that waits.
async fn play(info: &ConnInfo) -> Client {
    let mut connection = support::open(info).await;
    schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
    let admin = session(info).await;
    let setup = format!("ALTER DATABASE {} SET locktop.orphan_grace = '0';
        INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('report', 'x', now());
        SELECT lease_acquire(7, 'node1', '1 hour');
        INSERT INTO task_queue (task_name) VALUES ('mail');", info.dbname());
    admin.batch_execute(&setup).await.unwrap();
    let worker = session(info).await;
    worker.execute("SELECT try_acquire_task_lock(1, 'w1')", &[]).await.unwrap();
    admin.batch_execute("UPDATE task_execution_log SET started_at = now() - interval '31 min'").await.unwrap();
    drop(worker);
    becomes(&admin, "SELECT state FROM running_tasks", "orphan").await;
    admin
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_verb_does_by_its_key_what_its_question_said() {
    let incident = Incident::none().await;
    let db = play(&incident.info()).await;
    let mut desk = Desk::at(SIZE, &incident.server.conninfo(), &["--screen", "tasks"]);
    desk.screen.shows("report");
    println!("{}", desk.screen.contents());
    desk.screen.keys("<tab>");
    desk.select_first("report");
    println!("{}", desk.screen.contents());
    for (screen, pane, row, keys) in [("4", "", "report", "RET"), ("4", "<tab>", "report", "RET"), ("5", "", "node1", "U"), ("6", "", "mail", "XR")] {
        for key in keys.chars() {
            desk.screen.keys(screen);
            desk.screen.keys(pane);
            desk.select_first(row);
            println!("=== {screen} {pane} {key}\n{}", desk.screen.contents());
            desk.screen.keys(&key.to_string());
            std::thread::sleep(std::time::Duration::from_millis(700));
            println!("{}", desk.screen.contents());
            desk.screen.keys("<esc>");
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
    }
    drop(db);
}
