//! An advisory lock and its release through the library, beside the same statements sent by hand, and how fair contenders are served.
//!
//! `cargo bench --bench lock` starts a server of its own (`LOCKTOP_BENCH_ROUNDS`, `LOCKTOP_BENCH_SECONDS` for the contention).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs, reason = "a test may")]

use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::locks::advisory::{Key, Locks, Source};
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::NoTls;

const CONTENDERS: usize = 16;
const HELD: Duration = Duration::from_millis(50);

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
    // In turns, so that both meet the same machine.
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
    for (name, by_hand, ours) in
        [("with a connection", times[0], times[1]), ("from a pool", times[2], times[3])]
    {
        let (by_hand, ours) =
            (by_hand.as_secs_f64() / f64::from(rounds), ours.as_secs_f64() / f64::from(rounds));
        println!(
            "{name}: by hand {:.2} ms, locks {:.2} ms, ratio {:.2}",
            by_hand * 1e3,
            ours * 1e3,
            ours / by_hand
        );
    }
    contend(&pooled).await;
}

async fn by_hand(client: &tokio_postgres::Client) {
    client.simple_query("SELECT pg_advisory_lock(1)").await.unwrap();
    client.simple_query("SELECT pg_advisory_unlock(1)").await.unwrap();
}

async fn turn<S: Source>(locks: &Locks<S>) {
    locks.lock(Key::Bigint(2)).await.unwrap().release().await.unwrap();
}

/// How often each contender gets the lock, and for how much of the time it is held.
async fn contend<S: Source>(locks: &Locks<S>) {
    let seconds = Duration::from_secs(number("LOCKTOP_BENCH_SECONDS", 60).into());
    let start = clock::monotonic();
    let contenders: Vec<_> = (0..CONTENDERS)
        .map(|_| {
            let locks = locks.clone();
            tokio::spawn(async move {
                let (mut turns, mut held) = (0_u32, Duration::ZERO);
                while start.elapsed() < seconds {
                    let guard = locks.lock("contended").await.unwrap();
                    let taken = clock::monotonic();
                    tokio::time::sleep(HELD).await;
                    held += taken.elapsed();
                    guard.release().await.unwrap();
                    turns += 1;
                }
                (turns, held)
            })
        })
        .collect();
    let (mut turns, mut held) = (Vec::new(), Duration::ZERO);
    for contender in contenders {
        let (own, time) = contender.await.unwrap();
        turns.push(own);
        held += time;
    }
    let all: u32 = turns.iter().sum();
    let (most, least) = (turns.iter().max().unwrap(), turns.iter().min().unwrap());
    let used = held.as_secs_f64() / start.elapsed().as_secs_f64();
    println!(
        "{CONTENDERS} contenders: {all} turns, from {least} to {most} each, held {:.1} % of the time",
        used * 100.0
    );
}
