//! The log of a worker on standard error, and its messages to systemd.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::binary::locktop;
use super::db::{Session, installed};
use super::hand::{ended, task};
use super::process::{Process, target};
use super::support::server;

/// A task that completes, one that fails and is to be tried again, one that fails for good; its text is hostile.
async fn stage() -> (Session, String) {
    let version = server().await.version();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    session.run("BEGIN").await;
    task(&session, "good", "sleep", "'{\"seconds\": 0}'").await;
    task(&session, "again", "sql", "'{\"statement\": \"SELECT 1/0\"}'").await;
    task(&session, "bad\u{1b}[2J\nx", "sql", "'{\"statement\": \"SELECT ''a\\u001b[2J\\nb''::int\"}'").await;
    session.run("UPDATE scheduled_tasks SET max_attempts = 1 WHERE id = 3; COMMIT").await;
    (session, target(version, &info).await)
}

#[tokio::test]
async fn each_start_and_end_is_an_object_for_programs() {
    let (session, place) = stage().await;
    let worker = Process::start("w", &["--log-format", "json"], &place);
    ended(&session, 3).await;
    worker.signal(Signal::TERM);
    let left = worker.ended().await;
    assert_eq!((left.status, left.out.as_str()), (Some(0), ""), "{}", left.err);
    assert!(!left.err.contains(|c: char| c.is_control() && c != '\n'), "{:?}", left.err);
    let lines: Vec<Value> = left.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<String> = lines
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
            assert_eq!(text("worker"), "w");
            format!("{} {} {}", text("level"), text("event"), line["task_id"])
        })
        .collect();
    let expected = [
        "info connected null",
        "info started 1",
        "info completed 1",
        "info started 2",
        "warn failed 2",
        "info started 3",
        "error failed 3",
        "info shutting_down null",
        "info ended null",
    ];
    assert_eq!(events, expected);
    assert!(lines[2]["seconds"].as_f64().unwrap() < 30.0 && lines[2]["execution_id"] == 1);
    assert_eq!((&lines[4]["again"], &lines[6]["again"]), (&true.into(), &false.into()));
    assert_eq!(lines[4]["error"], "division by zero (SQLSTATE 22012)");
}

#[tokio::test]
async fn with_quiet_only_warnings_and_errors_are_logged() {
    let (session, place) = stage().await;
    let worker = Process::start("w", &["--quiet"], &place);
    ended(&session, 3).await;
    worker.signal(Signal::TERM);
    let left = worker.ended().await;
    assert!(!left.err.contains(|c: char| c.is_control() && c != '\n'), "{:?}", left.err);
    let levels: Vec<_> = left.err.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(levels, ["WARN", "ERROR"], "{}", left.err);
}

#[tokio::test]
async fn systemd_is_notified_of_readiness_liveness_and_shutdown() {
    let version = server().await.version();
    let info = installed(version).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let ear = UnixDatagram::bind(&path).unwrap();
    ear.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut command = locktop(&["-w", "worker", "--id", "w", &target(version, &info).await]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000");
    let worker = Process::of(command);
    let hear = move |word: &'static str| {
        let ear = ear.try_clone().unwrap();
        tokio::task::spawn_blocking(move || {
            let mut heard = [0; 1000];
            loop {
                let count = ear.recv(&mut heard).unwrap();
                if String::from_utf8_lossy(&heard[..count]).lines().any(|line| line == word) {
                    return;
                }
            }
        })
    };
    hear("READY=1").await.unwrap();
    hear("WATCHDOG=1").await.unwrap();
    hear("WATCHDOG=1").await.unwrap();
    worker.signal(Signal::TERM);
    hear("STOPPING=1").await.unwrap();
    assert_eq!(worker.ended().await.status, Some(0));
}
