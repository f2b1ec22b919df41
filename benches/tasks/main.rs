//! Scheduled tasks under load: `cargo bench --bench tasks`.
//!
//! There are 10,000 due tasks and 50 workers, each with its own connection; the server has one core and the workers
//! have another. locktop's functions are compared with those of the printed recipe, in which only ambiguous names are
//! repaired: tasks completed a second, requests for a task that lost the race, and tasks that ran twice. The bench
//! starts its own server, which does not wait for the disk; a round ends before the tasks run out.
//!
//! The recipe does not define what a worker does when it gets no task, so it is measured with no pause and with several
//! pauses, and the best result counts. `LOCKTOP_SECONDS` (5) is the length of a round, `LOCKTOP_WORK` the milliseconds
//! of work of a task (`0 5 20 100 1000`), `LOCKTOP_BATCH` the number of tasks in one request (`1 10`),
//! `LOCKTOP_SYSTEMS` is `locktop`, `recipe` or both.
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

/// Milliseconds that a worker of the recipe waits after it got no task.
const PAUSES: [u64; 5] = [0, 10, 100, 300, 1_000];

/// One kind of round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub(crate) work: Duration,
    /// Tasks per request.
    pub(crate) batch: i32,
    pub(crate) length: Duration,
}

fn main() {
    let seconds = numbers("LOCKTOP_SECONDS", "5")[0].max(1);
    let systems = std::env::var("LOCKTOP_SYSTEMS").unwrap_or_else(|_| "locktop recipe".to_owned());
    let [server_core, .., client_core] = cores::all()[..] else {
        println!("the server and the workers each need a core: this process is limited to one");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // All processes started now stay on this core.
    cores::pin(server_core);
    let stage = runtime.block_on(Stage::open());
    cores::pin(client_core);
    runtime.block_on(async {
        println!("{}", tally::HEAD);
        for batch in numbers("LOCKTOP_BATCH", "1 10") {
            for work in numbers("LOCKTOP_WORK", "0 5 20 100 1000") {
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

/// Compares locktop with the recipe, measured with the pause that gives its best result.
async fn compare(stage: &Stage, round: Round, systems: &str) {
    let mut locktop = None;
    if systems.contains("locktop") {
        locktop = Some(measure(stage, System::Locktop, round).await);
    }
    if !systems.contains("recipe") {
        return;
    }
    let mut best: f64 = 0.0;
    for pause in PAUSES.map(Duration::from_millis) {
        best = best.max(measure(stage, System::Recipe { pause }, round).await.completed_a_second());
    }
    if let Some(locktop) = locktop {
        println!("{:>78}{:>8.2} times the best of the recipe", "", locktop.completed_a_second() / best);
    }
}

async fn measure(stage: &Stage, system: System, round: Round) -> Tally {
    let tally = stage.round(system, round).await;
    println!("{}", tally.line(&system.to_string(), round));
    tally
}

/// The numbers in a variable, or the default.
fn numbers(name: &str, otherwise: &str) -> Vec<u64> {
    let text = std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}
