//! Plan and execution, without the command line.

use locktop::model::plan::{Others, Reason, RecoveryOutcome, Selection, Step};

use super::stage::{Stage, outcomes};
use super::support::versions;

#[tokio::test]
async fn orphans_are_recovered_and_the_living_are_not() {
    for version in versions() {
        let stage = Stage::new(version).await;
        stage.orphan("gone").await;
        stage.orphan("last").await;
        stage.admin.run("UPDATE scheduled_tasks SET max_attempts = 1 WHERE task_name = 'last'").await;
        let alive = stage.run("alive").await;
        let slow = stage.slow("slow").await;
        let plan = stage.plan(Selection::Orphans, true).await;
        let names: Vec<&str> = plan.rows.iter().map(|row| row.seen.task_name.as_str()).collect();
        assert_eq!(names, ["gone", "last"], "{version}");
        assert_eq!(plan.others, Others { slow: 1, ..Others::default() });
        assert!(plan.rows.iter().all(|row| row.step == Step::Recover), "{plan:?}");
        assert_eq!(plan.rows[0].effect(plan.grace), "due again in 10s; attempt 1 of 3 failed");
        assert_eq!(
            plan.rows[1].effect(plan.grace),
            "failed for good after attempt 1 of 1; it is not run again"
        );
        assert_eq!(stage.audit().await, "", "a plan changes nothing");
        let results = stage.execute(&plan).await;
        assert_eq!(outcomes(&plan, &results), ["gone recovered", "last gave_up"], "{version} {results:?}");
        assert_eq!(stage.log("gone").await, "failed|test (role postgres)");
        let reason = "SELECT DISTINCT reason FROM locktop_audit";
        assert_eq!(stage.admin.ask(reason).await, "it's \\ gone");
        assert!(results[0].next_run_at.unwrap() > plan.taken_at && results[1].next_run_at.is_none());
        let again = stage.execute(&plan).await;
        assert_eq!(outcomes(&plan, &again), ["gone not_running", "last not_running"]);
        assert_eq!(stage.audit().await, "recovered|gone\ngave_up|last", "nothing twice");
        for worker in [&alive, &slow] {
            assert_eq!(worker.ask("SELECT 1").await, "1");
        }
        assert_eq!(stage.log("slow").await, "running|-");
    }
}

#[tokio::test]
async fn a_slow_holder_is_ended_when_that_was_asked_for() {
    for version in versions() {
        let stage = Stage::new(version).await;
        let worker = stage.slow("slow").await;
        let alive = stage.run("alive").await;
        let plan = stage.plan(Selection::Longer(Some(0.0)), false).await;
        let steps: Vec<Step> = plan.rows.iter().map(|row| row.step).collect();
        assert_eq!(steps, [Step::Leave(Reason::Held), Step::Leave(Reason::InTime)], "{version}");
        assert_eq!(outcomes(&plan, &stage.execute(&plan).await), ["slow left_alone", "alive left_alone"]);
        let plan = stage.plan(Selection::Longer(None), true).await;
        assert_eq!(plan.ended_pids(), [worker.pid]);
        let results = stage.execute(&plan).await;
        assert_eq!(outcomes(&plan, &results), ["slow recovered"], "{version} {results:?}");
        assert_eq!(results[0].ended_pid, Some(worker.pid));
        assert!(results[0].detail.starts_with(&format!("pid {} was terminated; key 55", worker.pid)));
        assert_eq!(stage.audit().await, "asked|slow\nrecovered|slow");
        assert!(
            worker.connection.client.simple_query("SELECT 1").await.is_err(),
            "its session was terminated"
        );
        assert_eq!(alive.ask("SELECT 1").await, "1");
        assert_eq!(stage.execute(&plan).await[0].outcome, RecoveryOutcome::NotRunning);
    }
}
