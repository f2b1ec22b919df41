//! The command itself, beside sessions that are in the way and sessions that are not.

use locktop::pg::conninfo::ConnInfo;
use serde_json::Value;

use super::super::binary::{Left, locktop, run_beside};
use super::support;

async fn asked(info: &ConnInfo, arguments: &[&str]) -> Left {
    let target = format!("{} dbname={}", support::server().await.conninfo(), info.dbname());
    run_beside(locktop(&[&["lock-of", "--width", "0"], arguments, &[target.as_str()]].concat())).await
}

#[tokio::test]
async fn who_is_in_the_way_now() {
    let info = support::database(support::server().await).await;
    let busy = support::open(&info).await.client;
    busy.batch_execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY, x int); CREATE TABLE public.calm (id int); CREATE INDEX orders_x ON shop.orders (x);
         CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
         SET application_name = 'billing'",
    )
    .await
    .unwrap();
    // In a message of its own: what stands before BEGIN in one is in the transaction, too.
    busy.batch_execute("BEGIN; UPDATE shop.orders SET x = 1; LOCK TABLE p1 IN ROW SHARE MODE").await.unwrap();
    for (statement, status, words) in [
        ("ALTER TABLE shop.orders ADD y int", 1, "postgres@billing has RowExclusive: idle in transaction"),
        (
            "CREATE INDEX CONCURRENTLY ON shop.orders (x)",
            1,
            "has RowExclusive, and the end of its transaction is waited for",
        ),
        ("DROP INDEX shop.orders_x", 1, "shop.orders_x is an index"),
        ("REINDEX INDEX shop.orders_x", 1, "has RowExclusive: idle in transaction"),
        (
            "SELECT * FROM shop.orders FOR UPDATE",
            0,
            "one session has it locked; the oldest transaction among them",
        ),
        ("TRUNCATE calm", 0, "nobody is in its way"),
        ("ALTER TABLE p ADD b int", 1, "with one table below it"),
        (
            "LOCK TABLE orders",
            3,
            "there is no orders on the search path, but shop.orders\n  now          it would fail\n",
        ),
        ("LOCK TABLE \"Shop\".orders", 3, "there is no Shop.orders"),
        ("LOCK TABLE \"a'; DROP TABLE calm; --\"", 3, "there is no a'; DROP TABLE calm; --"),
        ("CREATE FUNCTION f()", 3, "locktop does not know the statement"),
        ("BEGIN; TRUNCATE calm; COMMIT", 0, "TRUNCATE"),
    ] {
        let left = asked(&info, &[statement]).await;
        assert_eq!((left.status, left.err.as_str()), (Some(status), ""), "{statement}: {}", left.out);
        assert!(left.out.contains(words), "{statement}: {}", left.out);
    }
    let left = asked(&info, &["--format", "json", "VACUUM FULL shop.orders"]).await;
    let json: Value = serde_json::from_str(&left.out).unwrap();
    assert_eq!((left.status, &json["would_wait"]), (Some(1), &Value::Bool(true)), "{json}");
    let one = &json["statements"][0]["takes"][0]["now"]["in_the_way"][0];
    assert_eq!((&one["how"], &one["modes"][0]), (&"holds".into(), &"RowExclusiveLock".into()), "{json}");
    // Nothing of what was asked about was run.
    busy.batch_execute("SELECT y FROM shop.orders").await.unwrap_err();
    let kept = support::open(&info).await.client;
    kept.batch_execute("TABLE calm").await.unwrap();
}

/// What has the relation for itself is no obstacle for who only asks.
#[tokio::test]
async fn a_table_that_somebody_has_for_himself_can_be_asked_about() {
    let info = support::database(support::server().await).await;
    let alone = support::open(&info).await.client;
    alone.batch_execute("CREATE TABLE t (id int)").await.unwrap();
    alone.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();
    let left = asked(&info, &["SELECT * FROM t"]).await;
    assert_eq!((left.status, left.err.as_str()), (Some(1), ""), "{}", left.out);
    assert!(left.out.contains("has AccessExclusive: idle in transaction"), "{}", left.out);
}

#[tokio::test]
async fn without_a_server_and_with_none_that_answers() {
    let left = run_beside(locktop(&["lock-of", "DROP TABLE a"])).await;
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    assert!(left.out.contains("takes        AccessExclusive on a\n"), "{}", left.out);
    let left = run_beside(locktop(&["lock-of", "FLY"])).await;
    assert_eq!((left.status, left.out.as_str()), (Some(3), "locktop does not know the statement FLY.\n"));
    let left = run_beside(locktop(&["lock-of", " -- nothing"])).await;
    assert_eq!((left.status, left.out.as_str()), (Some(2), ""), "{}", left.err);
    let left = run_beside(locktop(&["lock-of", "DROP TABLE a", "host=/nonexistent"])).await;
    assert_eq!((left.status, left.out.as_str()), (Some(3), ""), "{}", left.err);
    assert!(!left.err.is_empty());
}
