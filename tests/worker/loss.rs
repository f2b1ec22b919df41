//! What happens when the lock is lost.

use locktop::worker::StopReason;

use super::db::{Session, installed};
use super::hand::{Held, Seen, Worker, log, task};
use super::support::{versions, wait_until};

#[tokio::test]
async fn work_is_told_when_its_connection_is_terminated_and_another_worker_runs_it() {
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
        wait_until("the work to be told", async || one.seen().len() == 2).await;
        let Seen::Stopped(execution, StopReason::ConnectionLost(reason)) = one.seen()[1].clone() else {
            panic!("{:?}", one.seen())
        };
        assert!(reason.contains("57P01"), "{reason}");
        first.events.wait_for("connection lost").await;
        first.tell();
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
