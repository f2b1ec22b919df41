//! The time of an advisory lock and its release through the library, compared with the same statements sent by
//! tokio-postgres; and how evenly contenders get an advisory lock, a lease and a lock in Redis.
//!
//! `cargo bench --bench lock` starts its own servers (`LOCKTOP_BENCH_ROUNDS`; `LOCKTOP_BENCH_SECONDS` for each
//! contention).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs, reason = "a test may")]

use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use futures_util::future::join_all;
use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::demo::redis::RedisServer;
use locktop::locks::advisory::{Key, Locks, Source};
use locktop::locks::lease::{Leases, Request};
use locktop::locks::redis_lock::{LockOptions, RedisLocks, Restarts};
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use tokio_postgres::NoTls;

const CONTENDERS: usize = 16;
const HELD: Duration = Duration::from_millis(50);
const TERM: Duration = Duration::from_secs(10);
/// Longest wait of a contender.
const LIMIT: Duration = Duration::from_secs(60);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}

fn number(variable: &str, default: u32) -> u32 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

async fn measure() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let info = ConnInfo::parse(&server.conninfo()).unwrap();
    let rounds = number("LOCKTOP_BENCH_ROUNDS", 300);
    let pool =
        Pool::builder(Manager::new(server.conninfo().parse().unwrap(), NoTls)).max_size(20).build().unwrap();

    let direct = Locks::new(info.clone()).without_pooler_test();
    let pooled = Locks::new(pool.clone()).without_pooler_test();
    // In turns, so that both run under the same load.
    let mut times = [Duration::ZERO; 4];
    for _ in 0..rounds {
        for (at, time) in times.iter_mut().enumerate() {
            let start = clock::monotonic();
            match at {
                0 => by_hand(&connect(&info).await.unwrap().client).await,
                1 => turn(&direct).await,
                2 => by_hand(&pool.get().await.unwrap()).await,
                _ => turn(&pooled).await,
            }
            *time += start.elapsed();
        }
    }
    for (name, by_hand, library) in
        [("with a connection", times[0], times[1]), ("from a pool", times[2], times[3])]
    {
        let (by_hand, library) =
            (by_hand.as_secs_f64() / f64::from(rounds), library.as_secs_f64() / f64::from(rounds));
        println!(
            "{name}: by hand {:.2} ms, locks {:.2} ms, ratio {:.2}",
            by_hand * 1e3,
            library * 1e3,
            library / by_hand
        );
    }
    contend("advisory lock", |_| {
        let locks = pooled.clone();
        async move || {
            let guard = locks.lock("contended").await.unwrap();
            let held = hold().await;
            guard.release().await.unwrap();
            held
        }
    })
    .await;
    let mut client = connect(&info).await.unwrap().client;
    schema::install(&mut client, &SchemaName::default()).await.unwrap();
    contend("lease", |number| {
        let (leases, request) = (Leases::new(info.clone()), Request::new(7, &format!("node{number}"), TERM));
        async move || {
            let lease = leases.acquire_within(&request, LIMIT).await.unwrap().unwrap();
            let held = hold().await;
            assert!(lease.release().await.unwrap());
            held
        }
    })
    .await;
    for count in [1, 5] {
        let servers = RedisServer::several(count).await.unwrap();
        let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
        contend(&format!("lock on {count} Redis servers"), |_| {
            let options = LockOptions::term(TERM).restarts(Restarts::Trusted);
            let locks = RedisLocks::connect(&urls, options).unwrap();
            async move || {
                let guard = locks.acquire("lock:contended", LIMIT).await.unwrap().unwrap();
                let held = hold().await;
                assert!(guard.release().await.was_held());
                held
            }
        })
        .await;
    }
}

async fn by_hand(client: &tokio_postgres::Client) {
    client.simple_query("SELECT pg_advisory_lock(1)").await.unwrap();
    client.simple_query("SELECT pg_advisory_unlock(1)").await.unwrap();
}

async fn turn<S: Source>(locks: &Locks<S>) {
    locks.lock(Key::Bigint(2)).await.unwrap().release().await.unwrap();
}

/// Holds the lock for a while; returns for how long.
async fn hold() -> Duration {
    let start = clock::monotonic();
    tokio::time::sleep(HELD).await;
    start.elapsed()
}

/// How often each contender gets the lock, and for how much of the time it is held.
async fn contend<T: AsyncFn() -> Duration>(name: &str, contender: impl Fn(usize) -> T) {
    let seconds = Duration::from_secs(number("LOCKTOP_BENCH_SECONDS", 60).into());
    let start = clock::monotonic();
    let contenders = join_all((0..CONTENDERS).map(|number| {
        let turn = contender(number);
        async move {
            let (mut turns, mut held) = (0_u32, Duration::ZERO);
            while start.elapsed() < seconds {
                held += turn().await;
                turns += 1;
            }
            (turns, held)
        }
    }));
    let (turns, held): (Vec<u32>, Vec<Duration>) = contenders.await.into_iter().unzip();
    let all: u32 = turns.iter().sum();
    let (most, least) = (turns.iter().max().unwrap(), turns.iter().min().unwrap());
    let used = held.iter().sum::<Duration>().as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
    println!(
        "{name}, {CONTENDERS} contenders: {all} turns, from {least} to {most} each, held {used:.1} % of the time"
    );
}
