use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio_postgres::Client;

use super::sql;
use crate::action::message::{Access, send};
use crate::action::record::{Record, Recorder};
use crate::clock;
use crate::model::Timestamp;
use crate::model::plan::{Outcome, Seen, SessionTarget, Signal, Target, TargetResult};
use crate::text::duration;

const PAUSE: Duration = Duration::from_millis(50);

pub(in crate::action) struct Pending<'a> {
    pub(in crate::action) place: usize,
    pub(in crate::action) target: &'a Target,
    pub(in crate::action) signal: Signal,
    pub(in crate::action) session: &'a SessionTarget,
    pub(in crate::action) short: String,
}

#[derive(Debug, Deserialize)]
struct SessionRow {
    pid: i32,
    backend_start: Option<Timestamp>,
    query_start: Option<Timestamp>,
    state: Option<String>,
}

impl SessionRow {
    fn is(&self, session: &SessionTarget) -> bool {
        self.pid == session.pid && self.backend_start == Some(session.backend_start)
    }
}

impl Pending<'_> {
    fn done(&self, rows: &[SessionRow]) -> Option<&'static str> {
        let Some(row) = rows.iter().find(|row| row.is(self.session)) else {
            return Some(match self.signal {
                Signal::Terminate => "its session ended",
                Signal::Cancel => "its query was canceled, and its session ended",
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

/// Polls all sessions, each time in one transaction, until every signal has taken effect or the wait is over.
pub(in crate::action) async fn all<R: Record>(
    client: &Client,
    recorder: &mut Recorder<'_, R>,
    mut pending: Vec<Pending<'_>>,
    results: &mut [Option<TargetResult>],
) {
    let start = clock::monotonic();
    let wait =
        Duration::try_from_secs_f64(recorder.command.wait).unwrap_or_default().min(Duration::from_secs(3600));
    while !pending.is_empty() {
        let pids: Vec<i32> = pending.iter().map(|one| one.session.pid).collect();
        let rows = look(client, &pids).await;
        let is_late = left(start, wait).is_zero();
        let mut remain = Vec::new();
        for one in pending {
            let told = match rows.as_ref().map(|rows| one.done(rows)) {
                Ok(Some(done)) => (Outcome::Done, done.to_owned()),
                Ok(None) if is_late => {
                    let waited = duration(wait.as_secs_f64());
                    (Outcome::StillThere, format!("not confirmed after {waited}"))
                }
                Ok(None) => {
                    remain.push(one);
                    continue;
                }
                Err(why) => (Outcome::Uncertain, format!("the server accepted the request; then {why}")),
            };
            let result = recorder.told(Some(client), one.target, &one.short, told).await;
            if let Some(place) = results.get_mut(one.place) {
                *place = Some(result);
            }
        }
        pending = remain;
        if !pending.is_empty() {
            tokio::time::sleep(PAUSE.min(left(start, wait))).await;
        }
    }
}

/// Whether the session has ended. Returns as soon as it has; false if it still exists after the wait.
pub(in crate::action) async fn ended(
    client: &Client,
    session: &SessionTarget,
    wait: Duration,
) -> Result<bool, String> {
    let start = clock::monotonic();
    loop {
        let rows = look(client, &[session.pid]).await?;
        if !rows.iter().any(|row| row.is(session)) {
            return Ok(true);
        }
        let left = left(start, wait);
        if left.is_zero() {
            return Ok(false);
        }
        tokio::time::sleep(PAUSE.min(left)).await;
    }
}

fn left(start: Instant, wait: Duration) -> Duration {
    wait.saturating_sub(start.elapsed())
}

async fn look(client: &Client, pids: &[i32]) -> Result<Vec<SessionRow>, String> {
    let rows = send(client, Access::ReadOnly, &sql::watch(pids)).await.map_err(|error| error.to_string())?;
    let rows = rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>();
    rows.map_err(|error| format!("the answer cannot be read: {error}"))
}
