//! A question about a session of a pool, while its client changes.

use locktop::pg::conninfo::ConnInfo;

use super::dashboard::{Dashboard, becomes, session_exists};
use super::incident::Incident;
use super::pooler::Pooler;
use super::support;

const HOLD: &str = "SELECT pg_advisory_lock(77)";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_is_over_when_the_client_of_the_pool_changes() {
    let incident = Incident::none().await;
    let observer = support::open(&incident.info()).await.client;
    let lines = "default_pool_size = 1\nserver_reset_query = DISCARD ALL";
    let pooler = Pooler::start_with(&incident.server, "session", lines);
    let pool = ConnInfo::parse(&pooler.target(&incident.info())).unwrap();
    let first = support::open(&pool).await.client;
    first.batch_execute(HOLD).await.unwrap();
    let shared = support::pid(&first).await;

    let mut dashboard = Dashboard::at((110, 30), &incident.server.conninfo(), &["--screen", "locks"]);
    dashboard.screen.shows(&shared.to_string());
    dashboard.select_first(&shared.to_string());
    dashboard.question("K", "y terminate");
    drop(first);
    // Another client, in the same session, with the same key.
    let second = support::open(&pool).await.client;
    second.batch_execute(HOLD).await.unwrap();
    assert_eq!(support::pid(&second).await, shared);
    // The reason is a new statement, or the name that the session has while it has no client.
    dashboard.screen.shows(": nothing was done");
    dashboard.screen.hides("y terminate");
    dashboard.screen.keys("y");
    dashboard.take_away("nothing was done");
    assert_eq!(dashboard.asked(), 0);
    // A signal in flight would cancel this.
    second.batch_execute("SELECT pg_sleep(0.02)").await.unwrap();
    second.batch_execute("SET application_name = 'second'").await.unwrap();
    becomes(&observer, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted", "1").await;

    // The same keys terminate a session that still is as shown.
    dashboard.screen.shows(" second ");
    dashboard.select_first(&shared.to_string());
    dashboard.question("K", "y terminate");
    dashboard.screen.keys("y");
    dashboard.screen.shows(&format!("{shared} postgres@second terminated"));
    support::wait_until("the session to end", async || !session_exists(&observer, shared).await).await;
    dashboard.done(1);
    dashboard.quit();
}
