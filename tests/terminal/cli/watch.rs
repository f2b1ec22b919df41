//! `snapshot --watch`: one line per snapshot, the events between them, and readers that are slow or end.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};

use locktop::demo::postgres::{EmbeddedServer, Options};
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::binary::{locktop, run_beside};
use super::support::{conninfo, open, wait_for, wait_until};

/// The program, and its lines as they arrive.
struct Watch {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watch {
    fn start(target: &str, arguments: &[&str]) -> Self {
        let all = [&["-w", "snapshot", "--format", "json", target], arguments].concat();
        let mut child = locktop(&all).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The first line that fulfills `is`.
    fn until(&mut self, what: &str, mut is: impl FnMut(&Value) -> bool) -> Value {
        for _ in 0..2000 {
            let line = self.next();
            if is(&line) {
                return line;
            }
        }
        panic!("timed out waiting for {what}");
    }

    fn exit(mut self) -> Option<i32> {
        drop(self.lines);
        let mut status = None;
        wait_for("its end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

/// Waits until it has polled for as long as ten polls take; one of its two sessions polls.
async fn ten_polls(observer: &Client, what: &str) {
    let start: String = observer.query_one("SELECT now()::text", &[]).await.unwrap().get(0);
    let sql = format!(
        "SELECT coalesce(max(query_start) > '{start}'::timestamptz + interval '1.5 s', false)
         FROM pg_stat_activity WHERE application_name = 'locktop'"
    );
    wait_until(what, async || observer.query_one(&sql, &[]).await.unwrap().get::<_, bool>(0)).await;
}

async fn holder(server: &EmbeddedServer) -> Client {
    let client = open(&conninfo(server)).await.client;
    client.batch_execute("SET application_name = 'holder'; SELECT pg_advisory_lock(7)").await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_snapshot_and_each_event_is_a_line() {
    let mut server = EmbeddedServer::start(Options::default()).await.unwrap();
    let held = holder(&server).await;
    let mut watch = Watch::start(&server.conninfo(), &["--watch=0.1s", "--events"]);
    let first = watch.until("a snapshot", |line| line["type"] == "look");
    assert_eq!((first["seq"].as_u64(), first["format"].as_u64()), (Some(1), Some(1)));
    assert!(first["locks"].as_array().is_some() && first.get("skipped").is_none(), "{first}");
    let second = watch.until("another snapshot", |line| line["type"] == "look");
    assert_eq!(second["seq"], 2);

    let waiter = open(&conninfo(&server)).await.client;
    let waiting = tokio::spawn(async move { waiter.batch_execute("SELECT pg_advisory_lock(7)").await });
    let event = watch.until("the wait", |line| line["type"] == "event" && line["event"] == "wait");
    assert!(event["text"].as_str().unwrap().contains("began to wait"), "{event}");
    watch.until("a snapshot with a root", |line| {
        line["roots"].as_array().is_some_and(|roots| roots.len() == 1)
    });
    drop(held);
    waiting.await.unwrap().unwrap();
    watch.until("its end", |line| line["event"] == "wait over");

    server.kill_hard().await.unwrap();
    let down = watch.until("the loss", |line| line["type"] == "link");
    assert_eq!(down["state"], "down");
    assert!(!down["reason"].as_str().unwrap().is_empty());
    server.restart().await.unwrap();
    let back = watch.until("the new connection", |line| line["type"] == "link");
    assert_eq!(back["state"], "live");
    watch.until("a snapshot again", |line| line["type"] == "look");
    // The reader has read enough.
    assert_eq!(watch.exit(), Some(0));
}

#[tokio::test]
async fn it_ends_after_as_many_as_are_asked_for() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let arguments =
        ["-w", "snapshot", "--format", "json", &server.conninfo(), "--watch=0.1s", "--count", "3"];
    let left = run_beside(locktop(&arguments)).await;
    assert_eq!((left.status, left.out.lines().count(), left.err.as_str()), (Some(0), 3, ""));
    let table = run_beside(locktop(&["-w", "snapshot", &server.conninfo(), "--watch"])).await;
    assert_eq!(table.status, Some(2));
    assert!(table.err.contains("--format json"), "{}", table.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_alone_when_they_are_asked_for() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let _held = holder(&server).await;
    let mut watch = Watch::start(&server.conninfo(), &["--watch=0.1s", "--changes"]);
    assert_eq!(watch.next()["seq"], 1);
    let observer = open(&conninfo(&server)).await.client;
    // Many snapshots without a change.
    ten_polls(&observer, "ten polls").await;
    let waiter = open(&conninfo(&server)).await.client;
    let waiting = tokio::spawn(async move { waiter.batch_execute("SELECT pg_advisory_lock(7)").await });
    let changed = watch.next();
    assert_eq!((changed["seq"].as_u64(), changed["roots"].as_array().map(Vec::len)), (Some(2), Some(1)));
    waiting.abort();
    // The program ends when the pipe has no reader, even if there is nothing more to write.
    assert_eq!(watch.exit(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_gets_the_newest_snapshot_and_the_number_skipped() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let many = open(&conninfo(&server)).await.client;
    // A few snapshots are larger than the buffer of a pipe.
    many.batch_execute("SELECT count(pg_advisory_lock(i)) FROM generate_series(1, 2000) AS i").await.unwrap();
    let mut watch = Watch::start(&server.conninfo(), &["--watch=0.1s"]);
    let observer = open(&conninfo(&server)).await.client;
    ten_polls(&observer, "polls while a snapshot is not read").await;
    let mut seq = 0;
    watch.until("a snapshot after skipped ones", |line| {
        // Line numbers have no gap; skipped snapshots are counted separately.
        seq += 1;
        assert_eq!(line["seq"].as_u64(), Some(seq));
        line["skipped"].as_u64() > Some(0)
    });
    assert_eq!(watch.exit(), Some(0));
}

/// The blame names the root blocker and its statement; a single snapshot has no blame.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_root_blocker_is_blamed_for_the_waits() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let _held = holder(&server).await;
    let mut watch = Watch::start(&server.conninfo(), &["--watch=0.1s"]);
    assert!(watch.next()["blame"].is_null(), "the first snapshot has no blame");
    let waiter = open(&conninfo(&server)).await.client;
    let waiting = tokio::spawn(async move { waiter.batch_execute("SELECT pg_advisory_lock(7)").await });
    let snapshot = watch.until("a session to be blamed", |snapshot| {
        snapshot["blame"]["by_root"][0]["seconds"].as_f64().is_some_and(|seconds| seconds > 0.3)
    });
    let blame = &snapshot["blame"];
    let root = &blame["by_root"][0];
    assert_eq!(
        (&root["share"], &root["most"], &root["doing"]),
        (&json!(1.0), &json!(1), &json!("idle")),
        "{blame}"
    );
    let statement = root["statement"].as_str().unwrap();
    assert!(statement.contains("pg_advisory_lock(?)"), "{blame}");
    let episode = &blame["episodes"][0];
    assert_eq!((&episode["goes_on"], &episode["ending"]), (&json!(true), &json!("goes_on")), "{blame}");
    waiting.abort();
}
