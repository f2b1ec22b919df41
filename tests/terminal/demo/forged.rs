//! Each check of the demo can fail: it is shown a violation, and the demo fails with it.

use rustix::process::Signal;
use tokio_postgres::Client;

use super::headless::{Left, Running};
use super::support::wait_until;
use super::url::{schemas, target};

async fn is_so(client: &Client, question: &str) -> bool {
    // Its tables may not exist yet.
    client.query_one(question, &[]).await.is_ok_and(|row| row.try_get(0).unwrap_or(false))
}

/// Plays a scenario on an external server until the query `ready` returns true, runs `forgery`, and ends the demo.
async fn meddle(scenario: &str, ready: &str, forgery: &str) -> Left {
    let (target, client) = target().await;
    let running =
        Running::start(&["--url", &target, "--scenario", scenario, "--duration", "1h", "--format", "json"]);
    wait_until(ready, async || is_so(&client, ready).await).await;
    client.batch_execute(forgery).await.unwrap();
    running.signal(Signal::INT);
    let left = tokio::task::spawn_blocking(|| running.finish()).await.unwrap();
    assert_eq!(schemas(&client).await, [] as [&str; 0], "{scenario}: {left:?}");
    left
}

/// The same; the demo has to report `found`.
async fn forge(scenario: &str, ready: &str, forgery: &str, found: &str) {
    let left = meddle(scenario, ready, forgery).await;
    assert_eq!(left.status, Some(1), "{scenario}: {left:?}");
    assert!(left.err.contains(found), "{scenario}: {left:?}");
}

const TWO_TERMS: &str = "SELECT count(*) > count(DISTINCT lease) FROM locktop_demo.lease_terms WHERE acquired_at < clock_timestamp()";

#[tokio::test]
async fn a_write_after_the_lease_was_lost() {
    let forgery = "INSERT INTO locktop_demo.lease_writes (lease, token, worker)
                   SELECT lease, min(token), 'forger' FROM locktop_demo.lease_terms GROUP BY lease HAVING count(*) > 1 LIMIT 1";
    forge(
        "leases",
        TWO_TERMS,
        forgery,
        "leases: writes accepted after another session acquired the lease: 1",
    )
    .await;
}

#[tokio::test]
async fn two_holders_of_a_lease() {
    let forgery = "UPDATE locktop_demo.lease_terms SET ends = ends + interval '1 hour'
                    WHERE token = (SELECT min(token) FROM locktop_demo.lease_terms GROUP BY lease HAVING count(*) > 1 LIMIT 1)";
    forge("leases", TWO_TERMS, forgery, "leases: new holders before the previous one had ended: 1").await;
}

#[tokio::test]
async fn an_item_that_was_completed_twice() {
    let forgery = "INSERT INTO locktop_demo.queue_finishes (item, attempt, worker)
                   SELECT item, attempt + 1, 'forger' FROM locktop_demo.queue_finishes LIMIT 1";
    let ready = "SELECT count(*) > 0 FROM locktop_demo.queue_finishes";
    forge("queue", ready, forgery, "queue: items that were completed more than once: 1").await;
}

const DONE: &str =
    "SELECT count(*) > 3 FROM locktop_demo.queue_finishes JOIN locktop_demo.queue_runs USING (item, attempt)";

#[tokio::test]
async fn two_runs_of_an_item_at_one_moment() {
    let forgery = "INSERT INTO locktop_demo.queue_runs (item, attempt, worker, began, last)
                   SELECT item, attempt + 1, 'forger', last, last FROM locktop_demo.queue_runs ORDER BY n LIMIT 1";
    forge("queue", DONE, forgery, "queue: runs of an item that overlap another run of it: 1").await;
}

#[tokio::test]
async fn an_item_that_is_completed_and_was_not_done() {
    let forgery = "UPDATE locktop_demo.queue_runs r SET outcome = 'stopped'
                     FROM (SELECT item FROM locktop_demo.queue_finishes ORDER BY n LIMIT 1) f WHERE r.item = f.item";
    forge("queue", DONE, forgery, "queue: items that are completed, but that no worker finished: 1").await;
}

#[tokio::test]
async fn a_missing_item_is_detected() {
    let forgery = "DELETE FROM locktop_demo_tasks.task_queue WHERE id = (SELECT max(id) FROM locktop_demo_tasks.task_queue)";
    let ready = "SELECT count(*) > 20 FROM locktop_demo_tasks.task_queue";
    forge("queue", ready, forgery, "queue: items that were added and are missing: 1").await;
}

#[tokio::test]
async fn money_out_of_nowhere() {
    let forgery = "UPDATE locktop_demo_tasks.accounts SET balance = balance + 1, version = version + 1
                    WHERE id = (SELECT min(id) FROM locktop_demo_tasks.accounts)";
    let ready = "SELECT sum(version) > 50 FROM locktop_demo_tasks.accounts";
    forge("transfer", ready, forgery, "transfer: 10001.00 exists of 10000.00").await;
}

#[tokio::test]
async fn a_window_that_begins_before_the_last_is_over() {
    // A window that has just begun is removed: it has surely not ended when the next request arrives.
    let ready = "WITH gone AS (DELETE FROM locktop_demo_tasks.rate_limit
                                WHERE window_start > clock_timestamp() - interval '300 milliseconds' RETURNING 1)
                 SELECT count(*) > 0 FROM gone";
    let forgery = "DO $$ BEGIN
                       FOR i IN 1 .. 200 LOOP
                           EXIT WHEN EXISTS (SELECT FROM locktop_demo_tasks.rate_limit);
                           PERFORM pg_sleep(0.02);
                       END LOOP;
                   END $$";
    forge("ratelimit", ready, forgery, "windows that began before the previous one ended").await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn two_holders_of_a_lock_in_redis() {
    let forgery = "INSERT INTO locktop_demo.redis_holds (lock, kind, worker, first, last, outcome)
                   SELECT lock, kind, 'forger', last, last, 'released' FROM locktop_demo.redis_holds LIMIT 1";
    let ready = "SELECT count(*) > 0 FROM locktop_demo.redis_holds";
    forge("redis", ready, forgery, "redis: locks held by two at the same time: 1").await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_form_that_was_submitted_twice() {
    let forgery = "INSERT INTO locktop_demo.redis_submissions (form, worker)
                   SELECT form, 'forger' FROM locktop_demo.redis_submissions LIMIT 1";
    let ready = "SELECT count(*) > 0 FROM locktop_demo.redis_submissions";
    forge("redis", ready, forgery, "redis: forms submitted twice: 1").await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_task_that_had_two_runners() {
    let forgery = "INSERT INTO locktop_demo.redis_task_runs (task, worker)
                   SELECT task, 'forger' FROM locktop_demo.redis_task_runs LIMIT 1";
    let ready = "SELECT count(*) > 0 FROM locktop_demo.redis_task_runs";
    forge("redis", ready, forgery, "redis: tasks run twice: 1").await;
}

/// A generator that returns this value instead of ids for forty calls. Then it is restored: a schema that was
/// changed is not removed.
async fn forge_ids(id: &str, found: &str) {
    let forgery = format!(
        "BEGIN;
         CREATE SEQUENCE locktop_demo.forged;
         CREATE TEMP TABLE was AS SELECT pg_get_functiondef('locktop_demo_tasks.generate_snowflake_id'::regproc) AS definition;
         CREATE OR REPLACE FUNCTION locktop_demo_tasks.generate_snowflake_id(p_worker_id int) RETURNS bigint LANGUAGE sql
             AS $$ SELECT {id} FROM (SELECT nextval('locktop_demo.forged') AS n) q $$;
         COMMIT;
         DO $$ BEGIN
             FOR i IN 1 .. 1000 LOOP
                 EXIT WHEN (SELECT last_value > 40 FROM locktop_demo.forged);
                 PERFORM pg_sleep(0.02);
             END LOOP;
             EXECUTE (SELECT definition FROM was);
         END $$"
    );
    let ready = "SELECT count(*) = 4 FROM locktop_demo_tasks.id_generator WHERE last_timestamp > 0";
    forge("ids", ready, &forgery, found).await;
}

#[tokio::test]
async fn a_repeated_id_is_detected() {
    forge_ids("(1::bigint << 62) + (p_worker_id << 12) + n / 1000", "ids: ids that existed before: ").await;
}

#[tokio::test]
async fn ids_that_go_back() {
    let back = "ids: ids that are not above the previous ones of their worker: ";
    forge_ids("(1::bigint << 62) + (p_worker_id << 12) - (n << 22)", back).await;
}

#[tokio::test]
async fn an_id_of_another_worker() {
    let another = "(1::bigint << 62) + (n << 22) + ((p_worker_id + 1) << 12)";
    forge_ids(another, "ids: ids of another worker: ").await;
}

#[tokio::test]
async fn items_that_are_given_up_are_no_executions() {
    let given_up = "INSERT INTO locktop_demo_tasks.locktop_audit (action, actor, worker_id)
                    SELECT 'gave_up', 'somebody', 'consumer-1' FROM generate_series(1, 2)";
    let left = meddle("queue", "SELECT count(*) > 0 FROM locktop_demo.queue_finishes", given_up).await;
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{left:?}");
}
