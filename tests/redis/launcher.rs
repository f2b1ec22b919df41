//! Servers that the tests start: they leave nothing behind.

use std::process::{Command, Stdio};

use locktop::demo::redis::RedisServer;
use locktop::redis::Reply;

use crate::support::{exists, is_gone, wait_for};
use crate::{bytes, open, run, server, start};

#[tokio::test]
async fn a_stopped_server_leaves_no_trace() {
    let server = server().await;
    let (directory, pid) = (server.directory().to_owned(), server.pid().unwrap());
    let connection = open(&server).await;
    assert_eq!(run(&connection, "PING").await, bytes("PONG"));
    server.stop().await.unwrap();
    assert!(is_gone(&directory, pid));
}

#[tokio::test]
async fn dropping_it_is_enough_also_when_it_is_frozen() {
    let server = server().await;
    let (directory, pid) = (server.directory().to_owned(), server.pid().unwrap());
    server.freeze();
    drop(server);
    wait_for("the server to be removed", || is_gone(&directory, pid));
}

#[tokio::test]
async fn a_restarted_server_is_empty() {
    let mut server = server().await;
    let first = server.pid().unwrap();
    run(&open(&server).await, "SET a b").await;
    server.restart().await.unwrap();
    assert_ne!(server.pid().unwrap(), first);
    assert!(!exists(first));
    assert_eq!(run(&open(&server).await, "GET a").await, Reply::Nil);
}

#[tokio::test]
async fn settings_are_passed_on_and_refusals_reported() {
    let error = RedisServer::start(&["--maxmemory-policy", "none-such"]).await.unwrap_err().to_string();
    assert!(error.starts_with("the Redis server did not start (it ended at once)"), "{error}");
    assert!(error.contains("maxmemory-policy"), "{error}");
    let server = start(&["--databases", "3"]).await;
    let set = run(&open(&server).await, "CONFIG GET databases").await;
    let Reply::Several(parts) = &set else { panic!("{set:?}") };
    assert!(matches!(&parts[..], [_, Reply::Bytes(value)] if **value == *b"3"), "{set:?}");
}

/// In a process of its own, which is then killed.
#[tokio::test]
async fn a_killed_parent_leaves_no_server_behind() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "launcher::keep_one"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = std::io::BufReader::new(child.stdout.take().unwrap());
    let line = std::io::BufRead::lines(out)
        .map(Result::unwrap)
        .find_map(|line| line.split_once("server ").map(|(_, rest)| rest.to_owned()))
        .unwrap();
    let (pid, directory) = line.split_once(' ').unwrap();
    let (pid, directory) = (pid.parse().unwrap(), std::path::PathBuf::from(directory));
    assert!(exists(pid));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the server to be removed", || is_gone(&directory, pid));
}

#[tokio::test]
#[ignore = "the other process of the test above"]
async fn keep_one() {
    let server = server().await;
    println!("server {} {}", server.pid().unwrap(), server.directory().display());
    tokio::time::sleep(crate::support::TIMEOUT).await;
}
