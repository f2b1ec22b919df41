//! A standby, and its promotion after its primary has died.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::schema::{self, SchemaName};
use tokio_postgres::Client;

use super::dashboard::{Dashboard, becomes};

use super::support;

async fn client(server: &EmbeddedServer) -> Client {
    support::open(&support::conninfo(server)).await.client
}

/// A primary with a task, and a standby of it.
async fn pair() -> (EmbeddedServer, EmbeddedServer) {
    let mut primary = EmbeddedServer::start(Options::default()).await.unwrap();
    let mut first = support::open(&support::conninfo(&primary)).await;
    schema::install(&mut first.client, &SchemaName::default()).await.unwrap();
    let task = "INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at) VALUES ('report', 'x', now())";
    first.client.batch_execute(task).await.unwrap();
    drop(first);
    let standby = primary.standby(Options::default()).await.unwrap();
    follows(&primary, &standby).await;
    (primary, standby)
}

/// Waits until the standby has replayed everything.
async fn follows(primary: &EmbeddedServer, standby: &EmbeddedServer) {
    let there = client(primary).await;
    there.batch_execute("DROP TABLE IF EXISTS mark; CREATE TABLE mark ()").await.unwrap();
    let newest: String =
        there.query_one("SELECT pg_current_wal_flush_lsn()::text", &[]).await.unwrap().get(0);
    becomes(&client(standby).await, &format!("SELECT pg_last_wal_replay_lsn() >= '{newest}'"), "true").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_standby_is_shown_with_its_replication_lag() {
    let (mut primary, standby) = pair().await;
    let observer = client(&standby).await;
    for size in [(80, 24), (120, 35), (200, 60)] {
        let mut dashboard = Dashboard::at(size, &standby.conninfo(), &[]);
        dashboard.screen.shows(" standby");
        dashboard.screen.shows(" · lag 0s · ");
        dashboard.quit();
    }
    let mut dashboard = Dashboard::at((120, 35), &primary.conninfo(), &["--screen", "tasks"]);
    dashboard.select_first("report");
    dashboard.screen.shows("E disable");
    dashboard.quit();
    let mut dashboard = Dashboard::at((120, 35), &standby.conninfo(), &["--screen", "tasks"]);
    dashboard.screen.shows(" standby");
    dashboard.screen.shows(" · lag 0s · ");
    // A write is not offered, and its shortcut shows the server that accepts it.
    dashboard.select_first("report");
    dashboard.screen.hides("E disable");
    dashboard.screen.keys("E");
    dashboard.screen.shows("this is a standby, which is read-only: do it on the primary");
    assert_eq!(dashboard.asked(), 0);
    dashboard.take_away("which is read-only");

    // The standby lags as long as it does not replay the received WAL.
    observer.batch_execute("SELECT pg_wal_replay_pause()").await.unwrap();
    becomes(&observer, "SELECT pg_get_wal_replay_pause_state()", "paused").await;
    client(&primary).await.batch_execute("CREATE TABLE later ()").await.unwrap();
    dashboard.screen.wait_for("a growing lag", |screen| {
        let text = screen.contents();
        text.contains(" standby") && text.contains(" · lag ") && !text.contains("lag 0s")
    });
    observer.batch_execute("SELECT pg_wal_replay_resume()").await.unwrap();
    dashboard.screen.shows(" standby");
    dashboard.screen.shows(" · lag 0s · ");

    // Without a primary the lag is unknown.
    primary.kill_hard().await.unwrap();
    dashboard.screen.shows(" standby");
    dashboard.screen.shows(" · no WAL stream · ");
    dashboard.quit();
    let mut dashboard = Dashboard::at((200, 60), &standby.conninfo(), &[]);
    dashboard.screen.shows(" · no WAL stream · last change ");
    dashboard.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_three_hosts_it_follows_the_primary() {
    let (mut primary, standby) = pair().await;
    let holder = client(&primary).await;
    holder.batch_execute("SELECT pg_advisory_lock(4711)").await.unwrap();
    let (there, here) = (primary.socket_dir().display(), standby.socket_dir().display());
    // A server that never answered, the standby, and the primary.
    let target = format!(
        "host=/nonexistent,{here},{there} port=5432 user=postgres dbname=postgres sslmode=disable \
         target_session_attrs=read-write"
    );
    let mut dashboard = Dashboard::at((120, 35), &target, &[]);
    dashboard.screen.shows(" primary");
    dashboard.screen.shows("4711");

    primary.kill_hard().await.unwrap();
    dashboard.screen.wait_for("DOWN with the age of the data", |screen| {
        let text = screen.contents();
        // The holder may have ended before the last snapshot: it ended at the latest with the postmaster.
        text.contains("DOWN, data ") && text.contains("s old") && text.contains("report")
    });
    let observer = client(&standby).await;
    observer.batch_execute("SELECT pg_promote()").await.unwrap();
    observer.batch_execute("SELECT pg_advisory_lock(4712)").await.unwrap();
    // The lock of the old primary is no longer shown, and the one of the new primary is.
    dashboard.screen.wait_for("the new primary", |screen| {
        let text = screen.contents();
        text.contains("LIVE") && text.contains(" primary") && text.contains("4712") && !text.contains("4711")
    });
    dashboard.screen.keys("8");
    dashboard.screen.shows("another server answers: postgres@");
    dashboard.quit();
}
