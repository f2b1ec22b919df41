//! What idle workers cost a server, and how soon they begin: `cargo bench --bench worker_idle`.
//!
//! Fifty workers of this process wait at one database of an embedded server, which logs every statement. First nothing is planned or queued,
//! and the workers' statements are counted over `LOCKTOP_SECONDS` (60). Then 40 tasks become due one after the other, first as
//! their time comes, then as they are inserted, and 40 items of the queue after them: measured is the time from when a task is due until its work begins, both by the
//! clock of this machine, which is the server's too, and the statements for each. (Transactions would be no measure: every
//! notification is one in each backend that listens.)
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench may"
)]

use std::path::Path;
use std::time::Duration;

use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options as ServerOptions};
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use locktop::worker::{self, Job, Options, Stop, Work, WorkError};
use tokio::sync::{mpsc, watch};

const WORKERS: usize = 50;
const TASKS: usize = 40;
/// Between two tasks; long enough for all to be idle again.
const APART: Duration = Duration::from_millis(500);
/// Until all have connected and looked for the first time.
const SETTLED: Duration = Duration::from_secs(5);

/// Says when it began.
struct Begins(mpsc::UnboundedSender<f64>);

impl Work for Begins {
    async fn run(&self, job: &Job, _stop: Stop) -> Result<(), WorkError> {
        let began = clock::wall().timestamp_micros() as f64 / 1e6;
        let due: f64 = job.payload.as_deref().unwrap().parse().unwrap();
        self.0.send((began - due) * 1e3).unwrap();
        Ok(())
    }
}

fn main() {
    let seconds = std::env::var("LOCKTOP_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure(Duration::from_secs(seconds)));
}

async fn measure(length: Duration) {
    let options = ServerOptions::default()
        .with("logging_collector", "on")
        .with("log_directory", "log")
        .with("log_filename", "statements")
        .with("log_rotation_size", "0")
        .with("log_min_messages", "log")
        .with("log_statement", "all")
        .with("log_line_prefix", "<%a> ");
    let server = EmbeddedServer::start(options).await.unwrap();
    let admin = ConnInfo::parse(&server.conninfo()).unwrap();
    connect(&admin).await.unwrap().client.batch_execute("CREATE DATABASE tasks").await.unwrap();
    let info = admin.clone().with_dbname("tasks");
    let mut session = connect(&info).await.unwrap();
    schema::install(&mut session.client, &SchemaName::default()).await.unwrap();
    let log = server.socket_dir().join("data/log/statements");
    let (quit, told) = watch::channel(false);
    let (begins, mut began) = mpsc::unbounded_channel();
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let options = Options::new(info.clone(), format!("w{number}").parse().unwrap());
            tokio::spawn(worker::run(options, Begins(begins.clone()), told.clone()))
        })
        .collect();
    tokio::time::sleep(SETTLED).await;
    println!("{WORKERS} workers on one database, PostgreSQL {}", server.version());

    let before = statements(&log);
    tokio::time::sleep(length).await;
    let count = statements(&log) - before;
    println!("nothing planned   {:.2} statements a second in all", count / length.as_secs_f64());

    let planned = format!(
        "INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at, payload) \
         SELECT 'time ' || n, 'x', at, to_jsonb(extract(epoch FROM at)) \
         FROM generate_series(1, {TASKS}) n, LATERAL (SELECT now() + interval '2 seconds' + n * interval '{} ms' AS at) t",
        APART.as_millis()
    );
    let (before, start) = (statements(&log), clock::monotonic());
    session.client.batch_execute(&planned).await.unwrap();
    let late = times(&mut began).await;
    report("due by time", &late, &log, before, start);

    let (before, start) = (statements(&log), clock::monotonic());
    for number in 0..TASKS {
        let sql = format!(
            "INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at, payload) \
             SELECT 'insert {number}', 'x', at, to_jsonb(extract(epoch FROM at)) FROM clock_timestamp() at"
        );
        session.client.batch_execute(&sql).await.unwrap();
        tokio::time::sleep(APART).await;
    }
    let late = times(&mut began).await;
    report("due by insert", &late, &log, before, start);

    let (before, start) = (statements(&log), clock::monotonic());
    for _ in 0..TASKS {
        let sql = "INSERT INTO locktop.task_queue (task_name, payload) SELECT 'x', to_jsonb(extract(epoch FROM clock_timestamp()))";
        session.client.batch_execute(sql).await.unwrap();
        tokio::time::sleep(APART).await;
    }
    let late = times(&mut began).await;
    report("queued", &late, &log, before, start);

    quit.send_replace(true);
    let mut completed = 0;
    for worker in workers {
        completed += worker.await.unwrap().unwrap().completed;
    }
    assert_eq!(completed, 3 * TASKS as u64, "each ran once");
    drop(session);
    server.stop().await.unwrap();
}

/// Milliseconds from due to begun, sorted.
async fn times(began: &mut mpsc::UnboundedReceiver<f64>) -> Vec<f64> {
    let mut late = Vec::new();
    while late.len() < TASKS {
        late.push(tokio::time::timeout(Duration::from_secs(90), began.recv()).await.unwrap().unwrap());
    }
    late.sort_by(f64::total_cmp);
    late
}

fn report(what: &str, late: &[f64], log: &Path, before: f64, start: std::time::Instant) {
    let active = start.elapsed().as_secs_f64();
    let count = statements(log) - before;
    println!(
        "{what:<18}median {:.1} ms, longest {:.1} ms of {TASKS}; {:.1} statements for each, {:.1} a second",
        late[late.len() / 2],
        late[late.len() - 1],
        count / TASKS as f64,
        count / active,
    );
}

/// How many statements the workers have sent.
fn statements(log: &Path) -> f64 {
    let text = std::fs::read(log).unwrap();
    String::from_utf8_lossy(&text).lines().filter(|line| line.starts_with("<locktop worker ")).count() as f64
}
