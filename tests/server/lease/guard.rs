//! The guard: it renews, and reports when it cannot.

use std::time::Duration;

use futures_util::future::join_all;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::locks::lease::{Lease, LeaseId, Leases, Request};
use locktop::locks::{Error, Held as _, Lost};
use locktop::pg::conninfo::ConnInfo;
use rustix::process::{Pid, Signal, kill_process};

use super::place::{LONG, Session, hold, installed};
use super::pooler::Pooler;
use super::support::{TIMEOUT, database, oldest, open, server_of, versions, wait_until};

/// Long enough that a busy machine does not lose it.
const TERM: Duration = Duration::from_secs(4);

async fn until(session: &Session, what: &str, sql: &str) {
    wait_until(what, async || session.ask(sql).await == "t").await;
}

/// The backend that renews, not the one that runs this query.
const RENEWER: &str = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ~ 'lease_(renew|acquire)\\('
    AND pid <> pg_backend_pid()";

#[tokio::test]
async fn a_lease_is_renewed_beyond_its_term_until_it_is_released() {
    join_all(versions().into_iter().map(async |version| {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let request = Request::new(7, "node1", TERM);
        let lease = hold(&info, &request).await;
        assert!(Lease::acquire(&info, &request).await.unwrap().is_none(), "{version}: with any name");
        until(&session, "renewals", "SELECT renewed_at > acquired_at + interval '5 s' FROM leases").await;
        assert!(lease.check().is_ok() && lease.time_left() <= TERM);
        let row = session.ask("SELECT owner, state, token FROM leases").await;
        assert_eq!(row, format!("node1|held|{}", lease.token()), "{version}");
        assert_eq!(lease.run(async { 42 }).await, Ok(42));
        assert!(lease.release().await.unwrap(), "{version}");
        assert_eq!(session.ask("SELECT state FROM leases").await, "released", "{version}");
    }))
    .await;
}

#[tokio::test]
async fn a_released_lease_leaves_its_connection_to_the_next_request_for_a_while() {
    const SESSIONS: &str =
        "SELECT pid, (SELECT count(*) FROM pg_locks l WHERE l.pid = a.pid) FROM pg_stat_activity a
        WHERE application_name = 'leases' AND datname = current_database()";
    let info = installed(oldest()).await;
    let session = Session::open(&info).await;
    let leases = Leases::new(info.clone().with_application_name("leases"));
    let acquire = async |id: LeaseId| {
        let request = Request::new(id, "node1", TERM);
        leases.acquire_within(&request, TIMEOUT).await.unwrap().expect("it becomes free")
    };
    let other = hold(&info, &Request::new(7, "node2", TERM)).await;
    let waiter = acquire(7.into());
    let release = async {
        until(&session, "a waiter", "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory'").await;
        other.release().await.unwrap()
    };
    let (first, _) = tokio::join!(waiter, release);
    assert!(first.release().await.unwrap());
    let kept = session.ask(SESSIONS).await;
    assert!(kept.ends_with("|0"), "one session, without a lock: {kept}");
    let (second, third) = (acquire(7.into()).await, acquire("by name".into()).await);
    assert!(session.ask(SESSIONS).await.contains(&kept));
    assert!(second.release().await.unwrap() && third.release().await.unwrap());
    // One is kept, and replaced if it has ended or does not answer.
    until(&session, "the end of one", &format!("SELECT count(*) = 1 FROM ({SESSIONS}) s")).await;
    session
        .ask("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'leases'")
        .await;
    let fourth = acquire(7.into()).await;
    let refused = leases.acquire(&Request::new(7, "node2", TERM)).await.unwrap();
    assert!(
        refused.is_none() && session.ask(SESSIONS).await.lines().count() == 2,
        "that of the refusal is kept"
    );
    assert!(fourth.release().await.unwrap());
    drop(leases);
    until(&session, "the end of both", &format!("SELECT count(*) = 0 FROM ({SESSIONS}) s")).await;
}

#[tokio::test]
async fn one_that_is_dropped_runs_out() {
    let info = installed(oldest()).await;
    let session = Session::open(&info).await;
    drop(hold(&info, &Request::new(7, "node1", Duration::from_secs(1))).await);
    until(&session, "the end of its term", "SELECT state = 'expired' AND owner = 'node1' FROM leases").await;
}

#[tokio::test]
async fn a_lost_connection_is_replaced() {
    join_all(versions().into_iter().map(async |version| {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let lease = hold(&info, &Request::new(7, "node1", TERM)).await;
        let pid = session.ask(RENEWER).await;
        session.ask(&format!("SELECT pg_terminate_backend({pid})")).await;
        until(&session, "a renewal by another backend", "SELECT renewed_at > acquired_at FROM leases").await;
        assert_ne!(session.ask(RENEWER).await, pid, "{version}");
        assert!(lease.check().is_ok(), "{version}");
        assert!(lease.release().await.unwrap(), "{version}");
    }))
    .await;
}

#[tokio::test]
async fn a_backend_that_does_not_answer_is_left_for_another() {
    let info = installed(oldest()).await;
    let session = Session::open(&info).await;
    let lease = hold(&info, &Request::new(7, "node1", Duration::from_secs(10))).await;
    let frozen = Frozen::freeze(session.ask(RENEWER).await.parse().unwrap());
    until(&session, "a renewal by another backend", "SELECT renewed_at > acquired_at FROM leases").await;
    assert!(lease.check().is_ok());
    drop(frozen);
    assert!(lease.release().await.unwrap());
}

#[tokio::test]
async fn the_loss_is_reported_before_another_session_acquires_the_lease() {
    join_all(versions().into_iter().map(async |version| {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let lease = hold(&info, &Request::new(7, "node1", Duration::from_secs(2))).await;
        let lost = lease.lost();
        // From now on no renewal is confirmed.
        session.ask("ALTER FUNCTION lease_renew(int, bigint, interval) RENAME TO gone").await;
        let other = Lease::acquire_within(&info, &Request::new(7, "node2", LONG), TIMEOUT).await.unwrap();
        let check = lease.check();
        let other = other.expect("its term ends");
        let Err(Lost::NotRenewed { id: LeaseId::Number(7), reason }) = check else {
            panic!("{version}: {check:?}")
        };
        let reasons = ["the schema \"locktop\" has no lease_renew", "no answer to lease_renew"];
        assert!(reasons.iter().any(|known| reason.contains(known)), "{version}: {reason}");
        assert_eq!(
            lost.await,
            Lost::NotRenewed { id: LeaseId::Number(7), reason: reason.clone() },
            "{version}"
        );
        let again = lease.run(std::future::pending::<()>()).await;
        assert_eq!(again, Err(Lost::NotRenewed { id: LeaseId::Number(7), reason }), "{version}: for good");
        assert!(!lease.release().await.unwrap(), "{version}: another session holds it");
        assert!(other.release().await.unwrap(), "{version}");
    }))
    .await;
}

#[tokio::test]
async fn a_lease_is_lost_if_its_row_stays_locked_by_another_session() {
    let info = installed(oldest()).await;
    let session = Session::open(&info).await;
    let lease = hold(&info, &Request::new(7, "node1", Duration::from_secs(1))).await;
    session.ask("BEGIN; SELECT * FROM distlock FOR UPDATE").await;
    let loss = lease.run(std::future::pending::<()>()).await.unwrap_err();
    // Its renewal waits for the row for as long as the lease lives; which of the two notices that first is chance.
    let reasons = ["the row of lease 7 is locked by another session", "no answer to lease_renew"];
    assert!(reasons.iter().any(|known| loss.to_string().contains(known)), "{loss}");
    session.ask("ROLLBACK").await;
}

#[tokio::test]
async fn a_lease_is_lost_if_the_server_does_not_answer() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let info = ConnInfo::parse(&server.conninfo()).unwrap();
    let mut connection = open(&info).await;
    locktop::schema::install(&mut connection.client, &locktop::schema::SchemaName::default()).await.unwrap();
    let session = Session::open(&info).await;
    let lease = hold(&info, &Request::new(7, "node1", Duration::from_secs(2))).await;
    let _backend = Frozen::freeze(session.ask(RENEWER).await.parse().unwrap());
    let _postmaster = Frozen::freeze(server.pid().unwrap());
    let loss = lease.lost().await;
    assert!(matches!(loss, Lost::NotRenewed { .. }), "{loss}");
    assert!(loss.to_string().contains("no answer to lease_renew within"), "{loss}");
}

/// A process that is stopped until this is dropped.
struct Frozen(Pid);

impl Frozen {
    fn freeze(pid: i32) -> Self {
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[tokio::test]
async fn its_writes_are_fenced() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let mut writer = open(&info).await;
        let lease = hold(&info, &Request::new(7, "node1", LONG)).await;
        let transaction = writer.client.transaction().await.unwrap();
        lease.fence(&transaction).await.unwrap();
        transaction.batch_execute("CREATE TABLE public.done ()").await.unwrap();
        transaction.commit().await.unwrap();
        session.let_pass(7, "2 hours").await;
        let other = hold(&info, &Request::new(7, "node2", LONG)).await;
        let transaction = writer.client.transaction().await.unwrap();
        let error = lease.fence(&transaction).await.unwrap_err();
        assert!(matches!(error, Error::Fenced(_)), "{version}: {error}");
        assert!(transaction.batch_execute("DROP TABLE public.done").await.is_err(), "{version}");
        drop(transaction);
        assert!(!lease.release().await.unwrap() && other.release().await.unwrap(), "{version}");
    }
}

#[tokio::test]
async fn invalid_requests_are_rejected_with_a_message() {
    let bare = database(server_of(oldest()).await).await;
    for request in [Request::new(7, "", LONG), Request::new(7, "node1", Duration::from_millis(99))] {
        let error = Lease::acquire(&bare, &request).await.unwrap_err();
        assert_eq!(error.to_string(), "a lease needs an owner and a term of at least 100 ms");
    }
    for name in ["", "a\0b", &"x".repeat(201)] {
        let error = Lease::acquire(&bare, &Request::new(name, "node1", LONG)).await.unwrap_err();
        assert!(matches!(&error, Error::Request(text) if text.contains("1 to 200 characters")), "{error}");
    }
    let error = Lease::acquire(&bare, &Request::new(7, "node1", LONG)).await.unwrap_err();
    assert!(matches!(error, Error::NotInstalled { .. }), "{error}");
    assert!(error.to_string().contains("run \"locktop schema install\""), "{error}");
}

#[tokio::test]
async fn it_works_behind_a_pooler_in_transaction_mode() {
    let version = oldest();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    let pooler = Pooler::start(server_of(version).await, "transaction");
    let through = ConnInfo::parse(&pooler.target(&info)).unwrap();
    let lease = hold(&through, &Request::new(7, "node1", TERM)).await;
    until(&session, "renewals", "SELECT renewed_at > acquired_at + interval '2 s' FROM leases").await;
    assert!(lease.check().is_ok());
    assert!(lease.release().await.unwrap());
}

#[tokio::test]
async fn the_loss_is_not_reported_after_a_release_or_a_drop() {
    let info = installed(oldest()).await;
    let term = Duration::from_millis(500);
    for is_released in [true, false] {
        let lease = Lease::acquire(&info, &Request::new(7, "node1", term)).await.unwrap().unwrap();
        let lost = lease.lost();
        if is_released {
            assert!(lease.release().await.unwrap());
        } else {
            drop(lease);
        }
        assert!(tokio::time::timeout(2 * term, lost).await.is_err(), "released: {is_released}");
    }
}
