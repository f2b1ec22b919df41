//! Which locks conflict, for every pair of level, mode and kind of key.

use locktop::locks::advisory::{Key, Locks, Mode, Wait, xact_lock};
use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;

use super::observer::{Observer, Shared, gets, is_free, take};
use super::support::{database, open, server_of, versions};

const MODES: [Mode; 2] = [Mode::Exclusive, Mode::Shared];

/// A key, and one of the other kind with the same bits.
fn keys() -> Vec<(Key, Key)> {
    let mut keys = vec![];
    for bits in [0, 1, -1, i64::MIN, i64::MAX, 1 << 32, i64::from(i32::MIN), -(1 << 32)] {
        let high = i32::try_from(bits >> 32).unwrap();
        let low = u32::try_from(bits & 0xFFFF_FFFF).unwrap().cast_signed();
        keys.push((Key::Bigint(bits), Key::Pair(high, low)));
        keys.push((Key::Pair(high, low), Key::Bigint(bits)));
    }
    keys
}

/// Another client, with a connection for session locks and one for transaction locks.
struct Other {
    locks: Locks<Shared>,
    connection: Connection,
}

impl Other {
    async fn open(info: &ConnInfo) -> Self {
        Self { locks: Shared::open(info).await.1, connection: open(info).await }
    }

    /// The locks that it gets while a lock is held: exclusive and shared, of a session and of a transaction.
    async fn gets(&mut self, key: &Key) -> Vec<(Mode, bool)> {
        let mut got = Vec::new();
        for mode in MODES {
            let by_session = gets(&self.locks, key, mode).await;
            let transaction = self.connection.client.transaction().await.unwrap();
            let by_transaction = xact_lock(&transaction, key, mode, Wait::Never).await.unwrap();
            transaction.rollback().await.unwrap();
            got.extend([(mode, by_session), (mode, by_transaction)]);
        }
        got
    }
}

fn expected(held: Mode) -> Vec<(Mode, bool)> {
    MODES.iter().flat_map(|asked| [(*asked, held == Mode::Shared && *asked == Mode::Shared); 2]).collect()
}

#[tokio::test]
async fn exclusive_keeps_everybody_out_and_shared_the_exclusive_at_either_level() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let mut holder = open(&info).await;
        let mut other = Other::open(&info).await;
        for (key, same_bits) in keys() {
            for mode in MODES {
                let guard = take(&info, &key, mode).await;
                assert_eq!(other.gets(&key).await, expected(mode), "{version}: {mode:?} {key} of a session");
                let got = other.gets(&same_bits).await;
                assert!(got.iter().all(|(_, got)| *got), "{version}: {key:?} and {same_bits:?} are two keys");
                guard.release().await.unwrap();

                let transaction = holder.client.transaction().await.unwrap();
                assert!(xact_lock(&transaction, &key, mode, Wait::Forever).await.unwrap());
                assert_eq!(
                    other.gets(&key).await,
                    expected(mode),
                    "{version}: {mode:?} {key} of a transaction"
                );
                let got = other.gets(&same_bits).await;
                assert!(got.iter().all(|(_, got)| *got), "{version}: {key:?} and {same_bits:?} are two keys");
                transaction.commit().await.unwrap();
                assert!(
                    gets(&other.locks, &key, Mode::Exclusive).await,
                    "{version}: the transaction has ended"
                );
            }
        }
    }
}

#[tokio::test]
async fn the_lock_manager_has_the_key_that_was_asked_for() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        for (key, _) in keys() {
            let lock = take(&info, &key, Mode::Shared).await;
            let sql =
                "SELECT classid, objid, objsubid, mode FROM pg_locks WHERE locktype = 'advisory' AND pid = ";
            let expected = match key {
                Key::Bigint(key) => {
                    let bits = key.cast_unsigned();
                    format!("{}|{}|1|ShareLock", bits >> 32, bits & 0xFFFF_FFFF)
                }
                Key::Pair(first, second) => {
                    format!("{}|{}|2|ShareLock", first.cast_unsigned(), second.cast_unsigned())
                }
                key => panic!("{key}"),
            };
            assert_eq!(observer.ask(&format!("{sql}{}", lock.pid())).await, expected, "{version}: {key:?}");
        }
    }
}

#[tokio::test]
async fn a_session_never_keeps_itself_out() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        for held in MODES {
            for asked in MODES {
                let mut lock = take(&info, Key::Bigint(5), held).await;
                assert!(
                    lock.also(Key::Bigint(5), asked, Wait::Never).await.unwrap(),
                    "{version}: {held:?} {asked:?}"
                );
                lock.release().await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_transaction_gives_its_lock_back_at_its_end_or_at_an_older_savepoint_only() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let key = Key::Bigint(9);
        let mut holder = open(&info).await;
        for ends in ["COMMIT", "ROLLBACK", "ROLLBACK TO SAVEPOINT before"] {
            let transaction = holder.client.transaction().await.unwrap();
            transaction.batch_execute("SAVEPOINT before").await.unwrap();
            assert!(xact_lock(&transaction, &key, Mode::Exclusive, Wait::Never).await.unwrap());
            // There is no unlock for it.
            transaction
                .batch_execute("SELECT pg_advisory_unlock(9), pg_advisory_unlock_all()")
                .await
                .unwrap();
            assert!(!is_free(&info, &key).await, "{version}");
            transaction.batch_execute(ends).await.unwrap();
            assert!(is_free(&info, &key).await, "{version}: {ends}");
        }
    }
}
