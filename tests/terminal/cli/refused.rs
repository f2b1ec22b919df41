//! Servers that cannot be reached: one clear line on standard error, nothing on standard output, exit status 1, and not a
//! single escape sequence for the terminal.

use locktop::demo::postgres::{EmbeddedServer, Options};

use super::binary::{locktop, run_beside};
use super::support::{conninfo, open, server};
use super::terminal::Terminal;

/// A server that requires a password from one role, and rejects all other connections in `pg_hba.conf`.
async fn strict_server() -> EmbeddedServer {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let admin = open(&conninfo(&server)).await.client;
    for statement in [
        "CREATE ROLE alice LOGIN PASSWORD 'right'",
        "CREATE ROLE bob LOGIN",
        "CREATE ROLE asleep",
        "CREATE DATABASE closed",
        "REVOKE CONNECT ON DATABASE closed FROM PUBLIC",
    ] {
        admin.batch_execute(statement).await.unwrap();
    }
    let rules = "local all alice scram-sha-256\nlocal template1 bob reject\nlocal all all trust\n";
    std::fs::write(server.socket_dir().join("data/pg_hba.conf"), rules).unwrap();
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let loaded = "SELECT count(*) = 3 FROM pg_hba_file_rules";
    assert!(admin.query_one(loaded, &[]).await.unwrap().get::<_, bool>(0));
    server
}

#[tokio::test]
async fn one_clear_line_each() {
    let server = strict_server().await;
    let directory = server.socket_dir().display().to_string();
    let socket = format!("{directory}/.s.PGSQL.5432");
    let nowhere = tempfile::tempdir().unwrap();
    let nowhere = nowhere.path().display();
    let dead = tempfile::tempdir().unwrap();
    drop(std::os::unix::net::UnixListener::bind(dead.path().join(".s.PGSQL.5432")).unwrap());
    let dead = dead.path().display();
    let to = |more: &str| format!("host={directory} {more}");
    for (target, expected) in [
        (
            format!("host={nowhere} user=bob dbname=postgres"),
            vec![
                format!("no server socket {nowhere}/.s.PGSQL.5432"),
                "is the server running on this machine".to_owned(),
            ],
        ),
        (
            format!("host={dead} user=bob dbname=postgres"),
            vec![format!("no server listens on the socket {dead}/.s.PGSQL.5432")],
        ),
        (
            "host=127.0.0.1 port=1 user=bob dbname=postgres".to_owned(),
            vec!["connection to 127.0.0.1:1 refused".to_owned()],
        ),
        (
            to("user=alice password=wrong dbname=postgres"),
            vec![format!("{socket} rejects the password of \"alice\" (from the connection string)")],
        ),
        (
            to("user=bob dbname=nothing"),
            vec![format!("{socket} has no database \"nothing\""), "-d names another".to_owned()],
        ),
        (
            to("user=bob dbname=closed"),
            vec![socket.clone(), "permission denied for database \"closed\"".to_owned()],
        ),
        (to("user=bob dbname=template1"), vec!["\"bob\"".to_owned(), "pg_hba.conf".to_owned()]),
        (
            to("user=nobody_here dbname=postgres"),
            vec![format!("{socket} does not know the role \"nobody_here\""), "-U names another".to_owned()],
        ),
        (to("user=asleep dbname=postgres"), vec!["role \"asleep\" is not permitted to log in".to_owned()]),
    ] {
        fails(&target, &expected).await;
    }
}

async fn fails(target: &str, expected: &[String]) {
    let left = run_beside(locktop(&["-w", "snapshot", "--format", "json", target])).await;
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{target}: {}", left.err);
    let error = without_warning(&left.err, target);
    is_one_line(&error, expected);
    let target = target.to_owned();
    let (status, written) =
        tokio::task::spawn_blocking(move || Terminal::start(&["-w", &target]).end()).await.unwrap();
    assert_eq!(status, 1, "{written}");
    assert!(!written.contains('\u{1b}'), "{written:?}");
    // Carriage returns that the terminal added.
    assert_eq!(written.replace("\r\n", "\n"), left.err, "the dashboard prints the same");
}

/// A password on the command line is warned about, in a line before the others.
fn without_warning(text: &str, target: &str) -> String {
    let warning = "locktop: every user of this machine can read a password on the command line: omit it to be asked for it, or use a password file\n";
    match text.strip_prefix(warning) {
        Some(rest) if target.contains("password=") => rest.to_owned(),
        rest => {
            assert!(rest.is_none() && !target.contains("password="), "{target}: {text}");
            text.to_owned()
        }
    }
}

fn is_one_line(text: &str, expected: &[String]) {
    assert!(text.starts_with("locktop: ") && text.ends_with('\n') && text.lines().count() == 1, "{text:?}");
    for part in expected {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

/// A lock on the catalog of all tables: no session can start, and the server does not answer.
#[tokio::test]
async fn a_server_that_accepts_the_connection_but_does_not_answer_is_reported() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let locker = open(&conninfo(&server)).await.client;
    locker.batch_execute("BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let socket = server.socket_dir().join(".s.PGSQL.5432");
    let expected = format!("{} accepted the connection but did not answer within 1 s", socket.display());
    fails(&format!("{} connect_timeout=1", server.conninfo()), &[expected]).await;
}

/// Without a terminal the dashboard refuses before it connects to a server.
#[tokio::test]
async fn the_dashboard_needs_a_terminal() {
    let target = server().await.conninfo();
    let left = run_beside(locktop(&[&target])).await;
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""));
    is_one_line(&left.err, &["needs a terminal".to_owned(), "locktop snapshot".to_owned()]);
}

/// A password in a URI with a mistake in it is repeated nowhere.
#[tokio::test]
async fn a_mistyped_uri_is_not_repeated() {
    for uri in [
        "postgresq://alice:s3cret@db/app",
        "postgres:/alice:s3cret@db/app",
        "postgresql//alice:s3cret@db/app",
        "alice:s3cret@db/app",
        "postgres:alice:s3cret=1@db/app",
        "postgres:/alice:s3cret@db/app?sslmode=require",
        "postgresql://alice:s3cret@db:x/app",
        "postgresql://alice:s3cret%zz@db/app",
    ] {
        for arguments in [
            &["snapshot", uri][..],
            &["-d", uri, "snapshot"],
            &["snapshot", "app", uri],
            &["app", "snapshot", uri],
            &["-d", "app", "snapshot", uri],
        ] {
            let left = run_beside(locktop(arguments)).await;
            assert_eq!((left.status, left.out.as_str()), (Some(2), ""), "{arguments:?}: {}", left.err);
            assert!(!left.err.is_empty() && !left.err.contains("s3cret"), "{arguments:?}: {}", left.err);
        }
    }
}
