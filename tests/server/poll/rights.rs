//! Roles that cannot see everything.

use std::sync::Arc;

use locktop::model::lock_key::LockKey;
use locktop::pg::poll::PollConnection;

use super::helpers::{
    assert_fresh, client, info, info_of, on_every_version, patient, pid, poll_until, waits,
};
use super::views::Views;

#[tokio::test]
async fn a_role_without_rights_sees_less_and_nothing_fails() {
    on_every_version(async |server| {
        let admin = client(&info(&server)).await;
        admin.batch_execute("CREATE ROLE nobody LOGIN; SELECT pg_advisory_lock(5)").await.unwrap();
        let mut session = PollConnection::open(&info_of(&server, "nobody"), patient()).await.unwrap();
        let snapshot = session.poll(None).await.unwrap();
        assert_fresh(&snapshot);
        let server = snapshot.server().unwrap();
        assert_eq!((&*server.user, server.sees_all, server.connections), ("nobody", false, 2));
        let hidden =
            snapshot.backends.last_rows().iter().find(|row| row.user.as_deref() == Some("postgres")).unwrap();
        assert_eq!((hidden.state, hidden.backend_start, &hidden.backend_type), (None, None, &None));
        assert!(
            snapshot.locks.last_rows().iter().any(|lock| lock.tag.advisory_key() == Some(LockKey::Bigint(5)))
        );
    })
    .await;
}

#[tokio::test]
async fn a_section_that_fails_keeps_its_rows_and_no_other_suffers() {
    on_every_version(async |server| {
        let admin = client(&info(&server)).await;
        admin.batch_execute("CREATE ROLE nobody LOGIN").await.unwrap();
        let mut session = PollConnection::open(&info_of(&server, "nobody"), patient()).await.unwrap();
        let first = session.poll(None).await.unwrap();
        let function = "FUNCTION pg_catalog.pg_stat_get_activity(int4) FROM PUBLIC";
        admin.batch_execute(&format!("REVOKE EXECUTE ON {function}")).await.unwrap();
        let second = session.poll(Some(&first)).await.unwrap();
        let error = second.backends.error.as_deref().unwrap();
        assert!(error.contains("pg_stat_get_activity") && error.contains("SQLSTATE 42501"), "{error}");
        assert_eq!(second.backends.taken_at, Some(first.taken_at));
        assert!(Arc::ptr_eq(second.backends.last_rows(), first.backends.last_rows()));
        assert_eq!(second.locks.error, None);
        assert_eq!(second.locks.taken_at, Some(second.taken_at));
        let grant = function.replace("FROM", "TO");
        admin.batch_execute(&format!("GRANT EXECUTE ON {grant}")).await.unwrap();
        assert_fresh(&session.poll(Some(&second)).await.unwrap());
    })
    .await;
}

/// Columns that such a role cannot see are NULL and are shown as NULL: every section, column by column.
#[tokio::test]
async fn columns_hidden_from_a_role_are_null_as_in_the_views() {
    on_every_version(async |server| {
        let info = info(&server);
        let (admin, waiter, open) = (client(&info).await, client(&info).await, client(&info).await);
        admin
            .batch_execute("CREATE ROLE nobody LOGIN; CREATE TABLE a (); SELECT pg_advisory_lock(5)")
            .await
            .unwrap();
        open.batch_execute("BEGIN; LOCK TABLE a; PREPARE TRANSACTION 'p'").await.unwrap();
        open.batch_execute("BEGIN").await.unwrap();
        open.batch_execute("SELECT pg_current_xact_id()").await.unwrap();
        let waiter_pid = pid(&waiter).await;
        let waiting = tokio::spawn(async move { waiter.batch_execute("SELECT pg_advisory_lock(5)").await });
        let info = info_of(&server, "nobody");
        let mut session = PollConnection::open(&info, patient()).await.unwrap();
        poll_until(&mut session, |snapshot| waits(snapshot, waiter_pid)).await;
        let (snapshot, view) = Views::open(&info).await.agree(&mut session).await;
        let hidden = snapshot.backend(waiter_pid).unwrap();
        assert_eq!((hidden.state, &hidden.wait_event, hidden.xact_start), (None, &None, None));
        assert_eq!((hidden.query_id, hidden.state_change, &hidden.client), (None, None, &None));
        assert_eq!(hidden.query, Some("<insufficient privilege>".into()));
        assert!(view.backends.len() > 4 && view.locks.len() > 4);
        assert_eq!(view.prepared.len(), 1);
        let again = session.poll(Some(&snapshot)).await.unwrap();
        assert_eq!(again.answers.len(), 1, "every role can see the blockers");
        waiting.abort();
    })
    .await;
}
