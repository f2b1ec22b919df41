//! `locktop check`: its exit status and its output, on real servers with problems.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options};
use rustix::process::{Pid, Signal, kill_process};

use super::binary::{Left, locktop, run_beside};
use super::support::{conninfo, open, wait_until};

async fn check(target: &str, arguments: &[&str]) -> Left {
    run_beside(locktop(&[&["check", target], arguments].concat())).await
}

/// Exit status and output agree, on standard output alone.
fn reports(left: &Left, status: i32, first: &str) {
    let words = ["OK", "WARNING", "CRITICAL", "UNKNOWN"][usize::try_from(status).unwrap()];
    assert_eq!((left.status, left.err.as_str()), (Some(status), ""), "{}", left.out);
    let line = left.out.split(['\n', '|']).next().unwrap_or_default();
    assert!(line.starts_with(&format!("LOCKTOP {words} - ")) && line.len() <= 141, "{}", left.out);
    assert!(line.contains(first), "{first}: {}", left.out);
}

#[tokio::test]
async fn waiting_sessions_are_reported_until_the_lock_is_released() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let target = server.conninfo();
    reports(&check(&target, &[]).await, 0, "checks");
    let idle = open(&conninfo(&server)).await.client;
    idle.batch_execute("CREATE TABLE accounts (id int); SET application_name = 'billing'").await.unwrap();
    idle.batch_execute("BEGIN; LOCK TABLE accounts").await.unwrap();
    let mut waiters = Vec::new();
    for _ in 0..3 {
        let client = open(&conninfo(&server)).await.client;
        waiters.push(tokio::spawn(async move { client.batch_execute("TABLE accounts").await }));
    }
    let observer = open(&conninfo(&server)).await.client;
    wait_until("three to wait", async || {
        let sql = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        observer.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 3
    })
    .await;

    reports(&check(&target, &["--only", "waiting"]).await, 0, "1 check");
    // The blocker is named, whichever check reports it.
    reports(&check(&target, &["--only", "waiting,worst_root", "-w", "waiting=2"]).await, 1, "blocks 3: ");
    reports(&check(&target, &["-w", "worst_root=2"]).await, 1, "idle in xact");
    let left =
        check(&target, &["-w", "waiting=2", "-c", "worst_root=~:2", "--looks", "2", "--every", "1s"]).await;
    reports(&left, 2, "blocks 3");
    assert!(left.out.contains("[CRITICAL] worst_root 3 > 2: "), "{}", left.out);
    assert!(
        left.out.contains("[WARNING] waiting 3 > 2") && left.out.contains("worst_root=3;3;~:2;0"),
        "{}",
        left.out
    );
    assert!(left.out.contains("blocked_seconds=3s;;;0"), "{}", left.out);
    let json = check(&target, &["--format", "json", "-c", "waiting=0"]).await;
    let document: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json.status, document["status"].as_str()), (Some(2), Some("CRITICAL")));
    let metrics = check(&target, &["--format", "openmetrics"]).await;
    assert!(metrics.out.contains("} 3\n") && metrics.out.ends_with("# EOF\n"), "{}", metrics.out);

    // If the role cannot see the sessions, the check is UNKNOWN.
    observer.batch_execute("CREATE ROLE nobody_much LOGIN").await.unwrap();
    let restricted = target.replace("user=postgres", "user=nobody_much");
    let left = check(&restricted, &["--only", "forgotten"]).await;
    reports(&left, 3, "cannot see the sessions of other roles");
    assert!(left.out.contains("GRANT pg_read_all_stats"), "{}", left.out);

    idle.batch_execute("COMMIT").await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
    reports(&check(&target, &["-c", "waiting=0"]).await, 0, "checks");
}

#[tokio::test]
async fn an_unreachable_server_and_wrong_arguments_are_unknown() {
    let nowhere = tempfile::tempdir().unwrap();
    let down = format!("host={} user=postgres", nowhere.path().display());
    reports(&check(&down, &[]).await, 3, "no server socket");
    reports(&check(&down, &["--down-is", "critical"]).await, 2, "no server socket");
    for arguments in [
        &["--warning", "waitin=1"][..],
        &["-w", "waiting=x"],
        &["--only", "nothing"],
        &["-t", "0"],
        &["--looks", "0"],
        &["--zebra"],
        &["-c", "waiting"],
        &["-w", "5"],
        &["-c", "blocked_seconds=1"],
    ] {
        let left = check(&down, arguments).await;
        assert_eq!(left.status, Some(3), "{arguments:?}: {}", left.err);
        assert!(left.out.starts_with("LOCKTOP UNKNOWN - "), "{arguments:?}: {}", left.out);
    }
    assert!(check(&down, &["-w", "waitin=1"]).await.out.contains("did you mean waiting?"));
    reports(&check("hots=db", &[]).await, 3, "unknown setting \"hots\"");
    let help = check(&down, &["--help"]).await;
    assert_eq!(help.status, Some(3), "help is no all-clear");

    // Other commands have their own exit status.
    for other in [&["man", "check"][..], &["schema", "check"]] {
        let left = run_beside(locktop(other)).await;
        assert_eq!((left.status, left.out.as_str()), (Some(2), ""), "{other:?}");
    }

    // By a plugin's name.
    let mut plugin = locktop(&["-H", &nowhere.path().display().to_string(), "-w", "waiting=5", "-t", "10"]);
    plugin.arg0("/usr/lib/nagios/plugins/check_locktop");
    reports(&run_beside(plugin).await, 3, "no server socket");
}

#[tokio::test]
async fn a_stopped_server_is_unknown_after_the_timeout() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let postmaster = Pid::from_raw(server.pid().unwrap()).unwrap();
    kill_process(postmaster, Signal::STOP).unwrap();
    let started = clock::monotonic();
    let left = check(&server.conninfo(), &["-t", "1"]).await;
    let took = started.elapsed();
    kill_process(postmaster, Signal::CONT).unwrap();
    reports(&left, 3, "no answer within 1");
    // Far from the ten seconds that a connection may take.
    assert!(took < Duration::from_secs(8), "{took:?}");
}
