//! A server that stops answering, and one that terminates a session with an error.

use std::time::Duration;

use locktop::locks::advisory::{Guard, Key, Locks, Mode, Wait, xact_lock};
use locktop::locks::{Error, Lost};
use rustix::process::{Pid, Signal, kill_process};

use super::observer::{Observer, Shared, is_free, take};
use super::support::{TIMEOUT, database, oldest, open, server_of, versions};

const KEY: Key = Key::Bigint(9_191);

/// A backend that is stopped until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: i32) -> Self {
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// The result of a call to a stopped backend, and that of a call on the same connection a moment later.
async fn silent<T>(what: &str, answer: impl Future<Output = Result<T, Error>>) {
    let answer = tokio::time::timeout(TIMEOUT, answer).await;
    let answer = answer.unwrap_or_else(|_| panic!("{what} waits forever"));
    assert!(matches!(answer, Err(Error::Silent { .. })), "{what}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let info = database(server_of(oldest()).await).await;
    let held = take(&info, Key::Bigint(1), Mode::Exclusive).await;
    let also = take(&info, Key::Bigint(2), Mode::Exclusive).await;
    let (tries, try_locks) = Shared::open(&info).await;
    let (waits, wait_locks) = Shared::open(&info).await;
    let mut client = open(&info).await.client;
    let transaction = client.transaction().await.unwrap();
    let row = transaction.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
    let mut pids = vec![held.pid(), also.pid()];
    for shared in [&tries, &waits] {
        pids.push(shared.run("SELECT pg_backend_pid()").await.parse().unwrap());
    }
    pids.push(row.get(0));
    let stopped: Vec<Stopped> = pids.iter().copied().map(Stopped::new).collect();
    let (mode, never) = (Mode::Exclusive, Wait::Never);
    let again = async move {
        let mut also = also;
        silent("another lock", also.also(KEY, mode, never)).await;
        let error = also.release().await.unwrap_err();
        assert!(matches!(error, Error::NotHeld(Lost::GivenUp)), "what it holds is not known: {error}");
    };
    tokio::join!(
        silent("a release", held.release()),
        again,
        silent("a try", try_locks.try_lock(KEY, never)),
        silent("a wait", wait_locks.try_lock(KEY, Wait::AtMost(Duration::from_millis(100)))),
        silent("a transaction's try", xact_lock(&transaction, KEY, mode, never)),
    );
    drop(stopped);
    // When it continues it finds that its client has disconnected.
    let observer = Observer::open(&info).await;
    for pid in &pids[..4] {
        observer.until_ended(*pid).await;
    }
    assert!(is_free(&info, 1).await);
}

/// The server reports it as an error, which is not a refusal: the locks are lost.
#[tokio::test]
async fn a_session_that_is_ended_while_it_waits_is_lost() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let _holder = take(&info, KEY, Mode::Exclusive).await;
        let locks = Locks::new(info.clone()).without_pooler_test();
        let end = async {
            let pid = observer.waiting().await;
            observer.ask(&format!("SELECT pg_terminate_backend({pid})")).await;
        };
        match tokio::join!(locks.lock(KEY), end).0 {
            Err(error @ Error::Disconnected { .. }) => {
                assert!(error.to_string().contains("57P01"), "{version}: {error}");
                assert_eq!(error.sqlstate(), None);
            }
            answer => panic!("{version}: it was terminated, {answer:?}"),
        }
    }
}

/// A lock that is granted to a stopped session: at the end of its wait the server reports a timeout, but
/// keeps the lock.
#[tokio::test]
async fn a_lock_that_is_granted_when_its_wait_ends_is_not_left_behind() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let (shared, locks) = Shared::open(&info).await;
        let wait = Wait::AtMost(Duration::from_millis(500));
        // The server grants the lock to the waiter, which continues after its limit.
        let grant_late = async |holder: Guard, pid: i32| {
            let stopped = Stopped::new(pid);
            holder.release().await.unwrap();
            let late = format!(
                "SELECT clock_timestamp() > query_start + interval '700 ms' FROM pg_stat_activity WHERE pid = {pid}"
            );
            observer.until("the wait to end", &late).await;
            drop(stopped);
        };
        let holder = take(&info, KEY, Mode::Exclusive).await;
        let (taken, ()) = tokio::join!(locks.try_lock(KEY, wait), async {
            let pid = observer.waiting().await;
            grant_late(holder, pid).await;
        });
        if let Some(guard) = taken.unwrap() {
            guard.release().await.unwrap();
        }
        assert!(is_free(&info, KEY).await, "{version}");
        assert_eq!(shared.run("SELECT 1").await, "1", "{version}: its connection is used again");

        let holder = take(&info, KEY, Mode::Exclusive).await;
        let mut guard = locks.lock(1).await.unwrap();
        let pid = guard.pid();
        let (taken, ()) = tokio::join!(guard.also(KEY, Mode::Exclusive, wait), async {
            assert_eq!(observer.waiting().await, pid);
            grant_late(holder, pid).await;
        });
        assert_eq!(is_free(&info, KEY).await, !taken.unwrap(), "{version}: as the guard has it");
        guard.release().await.unwrap();
        assert!(is_free(&info, KEY).await && is_free(&info, 1).await, "{version}");
    }
}
