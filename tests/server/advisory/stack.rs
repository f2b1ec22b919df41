//! Locks of a session: stacked, kept, given back.

use locktop::locks::advisory::{Key, Mode, Session, Wait};

use super::look::{Eye, ask, is_free, take};
use super::support::{database, open, server_of, versions};

const KEY: Key = Key::Bigint(10_001);

#[tokio::test]
async fn two_locks_need_two_unlocks_and_are_one_row() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let eye = Eye::open(&info).await;
        let mut lock = take(&info, KEY, Mode::Exclusive).await;
        assert!(lock.also(KEY, Mode::Exclusive, Wait::Never).await.unwrap());
        assert_eq!(lock.held(), [(KEY, Mode::Exclusive); 2]);
        assert_eq!(eye.rows(lock.session().pid()).await, "1", "{version}");
        assert_eq!(ask(lock.session().client(), "SELECT pg_advisory_unlock(10001)").await, "t");
        assert!(!is_free(&info, KEY).await, "{version}: one of two is left");
        let released = lock.release().await.unwrap();
        assert!(!released.held, "{version}: one of them was unlocked behind the guard's back");
        assert!(is_free(&info, KEY).await, "{version}");

        let mut lock = take(&info, KEY, Mode::Exclusive).await;
        for mode in [Mode::Shared, Mode::Exclusive, Mode::Shared] {
            assert!(lock.also(KEY, mode, Wait::Forever).await.unwrap());
        }
        assert!(lock.also(Key::Pair(1, 2), Mode::Shared, Wait::Never).await.unwrap());
        assert_eq!(eye.rows(lock.session().pid()).await, "3", "{version}: a row for each key and mode");
        let released = lock.release().await.unwrap();
        assert!(released.held, "{version}");
        assert_eq!(eye.rows(released.session.pid()).await, "0", "{version}");
        assert!(is_free(&info, KEY).await, "{version}");
    }
}

#[tokio::test]
async fn a_lock_survives_the_transaction_it_was_taken_in_and_an_error_and_a_cancel() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let eye = Eye::open(&info).await;
        let lock = take(&info, Key::Bigint(1), Mode::Exclusive).await;
        let client = lock.session().client();
        // As somebody would who does not use this library.
        client.batch_execute("BEGIN; SELECT pg_advisory_lock(10001); ROLLBACK").await.unwrap();
        assert!(!is_free(&info, KEY).await, "{version}: it survives ROLLBACK");
        assert!(client.batch_execute("SELECT 1 / 0").await.is_err());
        assert!(!is_free(&info, KEY).await, "{version}: and an error");
        let cancel = format!("SELECT pg_cancel_backend({})", lock.session().pid());
        assert_eq!(eye.ask(&cancel).await, "t", "the server says that it did");
        let (cancelled, ()) = tokio::join!(client.batch_execute("SELECT pg_sleep(60)"), async {
            let busy = format!(
                "SELECT state = 'active' AND query LIKE '%pg_sleep%' FROM pg_stat_activity WHERE pid = {}",
                lock.session().pid()
            );
            eye.until("the holder to be busy", &busy).await;
            eye.ask(&cancel).await;
        });
        assert_eq!(cancelled.unwrap_err().code().unwrap().code(), "57014", "{version}");
        assert!(!is_free(&info, KEY).await, "{version}: and pg_cancel_backend, idle or busy");
        assert!(!is_free(&info, Key::Bigint(1)).await, "{version}");
        assert!(lock.release().await.unwrap().held);
        assert!(is_free(&info, Key::Bigint(1)).await, "{version}");
        eye.until("the other to be free, with its connection", "SELECT pg_try_advisory_lock(10001)").await;
    }
}

#[tokio::test]
async fn the_guards_own_lock_taken_in_a_transaction_survives_it() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let mut lock = take(&info, Key::Bigint(1), Mode::Exclusive).await;
        for wait in [Wait::Forever, Wait::Never] {
            lock.session().client().batch_execute("BEGIN").await.unwrap();
            assert!(lock.also(KEY, Mode::Exclusive, wait).await.unwrap());
            lock.session().client().batch_execute("ROLLBACK").await.unwrap();
            assert!(!is_free(&info, KEY).await, "{version}: {wait:?}");
        }
        assert!(lock.release().await.unwrap().held, "{version}");
    }
}

#[tokio::test]
async fn a_pool_gets_its_connection_back_as_it_was() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let eye = Eye::open(&info).await;
        let pooled = open(&info).await;
        let settings =
            "SELECT name, setting FROM pg_settings WHERE source NOT IN ('default', 'override') ORDER BY 1";
        let before = ask(&pooled.client, settings).await;
        let session = Session::adopt(pooled, &info).await.unwrap();
        let pid = session.pid();
        ask(session.client(), "SELECT pg_advisory_lock(3), pg_advisory_lock_shared(3, 4)").await;
        assert_eq!(eye.rows(pid).await, "2");
        let pooled = session.into_connection().await.unwrap();
        assert_eq!(ask(&pooled.client, "SELECT pg_backend_pid()").await, pid.to_string());
        assert_eq!(eye.rows(pid).await, "0", "{version}: nothing is held");
        assert_eq!(ask(&pooled.client, settings).await, before, "{version}");
        drop(pooled);
        eye.until_gone(pid).await;
    }
}
