//! Locks on connections of a pool: none ever leaks into it.

use std::time::Duration;

use bb8_postgres::{PostgresConnectionManager, bb8};
use deadpool_postgres::{Manager, Pool};
use locktop::demo::postgres::EmbeddedServer;
use locktop::locks::advisory::{Locks, Mode, Source, Wait};
use locktop::locks::{Error, Held as _, PoolerError};
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::{Config, NoTls};

use super::look::{Eye, is_free, take};
use super::pooler::Pooler;
use super::support::{database, is_long, server, server_of, versions, wait_until};

fn target(server: &EmbeddedServer, info: &ConnInfo) -> String {
    format!("{} dbname={}", server.conninfo(), info.dbname())
}

fn config(target: &str) -> Config {
    target.parse().unwrap()
}

fn deadpool(target: &str, size: usize) -> Pool {
    Pool::builder(Manager::new(config(target), NoTls)).max_size(size).build().unwrap()
}

async fn bb8(target: &str, size: u32) -> bb8::Pool<PostgresConnectionManager<NoTls>> {
    let manager = PostgresConnectionManager::new(config(target), NoTls);
    bb8::Pool::builder().max_size(size).build(manager).await.unwrap()
}

/// What every pool must do: it gets back what is released, and nothing that is dropped, lost or given up.
async fn never_leaks<S: Source>(pool: S, info: &ConnInfo) {
    let eye = Eye::open(info).await;
    let locks = Locks::new(pool);
    let mut pids = Vec::new();
    for _ in 0..4 {
        let guard = locks.lock("a").await.unwrap();
        pids.push(guard.pid());
        guard.release().await.unwrap();
    }
    pids.sort_unstable();
    pids.dedup();
    assert!(pids.len() <= 2, "two connections are used again and again: {pids:?}");

    for _ in 0..if is_long() { 100 } else { 10 } {
        let guard = locks.lock("a").await.unwrap();
        let pid = guard.pid();
        drop(guard);
        eye.until_gone(pid).await;
        assert!(is_free(info, "a").await);
    }

    let guard = locks.lock("a").await.unwrap();
    eye.ask(&format!("SELECT pg_terminate_backend({})", guard.pid())).await;
    guard.lost().await;
    assert!(guard.release().await.is_err() && is_free(info, "a").await);

    let holder = take(info, "a", Mode::Exclusive).await;
    let waiting = locks.clone();
    let waiter = tokio::spawn(async move { waiting.lock("a").await });
    let pid = eye.waiting().await;
    waiter.abort();
    eye.until_gone(pid).await;
    assert!(locks.try_lock("a", Wait::AtMost(Duration::from_millis(20))).await.unwrap().is_none());
    holder.release().await.unwrap();
    // Both connections that the pool has now are without a lock, and work.
    let both = [locks.lock("b").await.unwrap(), locks.lock("a").await.unwrap()];
    for guard in both {
        assert_eq!(eye.rows(guard.pid()).await, "1");
        guard.release().await.unwrap();
    }
    let held = "SELECT count(*) = 0 FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
        WHERE locktype = 'advisory' AND datname = current_database()";
    eye.until("nothing to be held", held).await;
}

#[tokio::test]
async fn no_lock_leaks_into_a_pool() {
    for version in versions() {
        let server = server_of(version).await;
        let info = database(server).await;
        never_leaks(deadpool(&target(server, &info), 2), &info).await;
        never_leaks(bb8(&target(server, &info), 2).await, &info).await;
    }
}

/// Such a role may not terminate its own session, which the login role began.
#[tokio::test]
async fn a_pool_that_sets_a_role_gets_no_lock_either() {
    let server = server().await;
    let info = database(server).await;
    let eye = Eye::open(&info).await;
    eye.ask("CREATE ROLE tenant").await;
    let target = format!("{} options='-c role=tenant'", target(server, &info));
    let guard = Locks::new(bb8(&target, 2).await).without_pooler_test().lock("a").await.unwrap();
    let pid = guard.pid();
    drop(guard);
    eye.until_gone(pid).await;
    assert!(is_free(&info, "a").await);
}

#[tokio::test]
async fn a_pool_of_one_connection_is_told_what_the_test_needs() {
    let server = server().await;
    let info = database(server).await;
    let pool = deadpool(&target(server, &info), 1);
    let error = Locks::new(pool.clone()).lock("a").await.unwrap_err();
    assert!(error.to_string().contains("the pool has no second connection"), "{error}");
    let locks = Locks::new(pool).without_pooler_test();
    locks.lock("a").await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_pool_behind_a_pooler_in_transaction_mode_is_refused() {
    let server = server().await;
    let info = database(server).await;
    let pooler = Pooler::start(server, "transaction");
    let pool = deadpool(&pooler.target(&info), 4);
    let error = Locks::new(pool).lock("a").await.unwrap_err();
    assert!(matches!(error, Error::Pooler(PoolerError::Transactions)), "{error}");
}

/// A lock and its release are two messages, once the pool is known to be no pooler's.
#[tokio::test]
async fn a_lock_and_its_release_are_two_messages_on_one_connection() {
    let server = server().await;
    let info = database(server).await;
    let eye = Eye::open(&info).await;
    let name = info.dbname();
    eye.ask(&format!(
        "ALTER DATABASE {name} SET log_statement = 'all'; ALTER DATABASE {name} SET log_min_messages = 'log'"
    ))
    .await;
    let pool = deadpool(&target(server, &info), 2);
    let locks = Locks::new(pool.clone()).without_pooler_test();
    locks.lock("two messages").await.unwrap().release().await.unwrap();
    assert_eq!(pool.status().size, 1);
    let mut ours = Vec::new();
    wait_until("the log to be written", async || {
        let log = std::fs::read(server.socket_dir().join("log")).unwrap();
        let log = String::from_utf8_lossy(&log).into_owned();
        ours =
            log.lines().filter(|line| line.contains("/* lock two messages */")).map(str::to_owned).collect();
        ours.iter().any(|line| line.contains("pg_advisory_unlock("))
    })
    .await;
    assert_eq!(ours.len(), 2, "{ours:#?}");
}
