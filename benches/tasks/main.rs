//! Scheduled tasks under a crowd: `cargo bench --bench tasks`.
//!
//! 10,000 tasks that are due, 50 workers, each on a connection of its own; the server has one core and the workers have
//! another. Our functions beside those of the printed recipe, of which only the names are repaired: how many tasks are
//! completed a second, how many of the calls that ask for a task lost the race, and what ran twice. A server of its own
//! that does not wait for the disk; a round ends before the tasks run out.
//!
//! The recipe does not say what a worker does that was given nothing, so it is measured with no pause and with several,
//! and the best of them counts. `LOCKTOP_SECONDS` (5) is the length of a round, `LOCKTOP_WORK` the milliseconds of work
//! to measure (`0 5 20 100 1000`), `LOCKTOP_BATCH` the tasks that a worker asks for at once (`1 10`), `LOCKTOP_SYSTEMS`
//! is `ours`, `recipe` or both.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

mod cores;
#[expect(dead_code, reason = "shared with the bench of the program")]
#[path = "../cost/process.rs"]
mod process;
mod stage;
mod system;
mod tally;
mod worker;

use std::time::Duration;

use stage::Stage;
use system::System;
use tally::Tally;

/// Milliseconds that a worker of the recipe waits after it was given nothing.
const PAUSES: [u64; 5] = [0, 10, 100, 300, 1_000];

/// One kind of round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub(crate) work: Duration,
    /// Tasks asked for at once.
    pub(crate) batch: i32,
    pub(crate) length: Duration,
}

fn main() {
    let seconds = words("LOCKTOP_SECONDS", "5")[0].max(1);
    let systems = std::env::var("LOCKTOP_SYSTEMS").unwrap_or_else(|_| "ours recipe".to_owned());
    let [server_core, .., client_core] = cores::all()[..] else {
        println!("the server needs a core, and the workers another: this process cannot have two");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // What is started now stays on this core.
    cores::pin(server_core);
    let stage = runtime.block_on(Stage::open());
    cores::pin(client_core);
    runtime.block_on(async {
        println!("{}", tally::HEAD);
        for batch in words("LOCKTOP_BATCH", "1 10") {
            for work in words("LOCKTOP_WORK", "0 5 20 100 1000") {
                let round = Round {
                    work: Duration::from_millis(work),
                    batch: batch.try_into().unwrap(),
                    // Long enough for a few tasks of each worker.
                    length: Duration::from_secs(seconds).max(Duration::from_millis(work * 10)),
                };
                compare(&stage, round, &systems).await;
            }
        }
        stage.close().await;
    });
}

/// Ours beside the recipe, whose pause that suits it best is the one that counts.
async fn compare(stage: &Stage, round: Round, systems: &str) {
    let mut ours = None;
    if systems.contains("ours") {
        ours = Some(measure(stage, System::Ours, round).await);
    }
    if !systems.contains("recipe") {
        return;
    }
    let mut best: f64 = 0.0;
    for pause in PAUSES.map(Duration::from_millis) {
        best = best.max(measure(stage, System::Recipe { pause }, round).await.completed_a_second());
    }
    if let Some(ours) = ours {
        println!("{:>78}{:>8.2} times the best of the recipe", "", ours.completed_a_second() / best);
    }
}

async fn measure(stage: &Stage, system: System, round: Round) -> Tally {
    let tally = stage.round(system, round).await;
    println!("{}", tally.line(&system.to_string(), round));
    tally
}

/// Numbers in a variable, or these.
fn words(name: &str, otherwise: &str) -> Vec<u64> {
    let text = std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}
