//! Election of a leader.

use std::sync::Arc;

use locktop::locks::Error;
use locktop::locks::advisory::Locks;
use locktop::pg::conninfo::ConnInfo;
use tokio::sync::{Notify, mpsc};

use super::observer::{Observer, is_free};
use super::support::{database, server_of, versions, wait_until};

const END: &str =
    "SELECT pg_terminate_backend(l.pid) FROM pg_locks l, pg_database d WHERE d.oid = l.database AND l.granted
    AND l.locktype = 'advisory' AND d.datname = current_database()";

#[tokio::test]
async fn only_one_leads_and_a_leader_that_lost_its_lock_waits_again() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let (started, mut leaders) = mpsc::unbounded_channel();
        let stop = Arc::new(Notify::new());
        let mut running = Vec::new();
        for name in ["a", "b"] {
            let (locks, started, stop) = (Locks::new(info.clone()), started.clone(), Arc::clone(&stop));
            running.push(tokio::spawn(async move {
                let work = || {
                    started.send(name).unwrap();
                    std::future::pending()
                };
                locks.lead("scheduler", stop.notified(), work).await
            }));
        }
        let first = leaders.recv().await.unwrap();
        observer.waiting().await;
        let pid = "SELECT l.pid FROM pg_locks l, pg_database d WHERE d.oid = l.database AND l.granted
            AND l.locktype = 'advisory' AND d.datname = current_database()";
        let holder = Locks::new(info.clone()).holder("scheduler").await.unwrap().unwrap();
        assert_eq!(holder.pid.to_string(), observer.ask(pid).await, "{version}");
        let name = format!("SELECT application_name FROM pg_stat_activity WHERE pid = {}", holder.pid);
        assert_eq!(holder.application_name, observer.ask(&name).await, "{version}");
        observer.ask(END).await;
        let second = leaders.recv().await.unwrap();
        assert_ne!(first, second, "{version}: the other one waited");
        observer.waiting().await;
        observer.ask(END).await;
        assert_eq!(leaders.recv().await.unwrap(), first, "{version}: it runs again");
        observer.waiting().await;
        stop.notify_waiters();
        for running in running {
            running.await.unwrap().unwrap();
        }
        // One that stopped waiting may have been granted it a moment before.
        wait_until("the lock to be free", async || is_free(&info, "scheduler").await).await;
    }
}

#[tokio::test]
async fn work_that_is_done_ends_it_and_a_wrong_login_is_an_error() {
    let info = database(super::support::server().await).await;
    let locks = Locks::new(info.clone());
    locks.lead("scheduler", std::future::pending(), async || {}).await.unwrap();
    assert!(is_free(&info, "scheduler").await);
    assert_eq!(locks.holder("scheduler").await.unwrap(), None);
    let wrong =
        ConnInfo::parse(&format!("{} user=nobody_here", super::support::server().await.conninfo())).unwrap();
    let error = Locks::new(wrong).lead("scheduler", std::future::pending(), async || {}).await.unwrap_err();
    assert!(matches!(error, Error::Connect(_)), "{error}");
}
