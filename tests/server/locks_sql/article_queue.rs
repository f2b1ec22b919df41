//! Faults of the printed work queue. Each fault has its counterpart in `queue`.

use super::printed::{block, end, keys, printed, repaired};
use super::support::versions;

const ITEMS: &str =
    "INSERT INTO task_queue (task_name, created_at) SELECT 'item ' || g, now() + g * interval '1 second'
    FROM generate_series(1, 3) g";
const CONSUME: &str = "SELECT task_id, task_name FROM consume_task()";

#[tokio::test]
async fn the_block_with_a_transaction_in_it_cannot_run() {
    for version in versions() {
        let (session, _) = printed(version, &[]).await;
        let error = session.refused(block("do_transaction")).await;
        assert!(error.starts_with("42601 syntax error at or near"), "{version}: {error}");
    }
}

#[tokio::test]
async fn its_columns_are_ambiguous_at_the_first_call() {
    for version in versions() {
        let (session, _) = printed(version, &[block("queue_table"), block("consume"), ITEMS]).await;
        let error = session.refused(CONSUME).await;
        assert_eq!(error, "42702 column reference \"task_name\" is ambiguous", "{version}");
        assert_eq!(keys(&session, session.pid).await, "1", "{version}: and it keeps the lock");
    }
}

#[tokio::test]
async fn the_lock_stays_if_the_caller_forgets() {
    for version in versions() {
        let (worker, other) = printed(version, &[block("queue_table"), &repaired("consume"), ITEMS]).await;
        assert_eq!(worker.ask(CONSUME).await, "1|item 1");
        worker.run("UPDATE task_queue SET status = 'completed' WHERE id = 1").await;
        assert_eq!(keys(&other, worker.pid).await, "1", "{version}: of an item that is done");
        worker.run("BEGIN").await;
        assert_eq!(worker.ask(CONSUME).await, "2|item 2");
        worker.run("ROLLBACK").await;
        assert_eq!(keys(&other, worker.pid).await, "2", "{version}: of an item that no session has claimed");
        // The first in the queue blocks every other session, and the third is never reached.
        assert_eq!(other.ask(CONSUME).await, "", "{version}");
        assert_eq!(other.ask("SELECT count(*) FROM task_queue WHERE status = 'pending'").await, "2");
    }
}

#[tokio::test]
async fn an_item_collides_with_any_other_use_of_its_number() {
    for version in versions() {
        let (worker, stranger) = printed(version, &[block("queue_table"), &repaired("consume"), ITEMS]).await;
        stranger.run("SELECT pg_advisory_lock(1)").await;
        assert_eq!(worker.ask(CONSUME).await, "", "{version}: three items are pending");
    }
}

#[tokio::test]
async fn an_item_names_no_session_and_is_never_requeued() {
    for version in versions() {
        let (worker, other) = printed(version, &[block("queue_table"), &repaired("consume"), ITEMS]).await;
        assert_eq!(worker.ask(CONSUME).await, "1|item 1");
        // The row is locked until its caller commits, which it has: any session can finish the item.
        other.run("BEGIN; SELECT FROM task_queue WHERE id = 1 FOR UPDATE NOWAIT; COMMIT").await;
        end(&other, worker.pid).await;
        assert_eq!(
            other.ask("SELECT status, worker_id FROM task_queue WHERE id = 1").await,
            "processing|-",
            "{version}"
        );
        assert_eq!(other.ask(CONSUME).await, "2|item 2");
        assert_eq!(other.ask(CONSUME).await, "3|item 3");
        assert_eq!(other.ask(CONSUME).await, "", "{version}: the first is lost");
    }
}
