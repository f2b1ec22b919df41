//! The execution of due tasks by a worker.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktop::worker::{Builtin, HTTP_REMOVED, Job, Options, Stop, Work, WorkError};

use super::db::{Session, installed};
use super::hand::{Held, Seen, Worker, ended, log, no_session_is_left, task};
use super::support::{server, versions};

fn builtin(options: &Options) -> Builtin {
    Builtin::new(options.info.clone(), &options.id)
}

#[tokio::test]
async fn sql_and_sleep_tasks_are_run_and_invalid_tasks_are_refused() {
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
            ("program", "command", "'{}'"),
            ("begin", "sql", "'{\"statement\": \"START TRANSACTION\"}'"),
            ("copy out", "sql", "'{\"statement\": \"COPY public.done TO STDOUT\"}'"),
            ("copy in", "sql", "'{\"statement\": \"COPY public.done FROM STDIN\"}'"),
            ("long", "sleep", "'{\"seconds\": 0, \"timeout\": 7200}'"),
        ] {
            task(&session, name, kind, payload).await;
        }
        let options = Worker::options(&info, "w");
        let work = builtin(&options);
        let worker = Worker::start(options, work);
        ended(&session, 14).await;
        let summary = worker.quit().await;
        assert_eq!((summary.completed, summary.failed), (3, 11), "{version}");
        let outcomes = session
            .ask("SELECT task_name, status, error_message FROM task_execution_log e JOIN scheduled_tasks t ON t.id = task_id ORDER BY e.id")
            .await;
        let (sleep, sql) = ("such as {\"seconds\": 1.5}", "such as {\"statement\": \"…\"}");
        let copy = "unexpected message from server: a task cannot use COPY FROM STDIN or TO STDOUT";
        let expected = [
            "nap|completed|-",
            "insert|completed|-",
            "rows|completed|-",
            "fails|failed|division by zero (SQLSTATE 22012)",
            "two|failed|cannot insert multiple commands into a prepared statement (SQLSTATE 42601)",
            "slow|failed|timed out after 0.1 s",
            "slow nap|failed|timed out after 0.1 s",
            &format!("none|failed|the payload of a task of type \"sql\" is missing; {sql}"),
            &format!("strange|failed|{HTTP_REMOVED}"),
            "program|failed|the type \"command\" is not permitted here: --allow-commands permits it",
            "begin|failed|the statement left a transaction open, which was rolled back: a task cannot use BEGIN, because its one statement is a transaction",
            &format!("copy out|failed|{copy}"),
            &format!("copy in|failed|{copy}"),
            &format!(
                "long|failed|the payload of a task of type \"sleep\" has a \"timeout\" of 7200 s, above the task's own of 1800 s; {sleep}"
            ),
        ];
        assert_eq!(outcomes.lines().collect::<Vec<_>>(), expected, "{version}");
        assert_eq!(session.ask("SELECT what FROM public.done").await, "报表");
        no_session_is_left(&session).await;
    }
}

#[tokio::test]
async fn it_runs_as_many_at_once_as_it_may() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Held::new();
        let worker = Worker::start(Options { concurrency: 3, ..Worker::options(&info, "w") }, work.clone());
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

/// Work that notices when a task is run by two.
#[derive(Debug, Clone, Default)]
struct Alone {
    running: Arc<Mutex<HashSet<i64>>>,
    twice: Arc<Mutex<Vec<i64>>>,
}

impl Work for Alone {
    async fn run(&self, job: &Job, _stop: Stop) -> Result<(), WorkError> {
        if !self.running.lock().unwrap().insert(job.task_id) {
            self.twice.lock().unwrap().push(job.task_id);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.running.lock().unwrap().remove(&job.task_id);
        // Some fail and are tried again.
        if job.task_id % 7 == 0 && job.attempt < 3 {
            return Err(WorkError::Failed("not yet".to_owned()));
        }
        Ok(())
    }
}

#[tokio::test]
async fn many_workers_run_each_task_once_and_never_two_at_a_time() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let work = Alone::default();
        let start =
            |id: &str| Worker::start(Options { concurrency: 3, ..Worker::options(&info, id) }, work.clone());
        let workers = ["one", "two", "three", "four"].map(start);
        session
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, priority, retry_delay, next_run_at) \
                 SELECT 't' || n, 'x', n % 3, '0', clock_timestamp() FROM generate_series(1, 200) n",
            )
            .await;
        ended(&session, 200 + 28 * 2).await;
        let mut done = 0;
        for worker in workers {
            let summary = worker.quit().await;
            assert_eq!((summary.stopped, summary.not_counted), (0, 0), "{version}");
            done += summary.completed;
        }
        assert_eq!((done, work.twice.lock().unwrap().len()), (200, 0), "{version}");
        let sql =
            "SELECT count(*), count(DISTINCT task_id) FROM task_execution_log WHERE status = 'completed'";
        assert_eq!(session.ask(sql).await, "200|200");
        assert_eq!(
            session.ask("SELECT count(*) FROM task_execution_log WHERE status = 'failed'").await,
            "56"
        );
    }
}

#[tokio::test]
async fn a_panicking_task_fails_and_the_worker_continues() {
    struct Panics;
    impl Work for Panics {
        async fn run(&self, job: &Job, _stop: Stop) -> Result<(), WorkError> {
            assert_eq!(job.name, "calm", "this one panics");
            Ok(())
        }
    }
    let info = installed(server().await.version()).await;
    let session = Session::open(&info).await;
    task(&session, "wild", "x", "NULL").await;
    task(&session, "calm", "x", "NULL").await;
    let worker = Worker::start(Worker::options(&info, "w"), Panics);
    ended(&session, 2).await;
    let rows = log(&session).await;
    assert!(rows.starts_with("w|failed|the work panicked: ") && rows.contains("this one panics"), "{rows}");
    assert!(rows.ends_with("w|completed|-"), "{rows}");
    worker.quit().await;
}

/// A name that is not valid in any encoding, an error that the database has no characters for, and a payload that is both.
#[tokio::test]
async fn texts_of_any_encoding_do_no_harm() {
    for (encoding, name) in [("SQL_ASCII", "E'caf\\xe9'"), ("LATIN1", "'café'")] {
        let server = server().await;
        let admin = Session::open_plain(&super::support::conninfo(server)).await;
        let database = format!("encoded_{}", encoding.to_lowercase());
        admin
            .run(&format!("CREATE DATABASE {database} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"))
            .await;
        let info = super::support::conninfo(server).with_dbname(&database);
        let mut connection = super::support::open(&info).await;
        locktop::schema::install(&mut connection.client, &locktop::schema::SchemaName::default())
            .await
            .unwrap();
        let session = Session::open(&info).await;
        let sql = format!(
            "INSERT INTO scheduled_tasks (task_name, task_type, payload, max_attempts, next_run_at) VALUES \
             ({name}, 'sql', '{{\"statement\": \"SELECT (''caf'' || chr(233))::int\"}}', 1, clock_timestamp()), \
             ('strange', 'mail', NULL, 1, clock_timestamp())"
        );
        session.run(&sql).await;
        let options = Worker::options(&info, "w");
        let work = builtin(&options);
        let worker = Worker::start(options, work);
        ended(&session, 2).await;
        let sql =
            "SELECT count(*) FROM task_execution_log WHERE error_message LIKE '%\"mail\" is not known%'";
        assert_eq!(session.ask(sql).await, "1", "{encoding}");
        let events = worker.events.lines().join("\n");
        assert!(!events.contains("refused"), "{encoding}: {events}");
        worker.quit().await;
    }
}
