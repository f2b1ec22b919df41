//! Waiting for what was asked to happen.

use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio_postgres::Client;

use super::sql::{self, Signal};
use crate::action::message::{Access, send};
use crate::action::record::{Record, Recorder};
use crate::clock;
use crate::model::Timestamp;
use crate::model::plan::{Outcome, Seen, SessionTarget, Target, TargetResult};
use crate::text::duration;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A session that was signalled.
pub(super) struct Pending<'a> {
    /// Its place among the targets.
    pub(super) place: usize,
    pub(super) target: &'a Target,
    pub(super) signal: Signal,
    pub(super) session: &'a SessionTarget,
    pub(super) short: String,
}

/// Where a process stands.
#[derive(Debug, Deserialize)]
struct Row {
    pid: i32,
    backend_start: Option<Timestamp>,
    query_start: Option<Timestamp>,
    state: Option<String>,
}

impl Pending<'_> {
    /// What has happened, if it has.
    fn done(&self, rows: &[Row]) -> Option<&'static str> {
        let pid = self.session.pid;
        let start = Some(self.session.backend_start);
        let Some(row) = rows.iter().find(|row| row.pid == pid && row.backend_start == start) else {
            return Some(match self.signal {
                Signal::Terminate => "its session is gone",
                Signal::Cancel => "its query was cancelled, and the session is gone",
            });
        };
        let is_other = match self.session.query_start {
            Seen::Same(start) => row.query_start != start,
            Seen::Any => false,
        };
        let is_over = is_other || row.state.as_deref() != Some("active");
        (self.signal == Signal::Cancel && is_over).then_some("its query has ended")
    }
}

/// Looks again and again, at all of them in one transaction, until it has happened to all or the time is over.
pub(super) async fn all<R: Record>(
    client: &Client,
    recorder: &mut Recorder<'_, R>,
    mut pending: Vec<Pending<'_>>,
    results: &mut [Option<TargetResult>],
) {
    let start = clock::monotonic();
    // Nobody has to wait longer than that.
    let wait =
        Duration::try_from_secs_f64(recorder.command.wait).unwrap_or_default().min(Duration::from_secs(3600));
    while !pending.is_empty() {
        let pids: Vec<i32> = pending.iter().map(|one| one.session.pid).collect();
        let rows = match look(client, &pids).await {
            Ok(rows) => rows,
            Err(why) => {
                let outcome = (Outcome::Uncertain, format!("the server took the order; then {why}"));
                settle(client, recorder, pending, results, |_| Some(outcome.clone())).await;
                return;
            }
        };
        let is_late = left(start, wait).is_zero();
        let told = |one: &Pending<'_>| match one.done(&rows) {
            Some(done) => Some((Outcome::Done, done.to_owned())),
            None if is_late => Some((
                Outcome::StillThere,
                format!("it has not happened after {}", duration(wait.as_secs_f64())),
            )),
            None => None,
        };
        pending = settle(client, recorder, pending, results, told).await;
        if !pending.is_empty() {
            tokio::time::sleep(PAUSE.min(left(start, wait))).await;
        }
    }
}

fn left(start: Instant, wait: Duration) -> Duration {
    wait.saturating_sub(start.elapsed())
}

/// Notes what came of those of which that is known; the others remain.
async fn settle<'a, R: Record>(
    client: &Client,
    recorder: &mut Recorder<'_, R>,
    pending: Vec<Pending<'a>>,
    results: &mut [Option<TargetResult>],
    told: impl Fn(&Pending<'a>) -> Option<(Outcome, String)>,
) -> Vec<Pending<'a>> {
    let mut remain = Vec::new();
    for one in pending {
        match told(&one) {
            Some(what) => {
                let result = recorder.told(Some(client), one.target, &one.short, what).await;
                if let Some(place) = results.get_mut(one.place) {
                    *place = Some(result);
                }
            }
            None => remain.push(one),
        }
    }
    remain
}

async fn look(client: &Client, pids: &[i32]) -> Result<Vec<Row>, String> {
    let rows = send(client, Access::ReadOnly, &sql::watch(pids)).await.map_err(|error| error.to_string())?;
    let rows = rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>();
    rows.map_err(|error| format!("the answer cannot be read: {error}"))
}
