//! Many clients, and five servers that crash, restart empty, and freeze: two clients never hold the lock at
//! once.
//!
//! A client is sure of the lock during `[acquired, valid until]`, or until it released the lock or a loss was
//! reported. All times are of the monotonic clock of this machine. The choices are drawn from a seed, which a
//! failure prints; `LOCKTOP_TEST_SEED` sets it. The system interleaves the clients differently in each run.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use locktop::clock;
use locktop::demo::redis::RedisServer;
use locktop::locks::Held as _;
use locktop::locks::redis_lock::{LockOptions, RedisLocks};

use crate::support::is_long;
use crate::{servers, urls};

const TERM: Duration = Duration::from_secs(3);
const KEY: &str = "lock:one";

/// How a client gave up the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Released,
    /// The same after at least one renewal.
    Renewed,
    /// As a process that dies: no renewal, no release.
    Crashed,
    Lost,
}

#[derive(Debug, Clone, Copy)]
struct Interval {
    client: u64,
    from: Duration,
    to: Duration,
    end: End,
}

/// The events that must occur before the test ends.
struct Goal {
    intervals: usize,
    renewed: usize,
    crashed: usize,
    lost: usize,
    deaths: u32,
}

#[derive(Default)]
struct Record {
    intervals: Mutex<Vec<Interval>>,
    deaths: AtomicU32,
    /// Increases when three servers are to crash at once, while a client holds the lock for a long time.
    cuts: AtomicU32,
    over: AtomicBool,
}

impl Record {
    fn reached(&self, goal: &Goal) -> bool {
        let intervals = self.intervals.lock().unwrap();
        let count = |end| intervals.iter().filter(|interval| interval.end == end).count();
        intervals.len() >= goal.intervals
            && count(End::Renewed) >= goal.renewed
            && count(End::Crashed) >= goal.crashed
            && count(End::Lost) >= goal.lost
            && self.deaths.load(Ordering::SeqCst) >= goal.deaths
    }
}

/// Takes the lock again and again.
async fn client(number: u64, locks: RedisLocks, seed: u64, record: Arc<Record>) {
    let mut random = Rng::with_seed(seed.wrapping_mul(31).wrapping_add(number));
    while !record.over.load(Ordering::SeqCst) {
        let Ok(Some(guard)) = locks.acquire(KEY, Duration::from_secs(1)).await else { continue };
        let from = clock::since_boot();
        let long = random.u64(..12) == 0;
        if long && random.u64(..2) == 0 {
            record.cuts.fetch_add(1, Ordering::SeqCst);
        }
        let hold = if long { TERM / 2 } else { Duration::from_millis(random.u64(..60)) };
        let end = tokio::select! {
            _ = guard.lost() => End::Lost,
            () = tokio::time::sleep(hold) => match (random.u64(..16), long) {
                (0, _) => End::Crashed,
                (_, true) => End::Renewed,
                (_, false) => End::Released,
            },
        };
        let valid_until = guard.valid_until();
        let to = if end == End::Crashed { valid_until } else { clock::since_boot().min(valid_until) };
        record.intervals.lock().unwrap().push(Interval { client: number, from, to, end });
        if end == End::Crashed {
            guard.keep();
        } else {
            guard.release().await;
        }
    }
}

/// Lets servers crash and freeze; most of the time a majority is up. The first three crash together at times.
async fn trouble(mut server: RedisServer, number: u64, seed: u64, record: Arc<Record>) {
    let mut random = Rng::with_seed(seed ^ (number + 1).wrapping_mul(0x00a5_a5a5));
    let mut cuts = 0;
    while !record.over.load(Ordering::SeqCst) {
        let alone = Duration::from_millis(200 + random.u64(..5_000));
        rest(alone, &record, |record| number < 3 && record.cuts.load(Ordering::SeqCst) > cuts).await;
        let together = number < 3 && record.cuts.load(Ordering::SeqCst) > cuts;
        cuts = record.cuts.load(Ordering::SeqCst);
        if !together && random.u64(..3) == 0 {
            server.freeze();
            rest(Duration::from_millis(random.u64(..1_500)), &record, |_| false).await;
            server.thaw();
        } else {
            server.kill_hard().await.unwrap();
            record.deaths.fetch_add(1, Ordering::SeqCst);
            let down = if together { 0 } else { random.u64(..600) };
            rest(Duration::from_millis(down), &record, |_| false).await;
            server.restart().await.unwrap();
            // It has no vote for a term: with too many of those at once nothing would happen at all.
            rest(TERM + Duration::from_millis(random.u64(..4_000)), &record, |_| false).await;
        }
    }
}

/// Sleeps, but no longer once the test is over or the other condition holds.
async fn rest(time: Duration, record: &Record, other: impl Fn(&Record) -> bool) {
    let until = clock::monotonic() + time;
    while clock::monotonic() < until && !record.over.load(Ordering::SeqCst) && !other(record) {
        tokio::time::sleep(Duration::from_millis(10).min(time)).await;
    }
}

async fn round(seed: u64, goal: Goal, longest: Duration) {
    let servers = servers(5).await;
    let record = Arc::new(Record::default());
    let mut tasks = Vec::new();
    for number in 0..6 {
        let options = LockOptions::term(TERM).longest_delay(Duration::from_millis(60));
        // Connections of its own, as another process would have.
        let locks = RedisLocks::new(urls(&servers), options.named(format!("client-{number}"))).unwrap();
        tasks.push(tokio::spawn(client(number, locks, seed, Arc::clone(&record))));
    }
    // At first no server has a vote.
    tokio::time::sleep(TERM).await;
    let troubled =
        (0..).zip(servers).map(|(number, server)| trouble(server, number, seed, Arc::clone(&record)));
    tasks.extend(troubled.map(tokio::spawn));
    let started = clock::monotonic();
    while !record.reached(&goal) && started.elapsed() < longest {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let reached = record.reached(&goal);
    record.over.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    let mut intervals = record.intervals.lock().unwrap().clone();
    intervals.sort_by_key(|interval| interval.from);
    for pair in intervals.windows(2) {
        assert!(pair[0].to <= pair[1].from, "seed {seed}: two held the lock at once: {pair:?}");
    }
    let count = |end| intervals.iter().filter(|interval| interval.end == end).count();
    println!(
        "seed {seed}: {} intervals of {} clients ({} renewed, {} crashed, {} lost), {} deaths of servers, {:.1} s",
        intervals.len(),
        intervals.iter().map(|interval| interval.client).collect::<std::collections::BTreeSet<_>>().len(),
        count(End::Renewed),
        count(End::Crashed),
        count(End::Lost),
        record.deaths.load(Ordering::SeqCst),
        started.elapsed().as_secs_f64(),
    );
    assert!(reached, "seed {seed}: too few events in {longest:?} for a result");
}

fn seed() -> Option<u64> {
    std::env::var("LOCKTOP_TEST_SEED").ok().map(|seed| seed.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_two_clients_hold_the_lock_at_once() {
    let seeds = seed().map_or(if is_long() { 100..106 } else { 7..8 }, |seed| seed..seed + 1);
    for seed in seeds {
        let (goal, longest) = if is_long() {
            (Goal { intervals: 150, renewed: 4, crashed: 4, lost: 3, deaths: 15 }, Duration::from_secs(300))
        } else {
            (Goal { intervals: 15, renewed: 1, crashed: 1, lost: 1, deaths: 3 }, Duration::from_secs(60))
        };
        round(seed, goal, longest).await;
    }
}
