//! Events that happen while the screen is not drawn.

use std::collections::HashMap;
use std::time::Duration;

use locktop::clock;
use locktop::pg::connect::Connection;
use rustix::process::Pid;
use tokio::task::JoinHandle;

use super::incident::Incident;
use super::screen::Screen;
use super::support::{self, is_long, wait_until};

/// Waits at a time.
const ROUND: i64 = 4;

/// The first of the keys that the sessions wait for: no other text on the screen contains such a number.
const FIRST: i64 = 770_001;

/// The current or last statement of the program's sessions, and its start.
const POLLS: &str = "SELECT pid, query, query_start FROM pg_stat_get_activity(NULL)
    WHERE application_name = 'locktop' AND pid <> pg_backend_pid() AND query_start IS NOT NULL";

/// Waits for this many complete polls. Each statement of a poll runs once in it: from one run of a statement
/// to the next there was a whole poll, whichever statement was first.
async fn polled(client: &tokio_postgres::Client, times: usize) {
    type Run = (i32, String);
    let mut runs: HashMap<Run, Vec<chrono::DateTime<chrono::Utc>>> = HashMap::new();
    wait_until("the program to poll", async || {
        for row in client.query(POLLS, &[]).await.unwrap() {
            let starts = runs.entry((row.get(0), row.get(1))).or_default();
            let start = row.get(2);
            if starts.last() != Some(&start) {
                starts.push(start);
            }
        }
        runs.values().any(|starts| starts.len() > times)
    })
    .await;
}

/// How often the thread that draws was scheduled.
fn turns(pid: Pid) -> Option<u64> {
    let pid = pid.as_raw_pid();
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).ok()?;
    text.split_whitespace().nth(2)?.parse().ok()
}

/// Waits until the thread that draws is blocked, although it is requested repeatedly to redraw everything.
async fn drawing_blocks(screen: &mut Screen, client: &tokio_postgres::Client) {
    let Some(mut before) = turns(screen.pid()) else { return };
    wait_until("the drawing to be held up", async || {
        for _ in 0..7 {
            screen.keys("<ctrl-l>");
            polled(client, 2).await;
        }
        let now = turns(screen.pid()).unwrap();
        std::mem::replace(&mut before, now) == now
    })
    .await;
}

/// A session that waits for a key, and releases it as soon as it has acquired it.
fn waiter(connection: Connection, key: i64) -> JoinHandle<Connection> {
    tokio::spawn(async move {
        let sql = format!("SELECT pg_advisory_lock({key}), pg_advisory_unlock({key})");
        connection.client.batch_execute(&sql).await.unwrap();
        connection
    })
}

/// Makes sessions wait, each for its own key, until at least two polls must have seen that; then releases the
/// keys.
async fn round(
    holder: &Connection,
    waiters: Vec<Connection>,
    observer: &tokio_postgres::Client,
    first: i64,
) -> Vec<Connection> {
    let keys: Vec<i64> = (first..).take(waiters.len()).collect();
    for key in &keys {
        holder.client.execute("SELECT pg_advisory_lock($1)", &[key]).await.unwrap();
    }
    let waiting: Vec<_> =
        waiters.into_iter().zip(&keys).map(|(connection, key)| waiter(connection, *key)).collect();
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let expected = i64::try_from(keys.len()).unwrap();
    wait_until("the waits to begin", async || {
        observer.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == expected
    })
    .await;
    polled(observer, 2).await;
    holder.client.batch_execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    let mut back = Vec::new();
    for waiter in waiting {
        back.push(waiter.await.unwrap());
    }
    back
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wait_is_lost_while_the_terminal_is_not_read() {
    let incident = Incident::none().await;
    let info = incident.info();
    let holder = support::open(&info).await;
    let observer = support::open(&info).await.client;
    let mut waiters = Vec::new();
    for _ in 0..ROUND {
        waiters.push(support::open(&info).await);
    }
    let target = incident.server.conninfo();
    let mut screen = Screen::spawn((120, 35), &[], &[&target, "--refresh", "0.1s", "--screen", "events"]);
    screen.shows("connected to PostgreSQL");

    screen.stop_reading();
    // A few frames of this size fill the buffer of a terminal that is not read.
    screen.resize((240, 90));
    drawing_blocks(&mut screen, &observer).await;
    let stopped = clock::monotonic();
    let (least, time) = if is_long() { (8, Duration::from_secs(30)) } else { (4, Duration::ZERO) };
    let (mut first, mut rounds) = (FIRST, 0);
    while rounds < least || stopped.elapsed() < time {
        waiters = round(&holder, waiters, &observer, first).await;
        (first, rounds) = (first + ROUND, rounds + 1);
    }
    polled(&observer, 2).await;
    drawing_blocks(&mut screen, &observer).await;
    assert!(!screen.contents().contains(&FIRST.to_string()), "the screen was not stopped");

    screen.read_on();
    let waits = first - FIRST;
    screen.shows(&format!("{waits} waits began, {waits} ended"));
    for key in FIRST..first {
        screen.keys(&format!("/{key}<enter>"));
        screen.shows(&format!("/{key} shows 2 of"));
        screen.shows(&format!("began to wait for Exclusive on advisory lock {key} behind"));
        screen.shows(&format!("stopped waiting for Exclusive on advisory lock {key}"));
        screen.keys("<esc>");
        screen.hides(&format!("/{key} shows"));
    }
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}
