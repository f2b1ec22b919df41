//! The cost of idle workers for a server, and how soon they begin a task: `cargo bench --bench worker_idle`.
//!
//! Fifty processes of `locktop worker` wait at one database of an embedded server, which logs every statement. First
//! nothing is planned or queued: the workers' statements and all transactions of the database over `LOCKTOP_SECONDS`
//! (60) are counted; every notification is a transaction in each session that listens. Then 40 tasks become due one
//! after the other, because their time arrives, because they are inserted, and because their time is changed; then 40
//! items are queued. The result is the time from when a task is due, by the server's clock, until the start that the
//! worker logs, by this machine's clock, which is the same clock.
//!
//! `LOCKTOP_WORKERS` (50) is the number of workers; `LOCKTOP_PROGRAM` is another program to measure while nothing is
//! planned, such as an older locktop.
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

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options as ServerOptions};
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;
use serde_json::Value;

const TASKS: usize = 40;
/// Time between two tasks; long enough for all workers to be idle again.
const APART: Duration = Duration::from_millis(500);
/// Time for all workers to make their first request, and for the server's counters: an idle session reports them after
/// ten seconds.
const SETTLED: Duration = Duration::from_secs(20);

/// The start of a task or an item by a worker: the id of the execution or the item, and the time.
struct Began {
    is_task: bool,
    id: i64,
    at: f64,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The worker processes. Dropping them closes their standard input, which ends them.
struct Workers(Vec<Child>);

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            drop(worker.stdin.take());
        }
        for worker in &mut self.0 {
            let _ = worker.wait();
        }
    }
}

async fn measure() {
    let (length, count) = (Duration::from_secs(number("LOCKTOP_SECONDS", 60)), number("LOCKTOP_WORKERS", 50));
    let other = std::env::var("LOCKTOP_PROGRAM").ok();
    let program = other.clone().unwrap_or_else(|| env!("CARGO_BIN_EXE_locktop").to_owned());
    let options = ServerOptions::default()
        .with("logging_collector", "on")
        .with("log_directory", "log")
        .with("log_filename", "statements")
        .with("log_rotation_size", "0")
        .with("log_min_messages", "log")
        .with("log_statement", "all")
        .with("log_line_prefix", "<%a> %m ")
        .with("autovacuum", "off")
        .with("max_connections", count + 20);
    let server = EmbeddedServer::start(options).await.unwrap();
    let admin = connect(&ConnInfo::parse(&server.conninfo()).unwrap()).await.unwrap();
    admin.client.batch_execute("CREATE DATABASE tasks").await.unwrap();
    let target = server.conninfo().replace("dbname=postgres", "dbname=tasks");
    let installed = Command::new(&program).args(["schema", "install", &target]).status().unwrap();
    assert!(installed.success());
    let log = server.socket_dir().join("data/log/statements");
    let (sender, began) = mpsc::channel();
    let workers = start(&program, other.is_none(), count, &target, &sender);
    connected(&admin, count).await;
    tokio::time::sleep(SETTLED).await;
    println!("{count} worker processes on one database, PostgreSQL {}", server.version());

    let before = (statements(&log), transactions(&admin).await);
    tokio::time::sleep(length).await;
    let (sent, done) = (statements(&log) - before.0, transactions(&admin).await - before.1);
    let seconds = length.as_secs_f64();
    println!(
        "nothing planned   {:.2} statements and {:.2} transactions a second in all",
        sent / seconds,
        done / seconds
    );
    if other.is_none() {
        let place = Place { info: ConnInfo::parse(&target).unwrap(), log, began };
        place.measure_all().await;
    }
    drop(workers);
    server.stop().await.unwrap();
}

fn start(program: &str, reads: bool, count: u64, target: &str, sender: &Sender<Began>) -> Workers {
    let mut workers = Vec::new();
    for number in 0..count {
        let mut command = Command::new(program);
        command.args(["worker", "--id", &format!("w{number}"), "--exit-with-stdin", "-w"]);
        if reads {
            command.args(["--log-format", "json"]);
        }
        command.arg(target).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut worker = command.spawn().unwrap();
        let (lines, sender) = (BufReader::new(worker.stderr.take().unwrap()).lines(), sender.clone());
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Ok(line) = serde_json::from_str::<Value>(&line) else { continue };
                if line["event"] == "started" {
                    let at = line["time"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
                    let id = line["execution_id"].as_i64().or(line["item_id"].as_i64()).unwrap();
                    let is_task = line["execution_id"].is_i64();
                    let _ = sender.send(Began { is_task, id, at: at.timestamp_micros() as f64 / 1e6 });
                }
            }
        });
        workers.push(worker);
    }
    Workers(workers)
}

/// Waits until all workers are connected and idle.
async fn connected(admin: &Connection, count: u64) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'locktop worker %' AND state = 'idle'";
    let start = clock::monotonic();
    while admin.client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) < i64::try_from(count).unwrap() {
        assert!(start.elapsed() < Duration::from_secs(120), "not all workers have connected");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Number of statements that the workers have sent.
fn statements(log: &Path) -> f64 {
    let text = std::fs::read(log).unwrap();
    let text = String::from_utf8_lossy(&text);
    let sent = |line: &&str| line.starts_with("<locktop worker ") && line.contains(" LOG:  ");
    text.lines().filter(sent).count() as f64
}

/// Transactions of the workers' database. The session that asks is in another database.
async fn transactions(admin: &Connection) -> f64 {
    let sql = "SELECT (xact_commit + xact_rollback)::float8 FROM pg_stat_database WHERE datname = 'tasks'";
    admin.client.query_one(sql, &[]).await.unwrap().get(0)
}

struct Place {
    info: ConnInfo,
    log: std::path::PathBuf,
    began: Receiver<Began>,
}

impl Place {
    async fn measure_all(&self) {
        let session = connect(&self.info).await.unwrap();
        let due = "jsonb_build_object('seconds', 0, 'due', extract(epoch FROM at))";
        let columns = "INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at, payload)";
        let apart = APART.as_millis();

        let before = statements(&self.log);
        let planned = format!(
            "{columns} SELECT 'time ' || n, 'sleep', at, {due} FROM generate_series(1, {TASKS}) n,
             LATERAL (SELECT now() + interval '2 seconds' + n * interval '{apart} ms' AS at) t"
        );
        session.client.batch_execute(&planned).await.unwrap();
        self.report("due by time", &session, before).await;

        let insert =
            format!("{columns} SELECT 'insert ' || $n, 'sleep', at, {due} FROM clock_timestamp() at");
        self.each("due by insert", &session, &insert).await;

        let far = format!(
            "{columns} SELECT 'change ' || n, 'sleep', '2100-01-01', NULL FROM generate_series(1, {TASKS}) n"
        );
        session.client.batch_execute(&far).await.unwrap();
        let change = format!(
            "UPDATE locktop.scheduled_tasks SET next_run_at = at, payload = {due} FROM clock_timestamp() at WHERE task_name = 'change ' || $n"
        );
        self.each("due by change", &session, &change).await;

        let queue =
            "INSERT INTO locktop.task_queue (task_name, payload) VALUES ('sleep', '{\"seconds\": 0}')";
        self.each("queued", &session, queue).await;
    }

    /// Runs a statement for each task, which makes it due; `$n` in it is the number of the task.
    async fn each(&self, name: &str, session: &Connection, sql: &str) {
        tokio::time::sleep(2 * APART).await;
        let before = statements(&self.log);
        for number in 1..=TASKS {
            session.client.batch_execute(&sql.replace("$n", &number.to_string())).await.unwrap();
            tokio::time::sleep(APART).await;
        }
        self.report(name, session, before).await;
    }

    async fn report(&self, name: &str, session: &Connection, before: f64) {
        let mut began = Vec::new();
        while began.len() < TASKS {
            match self.began.try_recv() {
                Ok(start) => began.push(start),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        let sent = statements(&self.log) - before;
        let due = due(session, began[0].is_task).await;
        let mut late: Vec<f64> = began.iter().map(|start| (start.at - due[&start.id]) * 1e3).collect();
        late.sort_by(f64::total_cmp);
        println!(
            "{name:<18}median {:.1} ms, 9 of 10 {:.1} ms, longest {:.1} ms of {TASKS}; {:.1} statements for each",
            late[late.len() / 2],
            late[late.len() * 9 / 10],
            late[late.len() - 1],
            sent / TASKS as f64,
        );
    }
}

/// The due time of each execution or item.
async fn due(session: &Connection, tasks: bool) -> HashMap<i64, f64> {
    let sql = if tasks {
        "SELECT e.id, (t.payload ->> 'due')::float8 FROM locktop.task_execution_log e JOIN locktop.scheduled_tasks t ON t.id = e.task_id"
    } else {
        "SELECT id, extract(epoch FROM due_at)::float8 FROM locktop.task_queue"
    };
    let rows = session.client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}
