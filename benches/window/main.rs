//! The session that a signal hits if its target continues during the request: `cargo bench --bench window`.
//!
//! Some time passes between reading a session's row and sending the signal. Here a session goes from one situation to
//! the next without a pause: a query, a transaction or a key, for a random time of up to twice the duration of a
//! request. The text of the statement contains the number of the situation. The bench reads the row, requests the
//! action, and the session itself records in which situation it was hit: the one that was read, at its end (the
//! statement that ends it was sent and not answered), or a later one. `LOCKTOP_ASKS` (10,000) is the number of requests
//! for each cell; the cells are measured without other load, with 50,000 locks held by another session, and with 100
//! waiters; `LOCKTOP_CELLS` selects cells by a part of their names.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench may"
)]

mod asker;
mod victim;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::model::plan::Verb;
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;

use crate::asker::{Asker, Tally};
use crate::victim::{Kind, Victim};

/// The action, and the kind of situation.
struct Row {
    name: &'static str,
    verb: Verb,
    kind: Kind,
    /// As on the Chains screen.
    blocks: bool,
}

const ROWS: [Row; 5] = [
    Row { name: "C query", verb: Verb::Cancel, kind: Kind::Query, blocks: false },
    Row { name: "K transaction", verb: Verb::Terminate, kind: Kind::Transaction, blocks: false },
    Row { name: "K transaction, Chains", verb: Verb::Terminate, kind: Kind::Transaction, blocks: true },
    Row { name: "K key", verb: Verb::Terminate, kind: Kind::Key, blocks: false },
    Row { name: "K key, Chains", verb: Verb::Terminate, kind: Kind::Key, blocks: true },
];

const LOCKS: usize = 50_000;
const WAITERS: usize = 100;

fn main() {
    let asks = std::env::var("LOCKTOP_ASKS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let only = std::env::var("LOCKTOP_CELLS").unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(measure(asks, &only));
}

async fn measure(asks: usize, only: &str) {
    let options = Options::default().with("max_connections", 200).with("max_locks_per_transaction", 512);
    let server = EmbeddedServer::start(options).await.unwrap();
    let info = ConnInfo::parse(&server.conninfo()).unwrap();
    println!(
        "{:<24}{:<14}{:>8}{:>8}{:>10}{:>8}{:>8}{:>10}{:>10}",
        "", "load", "asked", "sent", "as seen", "at end", "later", "not hit", "ms/ask"
    );
    for (load, locks, waiters) in [("nothing", 0, 1), ("50,000 locks", LOCKS, 1), ("100 waiters", 0, WAITERS)]
    {
        if !ROWS.iter().any(|row| is_meant(row, load, only)) {
            continue;
        }
        let others = connect(&info).await.unwrap();
        let hold = format!(
            "SELECT count(pg_advisory_lock_shared(1, number)) FROM generate_series(1, {locks}) AS number"
        );
        others.client.batch_execute(&hold).await.unwrap();
        for row in ROWS.iter().filter(|row| is_meant(row, load, only)) {
            let tally = cell(&info, row, waiters, asks).await;
            let Tally { asked, sent, seen, end, later, missed, seconds } = tally;
            println!(
                "{:<24}{load:<14}{asked:>8}{sent:>8}{seen:>10}{end:>8}{later:>8}{missed:>10}{:>10.2}",
                row.name,
                seconds * 1e3 / asked as f64
            );
        }
    }
}

fn is_meant(row: &Row, load: &str, only: &str) -> bool {
    format!("{}, {load}", row.name).contains(only)
}

async fn cell(info: &ConnInfo, row: &Row, waiters: usize, asks: usize) -> Tally {
    let victim = Victim::start(info.clone(), row.kind);
    let mut crowd = Vec::new();
    if row.blocks {
        for _ in 0..waiters {
            crowd.push(tokio::spawn(victim::wait_again_and_again(info.clone(), row.kind)));
        }
    }
    let mut asker = Asker::of(info, row.verb, row.kind, row.blocks).await;
    let tally = asker.ask(&victim, asks).await;
    victim.stop();
    for waiter in crowd {
        waiter.abort();
    }
    tally
}
