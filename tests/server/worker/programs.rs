//! Tasks that are programs and notifications.

use std::path::Path;

use rustix::process::Signal;

use super::db::{Session, installed};
use super::hand::{ended, log, task};
use super::process::{Process, target};
use super::queue::item;
use super::support::{server, wait_until};

const ALLOWED: [&str; 3] = ["--allow-commands", "--concurrency", "8"];

/// A payload that runs a script of a shell.
fn script(text: &str) -> String {
    format!("'{}'", serde_json::json!({"argv": ["sh", "-c", text]}).to_string().replace('\'', "''"))
}

#[tokio::test]
async fn each_task_type_runs_its_payload() {
    let version = server().await.version();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    let mut heard = locktop::pg::connect::listen(&info).await.unwrap();
    heard.client.batch_execute("LISTEN jobs").await.unwrap();
    session.run("ALTER TABLE scheduled_tasks ALTER max_attempts SET DEFAULT 1").await;
    let worker = Process::start("w", &ALLOWED, &target(version, &info).await);
    worker.wait_for("connected").await;
    for (kind, payload, outcome) in [
        ("command", &*script("echo done; exit 0"), "w|completed|-"),
        ("command", &*script("echo one; echo two; exit 3"), "w|failed|exit status 3: one\ntwo"),
        ("notify", "'{\"channel\": \"jobs\", \"payload\": {\"n\": 1}}'", "w|completed|-"),
    ] {
        let before = session.ask("SELECT count(*) FROM task_execution_log").await.parse::<usize>().unwrap();
        task(&session, &format!("t{before}"), kind, payload).await;
        ended(&session, before + 1).await;
        assert!(log(&session).await.ends_with(outcome), "{kind} {payload}: {}", log(&session).await);
    }
    worker.wait_for("\"t0\" (execution 1) reported: done").await;
    let notification = heard.notifications.recv().await;
    assert!(format!("{notification:?}").contains("{\\\"n\\\":1}"), "{notification:?}");
    item(&session, "command", &script("exit 1")).await;
    worker.wait_for("failed \"command\" (item 1) after").await;
}

/// Starts a program that writes its process id to a file, and does not end; returns the id.
async fn runs(session: &Session, directory: &Path) -> u32 {
    let file = directory.join("pid");
    let text = format!("trap '' TERM; echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", file.display());
    task(session, "long", "command", &script(&text)).await;
    let mut pid = None;
    wait_until("the program to run", async || {
        pid = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        pid.is_some()
    })
    .await;
    pid.unwrap()
}

/// Whether a process exists, and is not a zombie.
fn is_running(pid: u32) -> bool {
    let state =
        std::process::Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().unwrap();
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// A program is asked to stop when its lock is lost, and is killed if it does not; and it does not outlive its worker, however that ends.
#[tokio::test]
async fn a_program_ends_with_the_lock_and_with_the_worker() {
    let version = server().await.version();
    for ends in ["the session", "SIGKILL", "a shut-down"] {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let directory = tempfile::tempdir().unwrap();
        let options = ["--allow-commands", "--grace", "0s"];
        let worker = Process::start("w", &options, &target(version, &info).await);
        let pid = runs(&session, directory.path()).await;
        assert!(is_running(pid));
        // It is not begun again by the same worker.
        session.run("UPDATE scheduled_tasks SET is_enabled = false").await;
        match ends {
            "the session" => {
                session.run("SELECT pg_terminate_backend(holder_pid) FROM running_tasks").await;
            }
            "SIGKILL" => worker.signal(Signal::KILL),
            _ => worker.signal(Signal::TERM),
        }
        wait_until(&format!("its end with {ends}"), async || !is_running(pid)).await;
        if ends == "a shut-down" {
            let left = worker.ended().await;
            assert_eq!(left.status, Some(0), "{}", left.err);
            assert!(left.err.contains("released \"long\""), "{}", left.err);
        }
    }
}
