//! The examples of the library, as they stand, on a server with the schema.

use super::db::{Session, installed};
use super::support::versions;

#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/advisory.rs"]
mod advisory;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/ids.rs"]
mod ids;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/kinds.rs"]
mod kinds;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/leader.rs"]
mod leader;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/lease.rs"]
mod lease;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/optimistic.rs"]
mod optimistic;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/pool.rs"]
mod pool;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/rate_limit.rs"]
mod rate_limit;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/scheduled_task.rs"]
mod scheduled_task;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/semaphore.rs"]
mod semaphore;
#[allow(dead_code, unreachable_pub, reason = "its main is for the command line")]
#[path = "../../../crates/locktop-locks/examples/work_queue.rs"]
mod work_queue;

#[tokio::test]
async fn each_does_what_it_says() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        session.run("INSERT INTO accounts (id, balance) VALUES (1, 100), (2, 0)").await;
        let conninfo = info.to_key_value();
        advisory::run(&conninfo).await.unwrap();
        ids::run(&conninfo).await.unwrap();
        kinds::run(&conninfo).await.unwrap();
        leader::run(&conninfo).await.unwrap();
        lease::run(&conninfo).await.unwrap();
        optimistic::run(&conninfo).await.unwrap();
        let target =
            format!("{} dbname={}", super::support::server_of(version).await.conninfo(), info.dbname());
        pool::run(&target).await.unwrap();
        rate_limit::run(&conninfo).await.unwrap();
        semaphore::run(&conninfo).await.unwrap();
        scheduled_task::run(&conninfo).await.unwrap();
        work_queue::run(&conninfo).await.unwrap();
        let row = session
            .connection
            .client
            .query_one(
                "SELECT (SELECT balance::text FROM accounts WHERE id = 2),
                        (SELECT count(*) FROM task_queue WHERE status = 'completed'),
                        (SELECT count(*) FROM scheduled_tasks),
                        (SELECT count(*) FROM pg_locks l, pg_database d
                          WHERE locktype = 'advisory' AND d.oid = l.database AND d.datname = current_database())",
                &[],
            )
            .await
            .unwrap();
        let done: (String, i64, i64, i64) = (row.get(0), row.get(1), row.get(2), row.get(3));
        assert_eq!(done, ("12.50".to_owned(), 1, 1, 0), "{version}");
    }
}
