//! The end of a worker, and the state that it leaves.

use rustix::process::Signal;

use super::binary::{locktop, run_beside};
use super::db::{Session, installed};
use super::hand::{log, no_session_is_left, task};
use super::process::{Process, target};
use super::support::{server, versions, wait_until};

/// A worker with a task that runs.
async fn busy(version: u32, seconds: f64, more: &[&str]) -> (Session, Process) {
    let info = installed(version).await;
    let session = Session::open(&info).await;
    task(&session, "t", "sleep", &format!("'{{\"seconds\": {seconds}}}'")).await;
    let process = Process::start("w", more, &target(version, &info).await);
    runs(&session).await;
    (session, process)
}

async fn runs(session: &Session) {
    wait_until("the task to run", async || session.ask("SELECT state FROM running_tasks").await == "running")
        .await;
}

#[tokio::test]
async fn on_sigterm_running_tasks_are_finished_and_no_new_ones_start() {
    for version in versions() {
        let (session, process) = busy(version, 1.0, &[]).await;
        task(&session, "next", "sleep", "'{\"seconds\": 0}'").await;
        process.signal(Signal::TERM);
        let left = process.ended().await;
        assert_eq!((left.status, left.out.as_str()), (Some(0), ""), "{version}: {}", left.err);
        assert_eq!(log(&session).await, "w|completed|-", "and takes nothing new");
        // Time, level, and the rest.
        let lines: Vec<_> = left.err.lines().map(|line| line.split_once(' ').unwrap()).collect();
        assert!(lines.iter().all(|(time, _)| time.ends_with('Z') && time.len() == 24), "{lines:?}");
        let text = |index: usize| lines[index].1.strip_prefix("INFO  worker w: ").unwrap();
        assert!(text(0).starts_with("connected, served by process "), "{lines:?}");
        assert!(text(0).ends_with("; takes notify, sleep, sql"), "{lines:?}");
        assert_eq!(text(1), "started \"t\" (execution 1): task 1, type sleep, attempt 1 of 3");
        assert_eq!(text(2), "shutting down: no new work, 1 running");
        assert!(text(3).starts_with("completed \"t\" (execution 1) after "), "{lines:?}");
        assert_eq!(text(4), "ended: 1 completed, 0 failed, 0 stopped, 0 released, 0 not recorded");
        assert_eq!(lines.len(), 5);
        no_session_is_left(&session).await;
    }
}

#[tokio::test]
async fn after_its_grace_it_gives_the_task_back_and_another_takes_it_at_once() {
    for version in versions() {
        let (session, process) = busy(version, 600.0, &["--grace", "0.1s"]).await;
        let place = target(version, &session.info).await;
        let other = Process::start("other", &[], &place);
        other.wait_for("connected").await;
        process.signal(Signal::INT);
        let left = process.ended().await;
        assert_eq!(left.status, Some(0), "{version}: {}", left.err);
        assert!(left.err.contains("released \"t\" (execution 1)"), "{}", left.err);
        runs(&session).await;
        let rows = "SELECT worker_id, status, attempt, error_message FROM task_execution_log ORDER BY id";
        let given = "given back by worker w, which was shut down; it does not count as an attempt";
        assert_eq!(session.ask(rows).await, format!("w|failed|1|{given}\nother|running|1|-"));
        assert_eq!(session.ask("SELECT attempts FROM scheduled_tasks").await, "0");
    }
}

#[tokio::test]
async fn a_statement_ends_with_its_worker() {
    for version in versions() {
        for signal in [Signal::TERM, Signal::KILL] {
            let info = installed(version).await;
            let session = Session::open(&info).await;
            task(&session, "t", "sql", "'{\"statement\": \"SELECT pg_sleep(600) AS mark\"}'").await;
            let process = Process::start("w", &["--grace", "0s"], &target(version, &info).await);
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600) AS mark' AND state = 'active'";
            wait_until("the statement to run", async || session.ask(sql).await == "1").await;
            process.signal(signal);
            let left = process.ended().await;
            if signal == Signal::TERM {
                assert_eq!(left.status, Some(0), "{version}: {}", left.err);
                assert_eq!(session.ask(sql).await, "0", "it does not outlive the worker");
            }
            // Killed, the server finds out within a second.
            no_session_is_left(&session).await;
        }
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_and_the_lock_is_free() {
    for version in versions() {
        let (session, process) = busy(version, 600.0, &[]).await;
        process.signal(Signal::TERM);
        process.wait_for("shutting down").await;
        process.signal(Signal::TERM);
        let left = process.ended().await;
        assert_eq!(left.status, Some(1), "{version}");
        assert!(left.err.ends_with("locktop: killed by a second SIGTERM"), "{}", left.err);
        no_session_is_left(&session).await;
        assert_eq!(session.ask("SELECT state FROM running_tasks").await, "settling");
    }
}

#[tokio::test]
async fn killed_it_leaves_an_orphan_that_is_recovered_and_run_again() {
    for version in versions() {
        let (session, process) = busy(version, 600.0, &[]).await;
        session.run("UPDATE scheduled_tasks SET retry_delay = '0', payload = '{\"seconds\": 0}'").await;
        process.signal(Signal::KILL);
        process.ended().await;
        no_session_is_left(&session).await;
        session.run("SET locktop.orphan_grace = '0'").await;
        assert_eq!(session.ask("SELECT state FROM running_tasks").await, "orphan", "{version}");
        let other = Process::start("other", &[], &target(version, &session.info).await);
        other.wait_for("connected").await;
        session.run("CALL recover_orphans()").await;
        wait_until("another to run it", async || log(&session).await.ends_with("other|completed|-")).await;
        assert_eq!(session.ask("SELECT attempt FROM task_execution_log ORDER BY id").await, "1\n2");
    }
}

#[tokio::test]
async fn it_can_end_with_its_standard_input() {
    let version = server().await.version();
    let (session, mut process) = busy(version, 600.0, &["--exit-with-stdin"]).await;
    process.end_input();
    let left = process.ended().await;
    assert_eq!(left.status, Some(0), "{}", left.err);
    assert!(left.err.contains("released"), "at once: {}", left.err);
    no_session_is_left(&session).await;
    // Without the option its input is ignored.
    let (session, mut process) = busy(version, 1.0, &[]).await;
    process.end_input();
    wait_until("the task to end", async || log(&session).await == "w|completed|-").await;
    process.signal(Signal::TERM);
    assert_eq!(process.ended().await.status, Some(0));
}

#[tokio::test]
async fn a_worker_that_cannot_start_reports_why_in_one_line() {
    let info = installed(server().await.version()).await;
    let place = target(server().await.version(), &info).await;
    let session = Session::open(&info).await;
    session.run("CREATE SCHEMA other").await;
    session.run("CREATE ROLE stranger LOGIN").await;
    let stranger = place.replace("user=postgres", "user=stranger");
    for (arguments, target, status, expected) in [
        (&["--schema", "jobs"][..], &place, 1, "no schema \"jobs\" in the database"),
        (&["--schema", "other"], &place, 1, "was not created by locktop"),
        (&[], &stranger, 1, "permission denied"),
        (&[], &place.replace("dbname=", "dbname=x"), 1, "does not exist"),
        (&["--concurrency", "0"], &place, 2, "--concurrency"),
        (&["--allow-http"], &place, 2, "use the type \"command\" with --allow-commands"),
        (&["--types", "http"], &place, 2, "[\"curl\", \"-fsS\", "),
    ] {
        let mut line = vec!["-w", "worker", "--id", "w"];
        line.extend(arguments);
        line.push(target);
        let left = run_beside(locktop(&line)).await;
        assert_eq!((left.status, left.out.as_str()), (Some(status), ""), "{line:?} {}", left.err);
        assert!(left.err.contains(expected), "{line:?}: {}", left.err);
        assert!(status == 2 || left.err.lines().count() == 1, "{}", left.err);
    }
    let left = run_beside(locktop(&["worker", &place])).await;
    assert!(left.status == Some(2) && left.err.contains("--id"), "{}", left.err);
    session.run("DROP ROLE stranger").await;
}
