//! Faults of the printed id generator. Each fault has its counterpart in `ids`.

use super::printed::{block, blocked, printed};
use super::support::versions;

/// A clock in place of the server's: `fake.now()` returns `test.clock`.
const CLOCK: &str = "CREATE SCHEMA fake;
    CREATE FUNCTION fake.now() RETURNS timestamptz LANGUAGE sql STABLE AS
        $$ SELECT pg_catalog.to_timestamp(current_setting('test.clock')::bigint / 1000.0) $$;";
const FAKE: &str = "SET search_path = fake, pg_catalog, public; SET test.clock = '1700000000000'";
const ID: &str = "SELECT generate_snowflake_id(1)";

#[tokio::test]
async fn ids_of_one_transaction_repeat_after_4096() {
    for version in versions() {
        let (session, _) = printed(version, &[block("id_table"), block("id")]).await;
        let count = "SELECT count(DISTINCT generate_snowflake_id(1)) FROM generate_series(1, 5000)";
        assert_eq!(session.ask(count).await, "4096", "{version}: of 5000");
    }
}

#[tokio::test]
async fn two_sessions_get_the_same_id() {
    for version in versions() {
        let (one, other) = printed(version, &[block("id_table"), block("id"), CLOCK]).await;
        for session in [&one, &other] {
            session.run(FAKE).await;
        }
        one.run("BEGIN").await;
        let first = one.ask(ID).await;
        // The lock is free, and the stored state is not visible yet.
        let (second, ()) = tokio::join!(other.ask(ID), async {
            blocked(&one, other.pid).await;
            one.run("COMMIT").await;
        });
        assert_eq!(first, second, "{version}");
    }
}

#[tokio::test]
async fn a_clock_that_went_back_repeats_ids() {
    for version in versions() {
        let (session, _) = printed(version, &[block("id_table"), block("id"), CLOCK, FAKE]).await;
        let first = session.ask(ID).await;
        session.run("SET test.clock = '1700000000001'").await;
        assert_ne!(session.ask(ID).await, first);
        session.run("SET test.clock = '1700000000000'").await;
        assert_eq!(session.ask(ID).await, first, "{version}");
    }
}

#[tokio::test]
async fn an_unknown_worker_gets_an_id_and_the_same_again() {
    for version in versions() {
        let (session, _) = printed(version, &[block("id_table"), block("id"), CLOCK, FAKE]).await;
        let unknown = "SELECT generate_snowflake_id(9)";
        assert_eq!(session.ask(unknown).await, session.ask(unknown).await, "{version}");
        assert_eq!(session.ask("SELECT count(*) FROM id_generator WHERE worker_id = 9").await, "0");
    }
}

#[tokio::test]
async fn a_worker_above_1023_has_the_ids_of_another() {
    for version in versions() {
        let more = "INSERT INTO id_generator (worker_id) VALUES (0), (1024)";
        let (session, _) = printed(version, &[block("id_table"), block("id"), more, CLOCK, FAKE]).await;
        let high = session.ask("SELECT generate_snowflake_id(1024)").await;
        session.run("SET test.clock = '1700000000001'").await;
        let odd = session.ask("SELECT generate_snowflake_id(0)").await;
        session.run("SET test.clock = '1700000000000'").await;
        let even = session.ask("SELECT generate_snowflake_id(0)").await;
        assert!(high == odd || high == even, "{version}: {high}, {odd}, {even}");
    }
}
