//! When a worker polls for tasks: when it is notified or when a task is due, and not before.

use std::time::Duration;

use locktop::locks::work_session::{Finish, News, Ours, Source, WorkSession, WorkerId};
use locktop::schema::SchemaName;

use super::db::{Session, installed};
use super::hand::{Held, Worker, ended, log, task};
use super::support::{server, versions, wait_until};

const TASKS: Source = Source::Tasks;

const QUERY_OF_WORKERS: &str = "SELECT count(*), max(state_change) FROM pg_stat_activity \
     WHERE datname = current_database() AND application_name LIKE 'locktop worker %' AND state = 'idle'";

#[tokio::test]
async fn a_new_task_starts_before_the_workers_next_regular_poll() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        work.end(Ok(()));
        let worker = Worker::start(Worker::options(&info, "w"), work);
        worker.events.wait_for("connected").await;
        for number in 0..3 {
            task(&session, &format!("t{number}"), "x", "NULL").await;
            ended(&session, number + 1).await;
        }
        let late = "SELECT count(*) FROM task_execution_log e JOIN scheduled_tasks t ON t.id = e.task_id \
             WHERE e.started_at > t.created_at + interval '15 seconds'";
        assert_eq!(session.ask(late).await, "0", "{version}");
        worker.quit().await;
    }
}

#[tokio::test]
async fn a_planned_task_is_begun_when_it_is_due_and_not_before() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        work.end(Ok(()));
        let worker = Worker::start(Worker::options(&info, "w"), work);
        worker.events.wait_for("connected").await;
        session
            .run(
                "CREATE TABLE public.planned AS SELECT n AS id, clock_timestamp() + n * interval '0.3 second' AS at
                   FROM generate_series(1, 3) n;
                 INSERT INTO scheduled_tasks (id, task_name, task_type, next_run_at)
                 SELECT id, 't' || id, 'x', at FROM public.planned",
            )
            .await;
        ended(&session, 3).await;
        let order = "SELECT bool_and(started_at >= at AND started_at < at + interval '15 seconds') \
             FROM task_execution_log JOIN public.planned p ON p.id = task_id";
        assert_eq!(session.ask(order).await, "t", "{version}: {}", log(&session).await);
        worker.quit().await;
    }
}

#[tokio::test]
async fn an_idle_worker_sends_no_statement() {
    let info = installed(server().await.version()).await;
    let session = Session::open(&info).await;
    let workers: Vec<_> = (0..5)
        .map(|number| Worker::start(Worker::options(&info, &format!("w{number}")), Held::new()))
        .collect();
    for worker in &workers {
        worker.events.wait_for("connected").await;
    }
    let mut before = String::new();
    // The first polls of all are over when nothing has changed for a while; heartbeats would be sent five times a second.
    wait_until("silence", async || {
        let now = session.ask(QUERY_OF_WORKERS).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        before = now.clone();
        session.ask(QUERY_OF_WORKERS).await == now && now.starts_with("5|")
    })
    .await;
    for worker in workers {
        assert_eq!(worker.quit().await.completed, 0);
    }
}

/// Any role may notify, and as much as it likes in one transaction.
#[tokio::test]
async fn no_crowd_of_news_hides_that_a_task_is_due() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let worker: WorkerId = "w".parse().unwrap();
        let mut worker =
            WorkSession::open(&info, &SchemaName::default(), &worker, &Source::ALL).await.unwrap();
        for arguments in ["'locktop_quiet', n || ' tasks * locktop'", "'locktop_tasks', 'other' || n"] {
            let crowd = format!("SELECT pg_notify({arguments}) FROM generate_series(1, 1000) n");
            session.run(&format!("BEGIN; {crowd}; NOTIFY locktop_tasks, 'locktop'; COMMIT")).await;
            wait_until("the news", async || {
                assert_eq!(worker.next_due(TASKS).await, Ok(None));
                worker.news_so_far().contains(&News::Due(TASKS))
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_session_notifies_others_when_no_task_is_due() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let schema = SchemaName::default();
        let (one, two): (WorkerId, WorkerId) = ("one".parse().unwrap(), "two".parse().unwrap());
        let one = WorkSession::open(&info, &schema, &one, &Source::ALL).await.unwrap();
        let mut two = WorkSession::open(&info, &schema, &two, &Source::ALL).await.unwrap();
        let pause = Duration::from_millis(500);
        assert_eq!(one.next_due_notifying(TASKS, Some(pause)).await, Ok(None), "{version}");
        assert_eq!(two.news().await, News::Quiet(TASKS, None));
        session.run("INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('far', 'x', 'infinity')").await;
        assert_eq!(two.news().await, News::Due(TASKS));
        assert_eq!(two.next_due(TASKS).await, Ok(None));
        task(&session, "now", "x", "NULL").await;
        assert_eq!(two.news().await, News::Due(TASKS));
        assert_eq!(one.next_due_notifying(TASKS, Some(pause)).await, Ok(Some(Duration::ZERO)));
        // A due task that cannot be claimed is left alone for the pause.
        assert_eq!(two.news().await, News::Quiet(TASKS, Some(pause)));
        assert_eq!(
            one.next_due_notifying(TASKS, None).await,
            Ok(Some(Duration::ZERO)),
            "and notifies no other session"
        );
        // Ignored: notifications of another schema, and invalid ones that any role may send.
        for payload in [
            "1 tasks * other",
            "-",
            "- tasks",
            "- tasks *",
            "- tasks locktop",
            "- x * locktop",
            "x tasks * locktop",
            "-1 tasks * locktop",
            "NaN tasks * locktop",
            "",
        ] {
            session.run(&format!("NOTIFY locktop_quiet, '{payload}'")).await;
        }
        session.run("NOTIFY locktop_tasks, 'other'; NOTIFY locktop_tasks, 'locktop'").await;
        assert_eq!(two.news().await, News::Due(TASKS));
        assert_eq!(two.news_so_far(), []);
        two.notify_due(TASKS).await.unwrap();
        assert_eq!(two.news().await, News::Due(TASKS));
        two.next_due_notifying(TASKS, Some(pause)).await.unwrap();
        assert_eq!(two.news().await, News::Notified(TASKS), "it receives its own, in order");
    }
}

#[tokio::test]
async fn a_claimed_task_belongs_to_its_session_until_it_is_released() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let schema = SchemaName::default();
        let id: WorkerId = "same".parse().unwrap();
        // Two sessions of one name: each has its own tasks.
        let one = WorkSession::open(&info, &schema, &id, &Source::ALL).await.unwrap();
        let two = WorkSession::open(&info, &schema, &id, &Source::ALL).await.unwrap();
        task(&session, "t", "x", "'{\"a\": 1}'").await;
        session.run("UPDATE scheduled_tasks SET timeout = '100000000 years'").await;
        let taken = one.fetch(TASKS, 5).await.unwrap();
        let [execution] = &taken[..] else { panic!("{taken:?}") };
        assert_eq!(
            (execution.name.as_str(), execution.json.as_deref()),
            ("t", Some("{\"a\": 1}")),
            "{version}"
        );
        assert!(execution.timeout > Duration::from_secs(1 << 40));
        assert_eq!(two.fetch(TASKS, 5).await, Ok(vec![]));
        let own = Ours { id: execution.id, attempt: None };
        assert_eq!((one.heartbeat(TASKS).await, two.heartbeat(TASKS).await), (Ok(vec![own]), Ok(vec![])));
        assert_eq!(two.finish(execution, Finish::Completed).await, Ok(false));
        assert_eq!(two.give_back(execution).await, Ok(false));
        assert_eq!(one.give_back(execution).await, Ok(true));
        assert_eq!(one.give_back(execution).await, Ok(false), "once");
        assert_eq!(session.ask("SELECT attempts, next_run_at <= now() FROM scheduled_tasks").await, "0|t");
        let again = two.fetch(TASKS, 5).await.unwrap();
        assert_eq!(again[0].attempt, 1);
        assert_eq!(two.finish(&again[0], Finish::Failed("a\0b".to_owned())).await, Ok(true));
        assert!(log(&session).await.ends_with("same|failed|ab"));
        // It was rescheduled while it ran: releasing it does not change that.
        session.run("UPDATE scheduled_tasks SET next_run_at = now()").await;
        let third = one.fetch(TASKS, 1).await.unwrap();
        session.run("UPDATE scheduled_tasks SET next_run_at = '2100-01-01 00:00+00'").await;
        assert_eq!(one.give_back(&third[0]).await, Ok(true));
        assert_eq!(session.ask("SELECT next_run_at FROM scheduled_tasks").await, "2100-01-01 00:00:00+00");
    }
}
