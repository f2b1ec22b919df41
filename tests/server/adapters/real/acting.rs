//! `R` and `U` on real systems, while a worker that was only stopped continues at that very moment and finishes.

use std::sync::Arc;
use std::time::Duration;

use locktop::model::Timestamp;
use locktop::model::adapter::JobState;
use locktop::model::lease::LeaseState;
use locktop::model::plan::{self, ActionPlan, Outcome, PlanContext, TargetKind, Verb};
use locktop::model::row_id::RowId;
use locktop::model::view::View;
use rustix::process::{Pid, Signal, kill_process};

use super::super::support;
use super::{System, Worker};
use crate::action::stage::{Hands, Notes, command};

/// Jobs of a race.
const JOBS: usize = 30;

/// Lets a worker continue as soon as `results` targets have a result.
fn wake_after(worker: &Worker, notes: &Notes, results: usize) -> std::thread::JoinHandle<()> {
    let (pid, notes) = (Pid::from_child(&worker.child), notes.clone());
    std::thread::spawn(move || {
        while notes.all().iter().filter(|line| line.starts_with("result")).count() < results {
            std::thread::sleep(Duration::from_micros(200));
        }
        kill_process(pid, Signal::CONT).unwrap();
    })
}

/// The plan of `R` for all jobs that are lost.
fn recovery(system: &System) -> ActionPlan {
    let view = system.stage.view();
    let context = PlanContext { view, rights: None, own_pids: &[], terminated: &[] };
    let lost = view.adapters.rows.iter().filter(|row| row.judged.state.is_lost());
    let plan = plan::rows(&context, Verb::Recover, &lost.map(|row| RowId::Job(row.id)).collect::<Vec<_>>());
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    plan
}

/// A worker has all jobs and is stopped until each of them would have ended; it continues when `woken_after` of them have been released.
async fn oban(woken_after: usize) -> (usize, usize) {
    const FILE: &str = "oban_work.py";
    let Some(mut system) = System::new("oban").await else { return (0, 0) };
    system.run(FILE, &["setup", &JOBS.to_string(), "4", "1"]);
    let first = system.start(FILE, &["work"]);
    let client = Arc::new(system.stage.client().await);
    let begun = "SELECT count(*) FROM runs";
    support::wait_until("all to run", async || {
        client.query_one(begun, &[]).await.unwrap().get::<_, i64>(0) == i64::try_from(JOBS).unwrap()
    })
    .await;
    first.signal(Signal::STOP);
    let _second = system.start(FILE, &["work"]);
    system.watched(Some(("silent_after", 3.0))).await;
    system.stage.poll_until("all to be lost", |view| view.adapters.count(JobState::Lost) == JOBS).await;
    let over = "SELECT max(begun_at) + interval '4 s' < now() FROM runs";
    support::wait_until("each to be at its end", async || client.query_one(over, &[]).await.unwrap().get(0))
        .await;
    let plan = recovery(&system);
    let words = &plan.rows[0].cautions[0].words;
    assert!(words.ends_with("its late finish is not accepted, and the job runs again"), "{words}");
    let mut hands = Hands::of(system.stage.info()).await;
    let targets: Vec<TargetKind> = plan.rows.iter().map(|row| row.target.what.clone()).collect();
    let waker = wake_after(&first, &hands.notes, woken_after);
    let report = hands.act(command(Verb::Recover, targets.clone())).await;
    waker.join().unwrap();
    let ended = "SELECT NOT EXISTS (SELECT FROM oban_jobs WHERE state <> 'completed') AND (SELECT bool_and(has_ended) FROM runs)";
    support::wait_until("all to end", async || client.query_one(ended, &[]).await.unwrap().get(0)).await;
    let mut done = 0;
    for (target, result) in targets.iter().zip(&report.results) {
        let TargetKind::Adapter(target) = target else { panic!("{target:?}") };
        let sql = "SELECT attempt::int8, (SELECT count(*) FROM runs WHERE job = id), (SELECT count(*) FROM runs WHERE job = id AND has_ended)
                     FROM oban_jobs WHERE id = $1::text::int8";
        let row = client.query_one(sql, &[&&*target.values.id]).await.unwrap();
        let counts: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
        // A job that was released runs once more, and its late finish is not accepted; another one ran once.
        let runs = match result.outcome {
            Outcome::Done => 2,
            Outcome::Changed => 1,
            _ => panic!("{result:?}"),
        };
        assert_eq!(counts, [runs; 3], "{result:?}");
        done += usize::from(result.outcome == Outcome::Done);
    }
    let rows: i64 = client.query_one("SELECT count(*) FROM oban_jobs", &[]).await.unwrap().get(0);
    assert_eq!(rows, i64::try_from(JOBS).unwrap(), "none is lost, and none is new");
    (done, JOBS - done)
}

#[tokio::test]
async fn oban_recovery_loses_no_job_if_the_stopped_worker_continues() {
    for woken_after in [0, 1, 5, 12, JOBS] {
        let (released, had_ended) = oban(woken_after).await;
        println!("woken after {woken_after}: {released} released, {had_ended} had ended");
    }
}

/// Ends the only lease, which must have been taken after the one before; returns when.
async fn unlock(system: &mut System, before: Option<Timestamp>) -> Option<Timestamp> {
    let taken = |view: &View| {
        let row = view.adapters.leases.iter().find(|row| row.state == LeaseState::Held)?;
        let (place, at) = row.place;
        view.snapshot.as_ref()?.adapters[place].leases.last_rows()[at].acquired_at
    };
    system
        .stage
        .poll_until("a lease to be held", |view| taken(view).is_some_and(|at| Some(at) > before))
        .await;
    let view = system.stage.view();
    let context = PlanContext { view, rights: None, own_pids: &[], terminated: &[] };
    let plan = plan::rows(&context, Verb::Unlock, &[RowId::OtherLease(view.adapters.leases[0].id)]);
    let words = &plan.rows[0].cautions[0].words;
    assert!(words.ends_with("and releases the lock of the next one at its end"), "{words}");
    let mut hands = Hands::of(system.stage.info()).await;
    let (outcome, detail) = hands.one(Verb::Unlock, plan.rows[0].target.what.clone()).await;
    assert_eq!(outcome, Outcome::Done, "{detail}");
    taken(system.stage.view())
}

/// Deployments that wait for an advisory lock in their second change.
#[tokio::test]
async fn liquibase_lock_of_a_killed_and_of_a_running_deployment_is_ended() {
    const FILE: &str = "liquibase.sql";
    const UPDATE: &[&str] = &["--changeLogFile=liquibase.sql", "update"];
    let Some(mut system) = System::new("liquibase").await else { return };
    let client = system.stage.client().await;
    client.batch_execute("SELECT pg_advisory_lock(7)").await.unwrap();
    let sessions = |sql: &'static str, number: i64| {
        let client = &client;
        async move || client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == number
    };
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted";
    let connected = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'PostgreSQL JDBC Driver'";
    let first = system.start(FILE, UPDATE);
    support::wait_until("the first to wait in its second change", sessions(waits, 1)).await;
    system.watched(None).await;
    first.kill();
    // Its session would end when it is granted the lock, or notices that its client has disconnected.
    client.batch_execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'PostgreSQL JDBC Driver' AND datname = current_database()").await.unwrap();
    support::wait_until("its session to end", sessions(connected, 0)).await;
    let second = system.start(FILE, UPDATE);
    support::wait_until("the second to ask for the lock", sessions(connected, 1)).await;
    let taken = unlock(&mut system, None).await;
    support::wait_until("the second to have it", sessions(waits, 1)).await;
    // And now the lock of a running deployment.
    unlock(&mut system, taken).await;
    let third = system.start(FILE, UPDATE);
    support::wait_until("the third to wait too", sessions(waits, 2)).await;
    client.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    support::wait_until("both to end", sessions(connected, 0)).await;
    let done = "SELECT string_agg(id, ' ' ORDER BY id) FROM databasechangelog";
    let done: String = client.query_one(done, &[]).await.unwrap().get(0);
    assert_eq!(done, "1 2 2 3", "{:?} {:?}", second.lines, third.lines);
    system
        .stage
        .poll_until("the lock to be free", |view| view.adapters.leases[0].state == LeaseState::Free)
        .await;
}
