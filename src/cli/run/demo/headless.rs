//! The demo without a screen: runs for some time, prints a summary, and fails if an invariant was violated.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use super::super::Failure;
use crate::cli::{DemoArgs, Goal, SnapshotFormat};
use crate::clock;
use crate::runtime::signals::ending;
use locktop_lab::DemoOptions;
use locktop_lab::tasks::{Outcome, RunningContests, Summary, TasksError};

const DURATION: Duration = Duration::from_secs(20);
/// Poll interval for `--until`.
const LOOK: Duration = Duration::from_millis(250);
/// Interval of the progress line.
const TELL: Duration = Duration::from_secs(5);

pub(super) async fn run(options: DemoOptions, arguments: &DemoArgs) -> Result<u8, Failure> {
    // Catch signals from here on, so that an early Ctrl-C leaves nothing half done.
    let interrupted = ending()?;
    let mut demo = locktop_lab::run(options).await?;
    let played = match &mut demo.contests {
        Some(contests) => Box::pin(run_to_end(contests, arguments, interrupted)).await,
        None => Err(Failure::Other("no scenario with tasks was given".to_owned())),
    };
    let stopped = demo.stop().await;
    let (outcome, missed) = played?;
    // The violations come first: a failed cleanup must not hide them.
    let left = stopped.err().map(|error| error.to_string());
    let broken: Vec<String> = outcome.violations.into_iter().chain(missed).chain(left).collect();
    print(&outcome.summary, arguments.format, broken.is_empty())?;
    if broken.is_empty() { Ok(0) } else { Err(Failure::Other(broken.join("\n"))) }
}

/// Runs to the end, and returns the numbers and which goals were missed.
async fn run_to_end(
    contests: &mut RunningContests,
    arguments: &DemoArgs,
    interrupted: impl Future<Output = u8>,
) -> Result<(Outcome, Option<String>), Failure> {
    let duration = arguments.duration.unwrap_or(DURATION);
    let goals = &arguments.until;
    let ended = tokio::select! {
        failed = tell(contests, duration) => failed.map(|()| None),
        reached = reach(contests, goals) => reached.map(|()| None),
        () = tokio::time::sleep(duration) => Ok(Some(format!("not within {duration:?}"))),
        _ = interrupted => Ok(Some("not before it was interrupted".to_owned())),
    };
    let outcome = contests.finish().await?;
    let in_vain = ended?;
    let left: Vec<String> =
        goals.iter().filter(|goal| !is_reached(goal, &outcome.summary)).map(ToString::to_string).collect();
    let missed = in_vain.filter(|_| !left.is_empty()).map(|why| format!("{why}: {}", left.join(", ")));
    Ok((outcome, missed))
}

/// Returns when all goals are reached; never if there are none.
async fn reach(contests: &RunningContests, goals: &[Goal]) -> Result<(), TasksError> {
    if goals.is_empty() {
        std::future::pending::<()>().await;
    }
    loop {
        let outcome = contests.outcome().await?;
        if goals.iter().all(|goal| is_reached(goal, &outcome.summary)) {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Prints the progress to a terminal. Returns only on an error.
async fn tell(contests: &RunningContests, duration: Duration) -> Result<(), TasksError> {
    if !io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    let started = clock::monotonic();
    loop {
        tokio::time::sleep(TELL).await;
        let summary = contests.outcome().await?.summary;
        let number = |key| summary.value(key).unwrap_or_default();
        let (executions, recovered) = (number("executions"), number("recovered"));
        let passed = started.elapsed().as_secs();
        // The terminal may be closed.
        let _ = writeln!(
            io::stderr(),
            "{passed} of {} s: {executions} executions, {recovered} recovered",
            duration.as_secs()
        );
    }
}

fn is_reached(goal: &Goal, summary: &Summary) -> bool {
    summary.value(&goal.key).is_some_and(|value| value >= goal.least)
}

fn print(summary: &Summary, format: SnapshotFormat, is_well: bool) -> Result<u8, Failure> {
    super::super::print(&match format {
        SnapshotFormat::Json => serde_json::to_string(summary)?,
        SnapshotFormat::Table => format!("{}\n{}", summary.verdict(is_well), summary.table()),
    })
}
