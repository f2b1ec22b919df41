//! locktop's work queue.

use super::db::{Session, installed};
use super::printed::{blocked, end, keys};
use super::support::versions;

const KEY: i64 = 0x4C51 << 48;
const CLAIM: &str = "SELECT task_id, attempt FROM claim_queue_items('w')";
const STATUS: &str = "SELECT status, attempt FROM task_queue WHERE id = 1";

/// Three items, and two sessions.
async fn queue(version: u32) -> (Session, Session) {
    let info = installed(version).await;
    let session = Session::open(&info).await;
    session
        .run("INSERT INTO task_queue (task_name, payload) SELECT 'item ' || g, jsonb_build_object('n', g) FROM generate_series(1, 3) g")
        .await;
    (session, Session::open(&info).await)
}

fn finish(id: i64, attempt: i64, status: &str) -> String {
    format!("SELECT finish_queue_item({id}, 'w', {attempt}, '{status}', 'why')")
}

#[tokio::test]
async fn each_item_is_claimed_once_oldest_first() {
    for version in versions() {
        let (one, other) = queue(version).await;
        one.run("UPDATE task_queue SET created_at = created_at - interval '1 hour' WHERE id = 2").await;
        assert_eq!(one.ask("SELECT * FROM consume_task()").await, "2|item 2|{\"n\": 2}", "{version}");
        // One that is being claimed is passed over.
        one.run("BEGIN").await;
        assert_eq!(one.ask(CLAIM).await, "1|1");
        assert_eq!(other.ask(CLAIM).await, "3|1");
        assert_eq!(other.ask(CLAIM).await, "");
        one.run("COMMIT").await;
        let rows = "SELECT id, status, worker_id, backend_pid, attempt FROM task_queue ORDER BY id";
        let expected = format!(
            "1|processing|w|{0}|1\n2|processing|local|{0}|1\n3|processing|w|{1}|1",
            one.pid, other.pid
        );
        assert_eq!(one.ask(rows).await, expected, "{version}");
        // The view of advisory locks shows the session of each item.
        let held = format!(
            "SELECT array_agg(lock_id - {KEY} ORDER BY lock_id) FROM advisory_locks WHERE pid = {}",
            one.pid
        );
        assert_eq!(other.ask(&held).await, "{1,2}");
        let workers = "SELECT worker_id, state, items FROM queue_workers ORDER BY 1, backend_pid";
        assert_eq!(other.ask(workers).await.lines().count(), 3);
        assert!(other.refused("SELECT * FROM claim_queue_items(NULL)").await.starts_with("22004"));
    }
}

/// A claim takes as many items as requested with any plan.
#[tokio::test]
async fn a_claim_takes_no_more_than_it_is_asked_for() {
    for version in versions() {
        for off in [
            &[][..],
            &["hashjoin", "mergejoin"],
            &["nestloop"],
            &["indexscan", "bitmapscan", "hashjoin", "mergejoin", "material"],
        ] {
            let (session, _) = queue(version).await;
            for method in off {
                session.run(&format!("SET enable_{method} = off")).await;
            }
            for (asked, left) in [(1, "2"), (0, "2"), (5, "0")] {
                session.run(&format!("SELECT claim_queue_items('w', {asked})")).await;
                assert_eq!(session.ask("SELECT pending FROM queue_depth").await, left, "{version} {off:?}");
            }
        }
    }
}

#[tokio::test]
async fn only_its_session_and_worker_finish_an_attempt_and_only_once() {
    for version in versions() {
        let (one, other) = queue(version).await;
        assert_eq!(one.ask(CLAIM).await, "1|1");
        assert_eq!(other.ask(&finish(1, 1, "completed")).await, "f", "{version}: another session");
        assert_eq!(one.ask("SELECT finish_queue_item(1, 'v', 1, 'completed')").await, "f", "another worker");
        assert_eq!(one.ask(&finish(1, 2, "completed")).await, "f", "another attempt");
        assert_eq!(one.ask(&finish(2, 1, "completed")).await, "f", "another item");
        assert_eq!(one.ask(STATUS).await, "processing|1");
        assert!(one.refused(&finish(1, 1, "processing")).await.starts_with("22023"));
        assert_eq!(keys(&other, one.pid).await, "1");
        assert_eq!(one.ask(&finish(1, 1, "completed")).await, "t", "{version}");
        assert_eq!(keys(&other, one.pid).await, "0");
        assert_eq!(one.ask(&finish(1, 1, "failed")).await, "f", "{version}: it has ended");
        assert_eq!(
            one.ask("SELECT status, completed_at IS NOT NULL FROM task_queue WHERE id = 1").await,
            "completed|t"
        );
    }
}

#[tokio::test]
async fn an_item_is_tried_again_up_to_its_last_attempt() {
    for version in versions() {
        let (one, other) = queue(version).await;
        one.run("UPDATE task_queue SET max_attempts = 2").await;
        assert_eq!(one.ask(CLAIM).await, "1|1");
        assert_eq!(one.ask(&finish(1, 1, "pending")).await, "t");
        assert_eq!(
            one.ask("SELECT status, error_message, completed_at FROM task_queue WHERE id = 1").await,
            "pending|why|-"
        );
        assert_eq!(keys(&other, one.pid).await, "0");
        // It is due later than the others were.
        one.run("UPDATE task_queue SET not_before = created_at WHERE id = 1").await;
        assert_eq!(one.ask(CLAIM).await, "1|2");
        assert_eq!(one.ask(&finish(1, 1, "pending")).await, "f", "{version}: the attempt before");
        assert_eq!(one.ask(&finish(1, 2, "pending")).await, "t");
        assert_eq!(one.ask(STATUS).await, "failed|2", "{version}: it was the last");
        assert_eq!(one.ask(CLAIM).await, "2|1");
        assert_eq!(one.ask(&finish(2, 1, "failed")).await, "t");
        let depth = "SELECT pending, processing, completed, failed FROM queue_depth";
        assert_eq!(one.ask(depth).await, "1|0|0|2");
    }
}

#[tokio::test]
async fn a_rollback_leaves_everything_as_it_was() {
    for version in versions() {
        let (one, other) = queue(version).await;
        one.run("BEGIN").await;
        assert_eq!(one.ask(CLAIM).await, "1|1");
        one.run("ROLLBACK").await;
        assert_eq!(keys(&other, one.pid).await, "0", "{version}: a claim");
        assert_eq!(other.ask(CLAIM).await, "1|1", "no session has it");
        for end in ["ROLLBACK", "COMMIT"] {
            other.run("BEGIN").await;
            assert_eq!(other.ask(&finish(1, 1, "completed")).await, "t");
            other.run(end).await;
            let left = if end == "COMMIT" { "0" } else { "1" };
            assert_eq!(keys(&one, other.pid).await, left, "{version} {end}");
        }
        // Claimed and finished in one transaction, and deleted by the session that has it.
        one.run(
            "BEGIN; SELECT claim_queue_items('w'); SELECT finish_queue_item(2, 'w', 1, 'completed'); COMMIT",
        )
        .await;
        assert_eq!(keys(&other, one.pid).await, "0", "{version}");
        one.run("SELECT claim_queue_items('w'); DELETE FROM task_queue WHERE id = 3").await;
        assert_eq!(keys(&other, one.pid).await, "0", "{version}");
        assert_eq!(one.ask("SELECT completed, processing FROM queue_depth").await, "2|0");
    }
}

/// The statements of the printed Python, one by one.
#[tokio::test]
async fn a_worker_written_after_the_article_runs() {
    for version in versions() {
        let (one, other) = queue(version).await;
        for (status, id) in
            [("completed', completed_at = now() --", "1"), ("failed' --", "2"), ("completed' --", "3")]
        {
            // The driver begins the transaction.
            one.run("BEGIN").await;
            let task = one.ask("SELECT * FROM consume_task()").await;
            assert_eq!(task.split('|').next().unwrap(), id, "{version}");
            one.run(&format!("UPDATE task_queue\n SET status = '{status}\n WHERE id = {id}")).await;
            one.run("COMMIT").await;
            one.run(&format!("SELECT pg_advisory_unlock({id})")).await;
        }
        assert_eq!(one.ask("SELECT * FROM consume_task()").await, "");
        assert_eq!(keys(&other, one.pid).await, "0", "{version}: nothing stays");
        assert_eq!(
            one.ask("SELECT status FROM task_queue ORDER BY id").await,
            "completed\nfailed\ncompleted"
        );
    }
}

#[tokio::test]
async fn advisory_locks_of_other_sessions_do_not_block_a_claim() {
    for version in versions() {
        let (one, stranger) = queue(version).await;
        stranger.run(&format!("SELECT pg_advisory_lock(1), pg_advisory_lock({})", KEY + 1)).await;
        assert_eq!(one.ask(CLAIM).await, "1|1", "{version}");
        assert_eq!(one.ask(&finish(1, 1, "completed")).await, "t");
    }
}

#[tokio::test]
async fn items_of_an_ended_session_are_requeued_up_to_the_last_attempt() {
    for version in versions() {
        let info = installed(version).await;
        let watcher = Session::open(&info).await;
        watcher.run("SET locktop.orphan_grace = '0'; INSERT INTO task_queue (task_name) VALUES ('x')").await;
        for attempt in 1..=3 {
            let worker = Session::open(&info).await;
            assert_eq!(worker.ask(CLAIM).await, format!("1|{attempt}"), "{version}");
            assert_eq!(watcher.ask("SELECT * FROM requeue_lost_items('me')").await, "", "it is connected");
            let one = "SELECT outcome, holder_pid FROM requeue_queue_item(1, 'me')";
            assert_eq!(watcher.ask(one).await, format!("held|{}", worker.pid), "{version}");
            end(&watcher, worker.pid).await;
            assert_eq!(watcher.ask("SELECT state, items FROM queue_workers").await, "lost|1");
            let outcome = if attempt < 3 { "requeued" } else { "gave_up" };
            let lost = "SELECT task_id, worker_id, attempt, outcome FROM requeue_lost_items('me')";
            assert_eq!(watcher.ask(lost).await, format!("1|w|{attempt}|{outcome}"), "{version}");
            assert_eq!(watcher.ask("SELECT outcome FROM requeue_queue_item(1, 'me')").await, "wrong_state");
        }
        assert_eq!(watcher.ask(STATUS).await, "failed|3");
        let audit =
            format!("SELECT action, actor, worker_id, lock_id - {KEY} FROM locktop_audit ORDER BY id");
        assert_eq!(
            watcher.ask(&audit).await,
            "requeued|me|w|1\nrequeued|me|w|1\ngave_up|me|w|1",
            "{version}"
        );
    }
}

#[tokio::test]
async fn an_item_is_requeued_only_if_its_session_has_ended() {
    for version in versions() {
        let info = installed(version).await;
        let (watcher, worker) = (Session::open(&info).await, Session::open(&info).await);
        watcher.run("INSERT INTO task_queue (task_name) SELECT 'x' FROM generate_series(1, 3)").await;
        watcher.run("SET locktop.orphan_grace = '0'").await;
        worker.run(CLAIM).await;
        // It has lost its locks.
        worker.run("SELECT pg_advisory_unlock_all()").await;
        let outcome = |id: i32| format!("SELECT outcome FROM requeue_queue_item({id}, 'me')");
        assert_eq!(watcher.ask(&outcome(1)).await, "held", "{version}");
        // The transaction has read the sessions before this one began.
        watcher.run("BEGIN; SELECT count(*) FROM pg_stat_activity").await;
        let young = Session::open(&info).await;
        young.run(CLAIM).await;
        assert_eq!(
            watcher.ask("SELECT state FROM running_queue_items WHERE task_id = 2").await,
            "lost",
            "as the transaction sees it"
        );
        assert_eq!(watcher.ask("SELECT outcome FROM requeue_lost_items('me')").await, "held", "{version}");
        watcher.run("COMMIT").await;
        // Its row is locked; it names no session; the item does not exist; no session has it.
        young.run("BEGIN").await;
        young.run(&finish(2, 1, "completed")).await;
        assert_eq!(watcher.ask(&outcome(2)).await, "locked", "{version}");
        young.run("COMMIT").await;
        watcher.run("UPDATE task_queue SET status = 'processing', backend_start = NULL WHERE id = 3").await;
        assert_eq!(watcher.ask(&outcome(3)).await, "unknown");
        assert_eq!(watcher.ask(&outcome(99)).await, "not_found");
        assert_eq!(watcher.ask(&outcome(2)).await, "wrong_state");
        // A process id that was reused is another session.
        watcher
            .run("UPDATE task_queue SET backend_start = backend_start - interval '1 hour' WHERE id = 1")
            .await;
        assert_eq!(watcher.ask(&outcome(1)).await, "requeued", "{version}");
    }
}

#[tokio::test]
async fn an_item_without_a_session_can_be_set_aside_and_retried() {
    for version in versions() {
        let (one, other) = queue(version).await;
        one.run(CLAIM).await;
        let aside = |id: i32| format!("SELECT outcome FROM set_aside_queue_item({id}, 'me', 'poison')");
        let back = |id: i32| format!("SELECT outcome, attempt FROM retry_queue_item({id}, 'me')");
        assert_eq!(other.ask(&aside(1)).await, "held", "{version}");
        assert_eq!(other.ask(&aside(2)).await, "set_aside");
        assert_eq!(other.ask(&aside(2)).await, "wrong_state");
        assert_eq!(
            other.ask("SELECT status, error_message FROM task_queue WHERE id = 2").await,
            "failed|poison: it was pending after 0 attempts"
        );
        assert_eq!(other.ask(CLAIM).await, "3|1", "{version}");
        assert_eq!(other.ask(&finish(3, 1, "completed")).await, "t");
        assert_eq!(
            (other.ask(&aside(3)).await, other.ask(&back(3)).await),
            ("wrong_state".to_owned(), "wrong_state|1".to_owned())
        );
        assert_eq!(other.ask(&back(2)).await, "requeued|0");
        end(&other, one.pid).await;
        assert_eq!(other.ask(&aside(1)).await, "set_aside", "{version}");
        // The requeue of lost items skips one that has failed; a retry after the last attempt adds one.
        assert_eq!(other.ask("SELECT outcome FROM requeue_queue_item(1, 'me')").await, "wrong_state");
        other.run("UPDATE task_queue SET max_attempts = 1 WHERE id = 1").await;
        assert_eq!(other.ask(&back(1)).await, "requeued|1");
        assert_eq!(
            other.ask("SELECT status, attempt, max_attempts FROM task_queue WHERE id = 1").await,
            "pending|1|2"
        );
        let audit = "SELECT action, reason FROM locktop_audit ORDER BY id";
        assert_eq!(
            other.ask(audit).await,
            "set_aside|poison\nrequeued|-\nset_aside|poison\nrequeued|-",
            "{version}"
        );
    }
}

#[tokio::test]
async fn a_role_that_sees_too_little_does_not_act() {
    for version in versions() {
        let (worker, watcher) = queue(version).await;
        worker.run(CLAIM).await;
        let role = format!("clerk_{}", watcher.pid);
        watcher
            .run(&format!(
                "CREATE ROLE {role}; GRANT USAGE ON SCHEMA locktop TO {role};
                 GRANT ALL ON ALL TABLES IN SCHEMA locktop TO {role}; SET ROLE {role}"
            ))
            .await;
        assert_eq!(watcher.ask("SELECT state FROM running_queue_items").await, "unknown", "{version}");
        let answer = watcher.ask("SELECT outcome, detail FROM requeue_queue_item(1, 'me')").await;
        assert!(
            answer.starts_with("unknown|when pid ") && answer.ends_with("grant it pg_read_all_stats"),
            "{answer}"
        );
        watcher.run("RESET ROLE").await;
        watcher.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    }
}

#[tokio::test]
async fn depth_counts_locked_rows() {
    for version in versions() {
        let (one, other) = queue(version).await;
        one.run("BEGIN; SELECT FROM task_queue FOR UPDATE").await;
        assert_eq!(other.ask("SELECT pending, oldest_pending_at = (SELECT min(created_at) FROM task_queue) FROM queue_depth").await, "3|t", "{version}");
        assert_eq!(other.ask(CLAIM).await, "");
    }
}

#[tokio::test]
async fn a_heartbeat_returns_the_items_the_session_still_has() {
    for version in versions() {
        let (one, other) = queue(version).await;
        one.run("SELECT claim_queue_items('w', 2)").await;
        other.run("SELECT claim_queue_items('w', 1)").await;
        one.run("UPDATE task_queue SET heartbeat_at = heartbeat_at - interval '1 hour'").await;
        let beat = "SELECT task_id, attempt FROM heartbeat_queue_items('w') ORDER BY 1";
        assert_eq!(one.ask(beat).await, "1|1\n2|1", "{version}");
        assert_eq!(one.ask("SELECT count(*) FROM task_queue WHERE heartbeat_at > started_at").await, "2");
        // Another session fails one by hand.
        other.run("UPDATE task_queue SET status = 'failed' WHERE id = 2").await;
        assert_eq!(one.ask(beat).await, "1|1", "{version}");
        assert_eq!(one.ask(&finish(2, 1, "completed")).await, "f");
    }
}

#[tokio::test]
async fn a_finish_during_a_requeue_waits_for_it_and_is_refused() {
    for version in versions() {
        let (one, other) = queue(version).await;
        one.run(CLAIM).await;
        // As if its session had ended: a requeue that is not committed yet, and then the finish.
        other.run("BEGIN; UPDATE task_queue SET status = 'pending' WHERE id = 1").await;
        let finish = finish(1, 1, "completed");
        let (answer, ()) = tokio::join!(one.ask(&finish), async {
            blocked(&other, one.pid).await;
            other.run("COMMIT").await;
        });
        assert_eq!(answer, "f", "{version}");
        assert_eq!(other.ask(CLAIM).await, "1|2");
        assert_eq!(one.ask(&finish).await, "f", "{version}: another session has the next attempt");
    }
}
