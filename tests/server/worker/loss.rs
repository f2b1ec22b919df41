//! The loss of a lock, and its effects.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktop::demo::postgres::EmbeddedServer;
use locktop::worker::{Job, Options, Stop, StopReason, Work, WorkError};

use super::db::{Session, installed};
use super::hand::{Held, Seen, Worker, log, task};
use super::process::{Process, target_on};
use super::support::{conninfo, open, server, versions, wait_until};

#[tokio::test]
async fn a_task_of_a_terminated_session_is_stopped_and_run_by_another_worker() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        task(&session, "t", "x", "NULL").await;
        session.run("UPDATE scheduled_tasks SET retry_delay = '0'").await;
        let (one, two) = (Held::new(), Held::new());
        let first = Worker::start(Worker::options(&info, "one"), one.clone());
        one.began(1).await;
        let pid = session.ask("SELECT holder_pid FROM running_tasks").await;
        session.run(&format!("SELECT pg_terminate_backend({pid})")).await;
        wait_until("the work to be stopped", async || one.seen().len() == 2).await;
        let Seen::Stopped(execution, StopReason::ConnectionLost(reason)) = one.seen()[1].clone() else {
            panic!("{:?}", one.seen())
        };
        assert!(reason.contains("57P01"), "{reason}");
        first.events.wait_for("connection lost").await;
        first.ask_to_quit();
        let summary = first.ended().await.unwrap();
        assert_eq!((summary.stopped, summary.completed), (1, 0), "{version}");
        let second = Worker::start(Worker::options(&info, "two"), two.clone());
        let recovered = format!("SELECT outcome FROM recover_execution({execution}, 'test')");
        assert_eq!(session.ask(&recovered).await, "recovered");
        two.began(1).await;
        two.end(Ok(()));
        wait_until("it to end", async || log(&session).await.ends_with("two|completed|-")).await;
        second.quit().await;
    }
}

#[tokio::test]
async fn work_missing_from_a_heartbeat_is_stopped_and_the_rest_continues() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        let worker = Worker::start(Options { concurrency: 2, ..Worker::options(&info, "w") }, work.clone());
        for name in ["one", "two"] {
            task(&session, name, "x", "NULL").await;
        }
        work.began(2).await;
        // Not due again, or it would be run once more.
        session
            .run(
                "UPDATE scheduled_tasks SET next_run_at = NULL WHERE id = 1;
                 UPDATE task_execution_log SET status = 'failed', recovered_by = 'test' WHERE id = 1",
            )
            .await;
        wait_until("one to be stopped", async || {
            work.seen().contains(&Seen::Stopped(1, StopReason::NotOurs))
        })
        .await;
        worker.events.wait_for("stopped \"one\" (execution 1)").await;
        let held =
            "SELECT task_id FROM advisory_locks WHERE database = current_database() AND task_id IS NOT NULL";
        wait_until("its key to be free", async || session.ask(held).await == "2").await;
        work.end(Ok(()));
        wait_until("the other to end", async || log(&session).await.ends_with("w|completed|-")).await;
        let summary = worker.quit().await;
        assert_eq!((summary.stopped, summary.completed), (1, 1), "{version}");
        assert_eq!(work.seen().iter().filter(|seen| matches!(seen, Seen::Stopped(..))).count(), 1);
    }
}

/// It is due again, and its worker has a free place and the key: the old work has to end first, or both would run.
#[tokio::test]
async fn a_task_that_was_closed_is_not_begun_again_before_its_work_has_ended() {
    #[derive(Clone, Default)]
    struct Slow(Arc<Mutex<Vec<String>>>);
    impl Work for Slow {
        async fn run(&self, job: &Job, stop: Stop) -> Result<(), WorkError> {
            let record = |what: &str| self.0.lock().unwrap().push(format!("{what} {}", job.id));
            record("begins");
            if job.id == 1 {
                let reason = stop.stopped().await;
                record("is stopped");
                tokio::time::sleep(Duration::from_millis(500)).await;
                record("ends");
                return Err(reason.into());
            }
            Ok(())
        }
    }
    let info = installed(server().await.version()).await;
    let session = Session::open(&info).await;
    let work = Slow::default();
    let worker = Worker::start(Options { concurrency: 3, ..Worker::options(&info, "w") }, work.clone());
    task(&session, "t", "x", "NULL").await;
    wait_until("it to begin", async || !work.0.lock().unwrap().is_empty()).await;
    session
        .run(
            "UPDATE task_execution_log SET status = 'failed';
             UPDATE scheduled_tasks SET next_run_at = clock_timestamp()",
        )
        .await;
    wait_until("it to be run again", async || log(&session).await.ends_with("w|completed|-")).await;
    let steps = work.0.lock().unwrap().clone();
    assert_eq!(steps[..3], ["begins 1", "is stopped 1", "ends 1"]);
    assert!(steps.len() == 4 && steps[3].starts_with("begins "), "{steps:?}");
    assert_eq!(worker.quit().await.stopped, 1);
}

/// A fetch that fails after its first task, again and again: it keeps no other worker from that task.
#[tokio::test]
async fn a_fetch_that_is_refused_keeps_no_task_from_others() {
    let info = installed(server().await.version()).await;
    let session = Session::open(&info).await;
    session
        .run(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF NEW.worker_id = 'one' AND NEW.task_id = 2 THEN
                     RAISE EXCEPTION 'not by one';
                 END IF;
                 RETURN NEW;
             END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON task_execution_log FOR EACH ROW EXECUTE FUNCTION public.refuse();
             BEGIN",
        )
        .await;
    task(&session, "good", "x", "NULL").await;
    task(&session, "bad", "x", "NULL").await;
    session.run("COMMIT").await;
    let (one, two) = (Held::new(), Held::new());
    let first = Worker::start(Options { concurrency: 2, ..Worker::options(&info, "one") }, one.clone());
    first.events.wait_for("reading due tasks was refused: not by one").await;
    let second = Worker::start(Options { concurrency: 2, ..Worker::options(&info, "two") }, two.clone());
    two.began(2).await;
    two.end(Ok(()));
    assert_eq!(second.quit().await.completed, 2);
    assert_eq!((first.quit().await.completed, one.seen().len()), (0, 0));
}

#[tokio::test]
async fn an_end_that_is_not_accepted_is_reported() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        // No heartbeat is sent before the end.
        let options = Options { heartbeat: Duration::from_secs(60), ..Worker::options(&info, "w") };
        let worker = Worker::start(options, work.clone());
        task(&session, "t", "x", "NULL").await;
        work.began(1).await;
        session.run("UPDATE task_execution_log SET status = 'failed', error_message = 'by hand'").await;
        work.end(Ok(()));
        worker.events.wait_for("the end of \"t\" (execution 1) was not accepted").await;
        assert_eq!(worker.quit().await.not_counted, 1, "{version}");
        assert!(log(&session).await.starts_with("w|failed|by hand"), "it stays as it was");
    }
}

/// Another session locks the task's row for longer than a statement may wait: the end is written when the row is free.
#[tokio::test]
async fn an_end_that_the_server_refuses_is_written_later() {
    let info = installed(server().await.version()).await;
    let (session, other) = (Session::open(&info).await, Session::open(&info).await);
    let work = Held::new();
    let worker = Worker::start(Worker::options(&info, "w"), work.clone());
    task(&session, "t", "x", "NULL").await;
    work.began(1).await;
    other.run("BEGIN; SELECT FROM scheduled_tasks FOR UPDATE").await;
    work.end(Err("why"));
    worker
        .events
        .wait_for("the end of \"t\" (execution 1) was not recorded: canceling statement due to lock timeout")
        .await;
    other.run("ROLLBACK").await;
    wait_until("it to be written", async || log(&session).await == "w|failed|why").await;
    let summary = worker.quit().await;
    assert_eq!((summary.failed, summary.not_counted), (1, 0));
}

/// Asked to quit meanwhile, it does not end before it has tried that again.
#[tokio::test]
async fn a_task_that_cannot_be_released_at_once_is_released_later() {
    let info = installed(server().await.version()).await;
    let (session, other) = (Session::open(&info).await, Session::open(&info).await);
    let options = Options { grace: Duration::ZERO, ..Worker::options(&info, "w") };
    let worker = Worker::start(options, Held::new());
    task(&session, "t", "x", "NULL").await;
    wait_until("it to run", async || session.ask("SELECT state FROM running_tasks").await == "running").await;
    other.run("BEGIN; SELECT FROM scheduled_tasks FOR UPDATE").await;
    worker.ask_to_quit();
    worker.events.wait_for("the end of \"t\" (execution 1) was not recorded: canceling statement").await;
    other.run("ROLLBACK").await;
    let summary = worker.ended().await.unwrap();
    assert_eq!((summary.given_back, summary.not_counted), (1, 0));
    assert_eq!(
        session.ask("SELECT attempts, next_run_at <= clock_timestamp() FROM scheduled_tasks").await,
        "0|t"
    );
}

/// The session ends while it waits for the answer.
#[tokio::test]
async fn an_end_without_an_answer_is_reported_as_unknown() {
    let info = installed(server().await.version()).await;
    let (session, other) = (Session::open(&info).await, Session::open(&info).await);
    let work = Held::new();
    let worker = Worker::start(Worker::options(&info, "w"), work.clone());
    task(&session, "t", "x", "NULL").await;
    work.began(1).await;
    other.run("BEGIN; SELECT FROM scheduled_tasks FOR UPDATE").await;
    work.end(Ok(()));
    let terminated = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                 WHERE datname = current_database() AND application_name = 'locktop worker w' AND wait_event_type = 'Lock'";
    wait_until("it to wait and be terminated", async || session.ask(terminated).await == "1").await;
    worker.events.wait_for("not known whether the end of \"t\" (execution 1) was recorded: ").await;
    other.run("ROLLBACK").await;
    assert_eq!(worker.quit().await.not_counted, 1);
}

#[tokio::test]
async fn work_that_does_not_stop_is_dropped_before_anything_new_begins() {
    struct Deaf(Arc<AtomicU32>);
    struct Dropped(Arc<AtomicU32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    impl Work for Deaf {
        async fn run(&self, job: &Job, _stop: Stop) -> Result<(), WorkError> {
            if job.name == "next" {
                assert_eq!(self.0.load(Ordering::SeqCst), 1, "the first has ended");
                return Ok(());
            }
            let _dropped = Dropped(Arc::clone(&self.0));
            std::future::pending().await
        }
    }
    let info = installed(server().await.version()).await;
    let session = Session::open(&info).await;
    let worker = Worker::start(Worker::options(&info, "w"), Deaf(Arc::default()));
    task(&session, "deaf", "x", "NULL").await;
    wait_until("it to run", async || session.ask("SELECT state FROM running_tasks").await == "running").await;
    task(&session, "next", "x", "NULL").await;
    session.run("SELECT pg_terminate_backend(holder_pid) FROM running_tasks").await;
    wait_until("the next to run", async || log(&session).await.ends_with("w|completed|-")).await;
    assert_eq!(worker.quit().await.stopped, 1);
}

#[tokio::test]
async fn the_worker_reconnects_after_the_server_was_killed_and_restarted() {
    for version in versions() {
        let options = locktop::demo::postgres::Options { version: Some(version), ..Default::default() };
        let mut server = EmbeddedServer::start(options).await.unwrap();
        let info = conninfo(&server);
        let mut connection = open(&info).await;
        locktop::schema::install(&mut connection.client, &locktop::schema::SchemaName::default())
            .await
            .unwrap();
        let session = Session::open(&info).await;
        task(&session, "t", "sleep", "'{\"seconds\": 600}'").await;
        let process = Process::start("w", &[], &target_on(&server, &info));
        wait_until("it to run", async || session.ask("SELECT state FROM running_tasks").await == "running")
            .await;
        server.kill_hard().await.unwrap();
        process.wait_for("connection lost").await;
        process.wait_for("stopped \"t\" (execution 1)").await;
        process.wait_for("; waiting").await;
        server.restart().await.unwrap();
        wait_until("the worker to reconnect", async || {
            process.log().matches("connected, served by").count() == 2
        })
        .await;
        let session = Session::open(&info).await;
        task(&session, "after", "sleep", "'{\"seconds\": 0}'").await;
        wait_until("it to work", async || log(&session).await.ends_with("w|completed|-")).await;
        process.signal(rustix::process::Signal::TERM);
        let left = process.ended().await;
        assert_eq!(left.status, Some(0), "{version}: {}", left.err);
        assert!(
            left.err.ends_with("1 completed, 0 failed, 1 stopped, 0 released, 0 not recorded"),
            "{}",
            left.err
        );
        server.stop().await.unwrap();
    }
}

/// Asked to quit while there is no server, it does not wait for one.
#[tokio::test]
async fn it_can_be_ended_while_it_has_no_connection() {
    let mut server = EmbeddedServer::start(locktop::demo::postgres::Options::default()).await.unwrap();
    let info = conninfo(&server);
    let mut connection = open(&info).await;
    locktop::schema::install(&mut connection.client, &locktop::schema::SchemaName::default()).await.unwrap();
    let process = Process::start("w", &[], &target_on(&server, &info));
    process.wait_for("connected").await;
    server.kill_hard().await.unwrap();
    process.wait_for("; waiting").await;
    process.signal(rustix::process::Signal::TERM);
    assert_eq!(process.ended().await.status, Some(0));
}
