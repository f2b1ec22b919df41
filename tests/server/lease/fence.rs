//! Writes that only the holder may make.

use std::time::Duration;

use locktop::locks::lease::{Lease, Request};

use super::place::{LONG, Session, hold, installed};
use super::support::{TIMEOUT, open, versions, wait_until};

#[tokio::test]
async fn a_write_with_an_old_token_or_after_the_term_is_refused() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let old = session.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        assert_eq!(session.ask(&format!("SELECT assert_lease(7, {old})")).await, "");
        session.let_pass(7, "2 hours").await;
        let error = session.refused(&format!("SELECT assert_lease(7, {old})")).await;
        assert_eq!(error, format!("LT001 lease 7 with token {old} has ended"), "{version}");
        let new = session.token("SELECT lease_acquire(7, 'node2', '1 hour')").await;
        let error = session.refused(&format!("SELECT assert_lease(7, {old})")).await;
        assert_eq!(error, format!("LT001 lease 7 is not held with token {old}"), "{version}");
        session.ask(&format!("SELECT assert_lease(7, {new})")).await;
        session.ask(&format!("SELECT lease_release(7, {new})")).await;
        assert!(
            session.refused(&format!("SELECT assert_lease(7, {new})")).await.starts_with("LT001"),
            "{version}"
        );
        assert!(session.refused("SELECT assert_lease(8, 1)").await.starts_with("LT001"), "{version}");
        assert!(session.refused("SELECT assert_lease(7, NULL)").await.starts_with("LT001"), "{version}");
    }
}

#[tokio::test]
async fn a_fenced_write_excludes_a_takeover_and_not_a_renewal() {
    for version in versions() {
        let info = installed(version).await;
        let (writer, keeper) = (Session::open(&info).await, Session::open(&info).await);
        let other = Session::open(&info).await;
        let token = writer.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        writer.ask(&format!("BEGIN; SELECT assert_lease(7, {token})")).await;
        assert_eq!(
            keeper.ask(&format!("SELECT lease_renew(7, {token})")).await,
            "t",
            "{version}: a renewal still succeeds"
        );
        keeper.let_pass(7, "2 hours").await;
        let acquire = "SELECT lease_acquire(7, 'node2', '1 hour')";
        assert_eq!(other.ask(acquire).await, "-", "{version}: the term has ended, the write has not");
        writer.ask("COMMIT").await;
        let next = other.token(acquire).await;
        assert!(next > token, "{version}");

        // A release does not wait for the holder's own write, and no session acquires the lease before the write ends.
        writer.ask(&format!("BEGIN; SELECT assert_lease(7, {next})")).await;
        assert_eq!(keeper.ask(&format!("SELECT lease_release(7, {next})")).await, "t", "{version}");
        assert_eq!(other.ask(acquire).await, "-", "{version}");
        writer.ask("ROLLBACK").await;
        assert!(other.token(acquire).await > next, "{version}");
    }
}

/// A holder that is suspended inside its transaction sends nothing more, neither a statement nor a renewal.
#[tokio::test]
async fn a_fenced_transaction_that_idles_past_the_term_is_rolled_back() {
    for version in versions() {
        let info = installed(version).await;
        let mut connection = open(&info).await;
        let request = Request::new(7, "node1", Duration::from_secs(2));
        let lease = hold(&info, &request).await;
        let transaction = connection.client.transaction().await.unwrap();
        lease.fence(&transaction).await.unwrap();
        transaction.batch_execute("CREATE TABLE public.effect ()").await.unwrap();
        let token = lease.token();
        drop(lease);
        let next =
            Lease::acquire_within(&info, &request, TIMEOUT).await.unwrap().expect("its term has ended");
        assert!(next.token() > token, "{version}");
        assert!(transaction.commit().await.is_err(), "{version}: it was rolled back");
        let session = Session::open(&info).await;
        assert_eq!(session.ask("SELECT to_regclass('public.effect')").await, "-", "{version}");
        // A shorter limit of the session stays, and none outlives the transaction.
        let lease = hold(&info, &Request::new(8, "node1", LONG)).await;
        let mut connection = open(&info).await;
        for (own, fenced) in [("10s", true), ("2h", false), ("0", false)] {
            let set = format!("SET idle_in_transaction_session_timeout = '{own}'");
            connection.client.batch_execute(&set).await.unwrap();
            let limit = "SHOW idle_in_transaction_session_timeout";
            let transaction = connection.client.transaction().await.unwrap();
            lease.fence(&transaction).await.unwrap();
            let shown: String = transaction.query_one(limit, &[]).await.unwrap().get(0);
            assert_eq!(shown == own, fenced, "{version}: {shown} instead of {own}");
            transaction.rollback().await.unwrap();
            assert_eq!(connection.client.query_one(limit, &[]).await.unwrap().get::<_, String>(0), own);
        }
    }
}

#[tokio::test]
async fn also_a_take_over_as_published_waits_for_a_fenced_write() {
    for version in versions() {
        let info = installed(version).await;
        let (writer, other) = (Session::open(&info).await, Session::open(&info).await);
        let observer = Session::open(&info).await;
        let token = writer.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        observer.let_pass(7, "2 hours").await;
        writer.ask("BEGIN").await;
        // As if the term had ended a moment after it was checked.
        writer.ask("SELECT * FROM distlock WHERE id = 7 FOR KEY SHARE").await;
        let pid = other.ask("SELECT pg_backend_pid()").await;
        let take = "UPDATE distlock SET owner = 'node2', ts = now(), expired_time = '20 s' WHERE id = 7 AND now() > ts + expired_time";
        let (changed, ()) = tokio::join!(other.ask(take), async {
            let waits = format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {pid}");
            wait_until("the other to wait", async || observer.ask(&waits).await == "1").await;
            assert_eq!(observer.ask("SELECT token FROM distlock").await, token.to_string(), "{version}");
            writer.ask("COMMIT").await;
        });
        assert_eq!(changed, "1", "{version}");
        assert!(observer.token("SELECT token FROM distlock").await > token, "{version}");
    }
}

#[tokio::test]
async fn an_assertion_during_a_take_over_waits_for_it_and_is_refused() {
    for version in versions() {
        let info = installed(version).await;
        let (writer, other) = (Session::open(&info).await, Session::open(&info).await);
        let observer = Session::open(&info).await;
        let token = writer.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        observer.let_pass(7, "2 hours").await;
        other.ask("BEGIN").await;
        other.token("SELECT lease_acquire(7, 'node2', '1 hour')").await;
        let pid = writer.ask("SELECT pg_backend_pid()").await;
        let assertion = format!("SELECT assert_lease(7, {token})");
        let (error, ()) = tokio::join!(writer.refused(&assertion), async {
            let waits = format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {pid}");
            wait_until("the writer to wait", async || observer.ask(&waits).await == "1").await;
            other.ask("COMMIT").await;
        });
        assert!(error.starts_with("LT001"), "{version}: {error}");
    }
}
