//! Workers of this process, and what they do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktop::pg::conninfo::ConnInfo;
use locktop::worker::{
    self, Event, Job, Options, Report, Stop, StopReason, Summary, Work, WorkError, WorkerError,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::db::Session;
use super::support::{TIMEOUT, wait_until};

/// A worker that runs in this process.
pub(crate) struct Worker {
    pub(crate) events: Events,
    quit: watch::Sender<bool>,
    running: JoinHandle<Result<Summary, WorkerError>>,
}

impl Worker {
    /// With a heartbeat so short that tests need not wait.
    pub(crate) fn options(info: &ConnInfo, id: &str) -> Options {
        Options { heartbeat: Duration::from_millis(200), ..Options::new(info.clone(), id.parse().unwrap()) }
    }

    pub(crate) fn start<W: Work>(options: Options, work: W) -> Self {
        let events = Events::default();
        let (quit, receiver) = watch::channel(false);
        let options = Options { report: events.report(), ..options };
        Self { events, quit, running: tokio::spawn(worker::run(options, work, receiver)) }
    }

    /// Asks it to quit, and waits for its end.
    pub(crate) async fn quit(self) -> Summary {
        self.quit.send_replace(true);
        self.ended().await.unwrap()
    }

    /// Asks it to quit.
    pub(crate) fn ask_to_quit(&self) {
        self.quit.send_replace(true);
    }

    pub(crate) async fn ended(self) -> Result<Summary, WorkerError> {
        tokio::time::timeout(TIMEOUT, self.running).await.expect("it ends").unwrap()
    }
}

/// The events that a worker reported.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    fn report(&self) -> Report {
        let events = self.clone();
        Report::to(move |event| events.0.lock().unwrap().push(event.clone()))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(ToString::to_string).collect()
    }

    pub(crate) async fn wait_for(&self, part: &str) {
        let what = format!("\"{part}\"");
        wait_until(&what, async || self.lines().iter().any(|line| line.contains(part))).await;
    }
}

/// Work that the test controls: it ends when the test ends it, and never on its own.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    end: watch::Sender<Option<Result<(), String>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// What happened to an execution.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Began(i64),
    Stopped(i64, StopReason),
    Ended(i64),
}

impl Held {
    pub(crate) fn new() -> Self {
        Self { end: watch::channel(None).0, seen: Arc::default() }
    }

    pub(crate) fn end(&self, outcome: Result<(), &str>) {
        self.end.send_replace(Some(outcome.map_err(str::to_owned)));
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) async fn began(&self, count: usize) {
        wait_until("work to begin", async || {
            self.seen().iter().filter(|seen| matches!(seen, Seen::Began(_))).count() >= count
        })
        .await;
    }

    fn saw(&self, seen: Seen) {
        self.seen.lock().unwrap().push(seen);
    }
}

impl Work for Held {
    async fn run(&self, job: &Job, stop: Stop) -> Result<(), WorkError> {
        self.saw(Seen::Began(job.id));
        let mut end = self.end.subscribe();
        tokio::select! {
            biased;
            reason = stop.stopped() => {
                self.saw(Seen::Stopped(job.id, reason.clone()));
                Err(reason.into())
            }
            outcome = end.wait_for(Option::is_some) => {
                self.saw(Seen::Ended(job.id));
                outcome.unwrap().clone().unwrap().map_err(WorkError::Failed)
            }
        }
    }
}

/// Adds a task that is due; its id.
pub(crate) async fn task(session: &Session, name: &str, kind: &str, payload: &str) -> i32 {
    let sql = format!(
        "INSERT INTO scheduled_tasks (task_name, task_type, payload, next_run_at) \
         VALUES ('{name}', '{kind}', {payload}, clock_timestamp()) RETURNING id"
    );
    session.ask(&sql).await.parse().unwrap()
}

/// Status and error of all executions, oldest first.
pub(crate) async fn log(session: &Session) -> String {
    session.ask("SELECT worker_id, status, error_message FROM task_execution_log ORDER BY id").await
}

/// Waits until that many executions have ended.
pub(crate) async fn ended(session: &Session, count: usize) {
    let sql = "SELECT count(*) FROM task_execution_log WHERE status <> 'running'";
    wait_until("executions to end", async || session.ask(sql).await.parse::<usize>().unwrap() >= count).await;
}

/// Waits until no session of a worker is left in this database.
pub(crate) async fn no_session_is_left(session: &Session) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'locktop %' AND datname = current_database()";
    wait_until("its sessions to end", async || session.ask(sql).await == "0").await;
}
