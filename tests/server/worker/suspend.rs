//! A process that is suspended for longer than its heartbeats allow does nothing of its work when it wakes, before the server has
//! confirmed that its lock is still held. The worker is a process of its own, this very program, and witnesses what it does in a
//! table.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use locktop::clock;
use locktop::pg::conninfo::ConnInfo;
use locktop::worker::{self, Job, Options, Report, Source, Stop, Work, WorkError};
use rustix::process::Signal;
use tokio::sync::watch;
use tokio_postgres::Client;

use super::db::{Session, installed};
use super::hand::{Held, Worker, log, task};
use super::process::{Process, target};
use super::support::{open, versions, wait_until};

/// The server of the worker.
const TARGET: &str = "LOCKTOP_TEST_TARGET";

/// Work that records every few milliseconds that it runs.
struct Witness(Arc<Client>);

impl Witness {
    async fn record(&self, what: &str) {
        let began = clock::since_boot().as_secs_f64();
        let insert = "INSERT INTO public.witness (what, began) VALUES ($1, $2)";
        self.0.execute(insert, &[&what, &began]).await.unwrap();
    }
}

impl Work for Witness {
    async fn run(&self, _job: &Job, stop: Stop) -> Result<(), WorkError> {
        loop {
            tokio::select! {
                biased;
                reason = stop.stopped() => {
                    self.record("stopped").await;
                    return Err(reason.into());
                }
                () = self.record("works") => {}
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[test]
#[ignore = "this is the worker that the others suspend"]
fn suspended() {
    let Ok(target) = std::env::var(TARGET) else { return };
    std::thread::spawn(|| {
        while std::io::stdin().read(&mut [0; 16]).is_ok_and(|read| read > 0) {}
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let info = ConnInfo::parse(&target).unwrap();
        let witness = Witness(Arc::new(open(&info).await.client));
        let report = Report::to(|event| writeln!(std::io::stderr(), "{event}").unwrap());
        let (_quit, quitting) = watch::channel(false);
        let options = Options { report, ..Worker::options(&info, "sleeper") };
        worker::run(options, witness, quitting).await.unwrap();
    });
}

/// The table with the heartbeats of a source.
fn table(source: Source) -> &'static str {
    match source {
        Source::Tasks => "task_execution_log",
        Source::Queue => "task_queue",
    }
}

/// A worker that runs a task or an item, and has been suspended for longer than two heartbeats.
async fn asleep(version: u32, source: Source) -> (Session, Process, String) {
    let table = table(source);
    let info = installed(version).await;
    let session = Session::open(&info).await;
    session
        .run(&format!(
            "CREATE TABLE public.witness (id serial, what text, began float8, at timestamptz DEFAULT clock_timestamp());
             CREATE TABLE public.beats (at timestamptz DEFAULT clock_timestamp());
             CREATE TABLE public.delay (seconds float8);
             CREATE FUNCTION public.beat() RETURNS trigger LANGUAGE plpgsql AS
               'BEGIN PERFORM pg_sleep(seconds) FROM public.delay; DELETE FROM public.delay;
                INSERT INTO public.beats DEFAULT VALUES; RETURN NULL; END';
             CREATE TRIGGER beat AFTER UPDATE OF heartbeat_at ON {table} EXECUTE FUNCTION public.beat()"
        ))
        .await;
    match source {
        Source::Tasks => {
            task(&session, "t", "x", "NULL").await;
            session.run("UPDATE scheduled_tasks SET retry_delay = '0'").await;
        }
        Source::Queue => session.run("INSERT INTO task_queue (task_name) VALUES ('t')").await,
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "worker::suspend::suspended", "--nocapture"]);
    command
        .env(TARGET, target(version, &info).await)
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null());
    let process = Process::of(command);
    wait_until("work", async || session.ask("SELECT count(*) > 5 FROM public.witness").await == "t").await;
    process.signal(Signal::STOP);
    let sql = format!("SELECT heartbeat_at < clock_timestamp() - interval '1 second' FROM {table}");
    wait_until("heartbeats to be missed", async || session.ask(&sql).await == "t").await;
    // A statement sent before it was suspended may arrive after that: it is no step of the worker after it woke.
    let since = format!("began > {}", clock::since_boot().as_secs_f64());
    // The next heartbeat is slow: work that does not wait for it would have done something. The later ones are not: a confirmation so
    // late is nearly outdated when the answer arrives.
    session.run("INSERT INTO public.delay VALUES (0.3)").await;
    (session, process, since)
}

fn both() -> impl Iterator<Item = (u32, Source)> {
    versions().into_iter().flat_map(|version| Source::ALL.map(|source| (version, source)))
}

#[tokio::test]
async fn awake_and_not_its_own_any_more_it_only_stops() {
    for (version, source) in both() {
        let (session, process, since) = asleep(version, source).await;
        session.run(&format!("UPDATE {} SET status = 'failed'", table(source))).await;
        process.signal(Signal::CONT);
        process.wait_for("a heartbeat found that this session no longer runs it").await;
        let after = format!("SELECT what FROM public.witness WHERE {since} ORDER BY id");
        wait_until("the work to be stopped", async || session.ask(&after).await.contains("stopped")).await;
        // It is still due, and the worker may have claimed it again by now.
        let steps = session.ask(&after).await;
        assert_eq!(steps.lines().next(), Some("stopped"), "{version} {source:?}: {steps}");
    }
}

#[tokio::test]
async fn awake_without_its_connection_it_only_stops_and_another_has_run_the_task() {
    for version in versions() {
        let (session, process, since) = asleep(version, Source::Tasks).await;
        let other = Held::new();
        let worker = Worker::start(Worker::options(&session.info, "other"), other.clone());
        session.run("SELECT pg_terminate_backend(holder_pid) FROM running_tasks").await;
        let recover = "SELECT outcome FROM task_execution_log e, recover_execution(e.id, 'test') WHERE e.worker_id = 'sleeper' AND e.status = 'running'";
        wait_until("the recovery", async || session.ask(recover).await == "recovered").await;
        other.began(1).await;
        process.signal(Signal::CONT);
        process.wait_for("connection lost").await;
        let after = format!("SELECT what FROM public.witness WHERE {since} ORDER BY id");
        wait_until("the work to be stopped", async || session.ask(&after).await.contains("stopped")).await;
        assert_eq!(session.ask(&after).await, "stopped", "{version}");
        other.end(Ok(()));
        wait_until("the other to finish", async || log(&session).await.ends_with("other|completed|-")).await;
        worker.quit().await;
    }
}

#[tokio::test]
async fn awake_without_its_connection_it_only_stops_and_another_has_the_item() {
    for version in versions() {
        let (session, process, since) = asleep(version, Source::Queue).await;
        let name = session.info.dbname();
        session
            .run(&format!(
                "ALTER DATABASE {name} SET locktop.orphan_grace = '0.3s'; SET locktop.orphan_grace = '0.3s'; DELETE FROM public.delay"
            ))
            .await;
        let pid = session.ask("SELECT backend_pid FROM task_queue").await;
        session.run(&format!("SELECT pg_terminate_backend({pid})")).await;
        let state = "SELECT state FROM running_queue_items";
        wait_until("its session to end", async || session.ask(state).await == "lost").await;
        let other = Held::new();
        let worker = Worker::start(Worker::options(&session.info, "other"), other.clone());
        other.began(1).await;
        process.signal(Signal::CONT);
        process.wait_for("connection lost").await;
        let after = format!("SELECT what FROM public.witness WHERE {since} ORDER BY id");
        wait_until("the work to be stopped", async || session.ask(&after).await.contains("stopped")).await;
        assert_eq!(session.ask(&after).await, "stopped", "{version}");
        other.end(Ok(()));
        let row = "SELECT status, worker_id, attempt FROM task_queue";
        wait_until("the other to finish", async || session.ask(row).await == "completed|other|2").await;
        worker.quit().await;
    }
}

#[tokio::test]
async fn a_resumed_worker_continues_once_a_heartbeat_confirms_its_lock() {
    for (version, source) in both() {
        let (session, process, since) = asleep(version, source).await;
        let beats = session.ask("SELECT count(*) FROM public.beats").await;
        process.signal(Signal::CONT);
        let after = format!("SELECT what FROM public.witness WHERE {since} ORDER BY id LIMIT 1");
        wait_until("more work", async || session.ask(&after).await == "works").await;
        let order = format!(
            "SELECT (SELECT min(at) FROM public.witness WHERE {since}) > (SELECT at FROM public.beats ORDER BY at OFFSET {beats} LIMIT 1)"
        );
        assert_eq!(
            session.ask(&order).await,
            "t",
            "{version} {source:?}: first the heartbeat, then the work"
        );
        assert!(!process.log().contains("stopped"), "{}", process.log());
    }
}
