//! Recovery of executions in published tables: their session is terminated first, and no other one is.

use serde_json::Value;

use super::binary::{Left, locktop, run_beside};
use super::db::Session;
use super::document::address;
use super::support::{database, oldest, server_of, versions, wait_until};
use locktop::pg::conninfo::ConnInfo;

/// A database with the first article's tables and its function that acquires a task's lock.
pub(super) async fn tables(version: u32) -> (ConnInfo, Session) {
    let info = database(server_of(version).await).await;
    let admin = Session::open_plain(&info).await;
    for sql in ["tables", "acquire", "release"].map(article) {
        admin.run(sql).await;
    }
    (info, admin)
}

fn article(name: &str) -> &'static str {
    let text = include_str!("../schema/article.sql");
    text.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap()
}

/// A worker with these tasks, each committed; its tasks began two hours ago, but for the last one.
async fn worker(info: &ConnInfo, admin: &Session, tasks: &[i32]) -> Session {
    let session = Session::open_plain(info).await;
    session.run("SET application_name = 'jobs worker-001'").await;
    for task in tasks {
        assert_eq!(session.ask(&format!("SELECT try_acquire_task_lock({task}, 'worker-001')")).await, "t");
    }
    let old = "UPDATE task_execution_log SET started_at = now() - interval '2 hours' WHERE task_id = 1";
    admin.run(old).await;
    session
}

async fn recover(version: u32, info: &ConnInfo, arguments: &[&str]) -> Left {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "[thresholds]\norphan_grace = \"0s\"\n").unwrap();
    let target = address(server_of(version).await, info);
    let fixed = ["recover", &target, "--schema", "public", "--config", config.path().to_str().unwrap()];
    run_beside(locktop(&[&fixed, arguments].concat())).await
}

async fn log(admin: &Session) -> String {
    admin.ask("SELECT string_agg(task_id || ' ' || status, ', ' ORDER BY id) FROM task_execution_log").await
}

async fn is_connected(admin: &Session, pid: i32) -> bool {
    admin.ask(&format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}")).await == "1"
}

#[tokio::test]
async fn the_session_of_a_slow_row_is_terminated_and_its_row_failed() {
    for version in versions() {
        let (info, admin) = tables(version).await;
        let worker = worker(&info, &admin, &[1, 2]).await;
        let left = recover(version, &info, &["--timeout", "--yes"]).await;
        assert_eq!(left.status, Some(1), "{version} {left:?}");
        assert!(left.out.contains("(--terminate terminates that session)"), "{left:?}");
        assert!(is_connected(&admin, worker.pid).await);

        let json = ["--timeout", "--terminate", "--format", "json"];
        let plan = recover(version, &info, &[&json[..], &["--dry-run"]].concat()).await;
        let plan: Value = serde_json::from_str(&plan.out).unwrap();
        let row = &plan["plan"][0];
        assert_eq!((&row["step"], &row["holder_pid"]), (&"terminate".into(), &worker.pid.into()), "{plan}");
        assert_eq!(row["also_ended"][0]["task_name"], "报表生成任务", "{plan}");
        assert_eq!(plan["plan"].as_array().unwrap().len(), 1, "the other one is in time");
        assert!(is_connected(&admin, worker.pid).await);

        let left = recover(version, &info, &[&json[..], &["--yes"]].concat()).await;
        assert_eq!(left.status, Some(0), "{version} {left:?}");
        let done: Value = serde_json::from_str(&left.out).unwrap();
        let row = &done["results"][0];
        assert_eq!((&row["outcome"], &row["ended_pid"]), (&"recovered".into(), &worker.pid.into()), "{done}");
        assert!(!is_connected(&admin, worker.pid).await);
        assert_eq!(log(&admin).await, "1 failed, 2 running");
        let error = admin.ask("SELECT error_message FROM task_execution_log WHERE task_id = 1").await;
        assert!(
            error.starts_with("its worker's session was terminated: failed by locktop recover"),
            "{error}"
        );
        // Its other task has lost its session, and is an orphan.
        admin
            .run("UPDATE task_execution_log SET started_at = now() - interval '1 min' WHERE task_id = 2")
            .await;
        let left = recover(version, &info, &["--yes"]).await;
        assert!(left.status == Some(0) && left.out.ends_with("1 of 1 recovered.\n"), "{left:?}");
        assert_eq!(log(&admin).await, "1 failed, 2 failed");
    }
}

/// Nothing links the holder of a small number to the worker: it may belong to another program.
#[tokio::test]
async fn a_session_that_nothing_links_to_the_worker_is_left_alone() {
    let version = oldest();
    let (info, admin) = tables(version).await;
    let ended = worker(&info, &admin, &[1]).await;
    drop(ended);
    let other = Session::open_plain(&info).await;
    wait_until("the key to be free", async || other.ask("SELECT pg_try_advisory_lock(1)").await == "t").await;
    other.run("SELECT 1").await;
    let left = recover(version, &info, &["--timeout", "--terminate", "--yes"]).await;
    assert_eq!(left.status, Some(1), "{left:?}");
    assert!(left.out.contains("nothing links it to worker-001"), "{left:?}");
    assert!(is_connected(&admin, other.pid).await);
    assert_eq!(log(&admin).await, "1 running");
}

#[tokio::test]
async fn a_leftover_row_is_failed_and_the_session_of_the_newer_row_continues() {
    for version in versions() {
        let (info, admin) = tables(version).await;
        drop(worker(&info, &admin, &[1]).await);
        let next = Session::open_plain(&info).await;
        next.run("SET application_name = 'worker-002'").await;
        wait_until("the key to be free", async || {
            next.ask("SELECT try_acquire_task_lock(1, 'worker-002')").await == "t"
        })
        .await;
        let left = recover(version, &info, &["--yes"]).await;
        assert!(left.out.starts_with("Nothing to recover."), "{version}: a guess needs its name: {left:?}");
        let left = recover(version, &info, &["--yes", "--task", "数据同步任务"]).await;
        assert!(left.status == Some(0) && left.out.ends_with("1 of 1 recovered.\n"), "{version} {left:?}");
        assert_eq!(log(&admin).await, "1 failed, 1 running", "{version}");
        assert!(is_connected(&admin, next.pid).await);
        assert_eq!(next.ask("SELECT release_task_lock(1, 'worker-002', 'completed')").await, "");
    }
}
