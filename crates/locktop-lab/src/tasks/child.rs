//! A worker process of the demo: `locktop demo-worker NAME`, started only by a demo. The first line of its standard input
//! is its configuration; it ends when its standard input closes, so that a killed demo leaves none behind.

use std::io::{BufRead, Read};
use std::time::Duration;

use locktop_tasks::schema::SchemaName;
use locktop_tasks::worker::{self, Job, Source, Stop, StopReason, Work, WorkError};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;
use tokio::sync::{oneshot, watch};
use tokio::time::{MissedTickBehavior, interval_at};
use tokio_postgres::Client;

use super::witness::{ACCEPTED, REFUSED, Record, TICK, Witness};
use crate::contest::{leases, queue};
use crate::workers::{TaskEnd, TaskPayload, WorkerConfig, WorkerRole, witnessed};

#[cfg(feature = "redis")]
use crate::contest::redis_locks;

const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(4);

pub async fn run() -> Result<(), String> {
    let (told, config) = oneshot::channel();
    let (ended, quit) = watch::channel(false);
    // A thread of its own: reading may block for as long as the demo lives.
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = String::new();
        let _ = input.read_line(&mut line);
        let _ = told.send(line);
        let mut rest = [0; 64];
        while input.read(&mut rest).is_ok_and(|count| count > 0) {}
        ended.send_replace(true);
        std::thread::sleep(SHUTDOWN_TIMEOUT);
        std::process::exit(0);
    });
    let line = config.await.unwrap_or_default();
    let config: WorkerConfig = serde_json::from_str(&line).map_err(|_| {
        "\"locktop demo-worker\" is a part of \"locktop demo\", which starts and controls it".to_owned()
    })?;
    match &config.role {
        WorkerRole::Tasks if config.recipe => until(quit, Box::pin(run_recipe(&config))).await,
        WorkerRole::Tasks => run_tasks(&config, quit).await,
        WorkerRole::Leases { term } => until(quit, Box::pin(leases::run(&config, *term))).await,
        WorkerRole::Queue => queue::run(&config, quit).await,
        #[cfg(feature = "redis")]
        WorkerRole::Redis { urls, term } => {
            until(quit, Box::pin(redis_locks::run(&config, urls, *term))).await
        }
    }
}

/// Works until it is requested to end, and then drops what is in progress.
async fn until(
    mut quit: watch::Receiver<bool>,
    work: impl Future<Output = Result<(), String>>,
) -> Result<(), String> {
    tokio::select! {
        outcome = work => outcome,
        // The sender lives in the thread that ends this process.
        _ = quit.wait_for(|quit| *quit) => Ok(()),
    }
}

async fn run_tasks(config: &WorkerConfig, quit: watch::Receiver<bool>) -> Result<(), String> {
    let client = config.witness().await?;
    let options = config.options(Source::Tasks)?;
    let (witness, schema) = (Witness::new(&client, config), options.schema.clone());
    let tasks = DemoTasks { witness, schema, worker: config.worker.clone() };
    witnessed(&client, Box::pin(worker::run(options, tasks, quit))).await
}

struct DemoTasks {
    witness: Witness,
    schema: SchemaName,
    worker: String,
}

impl Work for DemoTasks {
    async fn run(&self, job: &Job, stop: Stop) -> Result<(), WorkError> {
        let task = task_of(job).map_err(WorkError::Failed)?;
        let payload = job.json.as_deref().and_then(|text| serde_json::from_str::<TaskPayload>(text).ok());
        let payload =
            payload.ok_or_else(|| WorkError::Failed("its payload is not one of the demo".to_owned()))?;
        let payload = match payload.ends {
            TaskEnd::Fails if job.attempt > 1 => TaskPayload { ends: TaskEnd::Well, ..payload },
            _ => payload,
        };
        let record = self.witness.begin(task, Some(job.id)).await.map_err(WorkError::Failed)?;
        let end = simulate(task, payload, &record, stop.stopped()).await.map_err(WorkError::Failed)?;
        let (outcome, told) = match end {
            ChildEnd::Done => ("completed", Ok(())),
            ChildEnd::Failed(error) => ("failed", Err(WorkError::Failed(error))),
            ChildEnd::Stopped(StopReason::ShutDown) => ("stopped", Err(StopReason::ShutDown.into())),
            ChildEnd::Stopped(reason) => (self.late_finish(task).await, Err(reason.into())),
        };
        record.end(outcome).await.map_err(WorkError::Failed)?;
        told
    }
}

impl DemoTasks {
    /// Reports its task as completed, as a worker that did not notice its loss would. The server must refuse.
    async fn late_finish(&self, task: i32) -> &'static str {
        let counted = self.witness.finish(self.schema.quoted(), task, &self.worker).await;
        match counted {
            Ok(false) => REFUSED,
            Ok(true) => ACCEPTED,
            Err(_) => "stopped",
        }
    }
}

/// The id of a task, which has half the size of an item's.
fn task_of(job: &Job) -> Result<i32, String> {
    i32::try_from(job.task_id).map_err(|_| format!("{} is not the id of a task", job.task_id))
}

/// Between two polls while nothing is due, and before reconnecting after the server is lost.
const PAUSE: Duration = Duration::from_millis(100);

/// A worker that follows the published recipe, with whatever functions of these names are in the schema: it fetches,
/// works and releases. As in the recipe, nothing watches the session that holds the lock while the work is in progress.
async fn run_recipe(config: &WorkerConfig) -> Result<(), String> {
    let info = config.info("")?;
    let witness = Witness::new(&config.witness().await?, config);
    let tasks = config.plan.tasks();
    let mut session = open(&info).await?;
    loop {
        if session.is_closed() {
            session = open(&info).await?;
        }
        let Ok(Some((task, name))) = fetch(&session, &config.worker).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let record = witness.begin(task, None).await?;
        let payload = match tasks.iter().find(|task| task.name == name) {
            Some(task) => TaskPayload { seconds: config.plan.scaled(task.work), ends: task.ends },
            None => TaskPayload { seconds: 1.0, ends: TaskEnd::Well },
        };
        let status = match simulate(task, payload, &record, std::future::pending::<()>()).await? {
            ChildEnd::Failed(_) => "failed",
            ChildEnd::Done | ChildEnd::Stopped(()) => "completed",
        };
        record.end(status).await?;
        if session.is_closed() {
            session = open(&info).await?;
        }
        let release = "SELECT release_task_lock($1::int, $2::text, $3::text)";
        // There is no result to check: the recipe's function returns nothing.
        let _ = session.execute(release, &[&task, &config.worker, &status]).await;
    }
}

async fn open(info: &ConnInfo) -> Result<Client, String> {
    Ok(connect(info).await.map_err(|error| error.to_string())?.client)
}

async fn fetch(session: &Client, worker: &str) -> Result<Option<(i32, String)>, tokio_postgres::Error> {
    let sql = "SELECT task_id, task_name FROM worker_fetch_and_execute_task($1::text) WHERE acquired";
    session.query_opt(sql, &[&worker]).await?.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

#[derive(Debug, PartialEq, Eq)]
enum ChildEnd<R> {
    Done,
    Failed(String),
    Stopped(R),
}

const ERRORS: [&str; 4] = [
    "HTTP 503 from the upstream service",
    "connection timed out: the upstream service cannot be reached",
    "checksum mismatch in row 4711",
    "disk quota exceeded on /var/exports",
];

/// Works, recording signs, until it is done or requested to stop. Its end is not recorded yet.
///
/// # Errors
/// If the witness cannot write: then it is not known what ran, and the work must not continue.
async fn simulate<R>(
    task: i32,
    payload: TaskPayload,
    record: &Record<'_>,
    stop: impl Future<Output = R>,
) -> Result<ChildEnd<R>, String> {
    let mut signs = interval_at(start() + TICK, TICK);
    // After a pause one sign is due, not all that were missed.
    signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let work = async {
        match payload.ends {
            TaskEnd::Hangs => std::future::pending().await,
            TaskEnd::Well | TaskEnd::Fails => {
                let seconds = payload.seconds.clamp(0.0, 86_400.0);
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            }
        }
    };
    tokio::pin!(work, stop);
    loop {
        tokio::select! {
            // A request to stop has priority, the next sign comes last.
            biased;
            reason = &mut stop => return Ok(ChildEnd::Stopped(reason)),
            () = &mut work => break,
            _ = signs.tick() => record.tick().await?,
        }
    }
    let error = usize::try_from(task).ok().and_then(|task| ERRORS.get(task % ERRORS.len()));
    Ok(match payload.ends {
        TaskEnd::Fails => ChildEnd::Failed(error.copied().unwrap_or_default().to_owned()),
        TaskEnd::Well | TaskEnd::Hangs => ChildEnd::Done,
    })
}

/// The timer's own clock, which is not a time of day.
#[expect(clippy::disallowed_methods, reason = "where an interval of the timer begins")]
fn start() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
