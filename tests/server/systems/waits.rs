//! Waits that the schema has counted while locktop did not run.

use super::stage::Stage;
use super::{own, scans, support};

/// A table, a lock of another kind and one of another database that were waited for; the most expensive first.
const ROWS: &str = "CREATE TABLE public.invoices ();
    INSERT INTO locktop.contended_locks
    SELECT 'tuple', d.oid, 'public.invoices'::regclass, 0, 0, 0, 12, interval '22 min 10 s', interval '5 min', 'ExclusiveLock',
           now() - interval '1 day', now() - interval '2 hours' FROM pg_database d WHERE d.datname = current_database();
    INSERT INTO locktop.contended_locks
    SELECT 'advisory', d.oid, 0, 0, 42, 1, 3, interval '7 min', interval '3 min', 'ShareLock', now() - interval '1 day', now() - interval '3 hours'
      FROM pg_database d WHERE d.datname = current_database();
    INSERT INTO locktop.contended_locks
    SELECT 'relation', d.oid, 16999, 0, 0, 0, 1, interval '1 min', interval '1 min', 'AccessExclusiveLock', now(), now()
      FROM pg_database d WHERE d.datname = 'template1'";

#[tokio::test]
async fn waits_counted_by_the_schema_are_shown_apart_from_observed_ones() {
    for version in support::versions() {
        let server = support::server_of(version).await;
        let mut stage = Stage::on(server, &format!("{}{ROWS}", own())).await;
        stage.poll().await;
        let json = stage.json();
        let waits = &json["lock_waits"];
        assert_eq!(waits["locks"].as_array().unwrap().len(), 0, "{version}: locktop saw nothing");
        let counted = waits["counted"].as_array().unwrap();
        let rows: Vec<_> = counted
            .iter()
            .map(|it| {
                (it["name"].as_str().unwrap(), it["waits"].as_i64().unwrap(), it["total"].as_f64().unwrap())
            })
            .collect();
        let expected = [
            ("rows of invoices", 12, 1330.0),
            ("advisory 42", 3, 420.0),
            ("relation 16999 in template1", 1, 60.0),
        ];
        assert_eq!(rows, expected, "{version}");
        assert_eq!(counted[0]["longest"], 300.0);
        assert_eq!(counted[1]["key"]["value"], 42);
        assert_eq!(counted[1]["longest_mode"], "ShareLock");
        assert_eq!(counted[2]["database_name"], "template1");
        assert_eq!(counted[0]["table"], "locktop.contended_locks");
        assert_eq!(json["sections"]["lock_waits"]["error"], serde_json::Value::Null);
        // Now a session waits for one while locktop polls: both numbers are in one row.
        let (holder, waiter) = (stage.client().await, stage.client().await);
        holder.batch_execute("SELECT pg_advisory_lock(42)").await.unwrap();
        let waiting = tokio::spawn(async move { waiter.batch_execute("SELECT pg_advisory_lock(42)").await });
        stage.poll_until("the wait to be seen", |view| view.lock_waits.locks.len() == 1).await;
        let screen = stage.screen_of('3', 140, 40);
        for words in ["COUNTED", "30m10s counted by the schema", "rows of invoices", "relation 16999"] {
            assert!(screen.contains(words), "{version}: {words} in {screen}");
        }
        let line = screen.lines().find(|line| line.contains("advisory 42") && line.contains("7m00s"));
        assert!(line.is_some_and(|line| line.contains("now")), "{version}: {screen}");
        let detail = stage.screen_after("3<tab><tab><enter>", 120, 40);
        for words in ["Seen by locktop since", "Counted by the schema's observe_lock_waits()", "7m00s"] {
            assert!(detail.contains(words), "{version}: {words} in {detail}");
        }
        holder.batch_execute("SELECT pg_advisory_unlock(42)").await.unwrap();
        waiting.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_most_expensive_are_read_of_as_many_rows_as_the_observer_keeps() {
    let fill = "INSERT INTO locktop.contended_locks
        SELECT 'advisory', 1, 0, 0, n, 1, 1, n * interval '1 s', interval '1 s', 'ShareLock', now(), now() FROM generate_series(1, 10000) n;
        ANALYZE locktop.contended_locks";
    let mut stage = Stage::new(&format!("{};{fill}", own())).await;
    let other = stage.client().await;
    other.batch_execute("SELECT pg_stat_reset()").await.unwrap();
    stage.reopen().await;
    let view = stage.poll().await;
    let table = &view.snapshot.as_ref().unwrap().sources.contended[0];
    assert_eq!((table.section.last_rows().len(), table.section.is_cut), (50, true));
    assert!((table.section.last_rows()[0].total - 10_000.0).abs() < 0.1);
    stage.close();
    let read = scans(&other, "locktop.contended_locks").await;
    assert!(read.rows <= 2 * 10_000, "{read:?}");

    // More than it keeps: none of them is read.
    other
        .batch_execute(
            "INSERT INTO locktop.contended_locks
             SELECT 'advisory', 2, 0, 0, n, 1, 1, n * interval '1 s', interval '1 s', 'ShareLock', now(), now() FROM generate_series(1, 20000) n;
             ANALYZE locktop.contended_locks",
        )
        .await
        .unwrap();
    stage.reopen().await;
    let view = stage.poll().await;
    let table = &view.snapshot.as_ref().unwrap().sources.contended[0];
    let reason = table.section.error.as_deref().unwrap_or_default();
    assert!(reason.contains("has about 30000 rows"), "{reason}");
    let findings: Vec<_> = view.findings.iter().map(|finding| finding.check).collect();
    assert_eq!(findings, ["stale_section"], "only that it is not known: {:?}", view.findings);
}
