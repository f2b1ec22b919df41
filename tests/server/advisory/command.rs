//! `locktop lock` and `locktop lead`.

use std::process::Child;

use locktop::locks::advisory::Mode;
use locktop::pg::conninfo::ConnInfo;
use rustix::process::{Pid, Signal, kill_process};

use super::observer::{Observer, is_free, take};
use super::support::{database, server, wait_until};
use crate::binary::{Left, finish, locktop, run_beside};

async fn place() -> (ConnInfo, String, Observer) {
    let server = server().await;
    let info = database(server).await;
    let target = format!("{} dbname={}", server.conninfo(), info.dbname());
    let observer = Observer::open(&info).await;
    (info, target, observer)
}

async fn left(arguments: &[&str]) -> Left {
    run_beside(locktop(arguments)).await
}

/// Started, and holding the lock.
async fn holding(arguments: &[&str], info: &ConnInfo) -> Child {
    let child = locktop(arguments).spawn().unwrap();
    wait_until("it to hold the lock", async || !is_free(info, "nightly").await).await;
    child
}

async fn end(child: Child) -> Left {
    tokio::task::spawn_blocking(|| finish(child, "locktop lock")).await.unwrap()
}

#[tokio::test]
async fn a_program_runs_under_the_lock_and_its_exit_status_is_passed_on() {
    let (info, target, _) = place().await;
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let left = left(&["lock", "nightly", &target, "--", "sh", "-c", script]).await;
        assert_eq!((left.status, left.err.as_str()), (Some(status), ""), "{script}");
        assert!(is_free(&info, "nightly").await);
    }
    let missing = left(&["lock", "nightly", &target, "--", "/nonexistent/program"]).await;
    assert_eq!(missing.status, Some(127), "{missing:?}");
    let unreachable = left(&["lock", "nightly", "host=/nowhere", "--", "true"]).await;
    assert_eq!(unreachable.status, Some(1), "{unreachable:?}");
    assert_eq!(left(&["lock", "nightly", &target]).await.status, Some(2));
}

#[tokio::test]
async fn a_lock_that_is_taken_is_status_75() {
    let (info, target, _) = place().await;
    let holder = take(&info, "nightly", Mode::Shared).await;
    for wait in ["0s", "50ms"] {
        let busy = left(&["lock", "--wait", wait, "nightly", &target, "--", "echo", "never"]).await;
        let expected = (Some(75), "", "locktop: nightly is taken\n");
        assert_eq!((busy.status, busy.out.as_str(), busy.err.as_str()), expected);
    }
    let shared = left(&["lock", "--shared", "--wait", "0s", "nightly", &target, "--", "true"]).await;
    assert_eq!(shared.status, Some(0), "{shared:?}");
    holder.release().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_shows_the_lock_name_and_a_lost_lock_ends_the_program() {
    let (info, target, observer) = place().await;
    let script = "trap 'echo terminated; exit 3' TERM; while :; do sleep 0.01; done";
    let child = holding(&["lock", "nightly", &target, "--", "sh", "-c", script], &info).await;
    let snapshot = left(&["snapshot", "--format", "json", &target]).await;
    let snapshot: serde_json::Value = serde_json::from_str(&snapshot.out).unwrap();
    let locks = snapshot["locks"].as_array().unwrap();
    assert!(locks.iter().any(|lock| lock["name"] == "nightly"), "{locks:#?}");
    let backends = snapshot["backends"].as_array().unwrap();
    assert!(backends.iter().any(|backend| backend["application"] == "locktop lock"), "{backends:#?}");
    observer
        .ask(
            "SELECT pg_terminate_backend(pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
          WHERE locktype = 'advisory' AND datname = current_database()",
        )
        .await;
    let lost = end(child).await;
    assert_eq!((lost.status, lost.out.as_str()), (Some(76), "terminated\n"), "{lost:?}");
    assert!(lost.err.starts_with("locktop: the lock is lost"), "{lost:?}");
}

#[tokio::test]
async fn a_signal_is_passed_on_to_the_program_and_ends_a_wait() {
    let (info, target, observer) = place().await;
    let script = "trap 'exit 5' TERM; while :; do sleep 0.01; done";
    let child = holding(&["lock", "nightly", &target, "--", "sh", "-c", script], &info).await;
    let waiter = locktop(&["lock", "nightly", &target, "--", "true"]).spawn().unwrap();
    let pid = observer.waiting().await;
    kill_process(Pid::from_child(&waiter), Signal::TERM).unwrap();
    assert_eq!(end(waiter).await.status, Some(143));
    observer.until_ended(pid).await;
    // The shell may not have set its trap yet.
    let mut child = child;
    wait_until("the program to end", async || {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        child.try_wait().unwrap().is_some()
    })
    .await;
    let status = end(child).await.status;
    assert!(matches!(status, Some(5 | 143)), "{status:?}");
    assert!(is_free(&info, "nightly").await);
}

#[tokio::test]
async fn a_lease_gives_its_token_to_the_program() {
    let (_, target, observer) = place().await;
    let script = ["--", "sh", "-c", "echo \"token $LOCKTOP_TOKEN\""];
    let lease = |name| [&["lock", "--lease", "2s", "--wait", "0s", name, &target], &script[..]].concat();
    let missing = left(&lease("7")).await;
    assert_eq!(missing.status, Some(1), "{missing:?}");
    assert!(missing.err.contains("locktop schema install"), "{missing:?}");
    assert_eq!(left(&["schema", "install", &target]).await.status, Some(0));
    let token = |left: &Left| -> i64 { left.out.trim().strip_prefix("token ").unwrap().parse().unwrap() };
    for (name, taken) in [("7", "lease_acquire(7"), ("nightly", "lease_acquire_named('nightly'")] {
        let first = left(&lease(name)).await;
        let second = left(&lease(name)).await;
        assert!(token(&second) > token(&first), "{first:?} {second:?}");
        let lead = left(&[&["lead", "--lease", "2s", name, &target], &script[..]].concat()).await;
        assert!(token(&lead) > token(&second), "{lead:?}");
        observer.ask(&format!("SELECT locktop.{taken}, 'somebody', interval '1 hour')")).await;
        assert_eq!(left(&lease(name)).await.status, Some(75), "{name}");
    }
    assert_eq!(left(&lease("3000000000")).await.status, Some(2));
    let snapshot = left(&["snapshot", "--format", "json", &target]).await;
    let snapshot: serde_json::Value = serde_json::from_str(&snapshot.out).unwrap();
    let leases = snapshot["leases"].as_array().unwrap();
    assert!(
        leases.iter().any(|lease| lease["name"] == "nightly" && lease["owner"] == "somebody"),
        "{leases:#?}"
    );
}

#[tokio::test]
async fn a_leader_is_replaced_when_killed_and_leads_again_after_a_loss() {
    let (info, target, observer) = place().await;
    let lead = |script| ["lead", "nightly", &target, "--", "sh", "-c", script];
    let first = holding(&lead("exec sleep 600"), &info).await;
    let second = locktop(&lead("exit 4")).spawn().unwrap();
    observer.waiting().await;
    // Its program outlives a leader that is killed: it no longer has a lock, nor a parent.
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", first.id())).unwrap();
    kill_process(Pid::from_child(&first), Signal::KILL).unwrap();
    for child in children.split_whitespace() {
        let _ = kill_process(Pid::from_raw(child.parse().unwrap()).unwrap(), Signal::KILL);
    }
    drop(end(first).await);
    assert_eq!(end(second).await.status, Some(4));
    assert!(is_free(&info, "nightly").await);

    // A leader that loses its lock waits for it again.
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("log");
    let script = format!("echo leads >> {}; while :; do sleep 0.01; done", file.display());
    let leads = async |times| {
        let log = || std::fs::read_to_string(&file).unwrap_or_default();
        wait_until("it to lead", async || log() == "leads\n".repeat(times)).await;
    };
    let child = locktop(&lead(&script)).spawn().unwrap();
    leads(1).await;
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
          WHERE locktype = 'advisory' AND datname = current_database()";
    assert_eq!(observer.ask(ended).await, "t");
    leads(2).await;
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(end(child).await.status, Some(143));
}
