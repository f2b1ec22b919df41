//! Waiting: forever, for a time, and being taken out of the queue.

use std::time::Duration;

use locktop::locks::advisory::{Key, Locks, Mode, Wait, xact_lock};
use locktop::locks::{Error, Held as _, Lost};

use super::observer::{Observer, Shared, ask, is_free, take};
use super::support::{TIMEOUT, database, oldest, open, server_of, versions};

const KEY: Key = Key::Pair(-1, i32::MIN);
const SOON: Wait = Wait::AtMost(Duration::from_millis(50));
const LONG: Wait = Wait::AtMost(Duration::from_secs(60));
const TIMEOUTS: &str = "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')";

#[tokio::test]
async fn a_session_waits_no_longer_than_asked_and_keeps_no_setting_of_it() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let holder = take(&info, KEY, Mode::Exclusive).await;
        let (shared, locks) = Shared::open(&info).await;
        shared.run("SET lock_timeout = '7s'; SET statement_timeout = '45s'").await;
        let settings =
            "SELECT name, setting FROM pg_settings WHERE source NOT IN ('default', 'override') ORDER BY 1";
        let before = shared.run(settings).await;
        assert!(locks.shared(KEY, SOON).await.unwrap().is_none(), "{version}: another session holds it");
        assert_eq!(shared.run(TIMEOUTS).await, "7s|45s", "{version}");
        holder.release().await.unwrap();
        let guard = locks.shared(KEY, LONG).await.unwrap().expect("it is free");
        assert_eq!(shared.run(TIMEOUTS).await, "7s|45s", "{version}");
        assert!(!is_free(&info, KEY).await, "{version}: it outlives the message that it was taken in");
        guard.release().await.unwrap();
        assert_eq!(shared.run(settings).await, before, "{version}: no setting is left");
    }
}

#[tokio::test]
async fn a_session_that_waits_gets_it_and_no_time_limit_for_statements_is_in_its_way() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        for wait in [Wait::Forever, LONG] {
            let holder = take(&info, KEY, Mode::Exclusive).await;
            let (shared, locks) = Shared::open(&info).await;
            shared.run("SET statement_timeout = '20ms'; SET lock_timeout = '20ms'").await;
            if version >= 17 {
                shared.run("SET transaction_timeout = '20ms'").await;
            }
            let waiter = tokio::spawn(async move { locks.try_lock(KEY, wait).await });
            let pid = observer.waiting().await;
            let longer = format!(
                "SELECT clock_timestamp() > query_start + interval '100 ms' FROM pg_stat_activity WHERE pid = {pid}"
            );
            observer.until("the wait to be longer than both limits", &longer).await;
            holder.release().await.unwrap();
            let guard = waiter.await.unwrap().unwrap().expect("it became free");
            assert_eq!(guard.pid(), pid, "{version}");
            guard.release().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_transaction_continues_after_a_wait_that_timed_out() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let holder = take(&info, KEY, Mode::Exclusive).await;
        let mut client = open(&info).await.client;
        ask(&client, "CREATE TABLE done (what text)").await;
        let transaction = client.transaction().await.unwrap();
        transaction
            .batch_execute("SET LOCAL lock_timeout = '11s'; INSERT INTO done VALUES ('before')")
            .await
            .unwrap();
        assert!(!xact_lock(&transaction, KEY, Mode::Shared, SOON).await.unwrap(), "{version}");
        assert_eq!(ask(transaction.client(), "SHOW lock_timeout").await, "11s", "{version}");
        holder.release().await.unwrap();
        assert!(xact_lock(&transaction, KEY, Mode::Exclusive, LONG).await.unwrap(), "{version}");
        assert_eq!(ask(transaction.client(), "SHOW lock_timeout").await, "11s", "{version}");
        assert!(!is_free(&info, KEY).await, "{version}: the end of the savepoint does not release it");
        transaction.batch_execute("INSERT INTO done VALUES ('after')").await.unwrap();
        transaction.commit().await.unwrap();
        assert!(is_free(&info, KEY).await, "{version}");
        assert_eq!(ask(&client, "SELECT what FROM done").await, "before\nafter", "{version}");
        assert_eq!(ask(&client, "SHOW lock_timeout").await, "0", "{version}");
    }
}

#[tokio::test]
async fn a_wait_that_is_dropped_is_taken_back() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let holder = take(&info, KEY, Mode::Exclusive).await;
        let locks = Locks::new(info.clone()).without_pooler_test();
        let waiter = tokio::spawn(async move { locks.lock(KEY).await });
        let pid = observer.waiting().await;
        waiter.abort();
        observer.until_ended(pid).await;
        assert!(!is_free(&info, KEY).await, "{version}: the holder has it all the time");
        holder.release().await.unwrap();
        assert!(is_free(&info, KEY).await, "{version}: no ghost took it");
    }
}

#[tokio::test]
async fn a_guard_of_which_a_call_was_dropped_does_not_give_its_connection_back() {
    let info = database(server_of(oldest()).await).await;
    let observer = Observer::open(&info).await;
    let holder = take(&info, KEY, Mode::Exclusive).await;
    let mut lock = take(&info, Key::Bigint(1), Mode::Exclusive).await;
    let pid = lock.pid();
    tokio::select! {
        _ = lock.also(KEY, Mode::Exclusive, Wait::Forever) => panic!("another session holds it"),
        waiting = observer.waiting() => assert_eq!(waiting, pid),
    }
    // The requested lock may be granted later: so the guard holds nothing from now on, and reports that.
    let lost = tokio::time::timeout(TIMEOUT, lock.lost()).await.expect("it is lost");
    assert_eq!(lost, Lost::GivenUp);
    observer.until_ended(pid).await;
    holder.release().await.unwrap();
    assert!(is_free(&info, KEY).await && is_free(&info, 1).await);
    assert!(matches!(lock.release().await, Err(Error::NotHeld(Lost::GivenUp))));
}

#[tokio::test]
async fn a_cancelled_wait_and_a_deadlock_are_errors_that_close_the_connection() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let mut holder = take(&info, KEY, Mode::Exclusive).await;
        let locks = Locks::new(info.clone()).without_pooler_test();
        let waiter = tokio::spawn(async move { locks.lock(KEY).await });
        let pid = observer.waiting().await;
        observer.ask(&format!("SELECT pg_cancel_backend({pid})")).await;
        let error = waiter.await.unwrap().unwrap_err();
        assert_eq!(error.sqlstate(), Some("57014"), "{version}: {error}");
        observer.until_ended(pid).await;

        let other_key = Key::Bigint(2);
        let mut other = take(&info, &other_key, Mode::Exclusive).await;
        // The session that is done releases its locks.
        let first = async {
            let got = holder.also(&other_key, Mode::Exclusive, Wait::Forever).await;
            drop(holder);
            got
        };
        let second = async {
            observer.waiting().await;
            let got = other.also(KEY, Mode::Exclusive, Wait::Forever).await;
            drop(other);
            got
        };
        let (first, second) = tokio::join!(first, second);
        // The server chooses a victim; the other session gets its lock.
        let (victim, winner) = if first.is_err() { (first, second) } else { (second, first) };
        assert_eq!(victim.unwrap_err().sqlstate(), Some("40P01"), "{version}");
        assert!(winner.unwrap(), "{version}");
    }
}
