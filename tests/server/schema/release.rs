//! Finishing tasks, and signs of life.

use super::db::{DUE, Session, installed};
use super::support::versions;

#[tokio::test]
async fn the_key_is_free_exactly_at_the_commit() {
    for version in versions() {
        let info = installed(version).await;
        let (worker, other) = (Session::open(&info).await, Session::open(&info).await);
        let id = worker.ask(DUE).await;
        let acquire = format!("SELECT try_acquire_task_lock({id}, 'w')");
        let key = "SELECT pg_try_advisory_lock(get_task_lock_id('report'))";
        assert_eq!(worker.ask(&acquire).await, "t");
        worker.run("BEGIN").await;
        worker.run(&format!("SELECT release_task_lock({id}, 'w', 'completed')")).await;
        assert_eq!(other.ask(&acquire).await, "f", "{version}");
        assert_eq!(other.ask(key).await, "f");
        assert_eq!(worker.ask(&acquire).await, "f", "not for itself either");
        worker.run("COMMIT").await;
        assert_eq!(other.ask(&acquire).await, "f", "it is no longer due");
        assert_eq!(other.ask(key).await, "t");
        assert_eq!(
            other
                .ask("SELECT status, completed_at >= started_at, error_message FROM task_execution_log")
                .await,
            "completed|t|-"
        );
    }
}

/// After a rollback the row is `running` again and the key is free: an orphan, never a second run unnoticed.
#[tokio::test]
async fn a_finish_that_is_rolled_back_did_not_happen() {
    for version in versions() {
        let info = installed(version).await;
        let (worker, other) = (Session::open(&info).await, Session::open(&info).await);
        let id = worker.ask(DUE).await;
        worker.run(&format!("SELECT try_acquire_task_lock({id}, 'w')")).await;
        worker.run("BEGIN").await;
        worker.run(&format!("SELECT release_task_lock({id}, 'w', 'completed')")).await;
        worker.run("ROLLBACK").await;
        other.run("SET locktop.orphan_grace = '0'").await;
        assert_eq!(other.ask("SELECT state FROM running_tasks").await, "orphan", "{version}");
        // It can still be finished by the session that ran it.
        assert_eq!(worker.ask(&format!("SELECT try_release_task_lock({id}, 'w', 'completed')")).await, "t");
    }
}

#[tokio::test]
async fn a_stale_finish_does_not_count() {
    for version in versions() {
        let info = installed(version).await;
        let (stale, worker) = (Session::open(&info).await, Session::open(&info).await);
        let id = stale.ask(DUE).await;
        let finish = format!("SELECT try_release_task_lock({id}, 'w', 'completed')");
        assert_eq!(stale.ask(&format!("SELECT try_acquire_task_lock({id}, 'w')")).await, "t");
        stale.run("SELECT pg_advisory_unlock_all()").await;
        // Another session of a worker of the same name takes over.
        assert_eq!(worker.ask(&format!("SELECT try_acquire_task_lock({id}, 'w')")).await, "t");
        let before = worker.ask("SELECT * FROM task_execution_log ORDER BY id").await;
        assert_eq!(stale.ask(&finish).await, "f", "{version}");
        stale.run(&format!("SELECT release_task_lock({id}, 'w', 'completed')")).await;
        assert_eq!(stale.ask(&format!("SELECT heartbeat_task({id}, 'w')")).await, "f");
        assert_eq!(stale.ask("SELECT * FROM heartbeat_tasks('w')").await, "");
        assert_eq!(
            worker.ask("SELECT * FROM task_execution_log ORDER BY id").await,
            before,
            "nothing changed"
        );
        assert_eq!(worker.ask("SELECT pid FROM task_locks").await, worker.pid.to_string());
        // Nor that of another worker on the same connection; its key is kept.
        assert_eq!(worker.ask(&format!("SELECT try_release_task_lock({id}, 'x', 'failed')")).await, "f");
        assert_eq!(worker.ask("SELECT pid FROM task_locks").await, worker.pid.to_string());
        assert_eq!(worker.ask(&finish).await, "t");
        assert_eq!(worker.ask(&finish).await, "f", "once");
        assert!(
            worker
                .refused(&format!("SELECT try_release_task_lock({id}, 'w', 'done')"))
                .await
                .starts_with("22023 ")
        );
    }
}

/// The row was closed by hand: the finish does not count, and the session's key is still released.
#[tokio::test]
async fn a_key_without_an_execution_is_released() {
    for version in versions() {
        let info = installed(version).await;
        let worker = Session::open(&info).await;
        let id = worker.ask(DUE).await;
        worker.run(&format!("SELECT try_acquire_task_lock({id}, 'w')")).await;
        worker.run("UPDATE task_execution_log SET status = 'failed'").await;
        assert_eq!(
            worker.ask(&format!("SELECT try_release_task_lock({id}, 'w', 'completed')")).await,
            "f",
            "{version}"
        );
        assert_eq!(
            worker.ask("SELECT count(*) FROM advisory_locks WHERE database = current_database()").await,
            "0"
        );
    }
}

#[tokio::test]
async fn a_schedule_sets_the_next_run_of_a_task() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        session
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, schedule_cron, time_zone) VALUES
                  ('planned', 'x', '0 8 * * *', 'Asia/Tokyo'), ('once', 'x', NULL, 'UTC')",
            )
            .await;
        let planned = "SELECT next_run_at = cron_next('0 8 * * *', now(), 'Asia/Tokyo') FROM scheduled_tasks WHERE task_name = 'planned'";
        assert_eq!(session.ask(planned).await, "t", "{version}: set at once");
        session
            .run("UPDATE scheduled_tasks SET schedule_cron = '5 9 * * *' WHERE task_name = 'planned'")
            .await;
        assert_eq!(
            session.ask(&planned.replace("0 8", "5 9")).await,
            "t",
            "and when the schedule is changed"
        );
        session.run("UPDATE scheduled_tasks SET next_run_at = now()").await;
        session.run("SELECT release_task_lock(task_id, 'w', 'completed') FROM fetch_tasks('w', 9)").await;
        assert_eq!(session.ask(&planned.replace("0 8", "5 9")).await, "t");
        assert_eq!(
            session.ask("SELECT next_run_at FROM scheduled_tasks WHERE task_name = 'once'").await,
            "-"
        );
        for wrong in ["schedule_cron = '61 * * * *'", "schedule_cron = '0 0 31 2 *'", "time_zone = 'Mars'"] {
            let error = session
                .refused(&format!("UPDATE scheduled_tasks SET {wrong} WHERE task_name = 'planned'"))
                .await;
            assert!(error.starts_with("22023 "), "{wrong}: {error}");
        }
    }
}

#[tokio::test]
async fn a_failed_task_is_tried_again_later_and_later_and_then_given_up() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        let id = session.ask(DUE).await;
        session.run("UPDATE scheduled_tasks SET retry_delay = '20 minutes', max_attempts = 4").await;
        let planned = "SELECT attempts, (extract(epoch FROM next_run_at - clock_timestamp()) / 60)::int, next_run_at = cron_next('0 0 1 1 *', now()) FROM scheduled_tasks";
        for (attempt, expected) in [(1, "1|20|f"), (2, "2|40|f"), (3, "3|60|f"), (4, "0|.*|t")] {
            session.run("UPDATE scheduled_tasks SET next_run_at = clock_timestamp()").await;
            assert_eq!(
                session.ask("SELECT attempt FROM fetch_tasks('w')").await,
                attempt.to_string(),
                "{version}"
            );
            session.run(&format!("SELECT release_task_lock({id}, 'w', 'failed', 'no disk')")).await;
            let found = session.ask(planned).await;
            match expected.split_once(".*") {
                Some((start, end)) => assert!(found.starts_with(start) && found.ends_with(end), "{found}"),
                None => assert_eq!(found, expected),
            }
        }
        assert_eq!(
            session.ask("SELECT DISTINCT status, error_message FROM task_execution_log").await,
            "failed|no disk"
        );
        // A success in between resets the count.
        session.run("UPDATE scheduled_tasks SET next_run_at = clock_timestamp(), attempts = 2").await;
        session.run("SELECT release_task_lock(task_id, 'w', 'completed') FROM fetch_tasks('w')").await;
        assert_eq!(session.ask("SELECT attempts FROM scheduled_tasks").await, "0");
    }
}

/// The end of any delay can be stored, however long it is.
#[tokio::test]
async fn no_delay_is_too_long_for_the_calendar() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        let id = session.ask(DUE).await;
        for delay in ["300 years", "10000 years", "170000000 years"] {
            session
                .run(&format!(
                    "UPDATE scheduled_tasks SET retry_delay = '{delay}', next_run_at = clock_timestamp(), attempts = 0"
                ))
                .await;
            session.run("SELECT * FROM fetch_tasks('w')").await;
            let finish = format!("SELECT try_release_task_lock({id}, 'w', 'failed', 'no disk')");
            assert_eq!(session.ask(&finish).await, "t", "{version} {delay}");
            let later = "SELECT next_run_at > now() + interval '299 years' FROM scheduled_tasks";
            assert_eq!(session.ask(later).await, "t", "{delay}");
        }
        for (delay, failures, pause) in [
            ("10 s", 1, "00:00:10"),
            ("10 s", 4, "00:01:20"),
            ("59 minutes", 30, "01:00:00"),
            ("2 hours", 9, "02:00:00"),
            ("0", 9, "00:00:00"),
        ] {
            let asked = format!("SELECT retry_pause('{delay}', {failures})");
            assert_eq!(session.ask(&asked).await, pause, "{delay} {failures}");
        }
    }
}

#[tokio::test]
async fn a_sign_of_life_is_written_by_the_session_that_runs_the_task() {
    for version in versions() {
        let info = installed(version).await;
        let (worker, other) = (Session::open(&info).await, Session::open(&info).await);
        let id = worker.ask(DUE).await;
        worker.run(&format!("SELECT try_acquire_task_lock({id}, 'w')")).await;
        worker.run("UPDATE task_execution_log SET heartbeat_at = started_at").await;
        assert_eq!(worker.ask(&format!("SELECT heartbeat_task({id}, 'w')")).await, "t", "{version}");
        assert_eq!(other.ask("SELECT heartbeat_at > started_at FROM task_execution_log").await, "t");
        assert_eq!(
            worker
                .ask("SELECT h = (SELECT max(id) FROM task_execution_log) FROM heartbeat_tasks('w') h")
                .await,
            "t"
        );
        assert_eq!(other.ask(&format!("SELECT heartbeat_task({id}, 'w')")).await, "f");
    }
}
