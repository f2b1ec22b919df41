//! The Leases screen over real Redis servers.

use std::time::Duration;

use locktop::demo::redis::RedisServer;
use locktop::redis::{Command, Connection, RedisUrl};

use super::incident::Incident;

async fn set(server: &RedisServer, words: &[&str]) {
    let url = RedisUrl::parse(&server.url()).unwrap();
    let connection = Connection::open(&url, Duration::from_secs(10)).await.unwrap();
    let command = words.iter().fold(Command::new("SET"), Command::arg);
    connection.run(&command).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn locks_of_a_redis_server_and_of_a_server_set_are_shown() {
    let incident = Incident::none().await;
    let mut servers = RedisServer::several(4).await.unwrap();
    set(&servers[0], &["lock:out", "anna", "PX", "600000"]).await;
    set(&servers[0], &["lock:leak", "cron-old"]).await;
    for (server, value) in servers[1..].iter().zip(["bert", "bert", "carl"]) {
        set(server, &["lock:out", value, "PX", "600000"]).await;
    }
    let urls: Vec<_> = servers.iter().map(RedisServer::url).collect();
    let three = urls[1..].join(",");
    let mut screen = incident.screen((140, 35), &[], &["--redis", &urls[0], "--redis", &three]);
    screen.shows("Leases ·");
    screen.keys("5");
    let line = |words: &'static [&'static str]| {
        move |screen: &vt100::Screen| {
            screen.rows(0, 140).any(|row| words.iter().all(|word| row.contains(word)))
        }
    };
    screen.wait_for("the lock of the one", line(&["held", "lock:out", "anna", "redis 1"]));
    screen.wait_for("the lock of the three", line(&["held", "lock:out", "bert", "2/3 redis 2"]));
    screen.wait_for("the key that does not expire", line(&["held", "lock:leak", "cron-old", "no end"]));
    // A third owner: none has a majority.
    set(&servers[2], &["lock:out", "dora", "PX", "600000"]).await;
    screen.wait_for("the split", line(&["split", "lock:out", "1/3 redis 2"]));
    servers[0].kill_hard().await.unwrap();
    screen.shows("redis 1 of 4 down");
    screen.hides("cron-old");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}
