//! What passes by itself is waited for, and said: no connection left, and a server that is starting up.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;

use super::binary::{finish, locktop};
use super::support::{conninfo, open, server};
use super::terminal::Terminal;

/// Starts a snapshot, waits for its first word, does something about it, and returns all it said on standard error.
async fn after_the_first_word(target: String, act: impl FnOnce() + Send + 'static) -> (String, String) {
    let work = move || {
        let mut child = locktop(&["-w", "snapshot", "--format", "json", &target]).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut err = String::new();
        said.read_line(&mut err).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "it goes on: {err}");
        act();
        let left = finish(child, "the snapshot");
        said.read_to_string(&mut err).unwrap();
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
        assert!(taken.len() <= 6, "there is always one left");
    }
    let (out, err) = after_the_first_word(target, move || drop(taken)).await;
    is_a_snapshot(&out);
    let socket = server.socket_dir().join(".s.PGSQL.5432");
    assert!(err.starts_with(&format!("locktop: {} has no free connection: ", socket.display())), "{err}");
    assert!(err.ends_with("; waiting\n") && err.lines().count() == 1, "it is said once: {err}");
}

const STARTING: &str = "the database system is starting up";

/// A socket on which a server says that it is starting up, for as long as nobody puts another in its place.
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

/// The server is up: its socket takes the place of the other.
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
    let (out, err) = after_the_first_word(target, move || started(&path, &real)).await;
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
        let said = terminal.until("waiting").to_owned();
        assert!(!said.contains('\u{1b}') && said.contains(STARTING), "{said:?}");
        started(&path, &real);
        terminal.until("\u{1b}[?1049h");
        terminal.until("LIVE");
        terminal.press("q");
        let (status, written) = terminal.end();
        assert_eq!(status, 0, "{written:?}");
        assert!(written.contains("\u{1b}[?1049l"), "the screen is given back: {written:?}");
    };
    tokio::task::spawn_blocking(work).await.unwrap();
}
