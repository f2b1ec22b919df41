//! Items of locktop's work queue that rest after a failed attempt, that are slow, and that settle after their session has ended.

use super::db::{Session, installed};
use super::printed::end;
use super::support::versions;

const CLAIM: &str = "SELECT task_id, attempt FROM claim_queue_items('w')";

async fn session(version: u32) -> Session {
    Session::open(&installed(version).await).await
}

fn fail(id: i64, attempt: i64) -> String {
    format!("SELECT finish_queue_item({id}, 'w', {attempt}, 'pending', 'why')")
}

/// Fails an attempt, and returns whether the item is due after that pause, by the server's clock before and after.
async fn rests_for(session: &Session, attempt: i64, pause: &str) -> bool {
    let before = session.ask("SELECT clock_timestamp()").await;
    assert_eq!(session.ask(&fail(1, attempt)).await, "t");
    let within = format!(
        "SELECT due_at - interval '{pause}' BETWEEN '{before}' AND clock_timestamp(), next_item_due_at() = due_at
           FROM task_queue WHERE id = 1"
    );
    session.ask(&within).await == "t|t"
}

#[tokio::test]
async fn an_item_that_failed_rests_and_each_time_for_longer() {
    for version in versions() {
        let one = session(version).await;
        one.run("INSERT INTO task_queue (task_name, max_attempts, retry_delay) VALUES ('x', 9, '1 minute')")
            .await;
        for (attempt, pause) in [(1, "1 minute"), (2, "2 minutes"), (3, "4 minutes")] {
            assert_eq!(one.ask(CLAIM).await, format!("1|{attempt}"), "{version}");
            assert!(rests_for(&one, attempt, pause).await, "{version}: {pause}");
            assert_eq!(one.ask(CLAIM).await, "", "{version}: it is not claimed");
            let depth = "SELECT pending, resting, oldest_pending_at FROM queue_depth";
            assert_eq!(one.ask(depth).await, "1|1|-", "{version}: it does not wait");
            // As if the time had come.
            one.run("UPDATE task_queue SET not_before = clock_timestamp()").await;
            assert_eq!(one.ask("SELECT resting, oldest_pending_at IS NULL FROM queue_depth").await, "0|f");
        }
        // An item that is returned to the queue is due at once, and makes the next pause no longer.
        assert_eq!(one.ask(CLAIM).await, "1|4");
        assert_eq!(one.ask("SELECT give_back_queue_item(1, 'w', 4)").await, "t");
        assert_eq!(one.ask(CLAIM).await, "1|5", "{version}");
        assert!(rests_for(&one, 5, "8 minutes").await, "{version}");
        // An item that is set aside and retried by hand is due, whatever its state was.
        one.run("SELECT set_aside_queue_item(1, 'me'), retry_queue_item(1, 'me')").await;
        assert_eq!(one.ask(CLAIM).await, "1|6", "{version}");
    }
}

#[tokio::test]
async fn items_are_claimed_in_the_order_they_became_due_and_not_before() {
    for version in versions() {
        let one = session(version).await;
        one.run(
            "INSERT INTO task_queue (task_name, created_at, not_before) VALUES
                 ('later', clock_timestamp() - interval '9 hours', clock_timestamp() + interval '1 hour'),
                 ('tried', clock_timestamp() - interval '8 hours', clock_timestamp() - interval '1 hour'),
                 ('old', clock_timestamp() - interval '2 hours', NULL)",
        )
        .await;
        let names = "SELECT array_agg(task_name) FROM (SELECT task_name FROM claim_queue_items('w', 1)) c";
        assert_eq!(one.ask(names).await, "{old}", "{version}");
        assert_eq!(one.ask(names).await, "{tried}", "{version}");
        assert_eq!(one.ask(names).await, "-", "{version}");
        let due = "SELECT next_item_due_at() = (SELECT due_at FROM task_queue WHERE task_name = 'later')";
        one.run("UPDATE task_queue SET status = 'completed' WHERE task_name <> 'later'").await;
        assert_eq!(one.ask(due).await, "t", "{version}");
    }
}

/// Many resting items do not slow down a claim: it does not read them.
#[tokio::test]
async fn resting_items_add_no_cost_to_a_claim() {
    for version in versions() {
        let one = session(version).await;
        // Planned while the table is empty.
        one.run(CLAIM).await;
        one.run(
            "INSERT INTO task_queue (task_name, not_before) SELECT 'x', 'infinity' FROM generate_series(1, 5000);
             INSERT INTO task_queue (task_name) VALUES ('due');
             SELECT pg_stat_reset()",
        )
        .await;
        assert_eq!(one.ask(CLAIM).await, "5001|1", "{version}");
        let plan = one
            .ask(
                "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) SELECT c.id FROM task_queue c
                  WHERE c.status = 'pending' AND c.due_at <= statement_timestamp() ORDER BY c.due_at, c.id LIMIT 1 FOR UPDATE SKIP LOCKED",
            )
            .await;
        assert!(plan.contains("idx_queue_pending") && !plan.contains("Rows Removed"), "{version}: {plan}");
    }
}

#[tokio::test]
async fn an_item_past_its_timeout_is_slow_while_its_session_is_connected() {
    for version in versions() {
        let info = installed(version).await;
        let (one, watcher) = (Session::open(&info).await, Session::open(&info).await);
        one.run("INSERT INTO task_queue (task_name) SELECT 'x' FROM generate_series(1, 2)").await;
        one.run("SELECT claim_queue_items('w', 2)").await;
        let states = "SELECT task_id, state FROM running_queue_items ORDER BY 1";
        assert_eq!(watcher.ask(states).await, "1|running\n2|running", "{version}");
        watcher
            .run("UPDATE task_queue SET started_at = clock_timestamp() - interval '30 minutes' WHERE id = 2")
            .await;
        assert_eq!(watcher.ask(states).await, "1|running\n2|slow", "{version}");
        let workers = "SELECT worker_id, state, items FROM queue_workers";
        assert_eq!(watcher.ask(workers).await, "w|slow|2", "{version}");
        watcher.run("UPDATE task_queue SET timeout = '31 minutes'").await;
        assert_eq!(watcher.ask(workers).await, "w|running|2", "{version}");
        assert_eq!(watcher.ask("SELECT * FROM requeue_lost_items('me')").await, "", "it is no reason to act");
        end(&watcher, one.pid).await;
        assert_eq!(watcher.ask(states).await, "1|settling\n2|settling", "{version}");
    }
}

#[tokio::test]
async fn an_item_settles_for_the_grace_after_its_last_sign_of_life() {
    for version in versions() {
        let info = installed(version).await;
        let (one, watcher) = (Session::open(&info).await, Session::open(&info).await);
        one.run("INSERT INTO task_queue (task_name) SELECT 'x' FROM generate_series(1, 2)").await;
        one.run("SELECT claim_queue_items('w', 2)").await;
        end(&watcher, one.pid).await;
        let states = "SELECT task_id, state FROM running_queue_items ORDER BY 1";
        let lost = "SELECT task_id, outcome FROM requeue_lost_items('me') ORDER BY 1";
        assert_eq!(watcher.ask(states).await, "1|settling\n2|settling", "{version}");
        assert_eq!(watcher.ask("SELECT state, items FROM queue_workers").await, "settling|2", "{version}");
        assert_eq!(watcher.ask(lost).await, "", "{version}");
        // A grace that has passed for one item and not for the other. The server has been up for longer: the
        // tests of the worker wait for that, and those of recovery use a server of their own.
        watcher
            .run("UPDATE task_queue SET heartbeat_at = clock_timestamp() + interval '1 hour' WHERE id = 2")
            .await;
        watcher.run("SET locktop.orphan_grace = '0'").await;
        assert_eq!(watcher.ask(states).await, "1|lost\n2|settling", "{version}");
        assert_eq!(watcher.ask("SELECT state FROM queue_workers").await, "lost", "{version}");
        assert_eq!(watcher.ask(lost).await, "1|requeued", "{version}");
        assert_eq!(watcher.ask(CLAIM).await, "1|2", "{version}: it is due at once");
        // A requeue by hand, when the worker is known to have stopped, need not wait.
        let by_hand = "SELECT outcome FROM requeue_queue_item(2, 'me')";
        assert_eq!(watcher.ask(by_hand).await, "requeued", "{version}");
    }
}
