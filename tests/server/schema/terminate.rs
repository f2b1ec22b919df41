//! Termination of the holder of a slow execution.

use super::race::Stage;
use super::support::{versions, wait_until};

fn ask(stage: &Stage) -> String {
    format!("SELECT outcome, holder_pid FROM ask_task_termination({}, 'ops', 'stuck')", stage.execution)
}

const SLOW: &str = "UPDATE task_execution_log SET started_at = now() - interval '31 minutes'";
const TERMINATE: &str = "SELECT terminate_task_holder(max(id)) FROM locktop_audit";

#[tokio::test]
async fn the_holder_is_asked_for_then_ended_then_recovered_from() {
    for version in versions() {
        let stage = Stage::new(version).await;
        let worker = stage.worker.pid;
        assert_eq!(stage.one.ask(&ask(&stage)).await, format!("not_slow|{worker}"), "{version}");
        stage.watcher.run(SLOW).await;
        // Not in the transaction that asks: the row has to be kept whatever happens.
        stage.one.run("BEGIN").await;
        assert_eq!(stage.one.ask(&ask(&stage)).await, format!("asked|{worker}"));
        assert!(stage.one.refused(TERMINATE).await.starts_with("55000 "));
        stage.one.run("ROLLBACK").await;
        assert_eq!(stage.one.ask(&ask(&stage)).await, format!("asked|{worker}"));
        assert_eq!(
            stage.one.ask("SELECT action, actor, target_pid, reason FROM locktop_audit").await,
            format!("asked|ops|{worker}|stuck")
        );
        assert_eq!(stage.one.ask(&stage.recover()).await, format!("held|{worker}"));
        assert_eq!(stage.one.ask(TERMINATE).await, "t");
        wait_until("the key to be free", async || {
            stage.watcher.ask("SELECT count(*) FROM true_key_holders(get_task_lock_id('report'))").await
                == "0"
        })
        .await;
        assert_eq!(stage.one.ask(TERMINATE).await, "f", "no session is left to terminate");
        assert_eq!(stage.one.ask(&stage.recover()).await, "recovered|-");
        assert_eq!(stage.one.ask(&ask(&stage)).await.split('|').next(), Some("not_running"));
        assert!(
            stage.one.refused(TERMINATE).await.contains("asks for no termination"),
            "the last row is another"
        );
    }
}

#[tokio::test]
async fn a_session_is_not_terminated_for_a_key_it_no_longer_holds() {
    for version in versions() {
        let stage = Stage::new(version).await;
        stage.watcher.run(SLOW).await;
        stage.one.run(&ask(&stage)).await;
        // It finished in the meantime.
        assert_eq!(stage.worker.ask(&stage.finish()).await, "t");
        assert_eq!(stage.one.ask(TERMINATE).await, "f", "{version}");
        // It holds the key again, for another execution.
        stage.watcher.run("UPDATE scheduled_tasks SET next_run_at = now()").await;
        assert_eq!(stage.worker.ask(&stage.acquire()).await, "t");
        assert_eq!(stage.one.ask(TERMINATE).await, "f");
        // The execution runs according to the log, and the session holds only another key.
        stage.watcher.run(&format!("DELETE FROM task_execution_log WHERE id <> {}", stage.execution)).await;
        stage.watcher.run("UPDATE task_execution_log SET status = 'running'").await;
        stage
            .worker
            .run("SELECT pg_advisory_unlock_all(), pg_advisory_lock(get_task_lock_id('report') + 1)")
            .await;
        assert_eq!(stage.one.ask(TERMINATE).await, "f");
        // The same process id, of a session that began at another time.
        stage.worker.run("SELECT pg_advisory_lock(get_task_lock_id('report'))").await;
        stage.one.run("INSERT INTO locktop_audit (action, actor, execution_id, lock_id, target_pid, target_start)
            SELECT action, actor, execution_id, lock_id, target_pid, target_start - interval '1 microsecond' FROM locktop_audit").await;
        assert_eq!(stage.one.ask(TERMINATE).await, "f");
        assert_eq!(stage.worker.ask("SELECT 1").await, "1", "{version}: it is still connected");
        // And with everything as requested, it is terminated.
        assert_eq!(stage.one.ask("SELECT terminate_task_holder(min(id)) FROM locktop_audit").await, "t");
    }
}

#[tokio::test]
async fn strangers_are_not_asked_for() {
    for version in versions() {
        let stage = Stage::orphaned(version).await;
        stage.watcher.run(SLOW).await;
        stage.watcher.run("UPDATE task_execution_log SET heartbeat_at = NULL").await;
        assert_eq!(stage.one.ask(&ask(&stage)).await, "free|-", "{version}");
        stage.one.run("SELECT pg_advisory_lock(get_task_lock_id('report'))").await;
        assert_eq!(stage.one.ask(&ask(&stage)).await, format!("held_by_us|{}", stage.one.pid));
        stage.one.run("SELECT pg_advisory_unlock_all()").await;
        stage.two.run("SELECT pg_advisory_lock_shared(get_task_lock_id('report'))").await;
        assert_eq!(stage.one.ask(&ask(&stage)).await, format!("shared|{}", stage.two.pid));
        assert_eq!(stage.one.ask("SELECT count(*) FROM locktop_audit").await, "0");
    }
}

/// A role that sees less gets an error that names what it cannot see.
#[tokio::test]
async fn missing_rights_of_a_role_are_reported() {
    for version in versions() {
        let stage = Stage::new(version).await;
        stage.watcher.run(SLOW).await;
        let role = format!("plain_{}", stage.info.dbname());
        stage
            .watcher
            .run(&format!(
                "CREATE ROLE {role}; GRANT USAGE ON SCHEMA locktop TO {role};
                 GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA locktop TO {role};
                 GRANT USAGE ON ALL SEQUENCES IN SCHEMA locktop TO {role}"
            ))
            .await;
        stage.one.run(&format!("SET ROLE {role}")).await;
        assert_eq!(stage.one.ask(&ask(&stage)).await, format!("hidden|{}", stage.worker.pid), "{version}");
        let error =
            stage.one.refused(&stage.acquire().replace("try_acquire_task_lock", "start_execution")).await;
        assert!(error.starts_with("42501 ") && error.contains("may not see when its own session"), "{error}");
        stage.one.run("RESET ROLE").await;
        stage.watcher.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    }
}
