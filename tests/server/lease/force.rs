//! Forced release of another owner's lease, only if its row is still as it was shown.

use std::time::Duration;

use locktop::locks::lease::{Lease, Place, Request, Shown, force_release};
use locktop::locks::{Error, Held as _, Lost};
use locktop::schema::SchemaName;

use super::place::{LONG, Session, hold, installed};
use super::support::{database, oldest, server_of, versions, wait_until};

async fn shown(session: &Session, token: &str) -> Shown {
    let row = session.ask(&format!("SELECT id, owner, ts, expired_time, {token} FROM distlock")).await;
    let columns: Vec<&str> = row.split('|').collect();
    Shown {
        id: columns[0].parse().unwrap(),
        owner: columns[1].to_owned(),
        ts: columns[2].to_owned(),
        expired_time: columns[3].to_owned(),
        token: columns[4].parse().ok(),
    }
}

/// Rows that differ in one column from the current one.
fn stale(shown: &Shown) -> Vec<Shown> {
    vec![
        Shown { id: shown.id + 1, ..shown.clone() },
        Shown { owner: "node9".to_owned(), ..shown.clone() },
        Shown { ts: "2026-01-01 00:00:00+00".to_owned(), ..shown.clone() },
        Shown { expired_time: "00:00:07".to_owned(), ..shown.clone() },
    ]
}

#[tokio::test]
async fn a_lease_is_ended_only_as_it_was_shown() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let place = Place::Installed(SchemaName::default());
        let token = session.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        let seen = shown(&session, "token").await;
        assert_eq!(seen.token, Some(token));
        let client = &session.0.client;
        let mut others = stale(&seen);
        others.push(Shown { token: Some(token - 1), ..seen.clone() });
        for other in others {
            assert!(!force_release(client, &place, &other).await.unwrap(), "{version}: {other:?}");
        }
        session.ask(&format!("SELECT lease_renew(7, {token})")).await;
        assert!(
            !force_release(client, &place, &seen).await.unwrap(),
            "{version}: renewed since it was shown"
        );
        let seen = shown(&session, "token").await;
        assert!(force_release(client, &place, &seen).await.unwrap(), "{version}");
        assert_eq!(
            session.ask("SELECT owner, state, token FROM leases").await,
            format!("node1|released|{token}")
        );
        assert!(
            !force_release(client, &place, &shown(&session, "token").await).await.unwrap(),
            "it has ended"
        );
        assert_eq!(session.ask(&format!("SELECT lease_renew(7, {token})")).await, "f", "{version}");
    }
}

#[tokio::test]
async fn a_lease_in_a_published_table_is_released_as_well() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let session = Session::open(&info).await;
        session.ask("CREATE SCHEMA \"a \"\"b\"; SET search_path = \"a \"\"b\"").await;
        session.ask("CREATE TABLE distlock (id int PRIMARY KEY, expired_time interval, owner text, ts timestamptz)").await;
        session.ask("INSERT INTO distlock VALUES (7, '1 day', 'node1', clock_timestamp())").await;
        let place = Place::Published { schema: "a \"b".to_owned(), table: "distlock".to_owned() };
        let seen = shown(&session, "NULL").await;
        session.ask("SET search_path = pg_catalog").await;
        for other in stale(&seen) {
            assert!(!force_release(&session.0.client, &place, &other).await.unwrap(), "{version}: {other:?}");
        }
        assert!(force_release(&session.0.client, &place, &seen).await.unwrap(), "{version}");
        let free = "SELECT owner, clock_timestamp() > ts + expired_time FROM \"a \"\"b\".distlock";
        assert_eq!(session.ask(free).await, "node1|t", "{version}");
    }
}

#[tokio::test]
async fn a_forced_release_is_reported_to_the_holder_at_its_next_renewal() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let lease = hold(&info, &Request::new(7, "node1", Duration::from_secs(3))).await;
        let ended = lease.lost();
        // It may be renewed between the read and the release.
        let place = Place::Installed(SchemaName::default());
        super::support::wait_until("the row to stay as it was shown", async || {
            let seen = shown(&session, "token").await;
            force_release(&session.0.client, &place, &seen).await.unwrap()
        })
        .await;
        let loss = ended.await;
        // On a machine that stalls for seconds the term may end before the renewal gets its answer.
        assert!(matches!(loss, Lost::Lease { .. } | Lost::NotRenewed { .. }), "{version}: {loss}");
        assert_eq!(lease.check(), Err(loss));
        assert!(!lease.release().await.unwrap(), "{version}");
        let next: Lease = hold(&info, &Request::new(7, "node2", LONG)).await;
        assert!(next.release().await.unwrap());
    }
}

/// The server reports the termination of a session as an error, which is no refusal: the lease may have been released.
#[tokio::test]
async fn a_forced_release_in_a_terminated_session_fails_as_disconnected() {
    let info = installed(oldest()).await;
    let (session, other) = (Session::open(&info).await, Session::open(&info).await);
    session.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
    let seen = shown(&session, "token").await;
    let pid = session.ask("SELECT pg_backend_pid()").await;
    other.ask("BEGIN; LOCK TABLE distlock").await;
    let cut = async {
        let waits = format!("SELECT cardinality(pg_blocking_pids({pid})) > 0");
        wait_until("the release to wait", async || other.ask(&waits).await == "t").await;
        assert_eq!(other.ask(&format!("SELECT pg_terminate_backend({pid})")).await, "t");
    };
    let place = Place::Installed(SchemaName::default());
    let (answer, ()) = tokio::join!(force_release(&session.0.client, &place, &seen), cut);
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Disconnected { .. }), "{error}");
}
