//! Semaphores.

use std::time::Duration;

use locktop::locks::Error;
use locktop::locks::advisory::{Guard, Locks, Wait};
use locktop::pg::conninfo::ConnInfo;

use super::observer::{Observer, is_free};
use super::support::{database, server_of, versions, wait_until};

async fn taken(locks: &Locks<ConnInfo>, wait: Wait) -> Option<Guard> {
    locks.permit("reports", 2, wait).await.unwrap()
}

#[tokio::test]
async fn permits_are_limited_and_waiters_are_served_in_order() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let locks = Locks::new(info.clone()).without_pooler_test();
        let long = Wait::AtMost(Duration::from_secs(60));
        let (first, second) = (taken(&locks, Wait::Never).await.unwrap(), taken(&locks, long).await.unwrap());
        assert_ne!(first.held(), second.held());
        assert!(taken(&locks, Wait::Never).await.is_none(), "{version}");
        assert!(taken(&locks, Wait::AtMost(Duration::from_millis(120))).await.is_none(), "{version}");
        assert!(is_free(&info, "reports #queue").await, "{version}: a waiter that gives up leaves the queue");

        let (served, mut order) = tokio::sync::mpsc::unbounded_channel();
        let queue = "SELECT count(*) FROM pg_locks l, pg_database d WHERE d.oid = l.database AND NOT l.granted \
            AND l.locktype = 'advisory' AND d.datname = current_database()";
        let mut waiters = Vec::new();
        for at in 0..3 {
            let (locks, served) = (locks.clone(), served.clone());
            waiters.push(tokio::spawn(async move {
                let guard = taken(&locks, Wait::Forever).await.unwrap();
                served.send((at, guard)).unwrap();
            }));
            // The first of them has the lock of the queue, and asks now and then for all permits; the others wait for it.
            wait_until("it to wait behind the others", async || {
                !is_free(&info, "reports #queue").await && observer.ask(queue).await == at.to_string()
            })
            .await;
        }
        let tag = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '/* lock reports #1-2 */%'";
        second.release().await.unwrap();
        let (at, third) = order.recv().await.unwrap();
        assert_eq!(at, 0, "{version}");
        observer.until("its permit to be visible by name", &tag.replace("count(*)", "count(*) > 0")).await;
        drop(first);
        let (at, fourth) = order.recv().await.unwrap();
        assert_eq!(at, 1, "{version}");
        third.release().await.unwrap();
        assert_eq!(order.recv().await.unwrap().0, 2, "{version}");
        fourth.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_number_of_permits_that_makes_no_sense_is_refused() {
    let info = ConnInfo::parse("host=/nowhere").unwrap();
    for of in [0, 1_001] {
        let error = Locks::new(info.clone()).permit("a", of, Wait::Never).await.unwrap_err();
        assert!(matches!(error, Error::Request(_)), "{error}");
    }
}
