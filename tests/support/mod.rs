//! Helpers that the tests with a live server share.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options, SUPPORTED};
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::{Client, SimpleQueryMessage, Statement};

mod servers;

pub(crate) use servers::Servers;

/// Longest wait for anything.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The servers of a program that has one suite.
static SERVERS: Servers = Servers::new();

/// A server for all tests of this program, started by the first test that needs it. It ends with the program.
/// In a program with several suites, each suite has this in `suite.rs`.
pub(crate) async fn server() -> &'static EmbeddedServer {
    SERVERS.get(None, async || start(None).await).await
}

/// The same for one of the supported major versions.
pub(crate) async fn server_of(version: u32) -> &'static EmbeddedServer {
    SERVERS.get(Some(version), async || start(Some(version)).await).await
}

/// The versions to test on: the newest and one other, a different one for each caller; all in the long suite.
#[track_caller]
pub(crate) fn versions() -> Vec<u32> {
    let all = all_versions();
    let line = usize::try_from(Location::caller().line()).unwrap();
    match &*all {
        [older @ .., newest] if !is_long() && !older.is_empty() => vec![older[line % older.len()], *newest],
        _ => all,
    }
}

/// The version for a test that runs on one version.
pub(crate) fn oldest() -> u32 {
    all_versions()[0]
}

/// All supported versions, unless `LOCKTOP_TEST_VERSIONS="15 17"` names others.
pub(crate) fn all_versions() -> Vec<u32> {
    match std::env::var("LOCKTOP_TEST_VERSIONS") {
        Ok(text) if !text.trim().is_empty() => {
            text.split_whitespace().map(|word| word.parse().unwrap()).collect()
        }
        _ => SUPPORTED.collect(),
    }
}

/// Waits for the end of all transactions that are older than the last commit of this session. Such a
/// transaction, in any database, prevents VACUUM from freezing those rows, and so from waiting for a page.
pub(crate) async fn is_oldest(client: &Client) {
    let xid = "SELECT pg_current_xact_id()::text::bigint";
    let xid: i64 = client.query_one(xid, &[]).await.unwrap().get(0);
    let sql = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint > $1";
    let is = async || client.query_one(sql, &[&xid]).await.unwrap().get(0);
    wait_until("the end of older transactions", is).await;
}

/// Enough connections for 200 sessions and everything else.
pub(crate) async fn start(version: Option<u32>) -> EmbeddedServer {
    let options = Options { version, ..Options::default() }
        .with("max_connections", 400)
        .with("max_worker_processes", 24)
        .with("max_parallel_workers", 16);
    EmbeddedServer::start(options).await.unwrap()
}

/// The connection parameters of the server's database `postgres`, as the superuser.
pub(crate) fn conninfo(server: &EmbeddedServer) -> ConnInfo {
    ConnInfo::parse(&server.conninfo()).unwrap().with_application_name("locktop")
}

/// A new database, so that the tests do not see each other's locks.
pub(crate) async fn database(server: &EmbeddedServer) -> ConnInfo {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let connection = connect(&conninfo(server)).await.unwrap();
    connection.client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    conninfo(server).with_dbname(&name)
}

/// An open connection.
pub(crate) async fn open(info: &ConnInfo) -> Connection {
    connect(info).await.unwrap()
}

/// A client that has the server run a statement, and never reads the response. `parameters` is sent in the
/// startup message after user and database: `("application_name", "deaf")`, `("replication", "database")`.
pub(crate) fn deaf_client(
    server: &EmbeddedServer,
    info: &ConnInfo,
    parameters: &[(&str, &str)],
    statement: &str,
) -> UnixStream {
    let mut files = std::fs::read_dir(server.socket_dir()).unwrap().map(|entry| entry.unwrap().path());
    let is_socket = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(".s.PGSQL.") && !name.contains("lock")
    };
    let mut client = UnixStream::connect(files.find(is_socket).unwrap()).unwrap();
    let database = info.dbname().to_owned();
    let message = |kind: &[u8], body: &str| {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [kind, &length, body.as_bytes()].concat()
    };
    // The first message has the protocol version, 3.0, instead of a kind ("Message Formats").
    let parameters =
        parameters.iter().flat_map(|(name, value)| [*name, "\0", *value, "\0"]).collect::<String>();
    let startup = format!("\0\x03\0\0user\0postgres\0database\0{database}\0{parameters}\0");
    client.write_all(&message(b"", &startup)).unwrap();
    client.write_all(&message(b"Q", &format!("{statement}\0"))).unwrap();
    client
}

/// The process id of a connection's backend. Uses no prepared statement: one is closed some time after it is
/// dropped, and that message changes the `state_change` of an idle session.
pub(crate) async fn pid(client: &Client) -> i32 {
    let messages = client.simple_query("SELECT pg_backend_pid()").await.unwrap();
    let answer = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    answer.unwrap().parse().unwrap()
}

/// Waits until a condition is true; otherwise fails with its description.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = clock::monotonic();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process exists.
pub(crate) fn exists(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

/// Whether nothing is left of a server: neither its directory, nor its process, nor one that has the directory in its
/// command line (if the system shows those).
pub(crate) fn is_gone(directory: &Path, pid: i32) -> bool {
    !directory.exists() && !exists(pid) && !is_mentioned(directory)
}

pub(crate) fn is_mentioned(directory: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let name = directory.file_name().unwrap().to_str().unwrap();
    processes.flatten().any(|process| {
        std::fs::read(process.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(name))
    })
}

/// The same for an async condition.
pub(crate) async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = clock::monotonic();
    while !condition().await {
        assert!(start.elapsed() < TIMEOUT, "timed out waiting for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The activity of each session of a server, as one text. Prepare it before a catalog is locked.
pub(crate) const SESSIONS: &str =
    "SELECT coalesce(string_agg(format('%s %s, %s, %s %s/%s for %s: %s', pid, application_name,
        backend_type, state, wait_event_type, wait_event, clock_timestamp() - state_change, left(query, 150)),
        E'\\n' ORDER BY pid), 'none')
    FROM pg_stat_get_activity(NULL) WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";

/// Like [`wait_until`]; a failure shows the activity of the sessions. `sessions` is [`SESSIONS`] prepared on
/// the same client.
pub(crate) async fn wait_until_seen(
    what: &str,
    (client, sessions): (&Client, &Statement),
    mut condition: impl AsyncFnMut() -> bool,
) {
    let start = clock::monotonic();
    while !condition().await {
        if start.elapsed() >= TIMEOUT {
            let seen: String = client.query_one(sessions, &[]).await.unwrap().get(0);
            panic!("timed out waiting for {what}; the sessions:\n{seen}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether the long suite was requested (`tests/run.sh --long`).
pub(crate) fn is_long() -> bool {
    std::env::var_os("LOCKTOP_LONG").is_some_and(|value| !value.is_empty() && value != "0")
}
