//! Lost items, and when they are detected; retries, and when they start; the lock waits that a worker observes.

use std::time::Duration;

use locktop::worker::Options;

use super::db::{Session, installed};
use super::hand::{Held, Worker};
use super::queue::{all, item};
use super::support::{versions, wait_until};

#[tokio::test]
async fn items_are_lost_for_the_grace_and_not_for_longer() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let (lost, young) = (Session::open(&info).await, Session::open(&info).await);
        session.run("INSERT INTO task_queue (task_name) SELECT 'x' FROM generate_series(1, 3)").await;
        for client in [lost, young] {
            client.run("SELECT claim_queue_items('gone')").await;
            let pid = client.pid;
            drop(client);
            let connected = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
            wait_until("its end", async || session.ask(&connected).await == "0").await;
        }
        session.run("UPDATE task_queue SET heartbeat_at = NULL, started_at = clock_timestamp() - interval '1 hour' WHERE id = 1").await;
        let requeue = "SELECT task_id, outcome FROM requeue_lost_items('me')";
        // The server is younger than that.
        session.run("SET locktop.orphan_grace = '1 year'").await;
        assert_eq!(session.ask(requeue).await, "", "{version}");
        assert_eq!(session.ask("SELECT state FROM running_queue_items WHERE task_id = 1").await, "settling");
        wait_until("the server to be up for a second", async || {
            session.ask("SELECT up_since() < clock_timestamp() - interval '1 second'").await == "t"
        })
        .await;
        session
            .run("UPDATE task_queue SET heartbeat_at = clock_timestamp() + interval '1 minute' WHERE id = 2")
            .await;
        assert_eq!(
            session.ask("SELECT next_item_due_at() <= clock_timestamp()").await,
            "t",
            "one is pending"
        );
        session.run("UPDATE task_queue SET status = 'completed' WHERE id = 3").await;
        session.run("SET locktop.orphan_grace = '1s'").await;
        assert_eq!(session.ask("SELECT next_item_due_at() <= clock_timestamp()").await, "t", "one is lost");
        assert_eq!(session.ask(requeue).await, "1|requeued", "{version}");
        assert_eq!(session.ask("SELECT next_item_due_at() <= clock_timestamp()").await, "t", "at once");
        session.run("UPDATE task_queue SET not_before = 'infinity' WHERE id = 1").await;
        let due = "SELECT next_item_due_at() - heartbeat_at FROM task_queue WHERE id = 2";
        assert_eq!(session.ask(due).await, "00:00:01", "{version}: when its grace is over");
        session
            .run("UPDATE task_queue SET not_before = clock_timestamp() + interval '30 s' WHERE id = 1")
            .await;
        let due = "SELECT next_item_due_at() = due_at FROM task_queue WHERE id = 1";
        assert_eq!(session.ask(due).await, "t", "{version}: or before that, when one is tried again");
        session.run("DELETE FROM task_queue WHERE id = 1").await;
        session.run("UPDATE task_queue SET backend_pid = pg_backend_pid(), backend_start = own_backend_start(), heartbeat_at = NULL, started_at = clock_timestamp() - interval '1 hour' WHERE id = 2").await;
        wait_until("silence", async || session.ask("SELECT next_item_due_at()").await == "-").await;
    }
}

/// No notification is sent when the pause is over.
#[tokio::test]
async fn a_failed_item_is_retried_when_it_is_due_and_not_before() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        let worker = Worker::start(Worker::options(&info, "w"), work.clone());
        worker.events.wait_for("connected").await;
        session.run(STARTS).await;
        item(&session, "x", "NULL").await;
        work.end(Err("no"));
        all(&session, "failed|3|3|no").await;
        // Each began when it was due, and that was after the pause: twice as long the second time.
        let starts = "SELECT attempt, started_at >= due_at, due_at >= before + (attempt - 1) * interval '0.1 s' FROM public.starts";
        assert_eq!(session.ask(starts).await, "2|t|t\n3|t|t", "{version}");
        worker.quit().await;
    }
}

/// When each attempt but the first began, when it was due, and when the one before had begun.
const STARTS: &str = "CREATE TABLE public.starts (attempt int, started_at timestamptz, due_at timestamptz, before timestamptz);
    CREATE FUNCTION public.tell() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO public.starts VALUES (NEW.attempt, NEW.started_at, OLD.due_at, OLD.started_at);
        RETURN NULL;
    END $$;
    CREATE TRIGGER tell AFTER UPDATE ON locktop.task_queue FOR EACH ROW
        WHEN (OLD.status = 'pending' AND NEW.status = 'processing' AND NEW.attempt > 1) EXECUTE FUNCTION public.tell()";

#[tokio::test]
async fn a_worker_that_is_to_observes_the_locks_and_another_sends_nothing() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let usual = Worker::options(&info, "w");
        let options = Options { observe_locks: Some(Duration::from_millis(50)), ..usual };
        let worker = Worker::start(options, Held::new());
        let waiter = Session::open(&info).await;
        session.run("SELECT pg_advisory_lock(7)").await;
        let counted = "SELECT waits_seen, longest_mode FROM lock_contention WHERE lock = 'advisory 7'";
        let wait = waiter.ask("SELECT pg_advisory_lock(7)");
        let (_, ()) = tokio::join!(wait, async {
            wait_until("the wait to be seen", async || session.ask(counted).await == "1|ExclusiveLock").await;
            let long =
                "SELECT longest_wait > interval '0.2 s' FROM lock_contention WHERE lock = 'advisory 7'";
            wait_until("it to be seen again", async || session.ask(long).await == "t").await;
            session.run("SELECT pg_advisory_unlock(7)").await;
        });
        assert_eq!(session.ask(counted).await, "1|ExclusiveLock", "{version}: once");
        // A statement that the server rejects is reported.
        session.run("DROP FUNCTION observe_lock_waits(integer)").await;
        worker.events.wait_for("connection lost: the schema has changed").await;
        worker.quit().await;
        assert_eq!(Worker::options(&info, "w").observe_locks, None);
    }
}
