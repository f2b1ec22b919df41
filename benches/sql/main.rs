//! Speed of the SQL of the lock systems, compared with the recipes of the articles as printed: `cargo bench --bench
//! sql`.
//!
//! The bench starts its own server: locktop's functions are in the schema `locktop`, the article's in `public`. pgbench
//! calls both in turns, with the statements of the article as printed. The result is the median of the ratios of all
//! rounds. `LOCKTOP_PGBENCH` is the path of pgbench if it is not on the PATH; `LOCKTOP_BENCH_ROUNDS` (7);
//! `LOCKTOP_BENCH_CALLS` (4,000 for each round and system); `LOCKTOP_BENCH_SECONDS` (20) for the contests;
//! `LOCKTOP_BENCH_ONLY` selects rows by a part of their names. The server runs without fsync, so a commit costs little
//! here: with fsync, the system that commits less gains more.
//!
//! Two contests are measured by their participants, without pgbench: sixteen clients request a lease without a pause
//! while its holder renews it, and two clients acquire one lease in turns.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench may"
)]

mod contest;
mod pgbench;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};

use pgbench::{Pgbench, Row};

const LEASE: &str = include_str!("../../tests/server/lease/article.sql");
const RECIPES: &str = include_str!("../../tests/server/locks_sql/article.sql");

/// Article and locktop; `wanted` is the smallest permitted ratio, if one was set.
const ROWS: [Row; 10] = [
    Row {
        name: "lease: acquire and release",
        clients: 1,
        wanted: Some(0.9),
        printed: "@acquire node2\n@release node2",
        locktop: CYCLE,
    },
    Row { name: "lease: renew", clients: 1, wanted: Some(0.9), printed: "@acquire node1", locktop: RENEW },
    Row { name: "rate limit: allowed", clients: 1, wanted: Some(0.9), printed: ALLOWED, locktop: ALLOWED },
    Row { name: "rate limit: allowed", clients: 8, wanted: Some(0.9), printed: ALLOWED, locktop: ALLOWED },
    Row { name: "rate limit: refused", clients: 1, wanted: None, printed: REFUSED, locktop: REFUSED },
    Row { name: "rate limit: refused", clients: 8, wanted: Some(2.0), printed: REFUSED, locktop: REFUSED },
    Row { name: "rate limit: 1,000 keys", clients: 1, wanted: Some(0.9), printed: KEYS, locktop: KEYS },
    Row { name: "rate limit: 1,000 keys", clients: 8, wanted: Some(0.9), printed: KEYS, locktop: KEYS },
    Row { name: "id: one generator", clients: 1, wanted: None, printed: ID, locktop: ID },
    Row { name: "id: a generator each", clients: 8, wanted: None, printed: OWN_ID, locktop: OWN_ID },
];

const CYCLE: &str =
    "SELECT @lease_acquire(1, 'node1', '20 seconds') AS token \\gset\nSELECT @lease_release(1, :token);";
const RENEW: &str = "SELECT @lease_renew(2, :token, '20 seconds');";
const ALLOWED: &str = "SELECT @check_rate_limit('k', 2000000000, 86400);";
const REFUSED: &str = "SELECT @check_rate_limit('full', 1, 86400);";
const KEYS: &str = "\\set key random(1, 1000)\nSELECT @check_rate_limit('key ' || :key, 2000000000, 86400);";
const ID: &str = "SELECT @generate_snowflake_id(1);";
const OWN_ID: &str = "\\set worker :client_id + 1\nSELECT @generate_snowflake_id(:worker);";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// A block of an article.
fn block(name: &str) -> &'static str {
    let blocks = LEASE.split("--@ ").chain(RECIPES.split("--@ "));
    blocks.into_iter().find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap()
}

async fn measure() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let info = ConnInfo::parse(&server.conninfo()).unwrap();
    let mut admin = connect(&info).await.unwrap();
    let (all, only) = (ROWS, std::env::var("LOCKTOP_BENCH_ONLY").unwrap_or_default());
    for name in ["rate_table", "rate", "id_table", "id", "table", "row"] {
        admin.client.batch_execute(block(name)).await.unwrap();
    }
    schema::install(&mut admin.client, &SchemaName::default()).await.unwrap();
    let workers = "INSERT INTO locktop.id_generator (worker_id) SELECT generate_series(1, 8);
                   INSERT INTO public.id_generator (worker_id) SELECT generate_series(4, 8);
                   SELECT locktop.lease_acquire(2, 'node1', '1 day')";
    admin.client.batch_execute(workers).await.unwrap();
    let row = admin.client.query_one("SELECT token FROM locktop.distlock", &[]).await.unwrap();
    let pgbench = Pgbench::find(server.socket_dir(), &info, row.get(0));
    let (rounds, calls) = (number("LOCKTOP_BENCH_ROUNDS", 7), number("LOCKTOP_BENCH_CALLS", 4000));
    println!("PostgreSQL {}, {calls} calls a round, {rounds} rounds", server.version());
    println!(
        "{:<28}{:>8}{:>12}{:>12}{:>8}{:>16}",
        "", "clients", "printed/s", "locktop/s", "ratio", "all rounds"
    );
    for row in all.iter().filter(|row| row.name.contains(&only)) {
        pgbench.compare(row, rounds, calls);
    }
    if "contests".contains(&only) {
        contest::all(&info, number("LOCKTOP_BENCH_SECONDS", 20)).await;
    }
    server.stop().await.unwrap();
}
