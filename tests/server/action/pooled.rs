//! Through a pool of sessions: between the screen and the shortcut the same session begins to serve another client.

use locktop::model::plan::{Outcome, SessionTarget, TargetKind, Verb};
use locktop::pg::conninfo::ConnInfo;

use super::pooler::Pooler;
use super::stage::{Hands, Session, is_connected, pid, seen};
use super::support::{self, open};

#[tokio::test]
async fn a_pooled_session_that_serves_another_client_is_left_alone() {
    let version = support::oldest();
    let server = support::server_of(version).await;
    let info = support::database(server).await;
    let observer = open(&info).await.client;
    observer.batch_execute("CREATE TABLE t (id int)").await.unwrap();
    // One session of the server for all clients of the pool, one after the other.
    let pooler =
        Pooler::start_with(server, "session", "default_pool_size = 1\nserver_reset_query = DISCARD ALL");
    let pool = ConnInfo::parse(&pooler.target(&info)).unwrap();
    let mut hands = Hands::of(&info).await;

    let first = open(&pool).await;
    first.client.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();
    let shared = pid(&first.client).await;
    let waiter = Session::open(&info).await.begin("SELECT FROM t", &observer, "Lock").await;
    // As on the screen: an idle transaction that blocks another session.
    let shown = SessionTarget { blocks: true, ..seen(&observer, shared).await };
    first.client.batch_execute("COMMIT").await.unwrap();
    drop(first);
    assert_eq!(waiter.end().await, None);

    // Another client, in the same session, and in the same situation.
    let second = open(&pool).await;
    second.client.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();
    assert_eq!(pid(&second.client).await, shared, "it is the same session");
    let waiter = Session::open(&info).await.begin("SELECT FROM t", &observer, "Lock").await;
    let now = seen(&observer, shared).await;
    assert_eq!(now.backend_start, shown.backend_start);
    for verb in [Verb::Terminate, Verb::Cancel] {
        let (outcome, detail) = hands.one(verb, TargetKind::Session(shown.clone())).await;
        assert_eq!(outcome, Outcome::Changed, "{detail}");
        assert!(detail.starts_with("its transaction has changed: began"), "{detail}");
    }
    // Neither terminated nor cancelled.
    second.client.batch_execute("SELECT pg_sleep(0.02); COMMIT").await.unwrap();
    assert_eq!(waiter.end().await, None);
    assert!(is_connected(&observer, shared).await);
}

/// The executor's own connection goes through a pool that gives each transaction another session: one message is one
/// transaction, and nothing stays behind.
#[tokio::test]
async fn the_executor_may_be_behind_a_pooler_itself() {
    let version = support::oldest();
    let server = support::server_of(version).await;
    let info = support::database(server).await;
    let observer = open(&info).await.client;
    observer.batch_execute("CREATE TABLE t (id int)").await.unwrap();
    let pooler = Pooler::start_with(server, "transaction", "server_round_robin = 1");
    let pool = ConnInfo::parse(&pooler.target(&info)).unwrap();
    let mut hands = Hands::of(&pool).await;
    let holder = Session::open(&info).await;
    holder.run("BEGIN; LOCK TABLE t").await;
    let waiter = Session::open(&info).await.begin("SELECT FROM t", &observer, "Lock").await;
    let shown = SessionTarget { blocks: true, ..seen(&observer, holder.pid).await };
    let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(shown)).await;
    assert_eq!(outcome, Outcome::Done, "{detail}");
    assert_eq!(waiter.end().await, None);
    let left =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL
                   AND pid <> pg_backend_pid()";
    assert_eq!(observer.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
    let through = open(&pool).await.client;
    let settings = "SELECT current_setting('lock_timeout'), current_setting('search_path')";
    let row = through.query_one(settings, &[]).await.unwrap();
    assert_eq!([row.get::<_, String>(0), row.get(1)], ["0", "\"$user\", public"]);
}
