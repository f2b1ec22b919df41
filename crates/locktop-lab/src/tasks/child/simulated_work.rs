use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval_at};

use super::super::witness::{Record, TICK};
use crate::workers::{Payload, TaskEnd};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum End<R> {
    Done,
    Failed(String),
    Stopped(R),
}

const ERRORS: [&str; 4] = [
    "HTTP 503 from the upstream service",
    "connection timed out: the upstream service cannot be reached",
    "checksum mismatch in row 4711",
    "disk quota exceeded on /var/exports",
];

/// Works, recording signs, until it is done or requested to stop. Its end is not recorded yet.
///
/// # Errors
/// If the witness cannot write: then it is not known what ran, and the work must not continue.
pub(super) async fn simulate<R>(
    task: i32,
    payload: Payload,
    record: &Record<'_>,
    stop: impl Future<Output = R>,
) -> Result<End<R>, String> {
    let mut signs = interval_at(start() + TICK, TICK);
    // After a pause one sign is due, not all that were missed.
    signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let work = async {
        match payload.ends {
            TaskEnd::Hangs => std::future::pending().await,
            TaskEnd::Well | TaskEnd::Fails => {
                let seconds = payload.seconds.clamp(0.0, 86_400.0);
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            }
        }
    };
    tokio::pin!(work, stop);
    loop {
        tokio::select! {
            // A request to stop has priority, the next sign comes last.
            biased;
            reason = &mut stop => return Ok(End::Stopped(reason)),
            () = &mut work => break,
            _ = signs.tick() => record.tick().await?,
        }
    }
    let error = usize::try_from(task).ok().and_then(|task| ERRORS.get(task % ERRORS.len()));
    Ok(match payload.ends {
        TaskEnd::Fails => End::Failed(error.copied().unwrap_or_default().to_owned()),
        TaskEnd::Well | TaskEnd::Hangs => End::Done,
    })
}

/// The timer's own clock, which is not a time of day.
#[expect(clippy::disallowed_methods, reason = "where an interval of the timer begins")]
fn start() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
