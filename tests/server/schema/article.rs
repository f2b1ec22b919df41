//! Faults of the printed recipe, shown on its text. Each fault has its counterpart in the tests of locktop's
//! own functions.

use super::db::Session;
use super::support::{database, server_of, versions};

const TEXT: &str = include_str!("article.sql");

pub(crate) fn block(name: &str) -> &'static str {
    TEXT.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap()
}

/// A name shared by a column and an output parameter means the column: the smallest change that makes the
/// functions run.
fn repaired(name: &str) -> String {
    block(name).replace("AS $$\n", "AS $$\n#variable_conflict use_column\n")
}

/// Two sessions in a new database with the printed tables and these blocks.
async fn printed(version: u32, blocks: &[String]) -> (Session, Session) {
    let info = database(server_of(version).await).await;
    let first = Session::open_plain(&info).await;
    for sql in [block("tables"), block("acquire"), block("release")] {
        first.run(sql).await;
    }
    for sql in blocks {
        first.run(sql).await;
    }
    (first, Session::open_plain(&info).await)
}

#[tokio::test]
async fn columns_are_ambiguous_and_one_function_hides_it() {
    for version in versions() {
        let blocks = ["fetch", "multiple", "recover"].map(|name| block(name).to_owned());
        let (worker, other) = printed(version, &blocks).await;
        for call in ["worker_fetch_and_execute_task('w1')", "try_acquire_multiple_tasks('w1')"] {
            let error = worker.refused(&format!("SELECT * FROM {call}")).await;
            assert!(error.contains("column reference \"task_name\" is ambiguous"), "{version}: {error}");
        }
        assert_eq!(worker.ask("SELECT try_acquire_task_lock(1, 'w1')").await, "t");
        worker.run("UPDATE task_execution_log SET started_at = now() - interval '1 hour'").await;
        worker.run("SELECT pg_advisory_unlock_all()").await;
        assert_eq!(other.ask("SELECT * FROM check_and_recover_timeout_tasks(30)").await, "1|w1|f");
        assert_eq!(
            other.ask("SELECT status FROM task_execution_log").await,
            "running",
            "nothing was recovered"
        );
    }
}

#[tokio::test]
async fn the_lock_of_another_session_is_reported_released_and_its_live_work_as_failed() {
    for version in versions() {
        let (worker, other) = printed(version, &[repaired("recover")]).await;
        assert_eq!(worker.ask("SELECT try_acquire_task_lock(1, 'w1')").await, "t");
        worker.run("UPDATE task_execution_log SET started_at = now() - interval '1 hour'").await;
        assert_eq!(other.ask("SELECT * FROM check_and_recover_timeout_tasks(30)").await, "1|w1|t");
        assert_eq!(other.ask("SELECT status FROM task_execution_log").await, "failed");
        let held = format!(
            "SELECT pid = {} FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 1
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            worker.pid
        );
        assert_eq!(other.ask(&held).await, "t", "{version}: the worker has its lock all the time");
    }
}

#[tokio::test]
async fn the_same_session_gets_the_lock_twice() {
    for version in versions() {
        let (worker, _) = printed(version, &[]).await;
        assert_eq!(worker.ask("SELECT try_acquire_task_lock(1, 'worker-001')").await, "t");
        assert_eq!(worker.ask("SELECT try_acquire_task_lock(1, 'worker-002')").await, "t");
        assert_eq!(worker.ask("SELECT count(*) FROM task_execution_log WHERE status = 'running'").await, "2");
    }
}

#[tokio::test]
async fn the_key_is_free_before_the_finish_is_committed() {
    for version in versions() {
        let (worker, other) = printed(version, &[repaired("fetch")]).await;
        worker.run("DELETE FROM scheduled_tasks WHERE id <> 1").await;
        let fetch = "SELECT task_id, acquired FROM worker_fetch_and_execute_task('w')";
        assert_eq!(worker.ask(fetch).await, "1|t");
        worker.run("BEGIN").await;
        worker.run("SELECT release_task_lock(1, 'w', 'completed')").await;
        // It is still due for every other session, and is run again.
        let (again, ()) = tokio::join!(other.ask(fetch), async {
            let blocked = format!("SELECT {} = ANY (pg_blocking_pids({}))", worker.pid, other.pid);
            super::support::wait_until("the other to have the key", async || {
                worker.ask(&blocked).await == "t"
            })
            .await;
            worker.run("COMMIT").await;
        });
        assert_eq!(again, "1|t", "{version}");
        assert_eq!(
            other.ask("SELECT next_run_at > now() FROM scheduled_tasks").await,
            "t",
            "it was no longer due"
        );
    }
}

#[tokio::test]
async fn the_monitoring_query_compares_half_a_key() {
    for version in versions() {
        let (worker, stranger) = printed(version, &[]).await;
        // A key of another application whose lower half is the id: 5 << 32 | 1, and the pair (7, 1).
        worker.run("INSERT INTO task_execution_log (task_id, worker_id, status, lock_id) VALUES (1, 'w1', 'running', 1)").await;
        stranger.run("SELECT pg_advisory_lock(21474836481), pg_advisory_lock(7, 1)").await;
        let holders = format!(
            "SELECT pid, count(*) FROM ({}) q WHERE pid IN ({}, {}) GROUP BY pid",
            block("monitor").trim_end().trim_end_matches(';'),
            worker.pid,
            stranger.pid
        );
        assert_eq!(
            worker.ask(&holders).await,
            format!("{}|2", stranger.pid),
            "{version}: no session holds key 1"
        );
        // With one whole key in the log it fails for all of them.
        worker.run("UPDATE task_execution_log SET lock_id = 5::bigint << 32 | 9").await;
        worker.run("SELECT pg_advisory_lock(5::bigint << 32 | 9)").await;
        assert_eq!(worker.refused(&holders).await, "22003 OID out of range", "{version}");
    }
}

#[tokio::test]
async fn a_task_collides_with_any_other_use_of_its_number() {
    for version in versions() {
        let (worker, stranger) = printed(version, &[]).await;
        stranger.run("SELECT pg_advisory_lock(1)").await;
        assert_eq!(worker.ask("SELECT try_acquire_task_lock(1, 'w1')").await, "f", "{version}");
    }
}

#[tokio::test]
async fn a_task_that_was_done_since_it_was_chosen_is_run_again() {
    for version in versions() {
        let (slow, quick) = printed(version, &[]).await;
        let choose = "SELECT id FROM scheduled_tasks WHERE is_enabled AND next_run_at <= now() ORDER BY next_run_at, id LIMIT 1";
        assert_eq!(slow.ask(choose).await, "1");
        assert_eq!(quick.ask("SELECT try_acquire_task_lock(1, 'quick')").await, "t");
        quick.run("SELECT release_task_lock(1, 'quick', 'completed')").await;
        assert_eq!(slow.ask("SELECT next_run_at > now() FROM scheduled_tasks WHERE id = 1").await, "t");
        assert_eq!(slow.ask("SELECT try_acquire_task_lock(1, 'slow')").await, "t", "{version}");
    }
}

#[tokio::test]
async fn the_start_is_that_of_the_transaction() {
    for version in versions() {
        let (worker, _) = printed(version, &[]).await;
        worker.run("BEGIN").await;
        let before = worker.ask("SELECT clock_timestamp()").await;
        worker.run("SELECT try_acquire_task_lock(1, 'w1')").await;
        let early = format!("SELECT started_at < '{before}' FROM task_execution_log");
        assert_eq!(worker.ask(&early).await, "t", "{version}");
    }
}
