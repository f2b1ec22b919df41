//! Real systems with real workers, of which some are killed and some only stopped: what is told of their jobs, before the systems' own limits
//! and after them, and whether what `y` copies does what it should. Of a worker that is stopped nobody may say that it is gone. They come from npm,
//! `PyPI` and Debian, by `tests/systems/install.sh`, and take a minute: only where `LOCKTOP_LONG` is set.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use locktop::model::Timestamp;
use locktop::model::adapter::{Adapter, JobRow, Part, State};
use locktop::model::view::View;
use rustix::process::{Pid, Signal, kill_process};

use super::stage::Stage;
use super::{all, server, support};

/// Where they are installed, once for all.
const DIRECTORY: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/job-systems");
/// Where the programs of their workers are.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/systems");

/// The program that runs the workers of each system, or why there is none.
async fn installed() -> &'static BTreeMap<String, Result<String, String>> {
    static INSTALLED: tokio::sync::OnceCell<BTreeMap<String, Result<String, String>>> =
        tokio::sync::OnceCell::const_new();
    INSTALLED.get_or_init(async || tokio::task::spawn_blocking(install).await.unwrap()).await
}

fn install() -> BTreeMap<String, Result<String, String>> {
    let output = Command::new(Path::new(PROGRAMS).join("install.sh")).arg(DIRECTORY).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let each = said.lines().filter_map(|line| {
        let (name, rest) = line.split_once(' ')?;
        let answer =
            rest.strip_prefix("missing ").map_or_else(|| Ok(rest.to_owned()), |why| Err(why.to_owned()));
        Some((name.to_owned(), answer))
    });
    each.collect()
}

/// A system with a database of its own.
struct System {
    name: &'static str,
    program: String,
    url: String,
    stage: Stage,
}

impl System {
    /// None where long tests are not wanted.
    async fn new(name: &'static str) -> Option<Self> {
        if !support::is_long() {
            println!("{name}: only where LOCKTOP_LONG is set");
            return None;
        }
        let program = match installed().await.get(name) {
            Some(Ok(program)) => program.clone(),
            other => panic!("{name} could not be installed: {other:?}"),
        };
        let stage = Stage::on(server().await, "").await;
        let row = stage
            .client()
            .await
            .query_one("SELECT current_database()::text, current_setting('port')", &[])
            .await;
        let (database, port): (String, String) = row.map(|row| (row.get(0), row.get(1))).unwrap();
        let directory = server().await.socket_dir().display();
        let url = if name == "quartz" {
            let port = port_before(server().await.socket_dir().join(format!(".s.PGSQL.{port}")));
            format!("jdbc:postgresql://127.0.0.1:{port}/{database}?sslmode=disable")
        } else {
            format!("postgresql://postgres@/{database}?host={directory}&port={port}&sslmode=disable")
        };
        Some(Self { name, program, url, stage })
    }

    fn command(&self, file: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(Path::new(PROGRAMS).join(file)).arg(&self.url).args(arguments);
        command.env("LOCKTOP_TEST_SYSTEMS", DIRECTORY).stdin(Stdio::null());
        command
    }

    /// Runs something to its end.
    fn run(&self, file: &str, arguments: &[&str]) {
        let output = self.command(file, arguments).output().unwrap();
        assert!(output.status.success(), "{}: {arguments:?}: {output:?}", self.name);
    }

    /// A worker, as soon as it works.
    async fn work(&self, file: &str, arguments: &[&str]) -> Worker {
        let worker = self.start(file, arguments);
        support::wait_until(&format!("a worker of {} to work: {:?}", self.name, worker.said), async || {
            worker.said.lock().unwrap().iter().any(|line| line == "working")
        })
        .await;
        worker
    }

    fn start(&self, file: &str, arguments: &[&str]) -> Worker {
        let mut child =
            self.command(file, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let listen = |from: Box<dyn std::io::Read + Send>| {
            let said = Arc::clone(&said);
            std::thread::spawn(move || {
                for line in BufReader::new(from).lines().map_while(Result::ok) {
                    said.lock().unwrap().push(line);
                }
            });
        };
        listen(Box::new(child.stdout.take().unwrap()));
        listen(Box::new(child.stderr.take().unwrap()));
        Worker { child, said }
    }

    /// Begins to look, with the adapters as they come but for a setting that was made short.
    async fn watched(&mut self, setting: Option<(&str, f64)>) {
        let mut adapters: Vec<Adapter> = all().into_iter().map(|adapter| Adapter::clone(&adapter)).collect();
        let adapter = adapters.iter_mut().find(|adapter| *adapter.name == *self.name).unwrap();
        if let Some((name, seconds)) = setting {
            let setting = adapter.settings.iter_mut().find(|setting| *setting.name == *name).unwrap();
            (setting.value, setting.seconds) = (format!("{seconds}s").into(), Some(seconds));
        }
        self.stage.adapters(adapters.into_iter().map(Arc::new).collect()).await;
    }

    /// The same once more, after what runs was read twice anew: what was under way at the first may be from before.
    async fn still_told(&mut self, job: &str, state: &str, proof: &str) -> JobRow {
        for _ in 0..2 {
            let before = read_at(self.stage.view());
            self.stage.look_until("what runs to be read again", |view| read_at(view) > before).await;
        }
        self.told(job, state, proof).await
    }

    /// Looks until a job is told so. At no look is anything an orphan.
    async fn told(&mut self, job: &str, state: &str, proof: &str) -> JobRow {
        let what = format!("{job} of {} to be {state} by {proof}", self.name);
        let of =
            |view: &View| view.adapters.rows.iter().find(|row| row.job.name.as_deref() == Some(job)).cloned();
        self.stage
            .look_until(&what, |view| {
                assert_eq!(view.adapters.count(State::Orphan), 0, "{what}: {:?}", view.adapters.rows);
                of(view).is_some_and(|row| {
                    row.judged.state.as_str() == state && row.judged.proof.as_str() == proof
                })
            })
            .await;
        of(self.stage.view()).unwrap()
    }
}

/// When the jobs that run were read.
fn read_at(view: &View) -> Option<Timestamp> {
    view.snapshot.as_ref()?.adapters.first()?.jobs.get(&Part::Running)?.section.taken_at
}

/// A port of this machine behind which a socket is: the driver of Java knows no sockets of files.
fn port_before(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = UnixStream::connect(&socket).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            let (mut from, mut to) = (server, client);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

/// A process that works.
struct Worker {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn procrastinate() {
    const FILE: &str = "procrastinate_work.py";
    let Some(mut system) = System::new("procrastinate").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(Some(("stalled_after", 5.0))).await;
    system.told("Hang", "running", "heartbeat").await;
    system.told("Wait", "blocked", "none").await;
    first.kill();
    let lost = system.told("Hang", "lost", "heartbeat").await;
    assert!(lost.comes_back.unwrap().starts_with("never by itself"));
    system.told("Wait", "blocked", "none").await;
    // Another one that starts takes the row of the first away, and leaves its job as it is.
    let second = system.start(FILE, &["work"]);
    let lost = system.told("Hang", "lost", "absent").await;
    system.run(FILE, &["type", &lost.advice.unwrap()]);
    system.told("Hang", "running", "heartbeat").await;
    second.signal(Signal::STOP);
    system.told("Hang", "lost", "heartbeat").await;
    second.signal(Signal::CONT);
    let row = system.told("Hang", "running", "heartbeat").await;
    assert!(row.job.started_at.is_some() && row.worker.is_some(), "{row:?}");
}

#[tokio::test]
async fn pg_boss() {
    const FILE: &str = "pg_boss.mjs";
    let Some(mut system) = System::new("pg_boss").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    first.kill();
    system.watched(None).await;
    // Ten seconds are its time, and until they are over nobody knows.
    system.told("mail", "running", "lease").await;
    let lost = system.told("mail", "lost", "lease").await;
    assert!(lost.comes_back.unwrap().starts_with("as failed, when the maintenance"));
    assert_eq!((lost.job.attempt, lost.job.max_attempts), (Some(1), Some(2)));
    let supervisor = system.start(FILE, &["supervise"]);
    system.told("mail", "retry", "none").await;
    supervisor.kill();
    let second = system.work(FILE, &["work"]).await;
    second.signal(Signal::STOP);
    let lost = system.told("mail", "lost", "lease").await;
    assert_eq!(lost.job.attempt, Some(2));
    system.run(FILE, &["type", &lost.advice.unwrap()]);
    system.told("mail", "failed", "none").await;
}

#[tokio::test]
async fn graphile_worker() {
    const FILE: &str = "graphile_worker.mjs";
    let Some(mut system) = System::new("graphile_worker").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    system.watched(None).await;
    system.told("Hang", "unknown", "none").await;
    first.kill();
    let session = system.stage.client().await;
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name NOT LIKE 'locktop%' AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'";
    support::wait_until("the sessions of the worker to end", async || {
        session.query_one(sessions, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    // Its name is nowhere else: that it is gone nobody can tell.
    let row = system.still_told("Hang", "unknown", "none").await;
    let wait = system.told("Wait", "blocked", "none").await;
    let name = row.worker.clone().unwrap();
    assert_eq!(wait.job.blocked_by.as_deref(), Some(&*format!("its queue, which {name} has locked")));
    let leases = system.stage.json()["adapters"][0]["leases"].clone();
    assert_eq!((&leases[0]["id"], &leases[0]["owner"]), (&"queue serial".into(), &(*name).into()));
    // Its four hours are fixed.
    session
        .batch_execute(
            "UPDATE graphile_worker._private_jobs SET locked_at = locked_at - interval '5 h' WHERE locked_at IS NOT NULL;
             UPDATE graphile_worker._private_job_queues SET locked_at = locked_at - interval '5 h' WHERE locked_at IS NOT NULL",
        )
        .await
        .unwrap();
    let late = system.told("Hang", "late", "age").await;
    assert!(late.comes_back.unwrap().starts_with("by itself, 4 h after"));
    session.batch_execute(&late.advice.unwrap()).await.unwrap();
    system.told("Hang", "retry", "none").await;
    system.told("Wait", "due", "none").await;
    let second = system.work(FILE, &["work"]).await;
    second.signal(Signal::STOP);
    system.still_told("Hang", "unknown", "none").await;
}

#[tokio::test]
async fn dbos() {
    const FILE: &str = "dbos_work.py";
    let Some(mut system) = System::new("dbos").await else { return };
    let first = system.work(FILE, &["work"]).await;
    system.watched(None).await;
    let row = system.told("Hang", "unknown", "none").await;
    assert_eq!((row.worker.as_deref(), row.job.attempt), (Some("local"), Some(1)));
    first.kill();
    system.still_told("Hang", "unknown", "none").await;
    // One of the same name and version takes it over as it starts.
    let second = system.work(FILE, &["work"]).await;
    system
        .stage
        .look_until("the second attempt", |view| {
            view.adapters.rows.iter().any(|row| row.job.attempt == Some(2))
        })
        .await;
    second.signal(Signal::STOP);
    system.still_told("Hang", "unknown", "none").await;
}

#[tokio::test]
async fn delayed_job() {
    const FILE: &str = "delayed_job.rb";
    let Some(mut system) = System::new("delayed_job").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    first.kill();
    system.watched(Some(("max_run_time", 10.0))).await;
    system.told("Hang", "running", "lease").await;
    let lost = system.told("Hang", "lost", "lease").await;
    assert!(lost.comes_back.unwrap().starts_with("when a worker next looks"));
    system.run(FILE, &["type", &lost.advice.unwrap()]);
    system.told("Hang", "due", "none").await;
    let second = system.work(FILE, &["work"]).await;
    second.signal(Signal::STOP);
    system.told("Hang", "lost", "lease").await;
    // A third one takes it by itself.
    system.work(FILE, &["work"]).await;
}

#[tokio::test]
async fn quartz() {
    const FILE: &str = "QuartzWork.java";
    const JOB: &str = "DEFAULT.Hang";
    let Some(mut system) = System::new("quartz").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["one"]).await;
    system.watched(None).await;
    let row = system.told(JOB, "running", "heartbeat").await;
    assert_eq!((row.worker.as_deref(), row.job.note.as_deref()), (Some("one"), Some("requests recovery")));
    first.kill();
    // It checked in each second, and is gone 7.5 s after the one that it missed.
    system.told(JOB, "lost", "heartbeat").await;
    let second = system.work(FILE, &["two"]).await;
    let row = system.told(JOB, "running", "heartbeat").await;
    assert_eq!(row.worker.as_deref(), Some("two"), "it is run again, as it asked for");
    second.signal(Signal::STOP);
    system.told(JOB, "lost", "heartbeat").await;
    second.signal(Signal::CONT);
    system.told(JOB, "running", "heartbeat").await;
}

#[tokio::test]
async fn absurd() {
    const FILE: &str = "absurd_work.py";
    let Some(mut system) = System::new("absurd").await else { return };
    system.run(FILE, &["setup"]);
    let first = system.work(FILE, &["work"]).await;
    first.kill();
    system.watched(None).await;
    system.told("Hang", "running", "lease").await;
    let lost = system.told("Hang", "lost", "lease").await;
    assert!(lost.comes_back.unwrap().starts_with("as failed, when any worker of its queue"));
    system.stage.client().await.batch_execute(&lost.advice.unwrap()).await.unwrap();
    let again = system.told("Hang", "retry", "none").await;
    assert_eq!(again.job.attempt, Some(2));
    let second = system.work(FILE, &["work"]).await;
    second.signal(Signal::STOP);
    system.told("Hang", "lost", "lease").await;
    // A third one fails that run by itself, and takes the next.
    let _third = system.work(FILE, &["work"]).await;
    system
        .stage
        .look_until("the third attempt", |view| {
            view.adapters.rows.iter().any(|row| row.job.attempt == Some(3))
        })
        .await;
}
