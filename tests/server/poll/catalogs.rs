//! Locks on catalogs stop no poll.

use locktop::model::backend::State;
use locktop::model::snapshot::Snapshot;

use super::helpers::{assert_fresh, client, info, on_every_version, poll_until, session};

/// Every catalog that a poll could need, one after the other, locked by another session.
#[tokio::test]
async fn a_lock_on_a_catalog_stops_no_poll() {
    on_every_version(async |server| {
        let info = info(&server);
        let other = client(&info).await;
        other.batch_execute("CREATE TABLE accounts (); CREATE TABLE ledger ()").await.unwrap();
        let table = client(&info).await;
        let mut session = session(&server).await;
        table.batch_execute("BEGIN; LOCK TABLE accounts; PREPARE TRANSACTION 'held'").await.unwrap();
        let mut snapshot = session.poll(None).await.unwrap();
        assert!(snapshot.names.relations.values().any(|name| &**name == "accounts"));
        table.batch_execute("BEGIN; LOCK TABLE ledger IN SHARE MODE").await.unwrap();
        for catalog in [
            "pg_class",
            "pg_proc",
            "pg_type",
            "pg_attribute",
            "pg_namespace",
            "pg_database",
            "pg_authid",
            "accounts",
        ] {
            if catalog == "accounts" {
                other.batch_execute("ROLLBACK PREPARED 'held'").await.unwrap();
            }
            other
                .batch_execute(&format!("BEGIN; LOCK TABLE {catalog} IN ACCESS EXCLUSIVE MODE"))
                .await
                .unwrap();
            for _ in 0..5 {
                snapshot = session.poll(Some(&snapshot)).await.unwrap();
                assert_fresh(&snapshot);
                assert_eq!(snapshot.locks.taken_at, Some(snapshot.taken_at));
            }
            other.batch_execute("ROLLBACK").await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn relation_names_are_missing_while_pg_class_is_locked() {
    on_every_version(async |server| {
        let info = info(&server);
        let (other, user) = (client(&info).await, client(&info).await);
        other
            .batch_execute("CREATE TABLE accounts (); CREATE SCHEMA s; CREATE TABLE s.\"Ledger\" ()")
            .await
            .unwrap();
        // Known to this session before the catalog is taken, so that it can be locked afterwards.
        user.batch_execute("TABLE accounts; TABLE s.\"Ledger\"").await.unwrap();
        let mut session = session(&server).await;
        let snapshot = session.poll(None).await.unwrap();
        other.batch_execute("BEGIN; LOCK TABLE pg_class").await.unwrap();
        other.batch_execute("PREPARE TRANSACTION 'class'").await.unwrap();
        user.batch_execute("BEGIN; TABLE accounts; TABLE s.\"Ledger\"").await.unwrap();
        let snapshot = session.poll(Some(&snapshot)).await.unwrap();
        assert_fresh(&snapshot);
        let datid = snapshot.server().unwrap().datid;
        let user_pid = snapshot
            .backends
            .last_rows()
            .iter()
            .find(|backend| backend.state == Some(State::IdleInTransaction));
        let relations = |snapshot: &Snapshot| {
            let pid = user_pid.map(|backend| backend.pid);
            let mut names: Vec<Option<String>> = snapshot
                .locks
                .last_rows()
                .iter()
                .filter(|lock| lock.pid == pid && lock.tag.database() == Some(datid))
                .map(|lock| snapshot.names.relation(&lock.tag).map(ToString::to_string))
                .collect();
            names.sort();
            names
        };
        assert_eq!(relations(&snapshot), [None, None]);
        assert!(snapshot.names.relations.is_empty());
        other.batch_execute("ROLLBACK PREPARED 'class'").await.unwrap();
        let expected = [Some("accounts".to_owned()), Some("s.Ledger".to_owned())];
        poll_until(&mut session, |snapshot| relations(snapshot) == expected).await;
    })
    .await;
}
