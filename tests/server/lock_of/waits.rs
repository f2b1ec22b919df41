//! The transactions that a statement waits for in addition to those with a conflicting lock: as `lock-of`
//! reports them before, and as observed on the server.

use super::command::asked_of;
use super::compare::versions;
use super::support;

const TABLES: &str =
    "CREATE TABLE t (id int PRIMARY KEY, v int); CREATE INDEX t_v ON t (v); CREATE TABLE unrelated (id int);
    CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)";

#[tokio::test]
async fn index_builds_wait_for_users_and_for_older_snapshots() {
    for version in versions() {
        let server = support::server_of(version).await;
        let info = support::database(server).await;
        let (client, other) = (support::open(&info).await.client, support::open(&info).await.client);
        client.batch_execute(TABLES).await.unwrap();
        let pid = support::pid(&client).await;
        let reads = "BEGIN; SELECT * FROM t; SELECT * FROM p";
        let writes = "BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE";
        let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM unrelated";
        for (statement, obstacle, words) in [
            (
                "CREATE INDEX CONCURRENTLY late ON t (v)",
                writes,
                "holds RowExclusive; its transaction must end first",
            ),
            (
                "CREATE INDEX CONCURRENTLY late ON t (v)",
                snapshot,
                "has an older snapshot; its transaction must end first",
            ),
            ("CREATE INDEX CONCURRENTLY late ON t (v)", reads, ""),
            ("REINDEX INDEX CONCURRENTLY t_v", writes, "holds RowExclusive; its transaction must end first"),
            ("REINDEX INDEX CONCURRENTLY t_v", reads, "holds AccessShare; its transaction must end first"),
            (
                "REINDEX TABLE CONCURRENTLY t",
                snapshot,
                "has an older snapshot; its transaction must end first",
            ),
            ("DROP INDEX CONCURRENTLY t_v", reads, "holds AccessShare; its transaction must end first"),
            ("DROP INDEX CONCURRENTLY t_v", snapshot, ""),
            (
                "ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY",
                reads,
                "holds AccessShare; its transaction must end first",
            ),
            ("ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY", snapshot, ""),
        ] {
            other.batch_execute(obstacle).await.unwrap();
            let left = asked_of(server, &info, &[statement]).await;
            let waits = !words.is_empty();
            assert_eq!(left.status, Some(i32::from(waits)), "{version} {statement} {obstacle}: {}", left.out);
            assert!(left.out.contains(words), "{version} {statement}: {}", left.out);
            let watching = async {
                if waits {
                    let sql = format!(
                        "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND NOT granted AND locktype = 'virtualxid')"
                    );
                    support::wait_until(&format!("{statement} to wait on {version}"), async || {
                        other.query_one(&sql, &[]).await.unwrap().get(0)
                    })
                    .await;
                    other.batch_execute("ROLLBACK").await.unwrap();
                }
            };
            let (ended, ()) = tokio::join!(client.batch_execute(statement), watching);
            ended.unwrap_or_else(|error| panic!("{version} {statement}: {error:?}"));
            other.batch_execute("ROLLBACK").await.unwrap();
            let again = "DROP INDEX IF EXISTS late; CREATE INDEX IF NOT EXISTS t_v ON t (v); DROP TABLE IF EXISTS p, p1; CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)";
            client.batch_execute(again).await.unwrap();
        }
    }
}
