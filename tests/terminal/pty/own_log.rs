//! `--log FILE` of a dashboard: it contains the actions of locktop, and no secret.

use std::os::unix::fs::PermissionsExt;

use super::dashboard::{Dashboard, becomes, session_exists};
use super::incident::Incident;
use super::support;

const SECRET: &str = "hunter2secret";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_has_the_connection_its_loss_and_an_action_and_no_secret() {
    let incident = Incident::crowd(3).await;
    let root = incident.root();
    let client = support::open(&incident.info()).await.client;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bug.log");
    let file = path.to_str().unwrap();
    // A password that the server does not require, and statements with literals.
    let target = format!("{} password={SECRET}", incident.server.conninfo());
    client.batch_execute(&format!("SET application_name = E'x\\x1b]0;y'; SELECT '{SECRET}'")).await.unwrap();
    let mut dashboard = Dashboard::with((120, 35), &target, &["--log", file], "");
    let log = || std::fs::read_to_string(&path).unwrap_or_default();
    let has = |words: &str| log().lines().any(|line| line.contains(words));
    dashboard.screen.shows("blocks 3: 1 ");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    dashboard.select_first(&root.to_string());
    dashboard.question("K", "y terminate");
    dashboard.screen.keys("y");
    support::wait_until("the session to end", async || !session_exists(&client, root).await).await;
    support::wait_for("the action in the log", || has(&format!("terminate {root}")) && has(": done, "));

    // The poll loses its session, and gets another one.
    let polling = "application_name = 'locktop' AND pid <> pg_backend_pid()";
    client
        .execute(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {polling}"), &[])
        .await
        .unwrap();
    support::wait_for("the loss in the log", || has("WARN  feed::journal: "));
    support::wait_for("the second connection", || {
        log().matches("INFO  feed::journal: connected to ").count() >= 2
    });
    becomes(&client, &format!("SELECT count(*) > 0 FROM pg_stat_activity WHERE {polling}"), "true").await;
    dashboard.screen.shows("LIVE");
    dashboard.quit();
    support::wait_for("the end", || has("cli::run: ends with status 0"));
    let text = log();
    assert!(
        text.lines().next().unwrap().contains(concat!("locktop ", env!("CARGO_PKG_VERSION"), " begins")),
        "{text}"
    );
    assert!(has("PostgreSQL ") && has(", session "), "{text}");
    assert!(!text.contains(SECRET) && !text.contains('\u{1b}'), "{text}");
}

/// A symbolic link is refused before anything else; a failed connection is logged without its password.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_that_cannot_be_written_is_reported_before_connecting() {
    use super::binary::{locktop, run_beside};
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).unwrap();
    let link = link.to_str().unwrap();
    let left = run_beside(locktop(&["snapshot", "--log", link, "host=/nonexistent"])).await;
    assert_eq!(left.status, Some(2), "{}", left.err);
    assert!(left.err.contains("link: it is a symbolic link; remove "), "{}", left.err);
    let left = run_beside(locktop(&["check", "--log", link, "host=/nonexistent"])).await;
    assert_eq!(left.status, Some(3), "{}", left.err);
    let left = run_beside(locktop(&["--log", "x", "worker", "--id", "w", "host=/nonexistent"])).await;
    assert!(left.status == Some(2) && left.err.contains("--log is for the dashboard"), "{}", left.err);
    let path = folder.path().join("bug.log");
    let left = run_beside(locktop(&[
        "--log",
        path.to_str().unwrap(),
        "snapshot",
        "host=/nonexistent password=hunter2secret",
    ]))
    .await;
    assert_eq!(left.status, Some(1));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("WARN  feed::once: no connection: ") && text.contains("ends: "), "{text}");
    assert!(!text.contains("hunter2secret"), "{text}");
}
