//! The dashboard itself, at a terminal.

use super::dashboard::Dashboard;
use super::forged::installed;
use super::ground::{Ground, WATCHERS, newest};
use super::stage::{Session, pid};
use super::stored::trapped;

/// Polls until the names are learned, which the second connection does.
async fn watched(ground: &Ground, role: &str, arguments: &[&str]) {
    let holder = ground.client("app").await;
    holder.batch_execute("SELECT pg_advisory_lock(hashtext('pg_partman run_maintenance'))").await.unwrap();
    let arguments = [&["--screen", "locks"], arguments].concat();
    let mut dashboard = Dashboard::at((120, 35), &ground.target(role), &arguments);
    dashboard.screen.shows("pg_part");
    for screen in ["4", "5", "6", "1"] {
        dashboard.screen.keys(screen);
    }
    dashboard.quit();
    ground.is_clean(&format!("{role} {arguments:?}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dashboard_runs_nothing_of_a_strangers() {
    let ground = trapped(newest()).await;
    for role in WATCHERS {
        watched(&ground, role, &[]).await;
    }
    for role in ["boss", "monitor"] {
        watched(&ground, role, &["--read-only"]).await;
    }
}

/// K on a session that waits for no other session, with a forged schema in the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_that_ends_a_session_runs_nothing_of_a_forged_schema() {
    let ground = installed(newest(), "mallory").await;
    ground.run("mallory", include_str!("forged.sql")).await;
    let info = ground.info("app").with_application_name("stage");
    let (holder, waiter) = (Session::open(&info).await, Session::open(&info).await);
    holder.run("SELECT pg_advisory_lock(5)").await;
    let observer = ground.client("postgres").await;
    let root = pid(&holder.connection.client).await;
    let waiting = waiter.begin("SELECT pg_advisory_lock(5)", &observer, "Lock").await;
    let mut dashboard = Dashboard::at((120, 35), &ground.target("boss"), &["--screen", "chains"]);
    dashboard.select_first(&root.to_string());
    dashboard.question("K", "y terminate");
    dashboard.screen.keys("y");
    dashboard.done(1);
    assert_eq!(waiting.end().await, None);
    ground.is_clean("K");
    dashboard.quit();
}
