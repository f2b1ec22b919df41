//! The server runs, and locktop loses it: the server is stopped, terminates locktop's sessions, or has no such database.

use rustix::process::Pid;

use super::dashboard::{Dashboard, session_exists};
use super::incident::Incident;
use super::outage::{Stopped, is_down};
use super::{process, support};

/// Both sessions of the program. The test's own session has the same name.
const OWN_SESSIONS: &str =
    "FROM pg_stat_activity WHERE application_name = 'locktop' AND pid <> pg_backend_pid()";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopped_server_is_shown_as_down_until_it_continues() {
    let incident = Incident::crowd(5).await;
    let root = incident.root().to_string();
    let mut screen = incident.looked_at((80, 24));
    let postmaster = incident.server.pid().unwrap();
    let mut all = process::children(Pid::from_raw(postmaster).unwrap());
    // The postmaster first: it would start new processes for those that do not answer.
    all.insert(0, postmaster);
    assert!(all.len() > 8, "{all:?}");
    let stopped: Vec<_> = all.into_iter().map(Stopped::new).collect();
    screen.wait_for("old data with its age", |screen| {
        let text = screen.contents();
        text.contains("NO ANSWER, data ") && text.contains("s old") && text.contains(&root)
    });
    is_down(&mut screen, &root);
    drop(stopped);
    screen.wait_for("the same as new", |screen| {
        let text = screen.contents();
        text.contains("LIVE") && text.contains(&root) && !text.contains("DOWN")
    });
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sessions_of_its_own_that_are_terminated() {
    let incident = Incident::crowd(5).await;
    let root = incident.root();
    let observer = support::open(&incident.info()).await.client;
    let mut dashboard = Dashboard::at((80, 24), &incident.server.conninfo(), &["--screen", "chains"]);
    dashboard.screen.shows(&root.to_string());
    let count = format!("SELECT count(*) {OWN_SESSIONS}");
    super::dashboard::becomes(&observer, &count, "2").await;
    observer.execute(&format!("SELECT pg_terminate_backend(pid) {OWN_SESSIONS}"), &[]).await.unwrap();
    dashboard
        .screen
        .wait("the loss to be noticed", |seen| String::from_utf8_lossy(&seen.raw).contains("DOWN"));
    dashboard.screen.shows("LIVE");
    super::dashboard::becomes(&observer, &count, "2").await;
    // Also the session that acts.
    dashboard.select_first(&root.to_string());
    dashboard.question("K", "y terminate");
    dashboard.screen.keys("y");
    support::wait_until("the session to end", async || !session_exists(&observer, root).await).await;
    // The server's message is among the events; if it answered a statement outside of the poll, the connection just ends.
    dashboard.screen.keys("8");
    dashboard.screen.wait_for("why the connection was lost", |screen| {
        let text = screen.contents();
        ["terminating connection", "it ended without an error"]
            .iter()
            .any(|reason| text.contains(&format!("the connection was lost: {reason}")))
    });
    dashboard.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_database_that_is_dropped_and_made_again() {
    let incident = Incident::crowd(5).await;
    let root = incident.root().to_string();
    let observer = support::open(&incident.info()).await.client;
    observer.batch_execute("CREATE DATABASE shop").await.unwrap();
    let target = incident.server.conninfo().replace("dbname=postgres", "dbname=shop");
    let mut dashboard = Dashboard::at((80, 24), &target, &[]);
    dashboard.screen.shows(&root);
    observer.batch_execute("DROP DATABASE shop WITH (FORCE)").await.unwrap();
    dashboard.screen.shows("database \"shop\" does not exist");
    is_down(&mut dashboard.screen, &root);
    observer.batch_execute("CREATE DATABASE shop").await.unwrap();
    dashboard.screen.wait_for("the same as new", |screen| {
        let text = screen.contents();
        text.contains("LIVE") && text.contains(&root) && !text.contains("DOWN")
    });
    dashboard.quit();
}
