//! Keys by name.

use std::time::Duration;

use locktop::locks::advisory::{Key, Locks, Mode, Wait, xact_lock};

use super::observer::{Observer, is_free, take};
use super::support::{database, open, server_of, versions};

/// The statement of the manual.
const IN_SQL: &str = "('x' || left(encode(sha256(convert_to('locktop-lock:' || 'invoice:7', 'UTF8')), 'hex'), 16))::bit(64)::bigint";

#[tokio::test]
async fn a_name_is_the_same_key_in_sql_and_is_seen_with_its_holder_and_its_waiters() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let key = Key::named("invoice:7");
        assert_eq!(observer.ask(&format!("SELECT {IN_SQL}")).await, key.number().to_string(), "{version}");
        let seen = "SELECT bool_and(query LIKE '/* lock invoice:7 */ %') AND count(*) = 2 FROM pg_stat_activity \
            WHERE pid <> pg_backend_pid() AND query LIKE '%advisory%' AND datname = current_database()";
        let locks = Locks::new(info.clone()).without_pooler_test();
        for wait in [Wait::Never, Wait::Forever] {
            let guard = locks.try_lock("invoice:7", wait).await.unwrap().unwrap();
            let waiter = {
                let locks = locks.clone();
                tokio::spawn(async move {
                    locks.try_lock("invoice:7", Wait::AtMost(Duration::from_secs(60))).await
                })
            };
            observer.until("both to be seen with the name", seen).await;
            guard.release().await.unwrap();
            waiter.await.unwrap().unwrap().expect("it became free").release().await.unwrap();
        }
        let mut connection = open(&info).await;
        let transaction = connection.client.transaction().await.unwrap();
        assert!(xact_lock(&transaction, "invoice:7", Mode::Exclusive, Wait::Never).await.unwrap());
        assert!(!is_free(&info, "invoice:7").await && is_free(&info, "invoice:8").await);
        transaction.rollback().await.unwrap();
        // Text that would end the comment is left out of the statement.
        let odd = "x */ SELECT pg_sleep(1e6); /* \u{1b}[2J";
        take(&info, odd, Mode::Exclusive).await.release().await.unwrap();
    }
}

/// A name that the encoding of the database cannot write is locked all the same, only not shown.
#[tokio::test]
async fn a_name_of_other_characters_is_locked_in_any_encoding() {
    let server = super::support::server().await;
    let observer = Observer::open(&database(server).await).await;
    observer
        .ask("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        .await;
    let info = database(server).await.with_dbname("latin");
    for wait in [Wait::Never, Wait::Forever] {
        let locks = Locks::new(info.clone()).without_pooler_test();
        let guard = locks.try_lock("договор", wait).await.unwrap().unwrap();
        assert!(!is_free(&info, Key::named("договор")).await);
        guard.release().await.unwrap();
    }
    let mut connection = open(&info).await;
    let transaction = connection.client.transaction().await.unwrap();
    assert!(xact_lock(&transaction, "договор", Mode::Exclusive, Wait::Never).await.unwrap());
}
