//! Locks of a session: stacked, kept, released.

use locktop::locks::advisory::{Key, Mode, Wait};
use locktop::locks::{Error, Lost};

use super::observer::{Observer, Shared, is_free, take};
use super::support::{database, server_of, versions};

const KEY: Key = Key::Bigint(10_001);

#[tokio::test]
async fn two_locks_need_two_unlocks_and_are_one_row() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let (shared, locks) = Shared::open(&info).await;
        let mut guard = locks.lock(KEY).await.unwrap();
        assert!(guard.also(KEY, Mode::Exclusive, Wait::Never).await.unwrap());
        assert_eq!(guard.held(), [(KEY, Mode::Exclusive), (KEY, Mode::Exclusive)]);
        assert_eq!(observer.rows(guard.pid()).await, "1", "{version}");
        assert_eq!(shared.run("SELECT pg_advisory_unlock(10001)").await, "t");
        assert!(!is_free(&info, KEY).await, "{version}: one of two is left");
        let error = guard.release().await.unwrap_err();
        assert!(
            matches!(error, Error::NotHeld(Lost::Unlocked)),
            "{version}: one of them was unlocked behind the guard's back: {error}"
        );
        assert!(is_free(&info, KEY).await, "{version}");

        let mut guard = take(&info, KEY, Mode::Exclusive).await;
        for mode in [Mode::Shared, Mode::Exclusive, Mode::Shared] {
            assert!(guard.also(KEY, mode, Wait::Forever).await.unwrap());
        }
        assert!(guard.also((1, 2), Mode::Shared, Wait::Never).await.unwrap());
        let pid = guard.pid();
        assert_eq!(observer.rows(pid).await, "3", "{version}: a row for each key and mode");
        guard.release().await.unwrap();
        assert_eq!(observer.rows(pid).await, "0", "{version}");
        assert!(is_free(&info, KEY).await, "{version}");
    }
}

#[tokio::test]
async fn a_rollback_an_error_and_a_cancelled_statement_leave_it() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let (shared, locks) = Shared::open(&info).await;
        let mut guard = locks.lock(1).await.unwrap();
        let client = &shared.0.client;
        for wait in [Wait::Forever, Wait::Never] {
            client.batch_execute("BEGIN").await.unwrap();
            assert!(guard.also(KEY, Mode::Exclusive, wait).await.unwrap());
            client.batch_execute("ROLLBACK").await.unwrap();
            assert!(!is_free(&info, KEY).await, "{version}: it survives ROLLBACK, {wait:?}");
        }
        assert!(client.batch_execute("SELECT 1 / 0").await.is_err());
        assert!(!is_free(&info, KEY).await, "{version}: and an error");
        let pid = guard.pid();
        let (cancelled, ()) = tokio::join!(client.batch_execute("SELECT pg_sleep(60)"), async {
            let busy = format!(
                "SELECT state = 'active' AND query LIKE '%pg_sleep%' FROM pg_stat_activity WHERE pid = {pid}"
            );
            observer.until("the holder to be busy", &busy).await;
            observer.ask(&format!("SELECT pg_cancel_backend({pid})")).await;
        });
        assert_eq!(cancelled.unwrap_err().code().unwrap().code(), "57014", "{version}");
        assert!(!is_free(&info, KEY).await, "{version}: and pg_cancel_backend");
        guard.release().await.unwrap();
        assert!(is_free(&info, KEY).await && is_free(&info, 1).await, "{version}");
    }
}

#[tokio::test]
async fn several_are_held_at_once_in_one_order_or_not_at_all() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let (_, locks) = Shared::open(&info).await;
        let keys = [Key::named("b"), Key::Pair(1, 2), Key::Bigint(3), Key::named("b")];
        for wait in [Wait::Never, Wait::AtMost(std::time::Duration::from_secs(60)), Wait::Forever] {
            let guard = locks.all(&keys, wait).await.unwrap().expect("all are free");
            assert_eq!(guard.held().len(), 3, "the same one twice is one");
            assert_eq!(observer.rows(guard.pid()).await, "3", "{version}: {wait:?}");
            guard.release().await.unwrap();
        }
        let holder = take(&info, "b", Mode::Shared).await;
        for wait in [Wait::Never, Wait::AtMost(std::time::Duration::from_millis(30))] {
            assert!(locks.all(&keys, wait).await.unwrap().is_none(), "{version}: {wait:?}");
            assert!(is_free(&info, 3).await && is_free(&info, (1, 2)).await, "{version}: {wait:?}");
        }
        holder.release().await.unwrap();
        assert!(matches!(locks.all(&[], Wait::Never).await, Err(Error::Request(_))));
    }
}
