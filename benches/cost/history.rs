//! Compares the program with its history and without, on the same server at the same time.

use std::time::Duration;

use crate::process;
use crate::program::{Options, Program};

/// Runs both, and prints the CPU time and memory of each.
pub(crate) async fn compare(conninfo: &str, name: &str, screen: &str, root: &str, length: Duration) {
    let with = Program::start_with(conninfo, screen, Options::default());
    let without = Program::start_with(conninfo, screen, Options { without_history: true });
    let both = [with, without];
    for program in &both {
        program.wait_for(root);
    }
    tokio::time::sleep(crate::WARM_UP).await;
    let cpu = || both.each_ref().map(|program| process::cpu(program.pid()));
    let before = cpu();
    tokio::time::sleep(length).await;
    let after = cpu();
    let a_second = |at: usize| (after[at] - before[at]) / length.as_secs_f64() * 1e3;
    let resident = both.each_ref().map(|program| process::megabytes(program.pid(), "VmRSS"));
    println!(
        "{name:<18}{screen:<10}history: client {:.2} with, {:.2} without, ratio {:.2}; RSS {:.1} and {:.1}",
        a_second(0),
        a_second(1),
        a_second(0) / a_second(1),
        resident[0],
        resident[1]
    );
    for program in both {
        program.quit();
    }
}
