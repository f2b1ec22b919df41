//! Recovery against every other operation on the same execution, held at every step of the one and then of the other.

use super::race::Stage;
use super::support::versions;

/// The steps at which a recovery can be held: it has the row; it has the key too; it has marked the
/// execution; and the task; all is written.
const RECOVERY: [&str; 5] = ["holders", "log", "task", "audit", "commit"];
/// A finish: nothing yet; it has the key for the transaction; it has marked the execution; all is written.
const FINISH: [&str; 4] = ["begin", "log", "task", "commit"];
/// An acquire: nothing yet (a fetch has the task's row); it has key and task; closes the old execution; has closed it; before the new
/// one; before the task; all is written.
const ACQUIRE: [&str; 6] = ["begin", "log", "audit", "insert", "task", "commit"];

/// The task of a stage is the only one.
const FETCH: &str = "SELECT count(*) = 1 FROM fetch_tasks('v')";
const ACQUIRE_ONE: &str = "SELECT try_acquire_task_lock(1, 'v')";

#[tokio::test]
async fn two_recoveries() {
    for version in versions() {
        for step in RECOVERY {
            let stage = Stage::orphaned(version).await;
            let recover = stage.recover();
            let (first, second, reached) =
                stage.race(step, (&stage.one, &recover), (&stage.two, &recover)).await;
            assert!(reached, "{version} {step}");
            assert_eq!(first, "recovered|-", "{version} {step}");
            assert_eq!(second, format!("locked|{}", stage.one.pid), "{version} {step}");
            assert_eq!(
                (stage.marks().await.as_str(), stage.plan().await.as_str()),
                ("1", "1|retry"),
                "{version} {step}"
            );
            assert_eq!(stage.two.ask(&recover).await, "not_running|-");
        }
    }
}

/// The worker has its key all the time: its finish counts whatever the recovery does.
#[tokio::test]
async fn a_recovery_and_the_finish_of_a_live_worker() {
    for version in versions() {
        for step in RECOVERY {
            let stage = Stage::new(version).await;
            let (recovered, finished, reached) =
                stage.race(step, (&stage.one, &stage.recover()), (&stage.worker, &stage.finish())).await;
            assert_eq!(
                reached,
                step == "holders",
                "{version} {step}: it gets no further than to check the holder of the key"
            );
            assert_eq!(
                (recovered, finished),
                (format!("held|{}", stage.worker.pid), "t".to_owned()),
                "{version} {step}"
            );
            completed(&stage, version, step).await;
        }
        for step in FINISH {
            let stage = Stage::new(version).await;
            let (finished, recovered, reached) =
                stage.race(step, (&stage.worker, &stage.finish()), (&stage.one, &stage.recover())).await;
            assert!(reached && finished == "t", "{version} {step}: {finished}");
            // Once the row has been written, the locked row is the reason.
            let outcome = if step == "begin" { "held" } else { "locked" };
            assert_eq!(recovered, format!("{outcome}|{}", stage.worker.pid), "{version} {step}");
            completed(&stage, version, step).await;
        }
    }
}

async fn completed(stage: &Stage, version: u32, step: &str) {
    assert_eq!(stage.mark().await, "completed|-", "{version} {step}");
    assert_eq!(
        (stage.marks().await.as_str(), stage.plan().await.as_str()),
        ("0", "0|schedule"),
        "{version} {step}"
    );
    assert_eq!(stage.one.ask(&stage.recover()).await, "not_running|-");
}

/// The worker's session lives and has lost its key: the first to mark the execution succeeds, and the other gets a refusal.
#[tokio::test]
async fn a_recovery_and_the_finish_of_a_worker_that_lost_its_key() {
    for version in versions() {
        for step in RECOVERY {
            let stage = Stage::orphaned(version).await;
            let (recovered, finished, reached) =
                stage.race(step, (&stage.one, &stage.recover()), (&stage.worker, &stage.finish())).await;
            assert!(reached, "{version} {step}");
            one_of_both(&stage, &recovered, &finished, version, step).await;
        }
        for step in FINISH {
            let stage = Stage::orphaned(version).await;
            let (finished, recovered, reached) =
                stage.race(step, (&stage.worker, &stage.finish()), (&stage.one, &stage.recover())).await;
            assert!(reached, "{version} {step}");
            one_of_both(&stage, &recovered, &finished, version, step).await;
        }
    }
}

async fn one_of_both(stage: &Stage, recovered: &str, finished: &str, version: u32, step: &str) {
    let found = (stage.mark().await, stage.marks().await, stage.plan().await);
    let found = (found.0.as_str(), found.1.as_str(), found.2.as_str());
    if finished == "t" {
        assert!(
            recovered.starts_with("held|") || recovered.starts_with("locked|"),
            "{version} {step}: {recovered}"
        );
        assert_eq!(found, ("completed|-", "0", "0|schedule"), "{version} {step}");
    } else {
        assert_eq!((recovered, finished), ("recovered|-", "f"), "{version} {step}");
        assert_eq!(found, ("failed|test", "1", "1|retry"), "{version} {step}");
    }
}

/// Either the recovery has the execution and the acquire gets nothing, or the other way round. Then the new execution completes, and
/// the task is not due again.
#[tokio::test]
async fn a_recovery_and_a_new_acquire() {
    for version in versions() {
        for step in RECOVERY {
            let stage = Stage::orphaned(version).await;
            let (recovered, acquired, reached) =
                stage.race(step, (&stage.one, &stage.recover()), (&stage.two, &stage.acquire())).await;
            assert!(reached, "{version} {step}");
            one_has_it(&stage, &recovered, &acquired, version, step).await;
        }
        for step in ACQUIRE {
            let stage = Stage::orphaned(version).await;
            let (acquired, recovered, reached) =
                stage.race(step, (&stage.two, &stage.acquire()), (&stage.one, &stage.recover())).await;
            assert!(reached, "{version} {step}");
            one_has_it(&stage, &recovered, &acquired, version, step).await;
        }
    }
}

/// The same for a fetch of any due task: it has locked the task's row before it tries for the key.
#[tokio::test]
async fn a_recovery_and_a_fetch() {
    for version in versions() {
        for step in RECOVERY {
            let stage = Stage::orphaned(version).await;
            stage.two.run("SET locktop.orphan_grace = '0'").await;
            let (recovered, fetched, reached) =
                stage.race(step, (&stage.one, &stage.recover()), (&stage.two, FETCH)).await;
            assert!(reached, "{version} {step}");
            one_has_it(&stage, &recovered, &fetched, version, step).await;
        }
        for step in ACQUIRE {
            let stage = Stage::orphaned(version).await;
            stage.two.run("SET locktop.orphan_grace = '0'").await;
            let (fetched, recovered, reached) =
                stage.race(step, (&stage.two, FETCH), (&stage.one, &stage.recover())).await;
            assert!(reached, "{version} {step}");
            one_has_it(&stage, &recovered, &fetched, version, step).await;
        }
    }
}

/// Two sessions that want the same task, by a fetch or by its id: one gets it, and the other gets a refusal at once or as soon as the
/// first is done.
#[tokio::test]
async fn one_of_two_sessions_acquires_a_task() {
    for version in versions() {
        for (held, free) in [(FETCH, FETCH), (FETCH, ACQUIRE_ONE), (ACQUIRE_ONE, FETCH)] {
            for step in ["begin", "insert", "task", "commit"] {
                let stage = Stage::new(version).await;
                assert_eq!(stage.worker.ask(&stage.finish()).await, "t");
                stage.watcher.run("UPDATE scheduled_tasks SET next_run_at = clock_timestamp()").await;
                let (first, second, reached) = stage.race(step, (&stage.one, held), (&stage.two, free)).await;
                assert!(reached, "{version} {step}");
                let taken = [first.as_str(), second.as_str()].into_iter().filter(|answer| *answer == "t");
                assert_eq!(taken.count(), 1, "{version} {step} {held}: {first} {second}");
                let log = "SELECT status, count(*) FROM task_execution_log GROUP BY 1 ORDER BY 1";
                assert_eq!(stage.watcher.ask(log).await, "completed|1\nrunning|1", "{version} {step}");
            }
        }
    }
}

/// A finish of a worker without heartbeats, and a fetch of any due task: it is not run again.
#[tokio::test]
async fn a_finish_and_a_fetch() {
    for version in versions() {
        for step in FINISH {
            let stage = Stage::new(version).await;
            stage.two.run("SET locktop.orphan_grace = '0'").await;
            let (finished, fetched, reached) =
                stage.race(step, (&stage.worker, &stage.finish()), (&stage.two, FETCH)).await;
            assert!(reached, "{version} {step}");
            assert_eq!((finished.as_str(), fetched.as_str()), ("t", "f"), "{version} {step}");
            completed(&stage, version, step).await;
        }
    }
}

async fn one_has_it(stage: &Stage, recovered: &str, acquired: &str, version: u32, step: &str) {
    assert_eq!(stage.marks().await, "1", "{version} {step}");
    if acquired == "t" {
        assert!(
            recovered.starts_with("held|") || recovered.starts_with("locked|"),
            "{version} {step}: {recovered}"
        );
        assert_eq!(
            (stage.mark().await.as_str(), stage.plan().await.as_str()),
            ("failed|v", "1|due"),
            "{version} {step}"
        );
        let finish = format!("SELECT try_release_task_lock({}, 'v', 'completed')", stage.task);
        assert_eq!(stage.two.ask(&finish).await, "t", "{version} {step}");
        assert_eq!(stage.one.ask(&stage.recover()).await, "not_running|-");
        assert_eq!(stage.plan().await, "0|schedule", "{version} {step}");
    } else {
        assert_eq!((recovered, acquired), ("recovered|-", "f"), "{version} {step}");
        assert_eq!(
            (stage.mark().await.as_str(), stage.plan().await.as_str()),
            ("failed|test", "1|retry"),
            "{version} {step}"
        );
        assert_eq!(
            stage
                .watcher
                .ask("SELECT count(*) FROM advisory_locks WHERE database = current_database()")
                .await,
            "0",
            "{version} {step}"
        );
    }
}

/// It was locked by its worker, which then showed a sign of life: the row that counts is the one that the recovery has locked itself.
#[tokio::test]
async fn a_sign_of_life_at_the_last_moment_is_seen() {
    const SEEN: &str = "bigint, text, text, boolean, text, timestamptz, int, timestamptz, timestamptz";
    for version in versions() {
        let stage = Stage::orphaned(version).await;
        stage
            .watcher
            .run(&format!(
                "ALTER FUNCTION locktop.recover_running({SEEN}) RENAME TO true_recover_running;
                 CREATE FUNCTION locktop.recover_running({SEEN})
                 RETURNS TABLE (execution_id bigint, task_id int, worker_id text, outcome text, holder_pid int, next_run_at timestamptz, detail text)
                 LANGUAGE plpgsql AS $$
                 BEGIN
                     PERFORM public.gate('recover');
                     RETURN QUERY SELECT * FROM locktop.true_recover_running($1, $2, $3, $4, $5, $6, $7, $8, $9);
                 END $$"
            ))
            .await;
        let seen = stage
            .watcher
            .ask(
                "SELECT format('SELECT outcome, detail LIKE ''it showed a sign of life at %%'' FROM recover_seen_execution(%s, %L, %L, %s, %L, %L, ''test'')',
                               id, worker_id, started_at, backend_pid, backend_start, heartbeat_at) FROM task_execution_log",
            )
            .await;
        stage.worker.run("BEGIN; SELECT FROM task_execution_log FOR UPDATE").await;
        let alive = "UPDATE task_execution_log SET heartbeat_at = clock_timestamp(); COMMIT";
        let (recovered, _, reached) =
            stage.race("recover", (&stage.one, &seen), (&stage.worker, alive)).await;
        assert!(reached, "{version}");
        assert_eq!(recovered, "changed|t", "{version}");
        assert_eq!((stage.mark().await.as_str(), stage.marks().await.as_str()), ("running|-", "0"));
    }
}

/// Between the list of candidates and the recovery another session ran the task and completed it.
#[tokio::test]
async fn a_task_completed_since_its_orphan_was_listed_is_left_alone() {
    for version in versions() {
        let stage = Stage::orphaned(version).await;
        stage.one.run("SET locktop.orphan_grace = '0'").await;
        assert_eq!(
            stage.one.ask("SELECT execution_id, state FROM recovery_candidates()").await,
            format!("{}|orphan", stage.execution)
        );
        assert_eq!(stage.two.ask(&stage.acquire()).await, "t", "{version}");
        assert_eq!(
            stage.two.ask(&format!("SELECT try_release_task_lock({}, 'v', 'completed')", stage.task)).await,
            "t"
        );
        assert_eq!(stage.one.ask(&stage.recover()).await, "not_running|-");
        assert_eq!(stage.plan().await, "0|schedule", "{version}");
        drop(stage.info);
    }
}
