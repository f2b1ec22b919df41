//! The settings of a session.

use std::time::Duration;

use locktop::pg::poll::{PollLimits, open_plain};
use tokio_postgres::Client;

use super::helpers::{client, info, info_of, on_every_version};

/// Settings that a careful administrator gives a role, and settings that would make a poll fail or linger.
const GIVEN: [(&str, &str); 10] = [
    ("client_encoding", "LATIN1"),
    ("statement_timeout", "1h"),
    ("lock_timeout", "1h"),
    ("idle_session_timeout", "1h"),
    ("idle_in_transaction_session_timeout", "1h"),
    ("default_transaction_isolation", "serializable"),
    ("plan_cache_mode", "force_custom_plan"),
    ("jit", "on"),
    ("max_parallel_workers_per_gather", "8"),
    ("application_name", "theirs"),
];

async fn setting(client: &Client, name: &str) -> Option<String> {
    client.query_one("SELECT current_setting($1, true)", &[&name]).await.unwrap().get(0)
}

#[tokio::test]
async fn the_settings_of_a_session_override_those_of_its_role() {
    on_every_version(async |server| {
        let admin = client(&info(&server)).await;
        admin.batch_execute("CREATE ROLE careful LOGIN").await.unwrap();
        let has_transaction_timeout = server.version() >= 17;
        let given = GIVEN.into_iter().chain(has_transaction_timeout.then_some(("transaction_timeout", "1h")));
        for (name, value) in given.clone() {
            admin.batch_execute(&format!("ALTER ROLE careful SET {name} = '{value}'")).await.unwrap();
        }
        let info = info_of(&server, "careful");
        let other = client(&info).await;
        assert_eq!(setting(&other, "statement_timeout").await.as_deref(), Some("1h"), "the role has them");
        let limits = PollLimits {
            statement_timeout: Duration::from_millis(2500),
            lock_timeout: Duration::from_millis(70),
            ..PollLimits::default()
        };
        let own = open_plain(&info, &limits).await.unwrap();
        for (name, value) in [
            ("client_encoding", "SQL_ASCII"),
            ("statement_timeout", "2500ms"),
            ("lock_timeout", "70ms"),
            ("idle_session_timeout", "0"),
            ("idle_in_transaction_session_timeout", "0"),
            ("default_transaction_isolation", "read committed"),
            ("plan_cache_mode", "force_generic_plan"),
            ("jit", "off"),
            ("max_parallel_workers_per_gather", "0"),
            ("application_name", "locktop"),
        ] {
            assert_eq!(setting(&own.client, name).await.as_deref(), Some(value), "{name}");
        }
        let timeout = setting(&own.client, "transaction_timeout").await;
        assert_eq!(timeout.as_deref(), has_transaction_timeout.then_some("0"));
        let datid = "SELECT oid::text FROM pg_database WHERE datname = current_database()";
        let datid: String = admin.query_one(datid, &[]).await.unwrap().get(0);
        assert_eq!(setting(&own.client, "locktop.datid").await, Some(datid));
    })
    .await;
}

/// An open connection is set up although no session can open a table by name now. Opening another one instead
/// would leave a process on the server: one that starts then waits there forever.
#[tokio::test]
async fn a_session_gets_its_settings_while_pg_class_is_locked() {
    on_every_version(async |server| {
        let info = info(&server);
        let (locker, fresh) = (client(&info).await, client(&info).await);
        locker.batch_execute("BEGIN; LOCK TABLE pg_class").await.unwrap();
        let settings = include_str!("../../../assets/sql/settings.sql");
        fresh.batch_execute("SET lock_timeout = '100ms'").await.unwrap();
        fresh.batch_execute(settings).await.unwrap();
        locker.batch_execute("ROLLBACK").await.unwrap();
        let datid: String = fresh
            .query_one("SELECT oid::text FROM pg_database WHERE datname = current_database()", &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(setting(&fresh, "locktop.datid").await, Some(datid));
    })
    .await;
}
