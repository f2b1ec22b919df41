//! A session has locked a relation that all others need: a user's table, which locktop never reads, or the
//! catalog of all tables, without which no session can even start.

use std::sync::Arc;
use std::time::Duration;

use locktop::demo::postgres::EmbeddedServer;
use locktop::feed::live::{FeedSettings, Live, PollControl};
use locktop::model::snapshot::Snapshot;
use locktop::model::view::{ConnectionState, View};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection, PollLimits};
use tokio::sync::watch;
use tokio_postgres::Client;

use crate::binary::{locktop, run_beside};
use crate::document::{address, snapshot};
use crate::frozen::waiting;
use crate::support::{TIMEOUT, conninfo, database, open, pid, wait_until};

/// Sends statements that must wait, and returns once they do.
async fn make_wait(client: Client, statements: &'static str, observer: &Client) -> i32 {
    let pid = pid(&client).await;
    tokio::spawn(async move { client.batch_execute(statements).await });
    wait_until("a session to wait", async || waiting(observer).await.contains(&pid)).await;
    pid
}

fn assert_fresh(snapshot: &Snapshot, when: &str) {
    for (name, error, taken_at) in [
        ("server", &snapshot.server.error, snapshot.server.taken_at),
        ("backends", &snapshot.backends.error, snapshot.backends.taken_at),
        ("locks", &snapshot.locks.error, snapshot.locks.taken_at),
        ("prepared", &snapshot.prepared.error, snapshot.prepared.taken_at),
    ] {
        assert_eq!((error, taken_at), (&None, Some(snapshot.taken_at)), "{when}: section {name}");
    }
}

/// A running feed, and its views.
async fn feed(info: &ConnInfo) -> watch::Receiver<Arc<View>> {
    let live = Live::connect(info.clone(), FeedSettings::default(), |_| {}).await.unwrap();
    let (views, receiver) = watch::channel(live.view());
    tokio::spawn(live.run(PollControl::every(Duration::from_millis(50)).1, views));
    receiver
}

/// Checks that all views are fresh, until a view fulfills the condition.
async fn fresh_until(
    views: &mut watch::Receiver<Arc<View>>,
    what: &str,
    done: impl Fn(&View) -> bool,
) -> Arc<View> {
    let found = tokio::time::timeout(TIMEOUT, async {
        loop {
            views.changed().await.unwrap();
            let view = Arc::clone(&views.borrow_and_update());
            assert_eq!(view.link, ConnectionState::Live, "{what}");
            assert_fresh(view.snapshot.as_deref().unwrap(), what);
            if done(&view) {
                return view;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("timed out waiting for {what}"))
}

/// Whether `waiter` waits for `blocker`.
fn waits(view: &View, waiter: i32, blocker: i32) -> bool {
    view.graph.edges(100).0.iter().any(|edge| edge.waiter.pid() == waiter && edge.blocker.pid() == blocker)
}

#[tokio::test]
async fn waiters_on_locked_tables_have_their_blocker_and_table_name() {
    for version in super::versions() {
        let server = super::server(version).await;
        let info = database(&server).await;
        let (holder, observer) = (open(&info).await.client, open(&info).await.client);
        holder.batch_execute("CREATE TABLE ledger (); CREATE TABLE orders ()").await.unwrap();
        let mut views = feed(&info).await;
        holder.batch_execute("BEGIN; LOCK TABLE ledger; PREPARE TRANSACTION 'close of month'").await.unwrap();
        holder.batch_execute("BEGIN; LOCK TABLE orders").await.unwrap();
        let reader = make_wait(open(&info).await.client, "TABLE ledger", &observer).await;
        let writer =
            make_wait(open(&info).await.client, "INSERT INTO orders DEFAULT VALUES", &observer).await;
        let holder_pid = pid(&holder).await;
        fresh_until(&mut views, "both waits to be shown", |view| {
            waits(view, reader, 0) && waits(view, writer, holder_pid)
        })
        .await;
        let document = snapshot(&server, &info).await;
        let edge = |waiter: i32| document.edges.iter().find(|edge| edge.waiter == waiter).unwrap();
        let name = |waiter: i32| document.locks[edge(waiter).lock].relation_name.as_deref();
        assert_eq!((edge(reader).blocker, edge(reader).gid.as_deref()), (0, Some("close of month")));
        assert_eq!((edge(writer).blocker, &edge(writer).gid), (holder_pid, &None));
        assert_eq!((name(reader), name(writer)), (Some("ledger"), Some("orders")));
        observer.batch_execute("ROLLBACK PREPARED 'close of month'").await.unwrap();
    }
}

/// Changes of catalogs that invalidate the cache of every session.
const CHANGES: &str =
    "CREATE SCHEMA news; CREATE ROLE newcomer; CREATE TABLE news.today (id int PRIMARY KEY);
    CREATE FUNCTION news.one() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TYPE news.kind AS ENUM ('a');
    ANALYZE news.today; DROP TABLE news.today; GRANT pg_monitor TO newcomer";

#[tokio::test]
async fn the_catalog_of_all_tables_while_it_runs() {
    for version in super::versions() {
        let server = super::server(version).await;
        let info = database(&server).await;
        let (locker, observer) = (open(&info).await.client, open(&info).await.client);
        locker.batch_execute("CREATE TABLE known (); CREATE TABLE unknown ()").await.unwrap();
        // These sessions have both tables in their caches: no other session can use the tables while the
        // catalog is locked.
        let (holder, waiter) = (open(&info).await.client, open(&info).await.client);
        for client in [&holder, &waiter] {
            client.batch_execute("BEGIN; LOCK TABLE known; LOCK TABLE unknown; COMMIT").await.unwrap();
        }
        pid(&waiter).await;
        waiting(&observer).await;
        let mut views = feed(&info).await;
        holder.batch_execute("BEGIN; LOCK TABLE known").await.unwrap();
        let named = |view: &View, expected: &str| {
            let names = &view.snapshot.as_deref().unwrap().names;
            names.relations.values().any(|name| &**name == expected)
        };
        fresh_until(&mut views, "a name", |view| named(view, "known")).await;

        locker.batch_execute(CHANGES).await.unwrap();
        locker.batch_execute("BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE").await.unwrap();
        holder.batch_execute("LOCK TABLE unknown").await.unwrap();
        let waiter = make_wait(waiter, "BEGIN; LOCK TABLE unknown", &observer).await;
        let holder_pid = pid(&holder).await;
        let first = fresh_until(&mut views, "the edge", |view| waits(view, waiter, holder_pid)).await;
        let last = fresh_until(&mut views, "more views", |view| view.id > first.id + 20).await;
        assert!(named(&last, "known") && !named(&last, "unknown"), "{:?}", last.snapshot);
        let text = locktop::output::json::to_string(&last).unwrap().unwrap();
        let document: crate::document::Document = serde_json::from_str(&text).unwrap();
        let edge = document.edges.iter().find(|edge| edge.waiter == waiter).unwrap();
        let lock = &document.locks[edge.lock];
        assert!(lock.relation.is_some() && lock.relation_name.is_none(), "{lock:?}");

        locker.batch_execute("ROLLBACK").await.unwrap();
        fresh_until(&mut views, "the other name", |view| named(view, "unknown")).await;
    }
}

/// The same with each change reaching a session exactly between two of its polls.
#[tokio::test]
async fn the_catalog_of_all_tables_after_each_change() {
    for version in super::versions() {
        let server = super::server(version).await;
        let info = database(&server).await;
        let locker = open(&info).await.client;
        let mut session = PollConnection::open(&info, PollLimits::default()).await.unwrap();
        let mut before = session.poll(None).await.unwrap();
        for change in CHANGES.split(';').map(str::trim) {
            locker.batch_execute(change).await.unwrap();
            locker.batch_execute("BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE").await.unwrap();
            for _ in 0..3 {
                let next = session.poll(Some(&before)).await.unwrap();
                assert_fresh(&next, change);
                assert!(next.taken_at > before.taken_at);
                before = next;
            }
            locker.batch_execute("ROLLBACK").await.unwrap();
        }
    }
}

/// If its caches were invalidated, the session can run no statement while the catalog is locked: the rows shown are old
/// then, with their time and the reason.
#[tokio::test]
async fn old_rows_stay_with_their_time_and_error_if_catalogs_are_locked() {
    for version in super::versions() {
        let server = super::server(version).await;
        let info = database(&server).await;
        let locker = open(&info).await.client;
        let mut session = PollConnection::open(&info, PollLimits::default()).await.unwrap();
        let before = session.poll(None).await.unwrap();
        locker.batch_execute("VACUUM FULL pg_proc").await.unwrap();
        locker.batch_execute("BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE").await.unwrap();
        let held = session.poll(Some(&before)).await.unwrap();
        assert!(held.taken_at > before.taken_at, "the time advances");
        assert!(Arc::ptr_eq(held.locks.last_rows(), before.locks.last_rows()));
        for (taken_at, error) in [
            (held.backends.taken_at, &held.backends.error),
            (held.locks.taken_at, &held.locks.error),
            (held.server.taken_at, &held.server.error),
        ] {
            assert_eq!(taken_at, Some(before.taken_at));
            let error = error.as_deref().unwrap();
            assert!(
                error.starts_with("a system catalog that it needs") && error.contains("55P03"),
                "{error}"
            );
        }
        locker.batch_execute("ROLLBACK").await.unwrap();
        assert_fresh(&session.poll(Some(&held)).await.unwrap(), "afterwards");
    }
}

#[tokio::test]
async fn the_catalog_of_all_tables_at_the_start() {
    for version in super::versions() {
        let server = super::server(version).await;
        let info = conninfo(&server);
        let locker = open(&info).await.client;
        locker.batch_execute("BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE").await.unwrap();
        assert_stuck(&server, &info).await;
        locker.batch_execute("ROLLBACK").await.unwrap();
        snapshot(&server, &info).await;
    }
}

async fn assert_stuck(server: &EmbeddedServer, info: &ConnInfo) {
    let target = format!("{} connect_timeout=1", address(server, info));
    let left = run_beside(locktop(&["snapshot", &target])).await;
    let socket = server.socket_dir().join(".s.PGSQL.5432");
    let expected =
        format!("locktop: {} accepted the connection but did not answer within 1 s: ", socket.display());
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""));
    assert!(left.err.starts_with(&expected) && left.err.lines().count() == 1, "{}", left.err);
}
