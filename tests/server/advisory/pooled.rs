//! Behind a pooler.

use locktop::demo::postgres::EmbeddedServer;
use locktop::locks::advisory::{Key, Locks, Mode, Wait, xact_lock};
use locktop::locks::{Error, PoolerError};
use locktop::pg::conninfo::ConnInfo;

use super::observer::{Observer, ask, is_free, take};
use super::pooler::Pooler;
use super::support::{database, open, server, wait_until};

const KEY: Key = Key::Bigint(77);

async fn place() -> (&'static EmbeddedServer, ConnInfo, Observer) {
    let server = server().await;
    let direct = database(server).await;
    let observer = Observer::open(&direct).await;
    (server, direct, observer)
}

fn through(pooler: &Pooler, info: &ConnInfo) -> ConnInfo {
    ConnInfo::parse(&pooler.target(info)).unwrap()
}

#[tokio::test]
async fn a_session_lock_behind_a_pooler_in_transaction_mode_is_a_strangers_and_is_refused() {
    let (server, direct, observer) = place().await;
    for more in ["", "default_pool_size = 1", "server_round_robin = 1"] {
        let pooler = Pooler::start_with(server, "transaction", more);
        let info = through(&pooler, &direct);
        // Without the check: the lock stays on a connection that all clients share.
        let (naive, stranger) = (open(&info).await, open(&info).await);
        ask(&naive.client, "SELECT pg_advisory_lock(77)").await;
        assert_eq!(
            ask(&stranger.client, "SELECT pg_advisory_unlock(77)").await,
            "t",
            "the stranger unlocks it"
        );
        for _ in 0..3 {
            let error = Locks::new(info.clone()).lock(KEY).await.unwrap_err();
            assert!(matches!(error, Error::Pooler(PoolerError::Transactions)), "{more}: {error}");
            assert!(error.to_string().contains("a pooler in transaction mode"), "{error}");
        }
        drop((naive, stranger));
        let held = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
            WHERE locktype = 'advisory' AND datname = current_database()";
        assert_eq!(observer.ask(held).await, "0", "{more}: nothing is left behind");
    }
}

#[tokio::test]
async fn a_transaction_mode_pooler_used_by_others_is_detected_too() {
    let (server, direct, _) = place().await;
    for more in ["", "server_round_robin = 1"] {
        let pooler = Pooler::start_with(server, "transaction", more);
        let info = through(&pooler, &direct);
        // Three other server connections, idle or in a transaction.
        let others = [open(&info).await, open(&info).await, open(&info).await];
        for other in &others {
            other.client.batch_execute("BEGIN").await.unwrap();
        }
        others[0].client.batch_execute("COMMIT").await.unwrap();
        others[1].client.batch_execute("COMMIT").await.unwrap();
        let error = Locks::new(info.clone()).lock(KEY).await.unwrap_err();
        assert!(matches!(error, Error::Pooler(PoolerError::Transactions)), "{more}: {error}");
    }
}

#[tokio::test]
async fn a_pooler_in_statement_mode_is_refused_with_its_own_words() {
    let (server, direct, _) = place().await;
    let pooler = Pooler::start(server, "statement");
    let error = Locks::new(through(&pooler, &direct)).lock(KEY).await.unwrap_err();
    assert!(matches!(error, Error::Pooler(PoolerError::Unknown(_))), "{error}");
    assert!(error.to_string().contains("statement pooling"), "{error}");
}

#[tokio::test]
async fn behind_a_pooler_in_session_mode_a_session_is_ones_own() {
    let (server, direct, observer) = place().await;
    let pooler = Pooler::start(server, "session");
    let info = through(&pooler, &direct);
    let lock = Locks::new(info.clone()).lock(KEY).await.unwrap();
    assert_eq!(observer.rows(lock.pid()).await, "1");
    assert!(!is_free(&direct, KEY).await);
    lock.release().await.unwrap();
    assert!(is_free(&direct, KEY).await);
    // The pooler keeps the server's connection, and clears its locks before another client gets it.
    let lock = take(&info, KEY, Mode::Exclusive).await;
    drop(lock);
    wait_until("the pooler to clear it", async || is_free(&direct, KEY).await).await;
}

#[tokio::test]
async fn a_transactions_lock_works_behind_any_pooler() {
    let (server, direct, _) = place().await;
    let pooler = Pooler::start(server, "transaction");
    let mut connection = open(&through(&pooler, &direct)).await;
    for wait in [Wait::Forever, Wait::Never, Wait::AtMost(std::time::Duration::from_secs(30))] {
        let transaction = connection.client.transaction().await.unwrap();
        assert!(xact_lock(&transaction, KEY, Mode::Exclusive, wait).await.unwrap());
        assert!(!is_free(&direct, KEY).await);
        transaction.commit().await.unwrap();
        assert!(is_free(&direct, KEY).await, "{wait:?}");
        assert_eq!(ask(&connection.client, "SHOW lock_timeout").await, "0", "{wait:?}");
    }
}
