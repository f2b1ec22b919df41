//! The command itself, with sessions that block the statement and sessions that do not.

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::conninfo::ConnInfo;
use serde_json::Value;

use super::super::binary::{Left, locktop, run_beside};
use super::support;

async fn asked(info: &ConnInfo, arguments: &[&str]) -> Left {
    asked_of(support::server().await, info, arguments).await
}

pub(super) async fn asked_of(server: &EmbeddedServer, info: &ConnInfo, arguments: &[&str]) -> Left {
    let target = format!("{} dbname={}", server.conninfo(), info.dbname());
    run_beside(locktop(&[&["lock-of", "--width", "0"], arguments, &[target.as_str()]].concat())).await
}

#[tokio::test]
async fn each_statement_reports_its_blocking_sessions_and_exit_status() {
    let info = support::database(support::server().await).await;
    let busy = support::open(&info).await.client;
    busy.batch_execute(
        "CREATE SCHEMA shop; CREATE SCHEMA staging; CREATE FUNCTION shop.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
         CREATE FUNCTION shop.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TABLE shop.orders (id int PRIMARY KEY, x int); CREATE TABLE public.calm (id int); CREATE TABLE keyed (id int PRIMARY KEY); CREATE INDEX orders_x ON shop.orders (x);
         CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
         SET application_name = 'billing'",
    )
    .await
    .unwrap();
    // In a message of its own: statements before BEGIN in the same message belong to the transaction, too.
    busy.batch_execute(
        "BEGIN; UPDATE shop.orders SET x = 1; LOCK TABLE p1 IN ROW SHARE MODE; SELECT pg_advisory_lock(10001); CREATE TABLE staging.load (a int)",
    )
    .await
    .unwrap();
    // Queries open every index of a table.
    let rebuilds = support::open(&info).await.client;
    rebuilds.batch_execute("BEGIN; REINDEX INDEX keyed_pkey").await.unwrap();
    for (statement, status, words) in [
        ("ALTER TABLE shop.orders ADD y int", 1, "postgres@billing holds RowExclusive: idle in transaction"),
        (
            "CREATE INDEX CONCURRENTLY ON shop.orders (x)",
            1,
            "holds RowExclusive; its transaction must end first",
        ),
        ("DROP INDEX shop.orders_x", 1, "shop.orders_x is an index"),
        ("REINDEX INDEX shop.orders_x", 1, "holds RowExclusive: idle in transaction"),
        ("SELECT * FROM keyed", 1, "AccessShare on public.keyed_pkey"),
        ("UPDATE keyed SET id = 1", 1, "it would wait"),
        ("LOCK TABLE keyed IN ACCESS SHARE MODE", 0, "no session blocks it"),
        (
            "SELECT * FROM shop.orders FOR UPDATE",
            0,
            "one session has it locked; the oldest transaction among them",
        ),
        ("TRUNCATE calm", 0, "no session blocks it"),
        ("LOCK TABLE shop.orders NOWAIT", 1, "it would fail at once: the lock is not available"),
        ("ALTER TABLE p ADD b int", 1, "AccessExclusive on public.p1"),
        ("LOCK TABLE orders", 3, "relation \"orders\" does not exist in the search path, but shop.orders\n"),
        ("LOCK TABLE \"Shop\".orders", 3, "relation \"Shop.orders\" does not exist\n"),
        ("LOCK TABLE \"a'; DROP TABLE calm; --\"", 3, "relation \"a'; DROP TABLE calm; --\" does not exist"),
        ("DROP TABLE IF EXISTS orders", 0, "no session blocks it"),
        ("DROP SCHEMA staging", 1, "holds AccessShare: idle in transaction"),
        ("COMMENT ON SCHEMA staging IS 'x'", 0, "the schema staging exists"),
        ("DROP SCHEMA stagin", 3, "schema stagin does not exist"),
        ("DROP FUNCTION shop.f", 0, "2 functions have the name"),
        ("SELECT pg_advisory_lock(10001)", 1, "holds Exclusive: idle in transaction"),
        ("SELECT pg_advisory_lock_shared(10001)", 1, "it would wait"),
        ("SELECT pg_try_advisory_xact_lock(10001)", 1, "it would return false: the lock is not available"),
        ("SELECT pg_advisory_lock(10002)", 0, "no session blocks it"),
        ("SELECT pg_advisory_lock(0, 10001)", 0, "no session blocks it"),
        ("SELECT pg_advisory_lock(id) FROM calm", 3, "takes one lock for each row: their keys are not known"),
        ("CALL shop.work()", 3, "not known from its text: objects that its code locks"),
        ("SELCT 1", 3, "syntax error at or near \"SELCT\"\n"),
        ("LOCK TABLE calm IN SHRE MODE", 3, "does not know this form of LOCK TABLE, from \"SHRE\" on"),
        ("BEGIN; TRUNCATE calm; COMMIT", 0, "TRUNCATE"),
        (
            "BEGIN; TRUNCATE calm; VACUUM shop.orders; COMMIT",
            0,
            "it fails: it cannot run inside a transaction block",
        ),
        (
            "CREATE TABLE fresh (a int); CREATE INDEX ON fresh (a)",
            0,
            "fresh is created by statement 1 (line 1)",
        ),
        (
            "TRUNCATE nowhere; TRUNCATE calm; FLY; CALL f()",
            0,
            "not blocked by any session: statement 2; fail, or are not known: statements 1, 3, 4",
        ),
        ("TRUNCATE nowhere; TRUNCATE shop.orders", 1, "would wait: statement 2"),
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
    // None of the statements was run.
    busy.batch_execute("SELECT y FROM shop.orders").await.unwrap_err();
    let kept = support::open(&info).await.client;
    kept.batch_execute("TABLE calm").await.unwrap();
}

/// A lock on the relation does not block the question.
#[tokio::test]
async fn a_table_that_is_locked_can_be_asked_about() {
    let info = support::database(support::server().await).await;
    let alone = support::open(&info).await.client;
    alone.batch_execute("CREATE TABLE t (id int)").await.unwrap();
    alone.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();
    let left = asked(&info, &["SELECT * FROM t"]).await;
    assert_eq!((left.status, left.err.as_str()), (Some(1), ""), "{}", left.out);
    assert!(left.out.contains("holds AccessExclusive: idle in transaction"), "{}", left.out);
}

/// A query of a partitioned table may lock one partition, or all.
#[tokio::test]
async fn locks_that_depend_on_the_plan_are_not_known() {
    let info = support::database(support::server().await).await;
    let alone = support::open(&info).await.client;
    alone
        .batch_execute(
            "CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
             CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)",
        )
        .await
        .unwrap();
    alone.batch_execute("BEGIN; LOCK TABLE p2").await.unwrap();
    for (statement, status, words) in [
        ("SELECT * FROM p WHERE a = 1", 3, "it may wait"),
        ("ALTER TABLE p ADD b int", 1, "it would wait"),
        ("SELECT * FROM p1", 0, "no session blocks it"),
    ] {
        let left = asked(&info, &[statement]).await;
        assert!(left.out.contains(words), "{statement}: {}", left.out);
        assert_eq!(left.status, Some(status), "{statement}");
    }
    let json = asked(&info, &["SELECT * FROM p", "--format", "json"]).await;
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["would_wait"], Value::Null, "{json}");
    let other = support::database(support::server().await).await;
    let name = info.dbname();
    let left = asked(&other, &[&format!("DROP DATABASE \"{name}\"")]).await;
    assert!(left.out.contains("it fails: the database has 1 session"), "{}", left.out);
    let left = asked(&other, &[&format!("DROP DATABASE \"{name}\" WITH (FORCE)")]).await;
    assert!(left.out.contains("no session blocks it"), "{}", left.out);
}

#[tokio::test]
async fn without_a_server_and_with_none_that_answers() {
    let left = run_beside(locktop(&["lock-of", "DROP TABLE a"])).await;
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    assert!(left.out.contains("takes        AccessExclusive on a\n"), "{}", left.out);
    let left = run_beside(locktop(&["lock-of", "FLY"])).await;
    assert_eq!((left.status, left.out.as_str()), (Some(3), "syntax error at or near \"FLY\"\n"));
    let left = run_beside(locktop(&["lock-of", " -- nothing"])).await;
    assert_eq!((left.status, left.out.as_str()), (Some(2), ""), "{}", left.err);
    let left = run_beside(locktop(&["lock-of", "DROP TABLE a", "host=/nonexistent"])).await;
    assert_eq!((left.status, left.out.as_str()), (Some(3), ""), "{}", left.err);
    assert!(!left.err.is_empty());
}
