//! Rules for every pool.

use std::time::Duration;

use locktop::clock;
use locktop::demo::postgres::EmbeddedServer;
use locktop::locks::advisory::{Conn as _, Locks, Mode, Source, Wait};
use locktop::locks::{Error, Held as _, Lost, PoolerError};
use locktop::pg::conninfo::ConnInfo;

use super::observer::{Observer, is_free, take};
use super::support::{is_long, wait_until};

/// The advisory locks of this database.
const HELD: &str = "FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
    WHERE locktype = 'advisory' AND datname = current_database()";

/// Settings of a pooled connection that differ from the configuration of the server.
async fn settings(pool: &impl Source) -> Option<String> {
    let sql = "SELECT string_agg(concat(name, ' ', setting, ' ', source), ', ' ORDER BY name) FROM pg_settings WHERE source = 'session'";
    pool.get().await.unwrap().ask(sql).await.unwrap()
}

/// The pool gets back released connections, unchanged, and none that was dropped, lost or given up.
pub(crate) async fn never_leaks<S: Source>(pool: S, info: &ConnInfo) {
    let observer = Observer::open(info).await;
    let before = settings(&pool).await;
    let locks = Locks::new(pool.clone());
    let mut pids = Vec::new();
    for _ in 0..4 {
        let guard = locks.lock("a").await.unwrap();
        pids.push(guard.pid());
        guard.release().await.unwrap();
    }
    pids.sort_unstable();
    pids.dedup();
    assert!(pids.len() <= 2, "two connections are used again and again: {pids:?}");

    let guard = locks.lock("a").await.unwrap();
    let pid = guard.pid();
    drop(guard);
    observer.until_ended(pid).await;
    assert!(is_free(info, "a").await);

    let guard = locks.lock("a").await.unwrap();
    observer.ask(&format!("SELECT pg_terminate_backend({})", guard.pid())).await;
    guard.lost().await;
    assert!(guard.release().await.is_err() && is_free(info, "a").await);

    let work = async {
        observer.ask(&format!("SELECT pg_terminate_backend(l.pid) {HELD}")).await;
        std::future::pending::<()>().await;
    };
    let error = locks.with("a", Wait::Never, work).await.unwrap_err();
    assert!(matches!(error, Error::NotHeld(Lost::Ended(_))), "the work is dropped: {error}");

    given_up(&locks, info).await;
    // Both connections that the pool has now are without a lock, and work.
    let both = [locks.lock("b").await.unwrap(), locks.lock("a").await.unwrap()];
    for guard in both {
        assert_eq!(observer.rows(guard.pid()).await, "1");
        guard.release().await.unwrap();
    }
    assert_eq!(settings(&pool).await, before);
    observer.until("nothing to be held", &format!("SELECT count(*) = 0 {HELD}")).await;
}

/// A holder drops its guard or loses its session, a waiter gives up: 10 times each, 100 in the long suite. The next session gets
/// the lock at once.
pub(crate) async fn survives_faults<S: Source>(pool: S, info: &ConnInfo) {
    let observer = Observer::open(info).await;
    let (locks, others) = (Locks::new(pool), Locks::new(info.clone()).without_pooler_test());
    for round in 0..if is_long() { 100 } else { 10 } {
        for is_killed in [false, true] {
            let guard = locks.lock("a").await.unwrap();
            let others = others.clone();
            let next = tokio::spawn(async move { others.lock("a").await.unwrap() });
            observer.waiting().await;
            let start = clock::monotonic();
            let guard = if is_killed {
                observer.ask(&format!("SELECT pg_terminate_backend({})", guard.pid())).await;
                Some(guard)
            } else {
                drop(guard);
                None
            };
            let next = next.await.unwrap();
            let waited = start.elapsed();
            assert!(waited < Duration::from_secs(2), "round {round}, killed: {is_killed}: {waited:?}");
            if let Some(guard) = guard {
                guard.lost().await;
                assert!(guard.release().await.is_err());
            }
            next.release().await.unwrap();
        }
        given_up(&locks, info).await;
    }
    observer.until("nothing to be held", &format!("SELECT count(*) = 0 {HELD}")).await;
}

/// A pool that sets a role, which may not terminate the session of the login role.
pub(crate) async fn drops_its_lock<S: Source>(pool: S, info: &ConnInfo) {
    let (observer, locks) = (Observer::open(info).await, Locks::new(pool).without_pooler_test());
    let guard = locks.lock("a").await.unwrap();
    let pid = guard.pid();
    drop(guard);
    observer.until_ended(pid).await;
    assert!(is_free(info, "a").await);
}

/// A pool of one connection.
pub(crate) async fn alone<S: Source>(pool: S, info: &ConnInfo) {
    let error = Locks::new(pool.clone()).lock("a").await.unwrap_err();
    assert!(error.to_string().contains("the pool gave no second connection"), "{error}");
    assert!(error.is_transient(), "the other connection may be in use");
    let locks = Locks::new(pool).without_pooler_test();
    locks.lock("a").await.unwrap().release().await.unwrap();
    given_up(&locks, info).await;
}

/// A waiter that is given up leaves the server at once, and the pool has a connection for the next one.
pub(crate) async fn given_up<S: Source>(locks: &Locks<S>, info: &ConnInfo) {
    let observer = Observer::open(info).await;
    let holder = take(info, "a", Mode::Exclusive).await;
    let waiting = locks.clone();
    let waiter = tokio::spawn(async move { waiting.lock("a").await });
    let pid = observer.waiting().await;
    waiter.abort();
    observer.until_ended(pid).await;
    assert!(locks.try_lock("a", Wait::AtMost(Duration::from_millis(20))).await.unwrap().is_none());
    holder.release().await.unwrap();
}

/// A pool behind a pooler in transaction mode.
pub(crate) async fn is_refused<S: Source>(pool: S) {
    let error = Locks::new(pool).lock("a").await.unwrap_err();
    assert!(matches!(error, Error::Pooler(PoolerError::Transactions)), "{error}");
}

/// The statements for a lock and its release on a connection that the pool has, once it is known that no pooler is used.
pub(crate) async fn messages<S: Source>(pool: S, server: &EmbeddedServer, info: &ConnInfo) -> Vec<String> {
    let (observer, name) = (Observer::open(info).await, info.dbname());
    observer.ask(&format!(
        "ALTER DATABASE {name} SET log_statement = 'all'; ALTER DATABASE {name} SET log_min_messages = 'log'"
    ))
    .await;
    let locks = Locks::new(pool).without_pooler_test();
    let mut pids = Vec::new();
    for key in ["first", "second", "third"] {
        let guard = locks.lock(key).await.unwrap();
        pids.push(guard.pid());
        guard.release().await.unwrap();
    }
    assert!(pids.iter().all(|pid| *pid == pids[0]), "one connection: {pids:?}");
    let mark = format!("[{}]", pids[0]);
    let mut statements = Vec::new();
    wait_until("the log to be written", async || {
        let log = std::fs::read(server.socket_dir().join("log")).unwrap();
        let log = String::from_utf8_lossy(&log).into_owned();
        let ends = |line: &str, key: &str| line.contains(key) && line.contains("pg_advisory_unlock(");
        let lines = log.lines().filter(|line| line.contains(&mark) && line.contains("statement:"));
        let lines = lines.skip_while(|line| !ends(line, "/* lock first */")).skip(1);
        statements = lines.take_while(|line| !line.contains("/* lock third */")).map(str::to_owned).collect();
        log.lines().any(|line| ends(line, "/* lock third */"))
    })
    .await;
    // The connection is obtained again for the third lock before that is seen.
    statements.truncate(statements.iter().rposition(|line| line.contains("/* lock second */")).unwrap() + 1);
    statements
}
