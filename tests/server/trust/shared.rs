//! A schema of locktop's that a trusted role owns, and in which mallory is permitted to create objects, or a trigger on a table.

use std::process::Stdio;

use locktop::model::plan::Verb;

use super::actions::{act, targets, triggers};
use super::binary::{finish, locktop};
use super::commands::every_command;
use super::forged::{installed, signalled};
use super::ground::{Ground, one_version};
use super::snapshots::{limits, poll_once};
use super::stage::command;
use super::support::{is_long, wait_until};

const SHARED: &str = include_str!("shared.sql");
const WORK: &str = "
    INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at, schedule_cron) VALUES
        ('gone', 'sql', now() - interval '1 hour', NULL), ('due', 'sql', now() - interval '1 hour', '* * * * *');
    INSERT INTO locktop.task_execution_log (task_id, worker_id, status, started_at, lock_id, backend_pid, backend_start, attempt, heartbeat_at)
        VALUES (1, 'w', 'running', now() - interval '2 hours', locktop.task_lock_key(1), 1, now() - interval '3 hours', 1,
                now() - interval '2 hours');
    INSERT INTO locktop.task_queue (task_name) VALUES ('mail');
    SELECT locktop.lease_acquire(7, 'node1', '1 hour');";

/// All that is done in such a schema.
async fn everything(ground: &Ground, role: &str) {
    poll_once(&ground.info(role), &limits(&[])).await;
    ground.is_clean(&format!("{role}, a snapshot"));
    if role != "monitor" {
        for verb in [Verb::Cancel, Verb::Terminate] {
            signalled(ground, role, verb).await;
            ground.is_clean(&format!("{role}, {verb:?}"));
        }
    }
    for (verb, what) in targets(ground, "locktop", true).await {
        act(&ground.info(role), command(verb, vec![what])).await;
        ground.is_clean(&format!("{role}, {verb:?}"));
    }
    every_command(ground, role).await;
}

#[tokio::test]
async fn a_strangers_objects_in_locktops_schema_are_not_called() {
    for version in one_version() {
        for role in ["boss", "ops", "monitor"] {
            if role == "monitor" && !is_long() {
                continue;
            }
            let ground = installed(version, "postgres").await;
            ground.run("postgres", WORK).await;
            ground.run("postgres", "GRANT CREATE ON SCHEMA locktop TO mallory").await;
            ground.run("mallory", SHARED).await;
            everything(&ground, role).await;
        }
    }
}

#[tokio::test]
async fn an_untrusted_trigger_on_the_installed_tables_is_not_run() {
    for version in one_version() {
        for (kind, role) in [(0, "ops"), (1, "boss"), (0, "monitor"), (1, "monitor")] {
            if role != "monitor" || is_long() {
                let ground = installed(version, "postgres").await;
                ground.run("postgres", WORK).await;
                ground.run("postgres", "GRANT TRIGGER ON ALL TABLES IN SCHEMA locktop TO mallory").await;
                for table in
                    ["locktop_audit", "scheduled_tasks", "task_execution_log", "task_queue", "distlock"]
                {
                    let sql = &triggers("locktop", table, "INSERT OR UPDATE")[kind];
                    ground.run("mallory", sql).await;
                }
                everything(&ground, role).await;
            }
        }
    }
}

/// A worker runs for days: a trigger may be created after it started.
#[tokio::test]
async fn a_trigger_created_after_the_worker_started_is_not_run() {
    for version in one_version() {
        let ground = installed(version, "postgres").await;
        ground.run("postgres", "GRANT ALL ON ALL TABLES IN SCHEMA locktop TO mallory").await;
        let target = ground.target("boss");
        let mut command = locktop(&["-w", "worker", "--id", "x", "--exit-with-stdin", &target]);
        command.stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let observer = ground.client("postgres").await;
        let sql = format!(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '{}' AND usename = 'boss' AND state = 'idle'
                AND query_start < clock_timestamp() - interval '300 ms')",
            ground.name()
        );
        wait_until("the worker to wait for work, or to end", async || {
            child.try_wait().unwrap().is_some() || observer.query_one(&sql, &[]).await.unwrap().get(0)
        })
        .await;
        for table in ["scheduled_tasks", "task_execution_log", "task_queue", "locktop_audit"] {
            ground.run("mallory", &triggers("locktop", table, "INSERT OR UPDATE")[0]).await;
        }
        ground.run("postgres", WORK).await;
        wait_until("the work to be done, or refused", async || {
            let done = "SELECT EXISTS (SELECT FROM locktop.task_execution_log WHERE status IN ('completed', 'failed'))";
            child.try_wait().unwrap().is_some() || observer.query_one(done, &[]).await.unwrap().get(0)
        })
        .await;
        drop(child.stdin.take());
        let left = tokio::task::spawn_blocking(move || finish(child, "the worker")).await.unwrap();
        ground.is_clean(&format!("the worker: {left:?}"));
    }
}
