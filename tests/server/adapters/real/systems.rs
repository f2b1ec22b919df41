//! Each of them: a worker is killed, another one stopped.

use locktop::model::adapter::{JobState, WorkerState};
use locktop::model::view::View;
use rustix::process::Signal;

use super::super::support;
use super::System;

#[tokio::test]
async fn procrastinate() {
    const FILE: &str = "procrastinate_work.py";
    let Some(mut system) = System::new("procrastinate").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(Some(("stalled_after", 5.0))).await;
    system.reported("Hang", "running", "heartbeat").await;
    system.reported("Wait", "blocked", "none").await;
    first.kill();
    let lost = system.reported("Hang", "lost", "heartbeat").await;
    assert!(lost.comes_back.unwrap().starts_with("never automatic"));
    system.reported("Wait", "blocked", "none").await;
    // Another worker deletes the row of the first when it starts, and leaves its job as it is.
    let second = system.start(FILE, &["work"]);
    let lost = system.reported("Hang", "lost", "absent").await;
    system.run(FILE, &["type", &lost.advice.unwrap()]);
    system.reported("Hang", "running", "heartbeat").await;
    second.signal(Signal::STOP);
    system.reported("Hang", "lost", "heartbeat").await;
    second.signal(Signal::CONT);
    let row = system.reported("Hang", "running", "heartbeat").await;
    assert!(row.job.started_at.is_some() && row.worker.is_some(), "{row:?}");
}

#[tokio::test]
async fn chancy() {
    const FILE: &str = "chancy_work.py";
    const JOB: &str = "__main__.hang";
    let Some(mut system) = System::new("chancy").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(None).await;
    let row = system.reported(JOB, "running", "heartbeat").await;
    assert_eq!((row.job.attempt, row.job.max_attempts), (Some(1), Some(1)));
    assert_eq!(system.sessions(), Some(1), "it listens");
    first.kill();
    let lost = system.reported(JOB, "lost", "heartbeat").await;
    assert!(lost.comes_back.unwrap().starts_with("automatic: the leader's Recovery"));
    assert_eq!(system.sessions(), None, "one without notifications would not have any");
    // Another worker that starts soon leads, and gives the job one more attempt.
    let second = system.work(FILE, &["work"]).await;
    let row = system.reported(JOB, "running", "heartbeat").await;
    assert_eq!(row.job.max_attempts, Some(2));
    second.signal(Signal::STOP);
    system.reported(JOB, "lost", "heartbeat").await;
    assert_eq!(system.sessions(), Some(1), "the session of a stopped worker stays");
}

#[tokio::test]
async fn pgqueuer() {
    const FILE: &str = "pgqueuer_work.py";
    let Some(mut system) = System::new("pgqueuer").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(Some(("heartbeat_timeout", 6.0))).await;
    let row = system.reported("Hang", "running", "heartbeat").await;
    let name = row.worker.unwrap();
    assert_eq!(system.stage.json()["adapters"][0]["schedules"][0]["name"], "nightly");
    first.kill();
    let lost = system.reported("Hang", "lost", "heartbeat").await;
    assert!(lost.comes_back.unwrap().starts_with("automatic: any worker of its entrypoint"));
    let second = system.work(FILE, &["work"]).await;
    let row = system.reported("Hang", "running", "heartbeat").await;
    assert_ne!(row.worker.unwrap(), name, "another worker has it");
    second.signal(Signal::STOP);
    system.reported("Hang", "lost", "heartbeat").await;
    second.signal(Signal::CONT);
    system.reported("Hang", "running", "heartbeat").await;
}

/// The session holds its lock: a killed worker has lost it, a stopped one still holds it.
#[tokio::test]
async fn dramatiq_pg() {
    const FILE: &str = "dramatiq_work.py";
    let Some(mut system) = System::new("dramatiq_pg").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(None).await;
    let row = system.reported("Hang", "running", "lock").await;
    assert!(row.judged.pid.is_some(), "{row:?}");
    first.signal(Signal::STOP);
    system.still_reported("Hang", "running", "lock").await;
    first.kill();
    let lost = system.orphaned("Hang").await;
    assert!(lost.comes_back.unwrap().starts_with("automatic: a worker of its queue that starts"));
    let second = system.work(FILE, &["work"]).await;
    system
        .stage
        .poll_until("another one to have it", |view| {
            view.adapters.rows.iter().any(|row| row.judged.state.as_str() == "running")
        })
        .await;
    second.kill();
}

#[tokio::test]
async fn apscheduler() {
    const FILE: &str = "apscheduler_work.py";
    const JOB: &str = "__main__:hang";
    let Some(mut system) = System::new("apscheduler").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(None).await;
    system.reported(JOB, "running", "lease").await;
    first.signal(Signal::STOP);
    system.reported(JOB, "lost", "lease").await;
    first.signal(Signal::CONT);
    system.reported(JOB, "running", "lease").await;
    first.kill();
    let lost = system.reported(JOB, "lost", "lease").await;
    assert!(lost.comes_back.unwrap().starts_with("not run again"));
    // The next worker deletes it when it starts.
    let _second = system.start(FILE, &["work"]);
    system.stage.poll_until("the job to be deleted", |view| view.adapters.rows.is_empty()).await;
}

#[tokio::test]
async fn oban() {
    const FILE: &str = "oban_work.py";
    const JOB: &str = "__main__.Hang";
    let Some(mut system) = System::new("oban").await else { return };
    system.run(FILE, &["setup", "1", "3600", "2"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(Some(("silent_after", 3.0))).await;
    let row = system.reported(JOB, "running", "heartbeat").await;
    assert_eq!((row.job.attempt, row.job.max_attempts), (Some(1), Some(5)));
    let one = system.stage.json()["adapters"][0].clone();
    assert_eq!((&one["version"], &one["leases"][0]["held"]), (&"Python".into(), &true.into()));
    first.kill();
    let lost = system.reported(JOB, "lost", "heartbeat").await;
    assert!(lost.comes_back.unwrap().starts_with("when the leader rescues"));
    // Another worker that starts soon leads, and deletes the row of the first.
    let second = system.start(FILE, &["work"]);
    let lost = system.reported(JOB, "lost", "absent").await;
    system.stage.client().await.batch_execute(&lost.advice.unwrap()).await.unwrap();
    let row = system.reported(JOB, "running", "heartbeat").await;
    assert_eq!(row.job.attempt, Some(2));
    second.signal(Signal::STOP);
    system.reported(JOB, "lost", "heartbeat").await;
    second.signal(Signal::CONT);
    system.reported(JOB, "running", "heartbeat").await;
}

#[tokio::test]
async fn pg_boss() {
    const FILE: &str = "pg_boss.mjs";
    let Some(mut system) = System::new("pg_boss").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    first.kill();
    system.watched(None).await;
    // Its timeout is ten seconds, and before that the end of the worker cannot be detected.
    system.reported("mail", "running", "lease").await;
    let lost = system.reported("mail", "lost", "lease").await;
    assert!(lost.comes_back.unwrap().starts_with("as failed, when any instance runs its maintenance"));
    assert_eq!((lost.job.attempt, lost.job.max_attempts), (Some(1), Some(2)));
    let supervisor = system.start(FILE, &["supervise"]);
    system.reported("mail", "retry", "none").await;
    supervisor.kill();
    let second = system.work(FILE, &["work"]).await;
    second.signal(Signal::STOP);
    let lost = system.reported("mail", "lost", "lease").await;
    assert_eq!(lost.job.attempt, Some(2));
    system.run(FILE, &["type", &lost.advice.unwrap()]);
    system.reported("mail", "failed", "none").await;
}

/// A queue may let one job of a key run at a time: a job that waits behind a lost one is reported, and can
/// run when the lost one is failed by hand.
#[tokio::test]
async fn pg_boss_12() {
    const FILE: &str = "pg_boss_12.mjs";
    let Some(mut system) = System::new("pg_boss_12").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(None).await;
    system.reported("mail", "running", "lease").await;
    assert_eq!(system.stage.json()["adapters"][0]["version"], "schema 46");
    let keeps = |view: &View| {
        let mut findings = view.findings.iter().filter(|finding| finding.check == "adapter_key");
        findings.any(|finding| finding.summary.ends_with("keeps key mail k: 1 listed job waits for it"))
    };
    assert!(!keeps(system.stage.view()), "its worker is alive");
    first.signal(Signal::STOP);
    let lost = system.reported("mail", "lost", "lease").await;
    system.stage.poll_until("the job behind it to be reported", keeps).await;
    first.kill();
    system.run(FILE, &["type", &lost.advice.unwrap()]);
    system.stage.poll_until("its key to be free", |view| !keeps(view)).await;
    system.work(FILE, &["work"]).await.kill();
    system.reported("mail", "running", "lease").await;
}

/// In a queue without heartbeats the timeout of a job is 15 min: its instance is silent long before, and its
/// sessions prove more.
#[tokio::test]
async fn pg_boss_12_with_the_time_that_a_queue_has_by_default() {
    const FILE: &str = "pg_boss_12.mjs";
    let Some(mut system) = System::new("pg_boss_12").await else { return };
    system.run(FILE, &["setup-default"]);
    system.watched(None).await;
    for (signal, state, sessions) in
        [(Signal::KILL, WorkerState::Gone, Some(0)), (Signal::STOP, WorkerState::Silent, Some(1))]
    {
        let worker = system.work(FILE, &["work", "1"]).await;
        system.reported("mail", "running", "lease").await;
        worker.signal(signal);
        // Three beats of a second each.
        let lost = system.reported("mail", "lost", "heartbeat").await;
        assert!(lost.comes_back.unwrap().starts_with("as failed, when its time"));
        assert!(
            lost.sessions == sessions || lost.sessions > Some(0) && sessions > Some(0),
            "{:?}",
            lost.sessions
        );
        let is_so = |view: &View| view.adapters.workers.iter().any(|row| row.state == state);
        system.stage.poll_until("its instance to be in that state", is_so).await;
        system.run(FILE, &["type", &lost.advice.unwrap()]);
        system
            .stage
            .poll_until("the job to be failed", |view| view.adapters.count(JobState::Lost) == 0)
            .await;
        system.run(FILE, &["clear"]);
    }
}

#[tokio::test]
async fn graphile_worker() {
    const FILE: &str = "graphile_worker.mjs";
    let Some(mut system) = System::new("graphile_worker").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(None).await;
    system.reported("Hang", "unknown", "none").await;
    first.kill();
    let session = system.stage.client().await;
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name NOT LIKE 'locktop%' AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'";
    support::wait_until("the sessions of the worker to end", async || {
        session.query_one(sessions, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    // Its name appears nowhere else; but each worker keeps a session that listens, and no such session
    // exists.
    let row = system.reported("Hang", "lost", "presence").await;
    assert_eq!(row.sessions, Some(0));
    let wait = system.reported("Wait", "blocked", "none").await;
    let name = row.worker.clone().unwrap();
    assert_eq!(wait.job.blocked_by.as_deref(), Some(&*format!("its queue, which {name} has locked")));
    let leases = system.stage.json()["adapters"][0]["leases"].clone();
    assert_eq!((&leases[0]["id"], &leases[0]["owner"]), (&"queue serial".into(), &(*name).into()));
    // Its four hours are fixed.
    session
        .batch_execute(
            "UPDATE graphile_worker._private_jobs SET locked_at = locked_at - interval '5 h' WHERE locked_at IS NOT NULL;
             UPDATE graphile_worker._private_job_queues SET locked_at = locked_at - interval '5 h' WHERE locked_at IS NOT NULL",
        )
        .await
        .unwrap();
    let late = system.reported("Hang", "lost", "presence").await;
    assert!(late.comes_back.unwrap().starts_with("automatic, 4 h after"));
    session.batch_execute(&late.advice.unwrap()).await.unwrap();
    system.reported("Hang", "retry", "none").await;
    system.reported("Wait", "due", "none").await;
    let second = system.work(FILE, &["work"]).await;
    second.signal(Signal::STOP);
    system.still_reported("Hang", "unknown", "none").await;
    assert_eq!(system.sessions(), Some(1), "the session of a stopped worker stays");
}

#[tokio::test]
async fn dbos() {
    const FILE: &str = "dbos_work.py";
    let Some(mut system) = System::new("dbos").await else { return };
    let first = system.work(FILE, &["work"]).await;
    system.watched(None).await;
    let row = system.reported("Hang", "unknown", "none").await;
    assert_eq!((row.worker.as_deref(), row.job.attempt), (Some("local"), Some(1)));
    let leases = system.stage.json()["adapters"][0]["leases"].clone();
    assert_eq!(leases[0]["id"], "background jobs of locktop-test");
    system
        .stage
        .poll_until("its lock to have its name", |view| {
            view.adapters.leases.iter().any(|lease| lease.owner_pid.is_some())
        })
        .await;
    first.kill();
    let lost = system.reported("Hang", "lost", "presence").await;
    assert!(lost.comes_back.unwrap().starts_with("when an executor of its name"));
    // One of the same name and version takes it over as it starts.
    let second = system.work(FILE, &["work"]).await;
    system
        .stage
        .poll_until("the second attempt", |view| {
            view.adapters.rows.iter().any(|row| row.job.attempt == Some(2))
        })
        .await;
    second.signal(Signal::STOP);
    system.still_reported("Hang", "unknown", "none").await;
    assert!(system.sessions() > Some(0), "the sessions of a stopped worker stay");
}

#[tokio::test]
async fn delayed_job() {
    const FILE: &str = "delayed_job.rb";
    let Some(mut system) = System::new("delayed_job").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    first.kill();
    system.watched(Some(("max_run_time", 10.0))).await;
    system.reported("Hang", "running", "lease").await;
    let lost = system.reported("Hang", "lost", "lease").await;
    assert!(lost.comes_back.unwrap().starts_with("when a worker next polls"));
    system.run(FILE, &["type", &lost.advice.unwrap()]);
    system.reported("Hang", "due", "none").await;
    let second = system.work(FILE, &["work"]).await;
    second.signal(Signal::STOP);
    system.reported("Hang", "lost", "lease").await;
    // A third worker takes it automatically.
    system.work(FILE, &["work"]).await;
}

#[tokio::test]
async fn quartz() {
    const FILE: &str = "QuartzWork.java";
    const JOB: &str = "DEFAULT.Hang";
    let Some(mut system) = System::new("quartz").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["one"]).await;
    system.watched(None).await;
    let row = system.reported(JOB, "running", "heartbeat").await;
    assert_eq!((row.worker.as_deref(), row.job.note.as_deref()), (Some("one"), Some("requests recovery")));
    first.kill();
    // It checks in every second, and is considered ended 7.5 s after a missed check-in.
    system.reported(JOB, "lost", "heartbeat").await;
    let second = system.work(FILE, &["two"]).await;
    let row = system.reported(JOB, "running", "heartbeat").await;
    assert_eq!(row.worker.as_deref(), Some("two"), "it is run again, as it requested");
    second.signal(Signal::STOP);
    system.reported(JOB, "lost", "heartbeat").await;
    second.signal(Signal::CONT);
    system.reported(JOB, "running", "heartbeat").await;
}

#[tokio::test]
async fn absurd() {
    const FILE: &str = "absurd_work.py";
    let Some(mut system) = System::new("absurd").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    first.kill();
    system.watched(None).await;
    system.reported("Hang", "running", "lease").await;
    let lost = system.reported("Hang", "lost", "lease").await;
    assert!(lost.comes_back.unwrap().starts_with("as failed, when any worker of its queue"));
    system.stage.client().await.batch_execute(&lost.advice.unwrap()).await.unwrap();
    let again = system.reported("Hang", "retry", "none").await;
    assert_eq!(again.job.attempt, Some(2));
    let second = system.work(FILE, &["work"]).await;
    second.signal(Signal::STOP);
    system.reported("Hang", "lost", "lease").await;
    // A third worker fails that run automatically, and takes the next.
    let _third = system.work(FILE, &["work"]).await;
    system
        .stage
        .poll_until("the third attempt", |view| {
            view.adapters.rows.iter().any(|row| row.job.attempt == Some(3))
        })
        .await;
}

#[tokio::test]
async fn pgmq() {
    const FILE: &str = "pgmq_work.py";
    let Some(mut system) = System::new("pgmq").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work", "6"]).await;
    system.watched(None).await;
    let row = system.reported("mail", "running", "lease").await;
    assert!(row.job.attempt == Some(1) && row.job.started_at.is_some(), "{row:?}");
    first.kill();
    // It becomes visible again automatically when its timeout ends; no worker is needed for that.
    let row = system.reported("mail", "retry", "none").await;
    assert_eq!(row.job.attempt, Some(1));
    let second = system.work(FILE, &["finish", "3", "1"]).await;
    second.signal(Signal::STOP);
    system.reported("mail", "running", "lease").await;
    system.reported("mail", "retry", "none").await;
    // A third worker has it when the second one continues, whose late end deletes the message of both.
    let _third = system.work(FILE, &["work", "60"]).await;
    let row = system.reported("mail", "running", "lease").await;
    assert_eq!(row.job.attempt, Some(3));
    second.signal(Signal::CONT);
    system.stage.poll_until("the message to be deleted", |view| view.adapters.rows.is_empty()).await;
    let lines = || second.lines.lock().unwrap().clone();
    support::wait_until("it to be done", async || lines().contains(&"deleted".to_owned())).await;
}

#[tokio::test]
async fn django_tasks() {
    const FILE: &str = "django_tasks_work.py";
    const TASK: &str = "__main__.hang";
    let Some(mut system) = System::new("django_tasks").await else { return };
    system.run(FILE, &["setup", "3600"]);
    system.watched(None).await;
    system.reported(TASK, "due", "none").await;
    let first = system.work(FILE, &["work"]).await;
    let row = system.reported(TASK, "unknown", "none").await;
    assert_eq!(row.worker.as_deref().map(str::len), Some(32), "{row:?}");
    first.signal(Signal::STOP);
    system.still_reported(TASK, "unknown", "none").await;
    first.kill();
    // Another worker does not take it.
    let second = system.start(FILE, &["work"]);
    let row = system.still_reported(TASK, "unknown", "none").await;
    assert_eq!((row.job.attempt, row.job.note.as_deref()), (Some(1), Some("never returned automatically")));
    second.kill();
}
