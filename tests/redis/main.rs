//! Locks in Redis, on real servers: how they are read, how they are taken, and what is wrong with the printed recipes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

mod article;
#[path = "../support/binary.rs"]
mod binary;
mod launcher;
mod lock;
mod overlap;
mod reader;
mod redlock;
mod snapshot;
#[path = "../support/mod.rs"]
mod support;
mod tls;

use std::time::Duration;

use locktop::demo::redis::RedisServer;
use locktop::redis::{Command, Connection, RedisUrl, Reply};

/// A server; panics with the way to install one if there is none.
async fn server() -> RedisServer {
    start(&[]).await
}

async fn start(settings: &[&str]) -> RedisServer {
    RedisServer::start(settings).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn servers(count: usize) -> Vec<RedisServer> {
    RedisServer::several(count).await.unwrap_or_else(|error| panic!("{error}"))
}

fn url(server: &RedisServer) -> RedisUrl {
    RedisUrl::parse(&server.url()).unwrap()
}

fn urls(servers: &[RedisServer]) -> Vec<RedisUrl> {
    servers.iter().map(url).collect()
}

async fn open(server: &RedisServer) -> Connection {
    Connection::open(&url(server), Duration::from_secs(10)).await.unwrap()
}

/// Runs a command written as on a command line, without quotes.
async fn run(connection: &Connection, line: &'static str) -> Reply {
    let mut words = line.split(' ');
    let command = Command::new(words.next().unwrap());
    connection.run(&words.fold(command, Command::arg)).await.unwrap()
}

fn bytes(text: &str) -> Reply {
    Reply::Bytes(text.as_bytes().to_vec())
}
