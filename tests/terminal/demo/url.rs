//! The demo on an external server.

use locktop::demo::postgres::EmbeddedServer;
use locktop::demo::scenario::SCHEMA;
use locktop::demo::tasks::TASKS_SCHEMA;
use locktop::schema::{self, SchemaName};
use rustix::process::Signal;
use tokio_postgres::Client;

use super::headless::{Running, workers};
use super::support::{database, open, server, wait_until};

pub(crate) async fn target() -> (String, Client) {
    let server: &EmbeddedServer = server().await;
    let info = database(server).await;
    let target = server.conninfo().replace("dbname=postgres", &format!("dbname={}", info.dbname()));
    (target, open(&info).await.client)
}

pub(crate) async fn schemas(client: &Client) -> Vec<String> {
    let sql = "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'locktop%' ORDER BY 1";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn rows(client: &Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn it_plays_in_schemas_of_its_own_and_removes_them() {
    let (target, mut client) = target().await;
    schema::install(&mut client, &SchemaName::default()).await.unwrap();
    let mine = "INSERT INTO locktop.scheduled_tasks (task_name, task_type) VALUES ('mine', 'sleep')";
    client.batch_execute(mine).await.unwrap();
    let running =
        Running::start(&["--url", &target, "--duration", "1h", "--tasks", "30", "--format", "json"]);
    wait_until("tasks to be run", async || {
        schemas(&client).await == ["locktop", SCHEMA, TASKS_SCHEMA]
            && client
                .query_one("SELECT to_regclass('locktop_demo.witness') IS NOT NULL", &[])
                .await
                .unwrap()
                .get(0)
            && rows(&client, "locktop_demo.witness").await > 3
    })
    .await;
    assert_eq!(rows(&client, "locktop_demo_tasks.scheduled_tasks").await, 30);
    running.signal(Signal::INT);
    let left = tokio::task::spawn_blocking(|| running.finish()).await.unwrap();
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{left:?}");
    assert_eq!(schemas(&client).await, ["locktop"], "{left:?}");
    assert_eq!(rows(&client, "locktop.scheduled_tasks").await, 1);
    assert_eq!(rows(&client, "locktop.task_execution_log").await, 0);
}

#[tokio::test]
async fn an_existing_schema_is_left_alone() {
    let (target, mut client) = target().await;
    let name = SchemaName::new(TASKS_SCHEMA).unwrap();
    schema::install(&mut client, &name).await.unwrap();
    let running = Running::start(&["--url", &target]);
    let left = tokio::task::spawn_blocking(|| running.finish()).await.unwrap();
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{left:?}");
    assert!(left.err.contains("schema drop --schema locktop_demo_tasks"), "{left:?}");
    assert_eq!(schemas(&client).await, [TASKS_SCHEMA]);
}

#[tokio::test]
async fn after_a_kill_the_next_demo_refuses_until_the_schema_is_removed() {
    let (target, client) = target().await;
    let running = Running::start(&["--url", &target, "--duration", "1h"]);
    wait_until("its workers", async || workers(running.pid()).len() == 10).await;
    running.signal(Signal::KILL);
    drop(running);
    let workers = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    wait_until("its sessions to end", async || client.query_one(workers, &[]).await.unwrap().get(0)).await;
    let again = Running::start(&["--url", &target, "--until", "completed=1"]);
    let left = tokio::task::spawn_blocking(|| again.finish()).await.unwrap();
    assert!(left.err.contains("already exists, and the demo would create and drop it"), "{left:?}");
    let mut remove = client;
    schema::remove(&mut remove, &SchemaName::new(TASKS_SCHEMA).unwrap()).await.unwrap();
    let again = Running::start(&["--url", &target, "--until", "completed=1", "--duration", "60s"]);
    let left = tokio::task::spawn_blocking(|| again.finish()).await.unwrap();
    assert_eq!(left.status, Some(0), "{left:?}");
    assert_eq!(schemas(&remove).await, [] as [&str; 0]);
}
