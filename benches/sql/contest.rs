//! Leases that several clients request at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use locktop::clock;
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::SimpleQueryMessage;

use crate::block;

const CONTENDERS: usize = 16;
const RENEWALS_A_SECOND: u32 = 10;

pub(crate) async fn all(info: &ConnInfo, seconds: usize) {
    let time = Duration::from_secs(seconds as u64);
    println!("\ncontests of {seconds} s");
    renewals(info, time).await;
    let printed = cycles(info, time, false).await;
    let locktop = cycles(info, time, true).await;
    let ratio = f64::from(u32::try_from(locktop).unwrap()) / f64::from(u32::try_from(printed).unwrap());
    println!(
        "two in turns: {printed} cycles as printed, {locktop} of locktop: {ratio:.2}, at least 0.5 is required"
    );
}

/// The first column of the first row; the number of changed rows if none is returned.
async fn ask(connection: &Connection, sql: &str) -> String {
    let mut changed = 0;
    for message in connection.client.simple_query(sql).await.unwrap() {
        match message {
            SimpleQueryMessage::Row(row) => return row.get(0).unwrap_or("null").to_owned(),
            SimpleQueryMessage::CommandComplete(count) => changed = count,
            _ => {}
        }
    }
    changed.to_string()
}

async fn renewals(info: &ConnInfo, time: Duration) {
    let holder = connect(info).await.unwrap();
    let token = ask(&holder, "SELECT locktop.lease_acquire(7, 'holder', '10 seconds')").await;
    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut crowd = Vec::new();
    for _ in 0..CONTENDERS {
        let connection = connect(info).await.unwrap();
        let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
        crowd.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let result = ask(&connection, "SELECT locktop.lease_acquire(7, 'other', '10 seconds')").await;
                assert_eq!(result, "null", "the lease is held");
                asked.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / RENEWALS_A_SECOND);
    let start = clock::monotonic();
    let (mut sent, mut failed, mut slowest) = (0, 0, Duration::ZERO);
    while clock::monotonic().duration_since(start) < time {
        ticks.tick().await;
        let begun = clock::monotonic();
        let result = ask(&holder, &format!("SELECT locktop.lease_renew(7, {token}, '10 seconds')")).await;
        slowest = slowest.max(clock::monotonic().duration_since(begun));
        sent += 1;
        failed += usize::from(result != "t");
    }
    stop.store(true, Ordering::Relaxed);
    for task in crowd {
        task.await.unwrap();
    }
    println!(
        "{CONTENDERS} request it without a pause ({} times): {failed} of {sent} renewals failed, the slowest took {slowest:.1?}; none may fail",
        asked.load(Ordering::Relaxed)
    );
}

/// How often two clients together acquired and released one lease.
async fn cycles(info: &ConnInfo, time: Duration, of_locktop: bool) -> usize {
    let done = Arc::new(AtomicUsize::new(0));
    let mut both = Vec::new();
    let start = clock::monotonic();
    for name in ["node1", "node2"] {
        let connection = connect(info).await.unwrap();
        let done = Arc::clone(&done);
        both.push(tokio::spawn(async move {
            while clock::monotonic().duration_since(start) < time {
                let cycle = if of_locktop {
                    locktop(&connection, name).await
                } else {
                    printed(&connection, name).await
                };
                done.fetch_add(usize::from(cycle), Ordering::Relaxed);
            }
        }));
    }
    for task in both {
        task.await.unwrap();
    }
    done.load(Ordering::Relaxed)
}

async fn locktop(connection: &Connection, name: &str) -> bool {
    let token = ask(connection, &format!("SELECT locktop.lease_acquire(8, '{name}', '20 seconds')")).await;
    if token == "null" {
        return false;
    }
    assert_eq!(ask(connection, &format!("SELECT locktop.lease_release(8, {token})")).await, "t");
    true
}

async fn printed(connection: &Connection, name: &str) -> bool {
    let acquire = block("acquire node1").replace("node1", name);
    if ask(connection, &acquire).await != "1" {
        return false;
    }
    assert_eq!(ask(connection, &block("release node2").replace("node2", name)).await, "1");
    true
}
