//! The library over the SQL.

use locktop::locks::Error;
use locktop::schema::SchemaName;
use locktop::tasks::rate_limit::RateLimit;
use locktop::tasks::scheduled_task::ScheduledTasks;
use locktop::tasks::snowflake::{Generator, SnowflakeError};
use locktop::tasks::work_queue::{AttemptEnd, Settle, WorkQueue};

use super::db::{Session, installed};
use super::printed::end;
use super::support::{versions, wait_until};

/// Without the schema in the path: the library names it.
async fn pair(version: u32) -> (Session, Session) {
    let info = installed(version).await;
    (Session::open_plain(&info).await, Session::open_plain(&info).await)
}

#[tokio::test]
async fn the_work_queue() {
    for version in versions() {
        let (one, other) = pair(version).await;
        let (client, watcher) = (&one.connection.client, &other.connection.client);
        let queue = WorkQueue::default();
        assert_eq!(queue.claim(client, "w").await.unwrap(), None);
        let first = queue.add(client, "mail", &["a", "b"]).await.unwrap();
        other.run("INSERT INTO locktop.task_queue (max_attempts) VALUES (1)").await;
        let depth = queue.depth(watcher).await.unwrap();
        assert_eq!((depth.pending, depth.processing), (2, 0), "{version}");
        assert!(depth.oldest_pending_at.is_some());

        let item = queue.claim(client, "w").await.unwrap().unwrap();
        assert_eq!(
            (item.id, item.name.as_deref(), item.attempt, item.max_attempts),
            (first, Some("mail"), 1, 3)
        );
        assert_eq!(item.payload::<Vec<String>>().unwrap(), ["a", "b"]);
        assert!(item.payload::<u8>().is_err());
        assert_eq!(queue.heartbeat(client, "w").await.unwrap(), [(first, 1)]);
        assert!(!queue.finish(watcher, &item, &AttemptEnd::Completed).await.unwrap(), "another session");
        assert!(queue.finish(client, &item, &AttemptEnd::Again("no answer".to_owned())).await.unwrap());
        assert!(!queue.finish(client, &item, &AttemptEnd::Completed).await.unwrap(), "another attempt");
        let depth = queue.depth(watcher).await.unwrap();
        assert_eq!((depth.pending, depth.resting), (2, 1), "{version}: it is tried again later");
        other.run("UPDATE locktop.task_queue SET not_before = NULL").await;
        let both = queue.claim_many(client, "w", 5).await.unwrap();
        assert_eq!(both.len(), 2);
        let [item, bare] = &both[..] else { panic!() };
        let (item, bare) = if item.id == first { (item, bare) } else { (bare, item) };
        assert_eq!((item.attempt, &bare.name, bare.payload::<Option<u8>>().unwrap()), (2, &None, None));
        assert!(queue.finish(client, item, &AttemptEnd::Completed).await.unwrap(), "{version}");

        let held = queue.settle(watcher, Settle::Requeue, bare.id, "me", Some("to see")).await.unwrap();
        assert_eq!((held.outcome.as_str(), held.worker.as_deref()), ("held", Some("w")));
        let spare = queue.add(watcher, "later", &()).await.unwrap();
        let aside = queue.settle(watcher, Settle::SetAside, spare, "me", None).await.unwrap();
        assert_eq!((aside.outcome.as_str(), aside.attempt), ("set_aside", Some(0)), "{version}");
        let again = queue.settle(watcher, Settle::Retry, spare, "me", Some("by mistake")).await.unwrap();
        assert_eq!((again.id, again.outcome.as_str()), (spare, "requeued"), "{version}");
        end(&other, one.pid).await;
        assert_eq!(
            queue.requeue_lost(watcher, "me", 10).await.unwrap(),
            [],
            "{version}: not before the grace"
        );
        other.run("SET locktop.orphan_grace = '0'").await;
        let lost = queue.requeue_lost(watcher, "me", 10).await.unwrap();
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].id, lost[0].outcome.as_str()), (bare.id, "gave_up"), "{version}");
        let depth = queue.depth(watcher).await.unwrap();
        assert_eq!((depth.pending, depth.processing, depth.completed, depth.failed), (1, 0, 1, 1));
        assert!(
            matches!(queue.claim(client, "w").await, Err(Error::Disconnected { .. })),
            "it has no session"
        );
        queue.settle(watcher, Settle::SetAside, spare, "me", None).await.unwrap();
        let long = queue.claim(watcher, &"w".repeat(101)).await.unwrap_err();
        assert_eq!(long.sqlstate(), Some("22001"), "{version}: {long}");
        let elsewhere = WorkQueue { schema: SchemaName::new("elsewhere").unwrap() };
        let error = elsewhere.depth(watcher).await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the schema \"elsewhere\" has no queue_depth: run \"locktop schema install\""),
            "{error}"
        );
    }
}

#[tokio::test]
async fn the_scheduled_tasks() {
    for version in versions() {
        let (one, other) = pair(version).await;
        let (client, watcher) = (&one.connection.client, &other.connection.client);
        let tasks = ScheduledTasks::default();
        let report = tasks.add(client, "report", "sql", None, &["a", "b"]).await.unwrap().unwrap();
        let nightly = tasks.add(client, "nightly", "mail", Some("0 3 * * *"), &()).await.unwrap().unwrap();
        let again = tasks.add(watcher, "nightly", "other", None, &()).await.unwrap();
        assert_eq!(again, None, "the first one stays");
        let wrong = tasks.add(client, "never", "x", Some("0 25 * * *"), &()).await.unwrap_err();
        assert_eq!(wrong.sqlstate(), Some("22023"), "{version}: {wrong}");
        let key = tasks.key(client, "report").await.unwrap();
        assert_eq!(key, (0x4C54 << 48) + i64::from(report));
        assert_eq!(tasks.key(client, "nothing").await.unwrap_err().sqlstate(), Some("P0002"));

        let run = tasks.try_acquire(client, report, "w").await.unwrap().unwrap();
        assert_eq!((run.task_id, run.name.as_str(), run.kind.as_str()), (report, "report", "sql"));
        assert_eq!((run.attempt, run.max_attempts, run.timeout.as_secs(), run.lock_id), (1, 3, 1800, key));
        assert_eq!(run.payload::<Vec<String>>().unwrap(), ["a", "b"]);
        assert_eq!(
            tasks.try_acquire(watcher, report, "v").await.unwrap(),
            None,
            "{version}: another session holds it"
        );
        assert_eq!(tasks.try_acquire(client, report, "w").await.unwrap(), None, "this session holds it");
        assert_eq!(tasks.try_acquire(client, nightly, "w").await.unwrap(), None, "it is not due");
        assert_eq!(tasks.try_acquire(client, 99, "w").await.unwrap_err().sqlstate(), Some("P0002"));
        assert_eq!(tasks.heartbeat(client, "w").await.unwrap(), [run.id], "{version}");
        assert!(tasks.heartbeat(watcher, "w").await.unwrap().is_empty(), "a name is no session");
        assert!(!tasks.finish(watcher, &run, Ok(())).await.unwrap(), "another session");
        assert!(tasks.give_back(client, &run).await.unwrap());
        assert!(!tasks.finish(client, &run, Ok(())).await.unwrap(), "{version}: it was released");

        let runs = tasks.fetch(watcher, "v", 5).await.unwrap();
        let [run] = &runs[..] else { panic!("{runs:?}") };
        assert_eq!((run.task_id, run.attempt, run.worker.as_str()), (report, 1, "v"), "it did not count");
        assert!(tasks.finish(watcher, run, Err("no answer")).await.unwrap());
        let log = "SELECT status, error_message FROM locktop.task_execution_log ORDER BY id DESC LIMIT 1";
        assert_eq!(other.ask(log).await, "failed|no answer");
        assert_eq!(tasks.fetch(watcher, "v", 5).await.unwrap(), [], "{version}: it rests");
        one.run("UPDATE locktop.scheduled_tasks SET next_run_at = clock_timestamp()").await;
        let runs = tasks.fetch(client, "w", 5).await.unwrap();
        assert_eq!(runs.len(), 2);
        for run in &runs {
            let of_report = run.task_id == report;
            assert_eq!(
                (run.attempt, of_report || run.json.as_deref() == Some("null")),
                (if of_report { 2 } else { 1 }, true)
            );
            assert!(tasks.finish(client, run, Ok(())).await.unwrap(), "{version}");
        }
        let next = "SELECT task_name, next_run_at > now() FROM locktop.scheduled_tasks ORDER BY id";
        assert_eq!(other.ask(next).await, "report|-\nnightly|t", "{version}: once, and as planned");

        one.run(&format!("SELECT pg_advisory_lock({key})")).await;
        assert_eq!(tasks.release_idle_keys(client, &[report]).await.unwrap(), 0, "it is listed as in use");
        assert_eq!(tasks.release_idle_keys(client, &[]).await.unwrap(), 1, "{version}");
        let run = {
            one.run("UPDATE locktop.scheduled_tasks SET next_run_at = clock_timestamp() WHERE id = 1").await;
            tasks.try_acquire(client, report, "w").await.unwrap().unwrap()
        };
        end(&other, one.pid).await;
        assert!(
            matches!(tasks.finish(client, &run, Ok(())).await, Err(Error::Disconnected { .. })),
            "{version}"
        );
    }
}

#[tokio::test]
async fn the_rate_limit() {
    for version in versions() {
        let (one, _) = pair(version).await;
        let client = &one.connection.client;
        let limit = RateLimit::new(2, 60);
        for (allowed, count) in [(true, 1), (true, 2), (false, 2)] {
            let decision = limit.take(client, "k").await.unwrap();
            assert_eq!((decision.allowed, decision.count), (allowed, Some(count)), "{version}");
            assert!(decision.window_end.is_some());
        }
        let none = RateLimit::new(0, 60).take(client, "nobody").await.unwrap();
        assert_eq!((none.allowed, none.count, none.window_end), (false, None, None));
        let error = RateLimit::new(1, 0).take(client, "k").await.unwrap_err();
        assert_eq!(error.sqlstate(), Some("22023"));
        one.run("UPDATE locktop.rate_limit SET expires_at = now()").await;
        assert_eq!(limit.purge(client, 10).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn the_ids() {
    for version in versions() {
        let (one, _) = pair(version).await;
        let client = &one.connection.client;
        let generator = Generator::new(1023).unwrap();
        assert!(matches!(generator.next(client).await, Err(SnowflakeError::Unknown(1023))), "{version}");
        generator.register(client).await.unwrap();
        let id = generator.next(client).await.unwrap();
        assert_eq!(id.worker(), 1023);
        let now: f64 = one.ask("SELECT extract(epoch FROM clock_timestamp())").await.parse().unwrap();
        assert!((now - id.time().as_secs_f64()).abs() < 60.0, "{version}");
        let more = generator.many(client, 100).await.unwrap();
        assert!(more.len() == 100 && id < more[0] && more.is_sorted_by(|a, b| a < b), "{version}");
        // The ids generated before still count.
        generator.register(client).await.unwrap();
        assert!(generator.next(client).await.unwrap() > more[99]);
        one.run("UPDATE locktop.id_generator SET last_timestamp = last_timestamp + 3600000").await;
        let error = generator.next(client).await.unwrap_err();
        assert!(matches!(&error, SnowflakeError::ClockBehind(_)), "{version}: {error}");
    }
}

/// The server reports the termination of a session as an error, which is no refusal: the call may have been executed.
#[tokio::test]
async fn a_call_in_a_terminated_session_fails_as_disconnected() {
    for version in versions() {
        let (one, other) = pair(version).await;
        other.run("BEGIN; LOCK TABLE locktop.task_queue").await;
        let cut = async {
            let waits = format!("SELECT pg_blocking_pids({}) = '{{{}}}'", one.pid, other.pid);
            wait_until("the call to wait", async || other.ask(&waits).await == "t").await;
            assert_eq!(other.ask(&format!("SELECT pg_terminate_backend({})", one.pid)).await, "t");
        };
        let queue = WorkQueue::default();
        let (answer, ()) = tokio::join!(queue.depth(&one.connection.client), cut);
        let error = answer.unwrap_err();
        assert!(matches!(&error, Error::Disconnected { reason, .. } if reason.contains("57P01")), "{error}");
        assert_eq!(error.sqlstate(), None, "{version}");
    }
}
