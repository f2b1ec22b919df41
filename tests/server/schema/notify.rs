//! Notifications for idle workers.

use std::pin::pin;

use futures_util::{StreamExt, stream};
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::{AsyncMessage, Config, NoTls};

use super::db::{Session, installed};
use super::support::{TIMEOUT, server_of, versions};

/// Which of these statements were announced.
async fn heard(version: u32, info: &ConnInfo, channel: &str, statements: &[String]) -> Vec<bool> {
    let directory = server_of(version).await.socket_dir().to_owned();
    let mut config = Config::new();
    config.host_path(directory).user(info.user()).dbname(info.dbname());
    let (client, mut connection) = config.connect(NoTls).await.unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = pin!(stream::poll_fn(move |context| connection.poll_message(context)));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                sender.send(notification.payload().to_owned()).unwrap();
            }
        }
    });
    client.batch_execute(&format!("LISTEN {channel}")).await.unwrap();
    let session = Session::open(info).await;
    let mut announced = Vec::new();
    for statement in statements {
        session.run(statement).await;
        session.run(&format!("NOTIFY {channel}, 'end'")).await;
        let mut count = 0;
        while tokio::time::timeout(TIMEOUT, receiver.recv()).await.unwrap().unwrap() == "locktop" {
            count += 1;
        }
        assert!(count < 2, "{statement}: once is enough");
        announced.push(count == 1);
    }
    announced
}

const TASKS: &str = "locktop_tasks";

/// An idle worker sleeps until the next one is due.
#[tokio::test]
async fn an_item_that_is_pending_again_is_announced_when_it_is_due_or_will_be_before_all_others() {
    for version in versions() {
        let info = installed(version).await;
        let fail = |id: i32, pause: &str| {
            format!(
                "UPDATE task_queue SET status = 'pending', not_before = clock_timestamp() + interval '{pause}' WHERE id = {id}"
            )
        };
        let add = "INSERT INTO task_queue (task_name) SELECT 'x' FROM generate_series(1, 4)";
        let (statements, expected): (Vec<String>, Vec<bool>) = [
            (add.to_owned(), true),
            ("UPDATE task_queue SET status = 'processing'".to_owned(), false),
            (fail(1, "60 minutes"), true),
            (fail(2, "90 minutes"), false),
            (fail(3, "30 minutes"), true),
            (fail(4, "-1 minutes"), true),
            // By hand: sooner, and later.
            ("UPDATE task_queue SET not_before = NULL WHERE id = 2".to_owned(), true),
            (fail(2, "10 minutes"), false),
            ("UPDATE task_queue SET status = 'completed'".to_owned(), false),
        ]
        .into_iter()
        .unzip();
        assert_eq!(heard(version, &info, "locktop_queue", &statements).await, expected, "{version}");
    }
}

#[tokio::test]
async fn a_task_that_is_due_or_the_next_to_be_due_is_announced() {
    for version in versions() {
        let info = installed(version).await;
        let insert = |id: i32, minutes: i32| {
            format!(
                "INSERT INTO scheduled_tasks (id, task_name, task_type, next_run_at) VALUES ({id}, 't{id}', 'x', clock_timestamp() + interval '{minutes} minutes')"
            )
        };
        let (statements, expected): (Vec<String>, Vec<bool>) = [
            (insert(1, 60), true),
            // After the next one to be due: no worker has to know.
            (insert(2, 90), false),
            (insert(3, 30), true),
            (insert(4, -1), true),
            ("UPDATE scheduled_tasks SET next_run_at = now()".to_owned(), true),
            ("UPDATE scheduled_tasks SET priority = 7 WHERE id = 2".to_owned(), false),
            ("UPDATE scheduled_tasks SET is_enabled = false WHERE id = 2".to_owned(), false),
            ("UPDATE scheduled_tasks SET is_enabled = true WHERE id = 2".to_owned(), true),
            ("UPDATE scheduled_tasks SET next_run_at = NULL WHERE id = 2".to_owned(), false),
        ]
        .into_iter()
        .unzip();
        assert_eq!(heard(version, &info, TASKS, &statements).await, expected, "{version}");
    }
}

#[tokio::test]
async fn next_due_at_is_the_time_when_an_idle_worker_has_to_fetch() {
    for version in versions() {
        let info = installed(version).await;
        let (worker, other) = (Session::open(&info).await, Session::open(&info).await);
        assert_eq!(worker.ask("SELECT next_due_at()").await, "-", "{version}");
        worker
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES
                  ('now', 'x', clock_timestamp()), ('later', 'x', '2100-01-01 00:00+00')",
            )
            .await;
        assert_eq!(other.ask("SELECT next_due_at() <= clock_timestamp()").await, "t");
        worker.run("SELECT * FROM fetch_tasks('w')").await;
        assert_eq!(
            other.ask("SELECT next_due_at() = '2100-01-01 00:00+00'").await,
            "t",
            "the other one is run"
        );
        // Rescheduled while it runs: one that is due between the two is not announced, so an idle worker has to know the first.
        worker
            .run("UPDATE scheduled_tasks SET next_run_at = '2099-01-01 00:00+00' WHERE task_name = 'now'")
            .await;
        let between = "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('between', 'x', '2099-06-01 00:00+00')";
        assert_eq!(heard(version, &info, TASKS, &[between.to_owned()]).await, [false], "{version}");
        assert_eq!(other.ask("SELECT next_due_at() = '2099-01-01 00:00+00'").await, "t");
        worker.run("SELECT pg_advisory_unlock_all()").await;
        assert_eq!(
            other
                .ask("SELECT next_due_at() = heartbeat_at + interval '30 seconds' FROM task_execution_log")
                .await,
            "t",
            "it may be an orphan by then"
        );
    }
}
