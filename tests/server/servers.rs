//! The servers that the tests of a suite share: they run as long as one of its tests does.

use std::sync::mpsc::channel;

use locktop::demo::postgres::{EmbeddedServer, Options};

use super::support::{Servers, conninfo, open, wait_for};

static FIRST: Servers = Servers::new();
static SECOND: Servers = Servers::new();
static THIRD: Servers = Servers::new();

async fn server_of(suite: &'static Servers) -> &'static EmbeddedServer {
    suite.get(None, async || EmbeddedServer::start(Options::default()).await.unwrap()).await
}

fn is_same(one: &EmbeddedServer, other: &EmbeddedServer) -> bool {
    one.socket_dir() == other.socket_dir()
}

#[tokio::test]
async fn they_end_when_no_test_of_the_suite_is_left_and_another_asks() {
    let (to_me, from_first) = channel();
    let (to_first, from_me) = channel();
    // A thread of its own, as each test has one.
    let test = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        while from_me.recv().unwrap() {
            to_me.send(runtime.block_on(server_of(&FIRST))).unwrap();
        }
    });
    to_first.send(true).unwrap();
    let first = from_first.recv().unwrap();
    let second = server_of(&SECOND).await;
    assert!(!is_same(first, second));
    to_first.send(true).unwrap();
    assert!(is_same(first, from_first.recv().unwrap()), "a test still runs");
    open(&conninfo(first)).await;

    to_first.send(false).unwrap();
    test.join().unwrap();
    let third = server_of(&THIRD).await;
    for ended in [first, second] {
        wait_for("the servers of both suites to end", || {
            ended.pid().is_none() && !ended.socket_dir().join("data").exists()
        });
    }
    open(&conninfo(third)).await;
    let again = server_of(&FIRST).await;
    assert!(!is_same(first, again));
    open(&conninfo(again)).await;
}
