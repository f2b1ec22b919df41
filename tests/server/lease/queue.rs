//! Waiters for a lease: served in order, woken by a release, and disconnected when they are dropped.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use locktop::locks::lease::{Lease, Request};
use locktop::pg::connect::{Received, listen};
use locktop::pg::conninfo::ConnInfo;
use tokio::task::JoinHandle;

use super::holder::Holder;
use super::place::{LONG, Session, hold, installed};
use super::pooler::Pooler;
use super::support::{TIMEOUT, oldest, server_of, versions, wait_until};

/// The sessions that are in a queue in this database, the first included. A request that only checks whether there is a queue
/// holds the lock in share mode.
const QUEUE: &str = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND d.datname = current_database()";
const WAITERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'waiter'
    AND datname = current_database()";
/// Both the holder and a waiter have asked for a lease.
const ASKED: &str = "SELECT count(*) = 2 FROM pg_stat_activity WHERE query ~ 'lease_acquire[(]'
    AND datname = current_database() AND pid <> pg_backend_pid()";
const KEY: &str = r#"SELECT hashtextextended('locktop lease "locktop" 7', 0)"#;

/// Lease 7, requested again only after the notification of a release, or when the term of its holder is over.
fn request(owner: &str) -> Request {
    Request { retry: LONG, ..Request::new(7, owner, LONG) }
}

/// Another waiter, returned when it is in the queue.
async fn wait(info: &ConnInfo, session: &Session, number: usize) -> JoinHandle<Lease> {
    let info = info.clone().with_application_name("waiter");
    let waiter = tokio::spawn(async move {
        let lease = Lease::acquire_within(&info, &request(&format!("node{number}")), TIMEOUT).await;
        lease.unwrap().expect("it is released in time")
    });
    let number = number.to_string();
    wait_until("a place in the queue", async || session.ask(QUEUE).await == number).await;
    waiter
}

#[tokio::test]
async fn waiters_acquire_in_order_of_arrival_and_are_woken_by_the_release() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let lease = hold(&info, &request("node0")).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiters = Vec::new();
        for number in 1..=4 {
            let (waiter, order) = (wait(&info, &session, number).await, Arc::clone(&order));
            waiters.push(tokio::spawn(async move {
                let lease = waiter.await.unwrap();
                order.lock().unwrap().push((number, lease.token()));
                assert!(lease.release().await.unwrap());
            }));
        }
        assert!(lease.release().await.unwrap());
        for waiter in waiters {
            waiter.await.unwrap();
        }
        let order = order.lock().unwrap().clone();
        assert!(order.is_sorted(), "{version}: {order:?}");
        assert_eq!(order.len(), 4, "{version}");
        assert_eq!(session.ask(QUEUE).await, "0", "{version}");
    }
}

#[tokio::test]
async fn a_release_of_another_process_wakes_the_next_and_one_that_died_is_followed_after_its_term() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let address = info.to_key_value();
        let mut holder = Holder::start_with(&address, LONG);
        assert!(holder.next_line().await.starts_with("held "));
        let waiter = wait(&info, &session, 1).await;
        holder.finish();
        let lease = waiter.await.unwrap();
        assert!(lease.release().await.unwrap(), "{version}");
        drop(holder);
        let mut holder = Holder::start(&address);
        assert!(holder.next_line().await.starts_with("held "));
        let waiter = wait(&info, &session, 1).await;
        drop(holder);
        let lease = waiter.await.unwrap();
        assert!(lease.release().await.unwrap(), "{version}");
    }
}

#[tokio::test]
async fn a_waiter_that_is_dropped_leaves_neither_a_lock_nor_a_connection() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let lease = hold(&info, &request("node0")).await;
        let first = wait(&info, &session, 1).await;
        let second = wait(&info, &session, 2).await;
        second.abort();
        wait_until("one to disconnect", async || session.ask(WAITERS).await == "1").await;
        assert_eq!(session.ask(QUEUE).await, "1", "{version}");
        first.abort();
        wait_until("the other to disconnect", async || session.ask(WAITERS).await == "0").await;
        assert_eq!(session.ask(QUEUE).await, "0", "{version}");
        // A waiter that times out leaves the queue too, first or not.
        let first = wait(&info, &session, 1).await;
        let short = Duration::from_millis(50);
        assert!(Lease::acquire_within(&info, &request("node2"), short).await.unwrap().is_none(), "{version}");
        assert_eq!(session.ask(QUEUE).await, "1", "{version}");
        first.abort();
        wait_until("the first to disconnect", async || session.ask(WAITERS).await == "0").await;
        assert!(Lease::acquire_within(&info, &request("node2"), short).await.unwrap().is_none(), "{version}");
        assert_eq!(session.ask(QUEUE).await, "0", "{version}");
        assert!(lease.release().await.unwrap());
    }
}

#[tokio::test]
async fn a_release_notifies_only_if_a_session_waits() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let key = session.ask(KEY).await;
        let mut listener = listen(&info).await.unwrap();
        listener.client.batch_execute(&format!("LISTEN \"locktop_lease_{key}\"")).await.unwrap();
        let mut heard = async |mark: &str| {
            session.ask(&format!("SELECT pg_notify('locktop_lease_{key}', '{mark}')")).await;
            let mut number = 0;
            while let Some(Received::Notified(notification)) = listener.notifications.recv().await {
                if notification.payload == mark {
                    return number;
                }
                number += 1;
            }
            panic!("{version}: the connection ended")
        };
        for _ in 0..3 {
            assert!(hold(&info, &request("node0")).await.release().await.unwrap());
        }
        assert_eq!(heard("no waiter").await, 0, "{version}");
        let lease = hold(&info, &request("node0")).await;
        let waiter = wait(&info, &session, 1).await;
        assert!(lease.release().await.unwrap());
        assert!(waiter.await.unwrap().release().await.unwrap());
        assert_eq!(heard("a waiter").await, 1, "{version}");
    }
}

#[tokio::test]
async fn a_waiter_that_is_suspended_does_not_block_the_others_for_long() {
    let info = installed(oldest()).await;
    let session = Session::open(&info).await;
    let lease = hold(&info, &request("node0")).await;
    let suspended = Holder::start(&info.to_key_value());
    wait_until("it to wait", async || session.ask(QUEUE).await == "1").await;
    suspended.stop();
    let waiter = wait(&info, &session, 2).await;
    assert!(lease.release().await.unwrap());
    assert!(waiter.await.unwrap().release().await.unwrap());
}

/// A backend that waits for a lock detects that its client has disconnected.
#[tokio::test]
async fn a_killed_waiter_leaves_the_queue_before_its_turn() {
    let info = installed(oldest()).await;
    let session = Session::open(&info).await;
    let lease = hold(&info, &request("node0")).await;
    let waiter = wait(&info, &session, 1).await;
    let killed = Holder::start(&info.to_key_value());
    wait_until("it to wait", async || session.ask(QUEUE).await == "2").await;
    drop(killed);
    wait_until("its backend to leave", async || session.ask(QUEUE).await == "1").await;
    assert!(lease.release().await.unwrap());
    assert!(waiter.await.unwrap().release().await.unwrap());
}

#[tokio::test]
async fn behind_a_pooler_a_waiter_leaves_no_lock_and_no_setting_on_a_connection() {
    let version = oldest();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    for mode in ["session", "transaction"] {
        // A pool that does not reset its connections after a client.
        let pooler = Pooler::start_with(server_of(version).await, mode, "server_reset_query =");
        let through = ConnInfo::parse(&pooler.target(&info)).unwrap();
        let lease = hold(&info, &Request::new(7, "node0", LONG)).await;
        let waiting = Request::new(7, "node1", LONG);
        let waiter = Lease::acquire_within(&through, &waiting, TIMEOUT);
        let releasing = async {
            let waits = if mode == "session" { format!("SELECT ({QUEUE}) = 1") } else { ASKED.to_owned() };
            wait_until("it to wait", async || session.ask(&waits).await == "t").await;
            assert!(lease.release().await.unwrap());
        };
        let (lease, ()) = tokio::join!(waiter, releasing);
        let lease = lease.unwrap().expect("it is released in time");
        wait_until("it to leave the queue", async || session.ask(QUEUE).await == "0").await;
        assert!(lease.release().await.unwrap(), "{mode}");
        let sessions = join_all((0..3).map(|_| Session::open(&through))).await;
        let left =
            "SELECT current_setting('idle_session_timeout'), (SELECT count(*) FROM pg_listening_channels())";
        for session in sessions {
            assert_eq!(session.ask(left).await, "0|0", "{mode}");
        }
    }
}
