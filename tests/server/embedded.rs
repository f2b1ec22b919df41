//! The embedded server: it starts, with every supported version, and however its owner ends, nothing is left of it.

#[path = "../support/suite.rs"]
mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use locktop::demo::postgres::{Binaries, EmbeddedServer, Options, SUPPORTED};
use rustix::process::{Pid, Signal, kill_process};
use support::{conninfo, is_gone, is_mentioned, open, versions, wait_for, wait_until};

/// Names the way in which `owner` ends.
const WAY: &str = "LOCKTOP_TEST_WAY";
/// The file in which `owner` records the server that it started.
const REPORT: &str = "LOCKTOP_TEST_REPORT";

/// Not a test of its own: the other tests run it as a process, which owns a server and ends in some way.
#[tokio::test]
#[ignore = "run by the other tests"]
async fn owner() {
    let Ok(way) = std::env::var(WAY) else { return };
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    // A session that does something while its server ends.
    let session = open(&conninfo(&server)).await;
    let _busy = tokio::spawn(async move { session.client.batch_execute("SELECT pg_sleep(3600)").await });
    let report = PathBuf::from(std::env::var_os(REPORT).unwrap());
    let (directory, pid) = (server.socket_dir().to_owned(), server.pid().unwrap());
    fs::write(report.with_extension("new"), format!("{pid} {}", directory.display())).unwrap();
    fs::rename(report.with_extension("new"), report).unwrap();
    match way.as_str() {
        "stop" => {
            server.stop().await.unwrap();
            assert!(is_gone(&directory, pid), "stop returned too early");
        }
        "drop" => drop(server),
        "exit" => std::process::exit(0),
        "abort" => std::process::abort(),
        "panic" => panic!("as the test wants it"),
        _ => std::future::pending().await,
    }
}

/// Not a test either: `tests/run.sh` asks it which versions there are. It fetches those that are missing.
#[test]
#[ignore = "run by tests/run.sh"]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the script reads it")]
fn available() {
    for version in SUPPORTED {
        let notice = |text: &str| eprintln!("{text}");
        match Binaries::find(&Options { version: Some(version), notice, ..Options::default() }) {
            Ok(found) => println!("\navailable {}", found.major),
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// A process that owns a server.
struct Owner {
    process: Child,
    directory: PathBuf,
    pid: i32,
    _room: tempfile::TempDir,
}

impl Owner {
    fn command(program: &Path, way: &str, room: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(["--exact", "embedded::owner", "--ignored", "--nocapture"]);
        command.env(WAY, way).env(REPORT, room.join("report"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Returns once the server runs.
    fn start(way: &str) -> Self {
        let room = tempfile::tempdir().unwrap();
        let command = Self::command(&std::env::current_exe().unwrap(), way, room.path());
        Self::started(command, room)
    }

    fn started(mut command: Command, room: tempfile::TempDir) -> Self {
        let process = command.spawn().unwrap();
        let report = room.path().join("report");
        wait_for("the server's owner to start it", || report.exists());
        let text = fs::read_to_string(report).unwrap();
        let (pid, directory) = text.split_once(' ').unwrap();
        Self { process, directory: directory.into(), pid: pid.parse().unwrap(), _room: room }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits until both are removed.
    fn leaves_nothing(mut self) {
        wait_for("the owner to end (a signal that this process ignores is ignored by the owner too)", || {
            self.process.try_wait().unwrap().is_some()
        });
        wait_for("the server and its directory to be removed", || is_gone(&self.directory, self.pid));
    }
}

#[test]
fn nothing_is_left_when_the_owner_ends_by_itself() {
    for way in ["stop", "drop", "exit", "abort", "panic"] {
        Owner::start(way).leaves_nothing();
    }
}

/// Whether this process ignores a signal, if the system shows that.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    u64::from_str_radix(ignored.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn nothing_is_left_when_the_owner_is_signalled() {
    let signals = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL];
    // The parent of this process may ignore one (`nohup`), and its children do so too.
    for signal in signals.into_iter().filter(|signal| !is_ignored(*signal)) {
        let owner = Owner::start("wait");
        assert!(!is_gone(&owner.directory, owner.pid));
        owner.signal(signal);
        owner.leaves_nothing();
    }
}

#[test]
fn nothing_is_left_when_the_owner_is_killed_while_the_server_starts() {
    let room = tempfile::tempdir().unwrap();
    for pause in [5, 20, 40, 60, 80, 200, 400] {
        let temporary = room.path().join(format!("killed-after-{pause}"));
        open_directory(&temporary);
        let mut command = Owner::command(&std::env::current_exe().unwrap(), "wait", &temporary);
        let mut process = command.env("TMPDIR", &temporary).spawn().unwrap();
        // Not a wait for anything: the moment is meant to be an arbitrary one.
        std::thread::sleep(std::time::Duration::from_millis(pause));
        process.kill().unwrap();
        process.wait().unwrap();
        wait_for("the server and its directory to be removed", || {
            let empty = fs::read_dir(&temporary).unwrap().flatten().all(|entry| !entry.path().is_dir());
            empty && !is_mentioned(&temporary)
        });
    }
}

#[test]
fn signals_to_the_terminals_process_group_do_not_reach_the_server() {
    let room = tempfile::tempdir().unwrap();
    let mut command = Owner::command(&std::env::current_exe().unwrap(), "wait", room.path());
    command.process_group(0);
    let owner = Owner::started(command, room);
    assert_ne!(
        rustix::process::getpgid(Pid::from_raw(owner.pid)).unwrap(),
        rustix::process::getpgid(Some(Pid::from_child(&owner.process))).unwrap()
    );
    owner.signal(Signal::KILL);
    owner.leaves_nothing();
}

/// As root the suite itself shows that root can start a server; this shows that others can. (As another user the
/// suite shows that.)
#[test]
fn an_ordinary_user_can_start_one() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let nobody = 65_534;
    let room = tempfile::tempdir().unwrap();
    fs::set_permissions(room.path(), Permissions::from_mode(0o777)).unwrap();
    let program = room.path().join("suite");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let binaries = Binaries::find(&Options::default()).unwrap();
    let mut command = Owner::command(&program, "wait", room.path());
    command.uid(nobody).gid(nobody).current_dir("/");
    command.env("HOME", "/nonexistent").env("LOCKTOP_PG_BIN", binaries.bin);
    command.env("XDG_CACHE_HOME", room.path().join("cache"));
    let owner = Owner::started(command, room);
    assert_eq!(fs::metadata(&owner.directory).unwrap().uid(), nobody);
    owner.signal(Signal::TERM);
    owner.leaves_nothing();
}

#[test]
fn two_processes_can_make_the_template_at_once() {
    let cache = tempfile::tempdir().unwrap();
    fs::set_permissions(cache.path(), Permissions::from_mode(0o755)).unwrap();
    let binaries = Binaries::find(&Options::default()).unwrap();
    let owners: Vec<_> = std::thread::scope(|scope| {
        let start = || {
            let room = tempfile::tempdir().unwrap();
            let mut command = Owner::command(&std::env::current_exe().unwrap(), "wait", room.path());
            command.env("XDG_CACHE_HOME", cache.path()).env("LOCKTOP_PG_BIN", &binaries.bin);
            Owner::started(command, room)
        };
        let threads = [scope.spawn(start), scope.spawn(start)];
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let templates = fs::read_dir(cache.path().join("locktop/template")).unwrap().count();
    assert_eq!(templates, 1);
    for owner in owners {
        owner.signal(Signal::KILL);
        owner.leaves_nothing();
    }
}

/// The output of `available` about each version on a machine with only `npm` on its search path, or not even that.
fn output_without_tools(npm: Option<&str>) -> String {
    let room = tempfile::tempdir().unwrap();
    fs::set_permissions(room.path(), Permissions::from_mode(0o755)).unwrap();
    if let Some(script) = npm {
        let npm = room.path().join("npm");
        fs::write(&npm, script).unwrap();
        fs::set_permissions(&npm, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "embedded::available", "--ignored", "--nocapture"]);
    command.env("PATH", room.path()).env("XDG_CACHE_HOME", room.path().join("cache"));
    command.env_remove("LOCKTOP_PG_BIN").env_remove("LOCKTOP_TEST_PG");
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[test]
fn without_postgresql_and_npm_the_remedy_is_named() {
    let output = output_without_tools(None);
    for version in SUPPORTED {
        let found = output.contains(&format!("available {version}"));
        let missing = output.lines().find(|line| line.contains(&format!("version {version})")));
        let helps = |line: &str| {
            line.contains("no npm") && line.contains("install") && line.contains("LOCKTOP_PG_BIN")
        };
        assert!(found || missing.is_some_and(helps), "{version}: {output}");
    }
}

#[test]
fn an_npm_that_fails_is_quoted() {
    let output = output_without_tools(Some("#!/bin/sh\necho 'the registry is down' >&2\nexit 1\n"));
    for version in SUPPORTED {
        let found = output.contains(&format!("available {version}"));
        let package = format!("@{version}.");
        let quoted =
            output.lines().any(|line| line.contains(&package) && line.contains("the registry is down"));
        assert!(found || quoted, "{version}: {output}");
    }
}

/// Gives all users access, since the server may run as another user.
fn open_directory(path: &Path) {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o1777)).unwrap();
    fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn every_supported_version_starts() {
    for version in versions() {
        let server = support::server_of(version).await;
        assert_eq!(server.version(), version);
        let session = open(&conninfo(server)).await;
        let row =
            session.client.query_one("SELECT current_setting('server_version_num')", &[]).await.unwrap();
        let number: &str = row.get(0);
        assert_eq!(number.parse::<u32>().unwrap() / 10_000, version);
    }
}

#[tokio::test]
async fn the_server_is_private() {
    let server = EmbeddedServer::start(Options::default().with("max_connections", 17)).await.unwrap();
    let mode = fs::metadata(server.socket_dir()).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o700);
    let session = open(&conninfo(&server)).await;
    for (name, value) in [("listen_addresses", ""), ("max_connections", "17")] {
        let row = session.client.query_one("SELECT current_setting($1)", &[&name]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), value, "{name}");
    }
    let row = session.client.query_one("SELECT count(*) FROM pg_prepared_xacts", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_killed_server_restarts_on_the_same_socket() {
    let mut server = EmbeddedServer::start(Options::default()).await.unwrap();
    let info = conninfo(&server);
    let session = open(&info).await;
    session.client.batch_execute("CREATE TABLE kept (id int)").await.unwrap();
    let first = server.pid().unwrap();
    server.kill_hard().await.unwrap();
    assert_eq!(server.pid(), None);
    // A session may answer once more before it notices that the first process has ended.
    wait_until("the session ends", async || session.client.batch_execute("SELECT 1").await.is_err()).await;
    assert!(locktop::pg::connect::connect(&info).await.is_err());
    server.restart().await.unwrap();
    assert_ne!(server.pid().unwrap(), first);
    open(&info).await.client.batch_execute("SELECT 1").await.unwrap();
    let second = server.pid().unwrap();
    server.restart().await.unwrap();
    assert_ne!(server.pid().unwrap(), second);
    open(&info).await.client.batch_execute("SELECT * FROM kept").await.unwrap();
    let (directory, pid) = (server.socket_dir().to_owned(), server.pid().unwrap());
    server.stop().await.unwrap();
    assert!(is_gone(&directory, pid));
}

#[tokio::test]
async fn the_reason_of_a_failed_start_is_reported() {
    let error =
        EmbeddedServer::start(Options::default().with("no_such_setting", 1)).await.unwrap_err().to_string();
    assert!(error.contains("did not start") && error.contains("no_such_setting"), "{error}");
}

#[tokio::test]
async fn an_unusable_folder_or_version_is_named_in_the_error() {
    let empty = tempfile::tempdir().unwrap();
    let options = Options { bin: Some(empty.path().to_owned()), ..Options::default() };
    let error = EmbeddedServer::start(options).await.unwrap_err().to_string();
    assert!(error.contains(empty.path().to_str().unwrap()) && error.contains("it lacks"), "{error}");
    let options = Options { version: Some(9), ..Options::default() };
    let error = EmbeddedServer::start(options).await.unwrap_err().to_string();
    assert!(error.contains("PostgreSQL 9 is not supported: use one of 14 to 18"), "{error}");
}

/// A cache in a user's home, a directory of the search path, and one that is named: as root nothing of it is run, neither as root nor
/// as the server's user.
#[test]
fn as_root_the_programs_of_a_user_are_not_run() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    fs::set_permissions(room.path(), Permissions::from_mode(0o755)).unwrap();
    let (home, ran) = (room.path().join("home"), room.path().join("ran"));
    let bin = home.join(".cache/locktop/postgres/17/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(&ran, "").unwrap();
    fs::set_permissions(&ran, Permissions::from_mode(0o666)).unwrap();
    let script = format!("#!/bin/sh\necho $0 >> {}\necho 'postgres (PostgreSQL) 17.99'\n", ran.display());
    for program in ["postgres", "initdb", "npm", "pg_config", "tar"] {
        fs::write(bin.join(program), &script).unwrap();
        fs::set_permissions(bin.join(program), Permissions::from_mode(0o755)).unwrap();
    }
    // One directory is enough: its files can be replaced.
    std::os::unix::fs::chown(&home, Some(65_534), Some(65_534)).unwrap();
    let (cache, versions) = (home.join(".cache"), home.join(".cache/locktop/postgres"));
    for (name, value) in [
        ("HOME", &home),
        ("XDG_CACHE_HOME", &cache),
        ("LOCKTOP_PG_BIN", &bin),
        ("LOCKTOP_TEST_PG", &versions),
        ("TMPDIR", &home),
    ] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "embedded::available", "--ignored", "--nocapture"]).env("PATH", &bin);
        for other in ["XDG_CACHE_HOME", "LOCKTOP_PG_BIN", "LOCKTOP_TEST_PG", "TMPDIR"] {
            command.env_remove(other);
        }
        let output =
            command.env("HOME", "/nonexistent").env(name, value).stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(fs::read_to_string(&ran).unwrap(), "", "{name}: {errors}");
        if name == "LOCKTOP_PG_BIN" {
            let why = format!("{} belongs to user 65534, and root runs no file", home.display());
            assert!(errors.contains(&why), "{errors}");
        }
    }
}
