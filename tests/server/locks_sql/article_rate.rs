//! Faults of the printed rate limit. Each fault has its counterpart in `rate`.

use super::printed::{block, blocked, keys, printed};
use super::support::versions;

#[tokio::test]
async fn its_lock_stays_when_anything_raises() {
    for version in versions() {
        let (one, other) = printed(version, &[block("rate_table"), block("rate")]).await;
        let call = format!("SELECT check_rate_limit('{}', 2, 60)", "k".repeat(101));
        assert_eq!(one.refused(&call).await, "22001 value too long for type character varying(100)");
        assert_eq!(keys(&other, one.pid).await, "1", "{version}");
        other.run("SET lock_timeout = '50ms'").await;
        let error = other.refused(&call).await;
        assert!(error.starts_with("55P03"), "{version}: every other session waits forever: {error}");
    }
}

#[tokio::test]
async fn three_of_two_are_let_through() {
    for version in versions() {
        let (one, other) = printed(version, &[block("rate_table"), block("rate")]).await;
        let call = "SELECT check_rate_limit('k', 2, 60)";
        one.run("BEGIN").await;
        assert_eq!(one.ask(call).await, "t");
        // The lock is free, and the counted request is not visible yet.
        let (second, ()) = tokio::join!(other.ask(call), async {
            blocked(&one, other.pid).await;
            one.run("COMMIT").await;
        });
        assert_eq!(second, "t");
        assert_eq!(other.ask("SELECT count FROM rate_limit").await, "1", "{version}: after two");
        assert_eq!(other.ask(call).await, "t", "{version}: the third");
    }
}

#[tokio::test]
async fn keys_of_one_hash_wait_for_each_other() {
    for version in versions() {
        let (one, other) = printed(version, &[block("rate_table"), block("rate")]).await;
        let collision =
            "SELECT min(k), max(k) FROM (SELECT 'user:' || g AS k FROM generate_series(1, 300000) g) s
            GROUP BY hashtext(k) HAVING count(*) > 1 ORDER BY 1 LIMIT 1";
        let found = one.ask(collision).await;
        let (first, second) = found.split_once('|').unwrap();
        // One that is within the printed function for the first key.
        one.run(&format!("SELECT pg_advisory_lock(hashtext('{first}')::INT)")).await;
        other.run("SET lock_timeout = '50ms'").await;
        let error = other.refused(&format!("SELECT check_rate_limit('{second}', 2, 60)")).await;
        assert!(error.starts_with("55P03"), "{version}: {error}");
    }
}
