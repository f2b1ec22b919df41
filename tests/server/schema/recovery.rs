//! Recovery of one execution and of many, and when it is refused.

use super::db::{Session, ask};
use super::race::Stage;
use super::support::{oldest, versions};

#[tokio::test]
async fn an_orphan_is_failed_with_the_evidence_and_its_task_is_due_again() {
    for version in versions() {
        let stage = Stage::orphaned(version).await;
        let recover = format!(
            "SELECT outcome, task_id, worker_id, next_run_at > now() FROM recover_execution({}, 'ops', 'node 3 is gone')",
            stage.execution
        );
        assert_eq!(stage.one.ask(&recover).await, format!("recovered|{}|w|t", stage.task), "{version}");
        let error = stage.one.ask("SELECT error_message FROM task_execution_log").await;
        assert!(error.starts_with("recovered by ops (node 3 is gone): key 55"), "{error}");
        assert!(error.contains(&format!("was free; session {} of ", stage.worker.pid)), "{error}");
        let audit = "SELECT action, actor, session_role, task_id, execution_id, worker_id, target_pid, reason FROM locktop_audit";
        assert_eq!(
            stage.one.ask(audit).await,
            format!(
                "recovered|ops|{}|{}|{}|w|{}|node 3 is gone",
                stage.info.user(),
                stage.task,
                stage.execution,
                stage.worker.pid
            )
        );
        assert_eq!(
            stage.one.ask("SELECT count(*) FROM advisory_locks WHERE database = current_database()").await,
            "0",
            "the key is free"
        );
        for change in
            ["UPDATE locktop_audit SET actor = 'x'", "DELETE FROM locktop_audit", "TRUNCATE locktop_audit"]
        {
            assert!(stage.one.refused(change).await.starts_with("42501 "), "{change}");
        }
        assert_eq!(stage.one.ask("SELECT outcome FROM recover_execution(999, 'ops')").await, "not_found");
    }
}

#[tokio::test]
async fn the_last_attempt_gives_up() {
    for version in versions() {
        let stage = Stage::orphaned(version).await;
        stage.one.run("UPDATE scheduled_tasks SET max_attempts = 1").await;
        assert_eq!(stage.one.ask(&stage.recover()).await, "gave_up|-", "{version}");
        assert_eq!((stage.plan().await.as_str(), stage.marks().await.as_str()), ("0|schedule", "1"));
    }
}

#[tokio::test]
async fn a_locked_row_is_reported_with_its_holder() {
    for version in versions() {
        let stage = Stage::orphaned(version).await;
        let (one, two) = (&stage.one, &stage.two);
        for lock in ["FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE"] {
            two.run(&format!("BEGIN; SELECT FROM task_execution_log {lock}")).await;
            assert_eq!(one.ask(&stage.recover()).await, format!("locked|{}", two.pid), "{version} {lock}");
            // Two that share it: the row has a multixact for both.
            if lock == "FOR SHARE" {
                stage.watcher.run("BEGIN; SELECT FROM task_execution_log FOR SHARE").await;
                let pid = one.ask(&stage.recover()).await;
                assert!(
                    [two.pid, stage.watcher.pid].map(|pid| format!("locked|{pid}")).contains(&pid),
                    "{pid}"
                );
                stage.watcher.run("ROLLBACK").await;
            }
            two.run("ROLLBACK").await;
        }
        two.run("BEGIN; SELECT FROM task_execution_log FOR UPDATE; PREPARE TRANSACTION 'row'").await;
        let detail =
            format!("SELECT outcome, holder_pid, detail FROM recover_execution({}, 'test')", stage.execution);
        assert_eq!(
            one.ask(&detail).await,
            "locked|-|its row is locked by the prepared transaction 'row'",
            "{version}"
        );
        two.run("ROLLBACK PREPARED 'row'").await;
        assert_eq!(one.ask(&stage.recover()).await, "recovered|-");
    }
}

#[tokio::test]
async fn a_locked_task_is_reported_with_its_holder() {
    for version in versions() {
        let stage = Stage::orphaned(version).await;
        let (one, two) = (&stage.one, &stage.two);
        let detail =
            format!("SELECT outcome, holder_pid, detail FROM recover_execution({}, 'test')", stage.execution);
        for lock in ["SELECT FROM scheduled_tasks FOR UPDATE", "UPDATE scheduled_tasks SET priority = 7"] {
            two.run(&format!("BEGIN; {lock}")).await;
            let pid = two.pid;
            assert_eq!(
                one.ask(&detail).await,
                format!("locked|{pid}|the row of its task is locked by pid {pid}"),
                "{version} {lock}"
            );
            two.run("ROLLBACK").await;
        }
        two.run("BEGIN; SELECT FROM scheduled_tasks FOR UPDATE; PREPARE TRANSACTION 'task'").await;
        assert_eq!(
            one.ask(&detail).await,
            "locked|-|the row of its task is locked by the prepared transaction 'task'",
            "{version}"
        );
        two.run("ROLLBACK PREPARED 'task'").await;
        assert_eq!(stage.marks().await, "0");
        assert_eq!(one.ask(&stage.recover()).await, "recovered|-");
    }
}

#[tokio::test]
async fn an_execution_with_a_held_or_unknown_key_is_not_recovered() {
    for version in versions() {
        let stage = Stage::orphaned(version).await;
        let (one, two) = (&stage.one, &stage.two);
        let key = "get_task_lock_id('report')";
        // Its own session: it would get the key again.
        for lock in ["pg_advisory_lock", "pg_advisory_lock_shared", "pg_advisory_xact_lock"] {
            one.run(&format!("BEGIN; SELECT {lock}({key})")).await;
            assert_eq!(
                one.ask(&stage.recover()).await,
                format!("held_by_us|{}", one.pid),
                "{version} {lock}"
            );
            one.run("ROLLBACK; SELECT pg_advisory_unlock_all()").await;
            two.run(&format!("BEGIN; SELECT {lock}({key})")).await;
            assert_eq!(one.ask(&stage.recover()).await, format!("held|{}", two.pid), "{version} {lock}");
            two.run("ROLLBACK; SELECT pg_advisory_unlock_all()").await;
        }
        two.run(&format!("BEGIN; SELECT pg_advisory_xact_lock({key}); PREPARE TRANSACTION 'key'")).await;
        let detail =
            format!("SELECT outcome, holder_pid, detail FROM recover_execution({}, 'test')", stage.execution);
        assert_eq!(one.ask(&detail).await, "prepared|-|the prepared transaction 'key' holds its key");
        one.run("UPDATE task_execution_log SET started_at = now() - interval '1 hour', heartbeat_at = NULL")
            .await;
        assert_eq!(one.ask("SELECT state, held_by_prepared FROM running_tasks").await, "slow|t");
        let asked = format!("SELECT outcome, detail FROM ask_task_termination({}, 'test')", stage.execution);
        assert_eq!(one.ask(&asked).await, "prepared|the prepared transaction 'key' holds its key");
        two.run("ROLLBACK PREPARED 'key'").await;
        // The key of the session that runs the task's statement.
        two.run("SELECT pg_advisory_lock(statement_lock_key((SELECT id FROM scheduled_tasks)))").await;
        let runs = "its key is free, but the statement of the lost worker still runs in session";
        assert_eq!(one.ask(&detail).await, format!("held|{0}|{runs} {0}", two.pid), "{version}");
        two.run("SELECT pg_advisory_unlock_all()").await;
        // The same number in another database is another key; a raw id proves nothing. (The server has been up for less than the grace.)
        one.run("SET locktop.orphan_grace = '0'").await;
        assert_eq!(one.ask("SELECT state FROM running_tasks").await, "orphan");
        for lock_id in ["task_id", "NULL"] {
            one.run(&format!("UPDATE task_execution_log SET lock_id = {lock_id}")).await;
            assert_eq!(one.ask(&stage.recover()).await, "unknown|-", "{version} {lock_id}");
            assert_eq!(one.ask("SELECT state FROM running_tasks").await, "unknown");
            assert_eq!(one.ask("SELECT lock_released FROM check_and_recover_timeout_tasks(0)").await, "f");
        }
        assert_eq!((stage.mark().await.as_str(), stage.marks().await.as_str()), ("running|-", "0"));
    }
}

#[tokio::test]
async fn the_timeout_check_recovers_orphans_and_terminates_no_session() {
    for version in versions() {
        let stage = Stage::new(version).await;
        stage.watcher.run("UPDATE task_execution_log SET started_at = now() - interval '31 minutes'").await;
        stage.watcher.run("INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('gone', 'x', now()), ('new', 'x', now())").await;
        let lost = Session::open(&stage.info).await;
        assert_eq!(lost.ask("SELECT task_name FROM fetch_tasks('g', 2)").await, "gone\nnew");
        lost.run("UPDATE task_execution_log SET started_at = now() - interval '31 minutes' WHERE worker_id = 'g' AND task_id = (SELECT id FROM scheduled_tasks WHERE task_name = 'gone')").await;
        lost.run("SELECT pg_advisory_unlock_all()").await;
        let check = "SELECT worker_id, lock_released FROM check_and_recover_timeout_tasks()";
        assert_eq!(stage.one.ask(check).await, "w|f\ng|f", "{version}: its worker may still be stopping");
        stage.one.run("SET locktop.orphan_grace = '0'").await;
        assert_eq!(stage.one.ask(check).await, "w|f\ng|t", "{version}");
        stage.one.run("RESET locktop.orphan_grace").await;
        assert_eq!(
            stage.one.ask("SELECT worker_id, task_name, state FROM running_tasks ORDER BY started_at").await,
            "w|report|slow\ng|new|settling"
        );
        assert_eq!(stage.worker.ask(&stage.finish()).await, "t", "the slow one was not touched");
        assert_eq!(stage.one.ask("SELECT * FROM check_and_recover_timeout_tasks(30)").await, "");
        assert!(stage.one.refused("SELECT check_and_recover_timeout_tasks(-1)").await.starts_with("22023 "));
    }
}

#[tokio::test]
async fn the_procedure_commits_after_each() {
    for version in versions() {
        let stage = Stage::new(version).await;
        stage.watcher.run("INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) SELECT 't' || n, 'x', now() FROM generate_series(1, 4) n").await;
        let lost = Session::open(&stage.info).await;
        lost.run("SELECT * FROM fetch_tasks('g', 9); SELECT pg_advisory_unlock_all()").await;
        stage.one.run("CALL recover_orphans()").await;
        assert_eq!(
            stage.one.ask("SELECT count(*) FROM locktop_audit").await,
            "0",
            "{version}: not before the grace"
        );
        // With any search_path; one that is locked is left for the next time, and delays no other.
        stage.one.run("SET locktop.orphan_grace = '0'; SET search_path = pg_temp").await;
        stage
            .two
            .run("BEGIN; SELECT FROM task_execution_log WHERE worker_id = 'g' ORDER BY id LIMIT 1 FOR UPDATE")
            .await;
        stage.one.run("CALL locktop.recover_orphans()").await;
        stage.two.run("COMMIT").await;
        let done = "SELECT count(*), count(DISTINCT xmin::text) FROM locktop.locktop_audit WHERE action = 'recovered'";
        assert_eq!(stage.one.ask(done).await, "3|3", "{version}: three, each in a transaction of its own");
        stage.one.run("CALL locktop.recover_orphans(1)").await;
        assert_eq!(stage.one.ask(done).await, "4|4");
        assert_eq!(stage.mark().await, "running|-", "the live one was not touched");
        stage.one.run("BEGIN").await;
        let within = ask(&stage.one.connection.client, "CALL locktop.recover_orphans()").await;
        assert_eq!(within, Ok(String::new()), "nothing to commit");
    }
}

/// A task that another session has locked is left for the next time; the others are not.
#[tokio::test]
async fn a_locked_task_holds_no_other_up() {
    let stage = Stage::orphaned(oldest()).await;
    stage.one.run("SET locktop.orphan_grace = '0'").await;
    stage.two.run("BEGIN; SELECT FROM scheduled_tasks FOR UPDATE").await;
    stage
        .watcher
        .run("INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('free', 'x', now())")
        .await;
    stage.watcher.run("SELECT * FROM fetch_tasks('g'); SELECT pg_advisory_unlock_all()").await;
    let check = "SELECT worker_id, lock_released FROM check_and_recover_timeout_tasks(0)";
    assert_eq!(stage.one.ask(check).await, "w|f\ng|t");
    assert_eq!((stage.mark().await.as_str(), stage.marks().await.as_str()), ("running|-", "0"));
    stage.two.run("COMMIT").await;
    assert_eq!(stage.one.ask(check).await, "w|t");
}
