//! The queue, next to the tasks: the same holds for its items.

use std::time::Duration;

use locktop::locks::work_session::{Finish, News, Ours, Source, WorkSession, WorkerId};
use locktop::schema::SchemaName;
use locktop::worker::{Builtin, Options, StopReason};
use rustix::process::Signal;

use super::db::{Session, installed};
use super::hand::{Held, Seen, Worker, ended, no_session_is_left, task};
use super::process::{Process, target};
use super::support::{server, versions, wait_until};

const STATES: &str = "SELECT status, attempt, max_attempts, error_message FROM task_queue ORDER BY id";

/// Adds an item that is tried again soon; its id.
pub(crate) async fn item(session: &Session, name: &str, payload: &str) -> i64 {
    let sql = format!(
        "INSERT INTO task_queue (task_name, payload, retry_delay) VALUES ('{name}', {payload}, '0.1 s') RETURNING id"
    );
    session.ask(&sql).await.parse().unwrap()
}

/// Waits until all items have these states.
pub(crate) async fn all(session: &Session, states: &str) {
    let mut found = String::new();
    wait_until(states, async || {
        found = session.ask(STATES).await;
        found == states
    })
    .await;
}

async fn is_processed(session: &Session) {
    let sql = "SELECT count(*) FROM running_queue_items WHERE state = 'running'";
    wait_until("an item to be processed", async || session.ask(sql).await == "1").await;
}

/// A worker that loses its session has only this time to stop.
async fn short_grace(session: &Session) {
    let name = session.info.dbname();
    session.run(&format!("ALTER DATABASE {name} SET locktop.orphan_grace = '0.3s'")).await;
}

#[tokio::test]
async fn the_name_of_an_item_decides_what_is_run() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        session.run("CREATE TABLE public.done (what text)").await;
        let insert = "'{\"statement\": \"INSERT INTO public.done VALUES (''报表'')\"}'";
        for (name, payload) in [
            ("sleep", "'{\"seconds\": 0.05}'"),
            ("sql", insert),
            ("sql", "'{\"statement\": \"SELECT 1/0\"}'"),
            ("sql", "'{\"statement\": \"SELECT pg_sleep(60)\", \"timeout\": 0.1}'"),
            ("sleep", "'{\"seconds\": 60}'"),
            ("sql", "NULL"),
            ("mail", "'{}'"),
        ] {
            item(&session, name, payload).await;
        }
        session.run("UPDATE task_queue SET timeout = '0.1 second' WHERE id = 5").await;
        session.run("INSERT INTO task_queue DEFAULT VALUES").await;
        let options = Options { concurrency: 2, ..Worker::options(&info, &"w".repeat(100)) };
        let work = Builtin::new(options.info.clone(), &options.id);
        let worker = Worker::start(options, work);
        let known = "this worker runs sleep, sql, notify, command";
        let expected = [
            "completed|1|3|-",
            "completed|1|3|-",
            "failed|3|3|division by zero (SQLSTATE 22012)",
            "failed|3|3|timed out after 0.1 s",
            "failed|3|3|timed out after 0.1 s",
            "failed|1|3|the payload of an item named \"sql\" is missing; such as {\"statement\": \"…\"}",
            &format!("failed|1|3|the item's name \"mail\" is not known: {known}"),
            &format!("failed|1|3|the item's name \"\" is not known: {known}"),
        ];
        all(&session, &expected.join("\n")).await;
        let summary = worker.quit().await;
        assert_eq!((summary.completed, summary.failed), (2, 12), "{version}");
        assert_eq!(session.ask("SELECT what FROM public.done").await, "报表");
        no_session_is_left(&session).await;
    }
}

/// With one place they take turns, so that neither waits for the end of the other.
#[tokio::test]
async fn tasks_and_items_are_served_in_turns_or_only_the_one() {
    for version in versions() {
        for only in [None, Some(Source::Tasks), Some(Source::Queue)] {
            let info = installed(version).await;
            let session = Session::open(&info).await;
            for number in 0..4 {
                task(&session, &format!("t{number}"), "x", "NULL").await;
                item(&session, "x", "NULL").await;
            }
            let work = Held::new();
            work.end(Ok(()));
            let usual = Worker::options(&info, "w");
            let sources = only.map_or(usual.sources.clone(), |only| vec![only]);
            let worker = Worker::start(Options { sources, ..usual }, work.clone());
            let items = "SELECT count(*) FROM task_queue WHERE status = 'completed'";
            if only != Some(Source::Queue) {
                ended(&session, 4).await;
            }
            if only != Some(Source::Tasks) {
                wait_until("the items to end", async || session.ask(items).await == "4").await;
            }
            if only.is_none() {
                let order = "SELECT string_agg(what, '' ORDER BY started_at) FROM (
                    SELECT 't' AS what, started_at FROM task_execution_log UNION ALL SELECT 'i', started_at FROM task_queue) x";
                assert_eq!(session.ask(order).await, "titititi", "{version}");
            }
            let done = if only.is_none() { 8 } else { 4 };
            assert_eq!(worker.quit().await.completed, done, "{version} {only:?}");
        }
    }
}

#[tokio::test]
async fn a_new_item_starts_before_the_workers_next_regular_poll() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        work.end(Ok(()));
        let worker = Worker::start(Worker::options(&info, "w"), work);
        worker.events.wait_for("connected").await;
        for number in 1..=3 {
            item(&session, "x", "NULL").await;
            all(&session, &["completed|1|3|-"].repeat(number).join("\n")).await;
        }
        let late = "SELECT count(*) FROM task_queue WHERE started_at > created_at + interval '15 seconds'";
        assert_eq!(session.ask(late).await, "0", "{version}");
        worker.quit().await;
    }
}

#[tokio::test]
async fn a_claimed_item_belongs_to_its_session_until_it_is_released() {
    const QUEUE: Source = Source::Queue;
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let schema = SchemaName::default();
        let id: WorkerId = "same".parse().unwrap();
        let one = WorkSession::open(&info, &schema, &id, &[QUEUE]).await.unwrap();
        let mut two = WorkSession::open(&info, &schema, &id, &[QUEUE]).await.unwrap();
        assert_eq!(one.next_due_notifying(QUEUE, None).await, Ok(None), "{version}");
        assert_eq!(two.news().await, News::Quiet(QUEUE, None));
        task(&session, "t", "x", "NULL").await;
        item(&session, "x", "'[1]'").await;
        session.run("UPDATE task_queue SET retry_delay = '0'").await;
        assert_eq!(two.news().await, News::Due(QUEUE), "it does not listen to the tasks");
        assert_eq!(two.next_due(QUEUE).await, Ok(Some(Duration::ZERO)));
        let taken = one.fetch(QUEUE, 5).await.unwrap();
        let [job] = &taken[..] else { panic!("{taken:?}") };
        assert_eq!((job.kind.as_str(), job.json.as_deref()), ("x", Some("[1]")), "{version}");
        assert_eq!((job.timeout, job.lock_id), (Duration::from_secs(1800), (0x4C51 << 48) + job.id));
        assert_eq!(two.fetch(QUEUE, 5).await, Ok(vec![]));
        let own = Ours { id: job.id, attempt: Some(1) };
        assert_eq!((one.heartbeat(QUEUE).await, two.heartbeat(QUEUE).await), (Ok(vec![own]), Ok(vec![])));
        assert_eq!(two.finish(job, Finish::Completed).await, Ok(false));
        assert_eq!(two.give_back(job).await, Ok(false));
        assert_eq!(one.give_back(job).await, Ok(true));
        assert_eq!(one.give_back(job).await, Ok(false), "once");
        assert_eq!(session.ask(STATES).await, "pending|1|4|-", "{version}: one more attempt is allowed");
        let keys = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert_eq!(session.ask(keys).await, "0");
        let again = two.fetch(QUEUE, 5).await.unwrap();
        assert_eq!(again[0].attempt, 2);
        assert!(!own.is(&again[0]), "an attempt is not the next");
        assert_eq!(one.finish(job, Finish::Completed).await, Ok(false), "an attempt that was released");
        assert_eq!(two.finish(&again[0], Finish::Failed("a\0b".to_owned())).await, Ok(true));
        assert_eq!(session.ask(STATES).await, "pending|2|4|ab");
        let third = two.fetch(QUEUE, 5).await.unwrap();
        assert_eq!(two.finish(&third[0], Finish::Refused("never".to_owned())).await, Ok(true));
        assert_eq!(session.ask(STATES).await, "failed|3|4|never");
    }
}

#[tokio::test]
async fn a_quiet_notification_of_one_source_does_not_silence_the_other() {
    let info = installed(server().await.version()).await;
    let session = Session::open(&info).await;
    let schema = SchemaName::default();
    let mut one = WorkSession::open(&info, &schema, &"w".parse().unwrap(), &Source::ALL).await.unwrap();
    for payload in [
        "- tasks * locktop",
        "1.5 queue * locktop",
        "- other * locktop",
        "1 queue * elsewhere",
        "1 queue x locktop",
    ] {
        session.run(&format!("NOTIFY locktop_quiet, '{payload}'")).await;
    }
    one.notify_due(Source::Queue).await.unwrap();
    assert_eq!(one.news().await, News::Quiet(Source::Tasks, None));
    assert_eq!(one.news().await, News::Quiet(Source::Queue, Some(Duration::from_millis(1500))));
    assert_eq!(one.news().await, News::Due(Source::Queue));
}

#[tokio::test]
async fn work_on_an_item_is_stopped_with_its_connection_and_another_does_it() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        short_grace(&session).await;
        item(&session, "x", "NULL").await;
        let (one, two) = (Held::new(), Held::new());
        let first = Worker::start(Worker::options(&info, "one"), one.clone());
        one.began(1).await;
        let second = Worker::start(Worker::options(&info, "two"), two.clone());
        second.events.wait_for("connected").await;
        first.ask_to_quit();
        first.events.wait_for("shutting down").await;
        session.run("SELECT pg_terminate_backend(backend_pid) FROM running_queue_items").await;
        wait_until("the work to be stopped", async || one.seen().len() == 2).await;
        assert!(
            matches!(&one.seen()[1], Seen::Stopped(_, StopReason::ConnectionLost(_))),
            "{:?}",
            one.seen()
        );
        assert_eq!(first.ended().await.unwrap().stopped, 1, "{version}");
        // No notification is sent for a lost item: an idle worker polls for it.
        two.began(1).await;
        second.events.wait_for("item 1 of the queue is pending again: attempt 1 was lost").await;
        two.end(Ok(()));
        all(&session, "completed|2|3|-").await;
        second.quit().await;
    }
}

#[tokio::test]
async fn an_item_the_session_no_longer_owns_is_stopped_and_the_rest_continues() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        let worker = Worker::start(Options { concurrency: 3, ..Worker::options(&info, "w") }, work.clone());
        for _ in 0..2 {
            item(&session, "x", "NULL").await;
        }
        task(&session, "t", "x", "NULL").await;
        work.began(3).await;
        session.run("UPDATE task_queue SET status = 'failed', error_message = 'by hand' WHERE id = 2").await;
        worker.events.wait_for("stopped \"x\" (item 2) after ").await;
        work.end(Ok(()));
        all(&session, "completed|1|3|-\nfailed|1|3|by hand").await;
        ended(&session, 1).await;
        let summary = worker.quit().await;
        assert_eq!((summary.stopped, summary.completed), (1, 2), "{version}");
        assert_eq!(work.seen().iter().filter(|seen| matches!(seen, Seen::Stopped(..))).count(), 1);
    }
}

#[tokio::test]
async fn an_items_end_that_is_not_accepted_is_reported() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        let options = Options { heartbeat: Duration::from_secs(60), ..Worker::options(&info, "w") };
        let worker = Worker::start(options, work.clone());
        item(&session, "x", "NULL").await;
        work.began(1).await;
        // The item was requeued, and is in another attempt by now.
        session.run("UPDATE task_queue SET attempt = 2").await;
        work.end(Ok(()));
        worker.events.wait_for("the end of \"x\" (item 1) was not accepted").await;
        assert_eq!(worker.quit().await.not_counted, 1, "{version}");
        assert_eq!(session.ask(STATES).await, "processing|2|3|-", "it stays as it was");
    }
}

#[tokio::test]
async fn on_shutdown_an_item_is_finished_or_released_to_another_worker() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let place = target(version, &info).await;
        item(&session, "sleep", "'{\"seconds\": 1}'").await;
        let process = Process::start("w", &[], &place);
        is_processed(&session).await;
        process.signal(Signal::TERM);
        let left = process.ended().await;
        assert_eq!(
            (left.status, session.ask(STATES).await),
            (Some(0), "completed|1|3|-".to_owned()),
            "{version}"
        );
        item(&session, "sleep", "'{\"seconds\": 600}'").await;
        session.run("UPDATE task_queue SET max_attempts = 1 WHERE id = 2").await;
        let process = Process::start("w", &["--grace", "0.1s", "--only", "queue"], &place);
        is_processed(&session).await;
        let other = Process::start("other", &[], &place);
        other.wait_for("connected").await;
        process.signal(Signal::INT);
        let left = process.ended().await;
        assert_eq!(left.status, Some(0), "{version}: {}", left.err);
        assert!(left.err.contains("released \"sleep\" (item 2)"), "{}", left.err);
        is_processed(&session).await;
        let row = "SELECT worker_id, attempt, max_attempts FROM task_queue WHERE id = 2";
        assert_eq!(session.ask(row).await, "other|2|2", "{version}: the attempt did not count");
    }
}

#[tokio::test]
async fn killed_it_loses_its_item_and_after_the_grace_and_the_last_attempt_it_is_set_aside() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        short_grace(&session).await;
        let place = target(version, &info).await;
        item(&session, "sleep", "'{\"seconds\": 600}'").await;
        session.run("UPDATE task_queue SET max_attempts = 2").await;
        for attempt in 1..=2 {
            let process = Process::start(&format!("w{attempt}"), &[], &place);
            let row = "SELECT worker_id, attempt FROM running_queue_items";
            let its = format!("w{attempt}|{attempt}");
            wait_until("it to be processed", async || session.ask(row).await == its).await;
            process.signal(Signal::KILL);
            process.ended().await;
        }
        let last = Process::start("last", &[], &place);
        last.wait_for("item 1 of the queue was set aside: attempt 2 was lost").await;
        assert!(session.ask(STATES).await.starts_with("failed|2|2|attempt 2 was lost with the session"));
        // Each was missed for as long as its worker would have had to stop.
        let audit = "SELECT action, actor, worker_id FROM locktop_audit ORDER BY id";
        assert_eq!(session.ask(audit).await, "requeued|w2|w1\ngave_up|last|w2", "{version}");
    }
}
