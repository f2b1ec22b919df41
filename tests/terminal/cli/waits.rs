//! The program waits for the end of a temporary condition, and reports it: no free connection, and a server
//! that is starting up.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;

use super::binary::{finish, locktop};
use super::support::{conninfo, open, server};
use super::terminal::Terminal;

/// Starts a snapshot, waits for its first line on standard error, calls `act`, and returns all output.
async fn after_the_first_line(target: String, act: impl FnOnce() + Send + 'static) -> (String, String) {
    let work = move || {
        let mut child = locktop(&["-w", "snapshot", "--format", "json", &target]).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut err = String::new();
        stderr.read_line(&mut err).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "still waiting: {err}");
        act();
        let left = finish(child, "the snapshot");
        stderr.read_to_string(&mut err).unwrap();
        assert_eq!(left.status, Some(0), "{err}");
        (left.out, err)
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn is_a_snapshot(text: &str) {
    let document: super::document::Document = serde_json::from_str(text).unwrap();
    document.assert_whole();
}

#[tokio::test]
async fn no_connection_left() {
    let options = Options::default()
        .with("max_connections", 6)
        .with("superuser_reserved_connections", 2)
        .with("max_wal_senders", 0);
    let server = EmbeddedServer::start(options).await.unwrap();
    open(&conninfo(&server)).await.client.batch_execute("CREATE ROLE visitor LOGIN").await.unwrap();
    let target = server.conninfo().replace("user=postgres", "user=visitor");
    let visitor = ConnInfo::parse(&target).unwrap();
    let mut taken = Vec::new();
    while let Ok(connection) = connect(&visitor).await {
        taken.push(connection);
        assert!(taken.len() <= 6, "a connection is always free");
    }
    let (out, err) = after_the_first_line(target, move || drop(taken)).await;
    is_a_snapshot(&out);
    let socket = server.socket_dir().join(".s.PGSQL.5432");
    assert!(err.starts_with(&format!("locktop: {} has no free connection: ", socket.display())), "{err}");
    assert!(err.ends_with("; waiting\n") && err.lines().count() == 1, "reported once: {err}");
}

const STARTING: &str = "the database system is starting up";

/// A socket on which a server reports that it is starting up, until another socket replaces it.
fn starting(directory: &Path) -> PathBuf {
    let path = directory.join(".s.PGSQL.5432");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 4];
            if stream.read_exact(&mut length).is_err() {
                continue;
            }
            let rest = usize::try_from(u32::from_be_bytes(length)).unwrap() - 4;
            let _ = stream.read_exact(&mut vec![0; rest]);
            let fields = format!("SFATAL\0VFATAL\0C57P03\0M{STARTING}\0\0");
            let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
            let _ = stream.write_all(&[b"E", &length[..], fields.as_bytes()].concat());
        }
    });
    path
}

/// The server has started: its socket replaces the other.
fn started(path: &Path, real: &Path) {
    let new = path.with_extension("new");
    std::os::unix::fs::symlink(real, &new).unwrap();
    std::fs::rename(&new, path).unwrap();
}

#[tokio::test]
async fn a_server_that_is_starting_up() {
    let real = server().await.socket_dir().join(".s.PGSQL.5432");
    let directory = tempfile::tempdir().unwrap();
    let path = starting(directory.path());
    let target = format!("host={} user=postgres dbname=postgres", directory.path().display());
    let socket = path.display().to_string();
    let (out, err) = after_the_first_line(target, move || started(&path, &real)).await;
    is_a_snapshot(&out);
    assert_eq!(err, format!("locktop: {socket} does not accept connections now: {STARTING}; waiting\n"));
}

#[tokio::test]
async fn the_dashboard_waits_before_it_takes_the_screen() {
    let real = server().await.socket_dir().join(".s.PGSQL.5432");
    let directory = tempfile::tempdir().unwrap();
    let path = starting(directory.path());
    let target = format!("host={} user=postgres dbname=postgres", directory.path().display());
    let work = move || {
        let mut terminal = Terminal::start(&["-w", &target]);
        let output = terminal.until("waiting").to_owned();
        assert!(!output.contains('\u{1b}') && output.contains(STARTING), "{output:?}");
        started(&path, &real);
        terminal.until("\u{1b}[?1049h");
        terminal.until("LIVE");
        terminal.press("q");
        let (status, written) = terminal.end();
        assert_eq!(status, 0, "{written:?}");
        assert!(written.contains("\u{1b}[?1049l"), "the screen is restored: {written:?}");
    };
    tokio::task::spawn_blocking(work).await.unwrap();
}
