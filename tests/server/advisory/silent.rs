//! A server that stops answering, and one that terminates a session with an error.

use std::time::Duration;

use locktop::locks::advisory::{Acquired, AdvisoryError, Key, Mode, Session, SessionLock, Wait, xact_lock};
use rustix::process::{Pid, Signal, kill_process};

use super::look::{Eye, is_free, take};
use super::support::{TIMEOUT, database, oldest, open, server_of, versions};

const KEY: Key = Key::Bigint(9_191);

/// A backend that does not run, and does again at the end.
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

/// What comes of a call to a backend that does not run, and what is said a moment later on the same connection.
async fn silent<T>(what: &str, answer: impl Future<Output = Result<T, AdvisoryError>>) {
    let answer = tokio::time::timeout(TIMEOUT, answer).await;
    let answer = answer.unwrap_or_else(|_| panic!("{what} waits for ever"));
    assert!(matches!(answer, Err(AdvisoryError::Silent { .. })), "{what}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let info = database(server_of(oldest()).await).await;
    let held = take(&info, Key::Bigint(1), Mode::Exclusive).await;
    let also = take(&info, Key::Bigint(2), Mode::Exclusive).await;
    let tries = Session::open(&info).await.unwrap();
    let waits = Session::open(&info).await.unwrap();
    let returns = Session::open(&info).await.unwrap();
    let mut client = open(&info).await.client;
    let transaction = client.transaction().await.unwrap();
    let row = transaction.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
    let pids =
        [held.session().pid(), also.session().pid(), tries.pid(), waits.pid(), returns.pid(), row.get(0)];
    let stopped = pids.map(Stopped::new);
    let (mode, never) = (Mode::Exclusive, Wait::Never);
    let at_most = Wait::AtMost(Duration::from_millis(100));
    let again = async move {
        let mut also = also;
        silent("another lock", also.also(KEY, mode, never)).await;
        let error = also.release().await.unwrap_err();
        assert!(matches!(error, AdvisoryError::GivenUp), "what it holds is not known: {error}");
    };
    tokio::join!(
        silent("a release", held.release()),
        again,
        silent("a try", SessionLock::acquire(tries, KEY, mode, never)),
        silent("a wait", SessionLock::acquire(waits, KEY, mode, at_most)),
        silent("a return", returns.into_connection()),
        silent("a transaction's try", xact_lock(&transaction, KEY, mode, never)),
    );
    drop(stopped);
    // Once it runs again it finds that nobody is there.
    let eye = Eye::open(&info).await;
    for pid in &pids[..5] {
        eye.until_gone(*pid).await;
    }
    assert!(is_free(&info, Key::Bigint(1)).await);
}

/// The server's word for it is an error, and it is not a refusal: the locks are gone.
#[tokio::test]
async fn a_session_that_is_ended_while_it_waits_is_lost() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let eye = Eye::open(&info).await;
        let _holder = take(&info, KEY, Mode::Exclusive).await;
        let session = Session::open(&info).await.unwrap();
        let end = async {
            let pid = eye.waiting().await;
            eye.ask(&format!("SELECT pg_terminate_backend({pid})")).await;
        };
        let wait = SessionLock::acquire(session, KEY, Mode::Exclusive, Wait::Forever);
        let (answer, ()) = tokio::join!(wait, end);
        match answer {
            Err(error @ AdvisoryError::Lost { .. }) => {
                assert!(error.to_string().contains("57P01"), "{version}: {error}");
                assert_eq!(error.sqlstate(), None);
            }
            Err(error) => panic!("{version}: {error}"),
            Ok(Acquired::Held(_) | Acquired::Busy(_)) => panic!("{version}: it was ended"),
        }
    }
}
