//! Recoveries that are refused, and the reasons that are reported.

use std::time::Duration;

use locktop::model::plan::{Reason, RecoveryOutcome, Selection, Step};
use locktop::schema::SchemaName;
use locktop_tasks::recovery::{RecoveryOrder, execute};
use rustix::process::{Pid, Signal, kill_process};

use super::db::Session;
use super::stage::{Stage, order, outcomes};
use super::support::{oldest, versions, wait_until};

const LONG: Selection = Selection::Longer(None);

#[tokio::test]
async fn an_execution_changed_since_the_plan_is_left_alone() {
    for version in versions() {
        for change in [
            "worker_id = 'another'",
            "started_at = started_at + interval '1 microsecond'",
            "backend_pid = backend_pid + 1",
            "backend_start = NULL",
            "heartbeat_at = clock_timestamp()",
        ] {
            let stage = Stage::new(version).await;
            stage.orphan("gone").await;
            let plan = stage.plan(Selection::Orphans, false).await;
            stage.admin.run(&format!("UPDATE task_execution_log SET {change}")).await;
            let results = stage.execute(&plan).await;
            assert_eq!(results[0].outcome, RecoveryOutcome::Changed, "{version} {change}: {results:?}");
            assert!(stage.log("gone").await.starts_with("running|"), "{change}");
            assert_eq!(stage.audit().await, "", "{change}");
        }
        let stage = Stage::new(version).await;
        stage.orphan("gone").await;
        let plan = stage.plan(Selection::Orphans, false).await;
        stage.admin.run("DELETE FROM task_execution_log").await;
        assert_eq!(stage.execute(&plan).await[0].outcome, RecoveryOutcome::NotFound, "{version}");
    }
}

/// A session is terminated only for the execution that it was seen with.
#[tokio::test]
async fn a_holder_that_is_not_the_planned_one_is_not_ended() {
    for version in versions() {
        let stage = Stage::new(version).await;
        let worker = stage.slow("slow").await;
        let plan = stage.plan(LONG, true).await;
        assert_eq!(plan.ended_pids(), [worker.pid], "{version}");
        // Another session holds the key.
        worker.run("SELECT pg_advisory_unlock_all()").await;
        let other = Session::open(&stage.info).await;
        other.run("SELECT pg_advisory_lock(get_task_lock_id('slow'))").await;
        let results = stage.execute(&plan).await;
        assert_eq!(results[0].outcome, RecoveryOutcome::Changed, "{version} {results:?}");
        assert_eq!((results[0].ended_pid, results[0].audit_id), (None, None));
        assert!(results[0].detail.starts_with(&format!("pid {} of ", other.pid)), "{results:?}");
        assert_eq!(stage.audit().await, "", "{version}: no termination was requested");
        let stranger = stage.plan(LONG, true).await;
        assert_eq!(stranger.rows[0].step, Step::Leave(Reason::Stranger), "{version}");
        other.run("SELECT pg_advisory_unlock_all()").await;
        // The row belongs to another session.
        worker.run("SELECT pg_advisory_lock(get_task_lock_id('slow'))").await;
        stage
            .admin
            .run("UPDATE task_execution_log SET backend_start = backend_start - interval '1 day'")
            .await;
        assert_eq!(stage.execute(&plan).await[0].outcome, RecoveryOutcome::Changed, "{version}");
        stage
            .admin
            .run("UPDATE task_execution_log SET backend_start = backend_start + interval '1 day'")
            .await;
        // It finished.
        let finish = "SELECT try_release_task_lock(1, 'slow', 'completed')";
        assert_eq!(worker.ask(finish).await, "t");
        let results = stage.execute(&plan).await;
        assert_eq!(outcomes(&plan, &results), ["slow not_running"], "{version}");
        assert_eq!((stage.audit().await.as_str(), stage.log("slow").await.as_str()), ("", "completed|-"));
        for session in [&worker, &other] {
            assert_eq!(session.ask("SELECT 1").await, "1", "{version}: it is still connected");
        }
    }
}

#[tokio::test]
async fn a_prepared_transaction_is_a_stranger() {
    for version in versions() {
        let stage = Stage::new(version).await;
        let worker = stage.slow("slow").await;
        worker.run("SELECT pg_advisory_unlock_all()").await;
        let gid = format!("key of {}", stage.info.dbname());
        let prepare = format!(
            "BEGIN; SELECT pg_advisory_xact_lock(get_task_lock_id('slow')); PREPARE TRANSACTION '{gid}'"
        );
        // It is prepared between the plan and its execution.
        let plan = stage.plan(Selection::Orphans, false).await;
        assert_eq!(plan.rows.len(), 1, "{version}");
        worker.run(&prepare).await;
        let results = stage.execute(&plan).await;
        assert_eq!(results[0].outcome, RecoveryOutcome::Prepared, "{version} {results:?}");
        assert!(results[0].detail.contains(&gid), "{results:?}");
        let plan = stage.plan(LONG, true).await;
        assert_eq!(plan.rows[0].step, Step::Leave(Reason::Prepared), "{version}");
        worker.run(&format!("ROLLBACK PREPARED '{gid}'")).await;
        assert_eq!(stage.log("slow").await, "running|-");
    }
}

#[tokio::test]
async fn a_locked_row_is_reported_with_the_session_that_locks_it() {
    for version in versions() {
        let stage = Stage::new(version).await;
        stage.orphan("one").await;
        stage.orphan("two").await;
        let plan = stage.plan(Selection::Orphans, false).await;
        let other = Session::open(&stage.info).await;
        other.run("BEGIN; SELECT FROM task_execution_log WHERE worker_id = 'one' FOR UPDATE").await;
        let results = stage.execute(&plan).await;
        assert_eq!(outcomes(&plan, &results), ["one locked", "two recovered"], "{version}");
        assert_eq!(results[0].detail, format!("its row is locked by pid {}", other.pid), "{version}");
        assert_eq!(results[0].holder_pid, Some(other.pid));
        other.run("ROLLBACK; BEGIN; SELECT FROM scheduled_tasks FOR UPDATE").await;
        let results = stage.execute(&plan).await;
        assert_eq!(outcomes(&plan, &results), ["one locked", "two not_running"], "{version}");
        let detail = format!("the row of its task is locked by pid {}", other.pid);
        assert_eq!((&results[0].detail, results[0].holder_pid), (&detail, Some(other.pid)), "{version}");
        other.run("ROLLBACK").await;
        assert_eq!(stage.execute(&plan).await[0].outcome, RecoveryOutcome::Recovered, "{version}");
    }
}

#[tokio::test]
async fn two_recoveries_at_once_recover_nothing_twice() {
    for version in versions() {
        let stage = Stage::new(version).await;
        let tasks = 12;
        stage
            .admin
            .run(&format!(
                "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) SELECT 't' || n, 'x', now() FROM generate_series(1, {tasks}) n"
            ))
            .await;
        let worker = Session::open(&stage.info).await;
        worker.run("SELECT * FROM fetch_tasks('w', 99); SELECT pg_advisory_unlock_all()").await;
        let plan = stage.plan(Selection::Orphans, false).await;
        assert_eq!(plan.rows.len(), tasks, "{version}");
        let (one, two, three) =
            tokio::join!(stage.execute(&plan), stage.execute(&plan), stage.execute(&plan));
        for row in 0..tasks {
            let outcomes = [&one, &two, &three].map(|results| results[row].outcome);
            let recovered = outcomes.iter().filter(|outcome| outcome.is_recovered()).count();
            assert_eq!(recovered, 1, "{version} {outcomes:?}");
            let fine =
                |outcome: &RecoveryOutcome| outcome.is_settled() || *outcome == RecoveryOutcome::Locked;
            assert!(outcomes.iter().all(fine), "{version} {outcomes:?}");
        }
        let done =
            "SELECT count(*), count(DISTINCT execution_id) FROM locktop_audit WHERE action = 'recovered'";
        assert_eq!(stage.admin.ask(done).await, format!("{tasks}|{tasks}"), "{version}");
    }
}

#[tokio::test]
async fn a_session_that_does_not_end_is_waited_for_no_longer_than_asked() {
    let stage = Stage::new(oldest()).await;
    let worker = stage.slow("slow").await;
    let plan = stage.plan(LONG, true).await;
    let pid = Pid::from_raw(worker.pid).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let session = Session::open_plain(&stage.info).await;
    let order = RecoveryOrder { wait: Duration::from_millis(200), ..order() };
    let results = execute(&session.connection.client, &SchemaName::default(), &plan, &order, |_| {}).await;
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(results[0].outcome, RecoveryOutcome::Held, "{results:?}");
    assert_eq!((results[0].ended_pid, results[0].holder_pid), (Some(worker.pid), Some(worker.pid)));
    let detail = format!("pid {} was terminated, but still holds its key after 0.2s", worker.pid);
    assert_eq!(results[0].detail, detail);
    assert_eq!(stage.audit().await, "asked|slow");
    // It ends now, and the next one finds an orphan.
    stage.state("slow", "orphan").await;
    let plan = stage.plan(LONG, true).await;
    assert_eq!(outcomes(&plan, &stage.execute(&plan).await), ["slow recovered"]);
}

#[tokio::test]
async fn a_connection_lost_in_the_middle_leaves_the_outcome_open_and_the_rest_untried() {
    for version in versions() {
        let stage = Stage::new(version).await;
        stage.orphan("one").await;
        stage.orphan("two").await;
        let _alive = stage.slow("slow").await;
        let plan = stage.plan(LONG, false).await;
        let other = Session::open(&stage.info).await;
        // It does not wait for rows.
        other.run("BEGIN; LOCK TABLE locktop_audit IN SHARE MODE").await;
        let cut = async {
            let blocked = "SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0 AND datname = current_database()";
            wait_until("the recovery to wait", async || stage.admin.ask(blocked).await == "1").await;
            let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0 AND datname = current_database()";
            assert_eq!(stage.admin.ask(end).await, "t");
        };
        let (results, ()) = tokio::join!(stage.execute(&plan), cut);
        assert_eq!(
            outcomes(&plan, &results),
            ["one uncertain", "two not_tried", "slow left_alone"],
            "{version}"
        );
        assert!(results[0].detail.ends_with("whether it was done is not known"), "{results:?}");
        assert_eq!((stage.log("one").await.as_str(), stage.audit().await.as_str()), ("running|-", ""));
        other.run("ROLLBACK").await;
        let again = stage.execute(&plan).await;
        assert_eq!(outcomes(&plan, &again), ["one recovered", "two recovered", "slow left_alone"]);
    }
}

/// The result of the first is correct, and the rest is left: the effect on such a server is not known.
#[tokio::test]
async fn an_answer_that_makes_no_sense_is_of_something_that_was_done() {
    let stage = Stage::new(oldest()).await;
    stage.orphan("one").await;
    stage.orphan("two").await;
    let plan = stage.plan(Selection::Orphans, false).await;
    let other = "DROP FUNCTION recover_seen_execution;
        CREATE FUNCTION recover_seen_execution(bigint, text, timestamptz, int, timestamptz, timestamptz, text, text)
        RETURNS TABLE (moon text) LANGUAGE sql AS
        $$ UPDATE locktop.scheduled_tasks SET priority = 7 WHERE task_name = 'one' RETURNING 'full' $$";
    stage.admin.run(other).await;
    let results = stage.execute(&plan).await;
    assert_eq!(outcomes(&plan, &results), ["one uncertain", "two not_tried"], "{results:?}");
    let detail = &results[0].detail;
    assert!(
        detail.starts_with("the answer cannot be read: ") && !detail.contains("whether it was done"),
        "{detail}"
    );
    assert!(detail.ends_with(": the effect on the server is not known"), "{detail}");
    assert!(!results[1].detail.contains("connection"), "it is not lost: {results:?}");
    assert_eq!(stage.admin.ask("SELECT priority FROM scheduled_tasks WHERE task_name = 'one'").await, "7");
}

/// The connection may belong to a pool: whatever its settings are, they have no effect and stay.
#[tokio::test]
async fn a_session_keeps_its_settings_and_they_do_not_matter() {
    for version in versions() {
        let stage = Stage::new(version).await;
        stage.orphan("gone").await;
        let worker = stage.slow("slow").await;
        let session = Session::open_plain(&stage.info).await;
        session
            .run(
                "SET default_transaction_read_only = on; SET default_transaction_isolation = serializable;
                 SET search_path = nowhere; SET TimeZone = 'Asia/Kathmandu'; SET DateStyle = 'German, DMY';
                 SET standard_conforming_strings = off; SET lock_timeout = '17s'; SET statement_timeout = '19s'",
            )
            .await;
        let settings = "SELECT array_agg(name || setting ORDER BY name) FROM pg_settings WHERE name ~ 'timeout|path|style|TimeZone|default_trans'";
        let before = session.ask(settings).await;
        let plan = stage.plan(LONG, true).await;
        let client = &session.connection.client;
        let results = execute(client, &SchemaName::default(), &plan, &order(), |_| {}).await;
        assert_eq!(outcomes(&plan, &results), ["gone recovered", "slow recovered"], "{version} {results:?}");
        assert_eq!(session.ask(settings).await, before, "{version}");
        assert_eq!(session.ask("SELECT xact_start = statement_timestamp() FROM pg_stat_activity WHERE pid = pg_backend_pid()").await, "t");
        assert_eq!(
            stage.admin.ask("SELECT DISTINCT reason FROM locktop_audit").await,
            "it's \\ gone",
            "{version}"
        );
        drop(worker);
    }
}
