//! What a worker does with what is due.

use locktop::worker::Builtin;

use super::db::{Session, installed};
use super::hand::{Held, Seen, Worker, ended, log, task};
use super::support::versions;

fn builtin(options: &locktop::worker::Options) -> Builtin {
    Builtin::new(options.info.clone(), &options.id)
}

#[tokio::test]
async fn both_types_are_run_and_every_other_is_refused() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        session.run("CREATE TABLE public.done (what text)").await;
        for (name, kind, payload) in [
            ("nap", "sleep", "'{\"seconds\": 0.05}'"),
            ("insert", "sql", "'{\"statement\": \"INSERT INTO public.done VALUES (''报表'')\"}'"),
            ("rows", "sql", "'{\"statement\": \"SELECT generate_series(1, 100000)\"}'"),
            ("fails", "sql", "'{\"statement\": \"SELECT 1/0\"}'"),
            ("two", "sql", "'{\"statement\": \"SELECT 1; SELECT 2\"}'"),
            ("slow", "sql", "'{\"statement\": \"SELECT pg_sleep(60)\", \"timeout\": 0.1}'"),
            ("slow nap", "sleep", "'{\"seconds\": 60, \"timeout\": 0.1}'"),
            ("none", "sql", "NULL"),
            ("strange", "http", "'{}'"),
        ] {
            task(&session, name, kind, payload).await;
        }
        let options = Worker::options(&info, "w");
        let work = builtin(&options);
        let worker = Worker::start(options, work);
        ended(&session, 9).await;
        let summary = worker.quit().await;
        assert_eq!((summary.completed, summary.failed), (3, 6), "{version}");
        let outcomes = session
            .ask("SELECT task_name, status, error_message FROM task_execution_log e JOIN scheduled_tasks t ON t.id = task_id ORDER BY e.id")
            .await;
        let known = "this worker knows \"sleep\" ({\"seconds\": 1.5}) and \"sql\" ({\"statement\": \"…\"})";
        let expected = [
            "nap|completed|-",
            "insert|completed|-",
            "rows|completed|-",
            "fails|failed|division by zero (SQLSTATE 22012)",
            "two|failed|cannot insert multiple commands into a prepared statement (SQLSTATE 42601)",
            "slow|failed|timed out after 0.1 s",
            "slow nap|failed|timed out after 0.1 s",
            &format!("none|failed|the payload of a task of type \"sql\" is missing: {known}"),
            &format!("strange|failed|the task type \"http\" is not known: {known}"),
        ];
        assert_eq!(outcomes.lines().collect::<Vec<_>>(), expected, "{version}");
        assert_eq!(session.ask("SELECT what FROM public.done").await, "报表");
        assert_eq!(
            session
                .ask("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'locktop %'")
                .await,
            "0"
        );
    }
}

#[tokio::test]
async fn it_runs_as_many_at_once_as_it_may() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        let worker = Worker::start(
            locktop::worker::Options { concurrency: 3, ..Worker::options(&info, "w") },
            work.clone(),
        );
        for number in 0..5 {
            task(&session, &format!("t{number}"), "x", "NULL").await;
        }
        work.began(3).await;
        assert_eq!(
            session.ask("SELECT count(*), count(DISTINCT holder_pid) FROM running_tasks").await,
            "3|1",
            "{version}"
        );
        assert_eq!(work.seen().len(), 3);
        work.end(Ok(()));
        ended(&session, 5).await;
        assert_eq!(worker.quit().await.completed, 5);
        assert_eq!(log(&session).await, ["w|completed|-"; 5].join("\n"));
        assert!(!work.seen().iter().any(|seen| matches!(seen, Seen::Stopped(..))));
    }
}
