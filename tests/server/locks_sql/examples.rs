//! The examples of the libraries, unchanged, on a server with the schema.
#![allow(dead_code, unreachable_pub, reason = "their main is for the command line")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use super::db::{Session, installed};
use super::support::{server_of, versions};

#[path = "../../../crates/locktop-locks/examples/advisory.rs"]
mod advisory;
#[path = "../../../crates/locktop-locks/examples/bb8.rs"]
mod bb8;
#[path = "../../../crates/locktop-locks/examples/deadpool.rs"]
mod deadpool;
#[path = "../../../crates/locktop-tasks/examples/ids.rs"]
mod ids;
#[path = "../../../crates/locktop-locks/examples/leader.rs"]
mod leader;
#[path = "../../../crates/locktop-locks/examples/lease.rs"]
mod lease;
#[path = "../../../crates/locktop-tasks/examples/once.rs"]
mod once;
#[path = "../../../crates/locktop-tasks/examples/rate_limit.rs"]
mod rate_limit;
#[path = "../../../crates/locktop-tasks/examples/scheduled_task.rs"]
mod scheduled_task;
#[path = "../../../crates/locktop-locks/examples/semaphore.rs"]
mod semaphore;
#[path = "../../../crates/locktop-locks/examples/several.rs"]
mod several;
#[path = "../../../crates/locktop-locks/examples/shared.rs"]
mod shared;
#[path = "../../../crates/locktop-locks/examples/transaction.rs"]
mod transaction;
#[path = "../../../crates/locktop-locks/examples/wait.rs"]
mod wait;
#[path = "../../../crates/locktop-tasks/examples/work_queue.rs"]
mod work_queue;

/// Locks of this database that are still held.
const LOCKS: &str = "SELECT count(*) FROM pg_locks l, pg_database d
    WHERE locktype = 'advisory' AND d.oid = l.database AND d.datname = current_database()";

#[tokio::test]
async fn each_example_runs_and_leaves_no_lock() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let conninfo = info.to_key_value();
        // The parser of tokio-postgres knows fewer parameters.
        let plain = format!("{} dbname={}", server_of(version).await.conninfo(), info.dbname());
        advisory::run(&conninfo).await.unwrap();
        bb8::run(&plain).await.unwrap();
        deadpool::run(&plain).await.unwrap();
        ids::run(&conninfo).await.unwrap();
        leader::run(&conninfo).await.unwrap();
        lease::run(&conninfo).await.unwrap();
        rate_limit::run(&conninfo).await.unwrap();
        scheduled_task::run(&conninfo).await.unwrap();
        semaphore::run(&conninfo).await.unwrap();
        several::run(&conninfo).await.unwrap();
        shared::run(&conninfo).await.unwrap();
        transaction::run(&conninfo).await.unwrap();
        wait::run(&conninfo).await.unwrap();
        work_queue::run(&conninfo).await.unwrap();
        assert_eq!(session.ask("SELECT count(*) FROM task_queue WHERE status = 'completed'").await, "1");
        assert_eq!(session.ask("SELECT count(*) FROM scheduled_tasks").await, "1");
        assert_eq!(session.ask(LOCKS).await, "0", "{version}");
    }
}

const ADDRESS: &str = "LOCKTOP_TEST_ONCE";
const READY: &str = "ready to run the example";

/// One of the ten processes: it runs the example when its input ends.
#[tokio::test]
#[ignore = "a process of the other tests"]
async fn one_of_ten() {
    let Ok(conninfo) = std::env::var(ADDRESS) else { return };
    println!("{READY}");
    std::io::stdin().read_to_string(&mut String::new()).unwrap();
    once::run(&conninfo).await.unwrap();
}

#[tokio::test]
async fn one_of_ten_processes_runs_a_task_and_none_repeats_it() {
    let version = *versions().last().unwrap();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    scheduled_task::run(&info.to_key_value()).await.unwrap();
    session
        .run("UPDATE scheduled_tasks SET next_run_at = now() - interval '1 s', schedule_cron = NULL; TRUNCATE task_execution_log")
        .await;
    let start = || {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "locks_sql::examples::one_of_ten", "--nocapture"])
            .env(ADDRESS, info.to_key_value())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, output)
    };
    let mut ten: Vec<_> = (0..10).map(|_| start()).collect();
    for (_, output) in &mut ten {
        assert!(output.any(|line| line.unwrap().contains(READY)), "the process is ready");
    }
    for (child, _) in &mut ten {
        drop(child.stdin.take());
    }
    let mut runs = 0;
    for (mut child, output) in ten {
        runs += output.filter(|line| line.as_ref().unwrap().contains(" runs ")).count();
        assert!(child.wait().unwrap().success());
    }
    let logged =
        "SELECT string_agg(concat(status, ' ', worker_id LIKE 'process %'), ',') FROM task_execution_log";
    assert_eq!((runs, session.ask(logged).await.as_str()), (1, "completed t"));
}
