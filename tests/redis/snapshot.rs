//! The locks of Redis in the output of the program, next to those of a real PostgreSQL server.

use std::time::Duration;

use locktop::clock;
use locktop::demo::redis::RedisServer;
use serde_json::Value;

use crate::binary::{Left, locktop, run_beside};
use crate::support::{database, server as postgres};
use crate::{open, run, server, servers};

async fn snapshot(format: &str, redis: &[&RedisServer]) -> Left {
    let info = database(postgres().await).await;
    let mut arguments = vec!["snapshot", "--format", format];
    let urls: Vec<_> = redis.iter().map(|server| server.url()).collect();
    arguments.extend(urls.iter().flat_map(|url| ["--redis", url.as_str()]));
    let mut command = locktop(&arguments);
    let socket = postgres().await.socket_dir();
    command.env("PGHOST", socket).env("PGUSER", "postgres").env("PGDATABASE", info.dbname());
    run_beside(command).await
}

fn findings(snapshot: &Value) -> Vec<&str> {
    let findings = snapshot["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| finding["summary"].as_str().unwrap())
        .filter(|text| text.contains("edis"))
        .collect()
}

#[tokio::test]
async fn a_snapshot_has_the_locks_of_one_server_and_the_leak_as_a_finding() {
    let redis = server().await;
    let connection = open(&redis).await;
    run(&connection, "SET lock:a worker-1 PX 60000").await;
    run(&connection, "SETNX lock:b worker-2").await;
    let left = snapshot("json", &[&redis]).await;
    assert_eq!(left.status, Some(0), "{}", left.err);
    let snapshot_json: Value = serde_json::from_str(&left.out).unwrap();
    let leases: Vec<_> = snapshot_json["leases"].as_array().unwrap().iter().collect();
    let rows: Vec<_> =
        leases.iter().map(|row| [&row["source"], &row["id"], &row["owner"], &row["state"]]).collect();
    assert_eq!(rows, [["redis", "lock:a", "worker-1", "held"], ["redis", "lock:b", "worker-2", "held"]]);
    assert!(leases[0]["expires_at"].is_string() && leases[1]["expires_at"].is_null());
    assert_eq!(
        findings(&snapshot_json),
        ["redis lock lock:b of worker-2 never expires: it remains if its holder dies"]
    );
    assert!(snapshot_json["sections"]["redis"]["error"].is_null());
    let table = snapshot("table", &[&redis]).await.out;
    assert!(table.contains("lock:a  worker-1"), "{table}");
}

#[tokio::test]
async fn servers_that_are_down_or_hang_are_reported_with_little_delay() {
    let mut three = servers(3).await;
    for server in &three {
        run(&open(server).await, "SET lock:a me PX 60000").await;
    }
    three[0].kill_hard().await.unwrap();
    three[1].freeze();
    let started = clock::monotonic();
    let left = snapshot("json", &three.iter().collect::<Vec<_>>()).await;
    assert_eq!(left.status, Some(0), "{}", left.err);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let snapshot: Value = serde_json::from_str(&left.out).unwrap();
    assert_eq!(snapshot["leases"][0]["owner"], "me");
    let findings = findings(&snapshot);
    assert!(findings[0].starts_with("2 of 3 Redis servers down: "), "{findings:?}");
    assert!(snapshot["sections"]["redis"]["error"].as_str().unwrap().contains("no answer within"));
    three[1].thaw();
}
