use std::time::Duration;

use serde::Deserialize;
use tokio_postgres::Client;

use super::RecoveryOrder;
use super::error::{FORBIDDEN, RecoveryNeed, grants};
use super::find::guarded;
use super::plan::{Planned, RecoveryPlan, Step};
use super::running::{RecoveryOutcome, RecoveryResult, RunningExecution};
use crate::message::{Access, Unanswered, is, moment, note, number, packed, send, text};
use crate::schema::Schema;
use locktop_base::Timestamp;
use locktop_base::clock;

/// Interval between two checks whether a key is free.
const PAUSE: Duration = Duration::from_millis(50);

/// The answer of `recover_seen_execution` and `ask_seen_termination`.
#[derive(Debug, Deserialize)]
struct RecoverAnswer {
    outcome: String,
    detail: Option<String>,
    holder_pid: Option<i32>,
    next_run_at: Option<Timestamp>,
    audit_id: Option<i64>,
}

/// Carries a plan out, one execution after the other; returns one result for each row of it, including those left alone.
/// `told` receives each result as it comes. Once a result is not known, for example because the connection is lost, the
/// rest is not tried.
pub async fn execute(
    client: &Client,
    schema: impl Into<Schema>,
    plan: &RecoveryPlan,
    order: &RecoveryOrder,
    mut told: impl FnMut(&RecoveryResult),
) -> Vec<RecoveryResult> {
    let schema = &schema.into();
    let mut results: Vec<RecoveryResult> = Vec::with_capacity(plan.rows.len());
    for row in &plan.rows {
        let result = match not_tried(row, &results) {
            Some(result) => result,
            None => execute_one(client, schema, plan, row, order).await,
        };
        told(&result);
        results.push(result);
    }
    results
}

/// The result for a row that is not tried, because one of these results is not known.
#[must_use]
pub fn not_tried(row: &Planned, results: &[RecoveryResult]) -> Option<RecoveryResult> {
    let in_doubt = results.iter().any(|result| result.outcome == RecoveryOutcome::Uncertain);
    let why = "not tried: the result of a previous one is not known";
    let result = || RecoveryResult::new(row.seen.execution_id, RecoveryOutcome::NotTried, why);
    (in_doubt && row.acts()).then(result)
}

/// Carries out the plan for one execution.
pub async fn execute_one(
    client: &Client,
    schema: &Schema,
    plan: &RecoveryPlan,
    row: &Planned,
    order: &RecoveryOrder,
) -> RecoveryResult {
    let one = One { client, schema, plan, seen: &row.seen, order };
    match row.step {
        Step::Leave(_) => one.result(RecoveryOutcome::LeftAlone, row.effect(plan.grace)),
        Step::Recover => one.recover(true).await,
        Step::Terminate { pid, start } => {
            let result = one.terminate_and_recover(pid, start).await;
            let also_ended = if result.ended_pid.is_some() { row.also_ended.clone() } else { Vec::new() };
            RecoveryResult { also_ended, ..result }
        }
    }
}

struct One<'a> {
    client: &'a Client,
    schema: &'a Schema,
    plan: &'a RecoveryPlan,
    seen: &'a RunningExecution,
    order: &'a RecoveryOrder,
}

impl One<'_> {
    fn result(&self, outcome: RecoveryOutcome, detail: impl Into<String>) -> RecoveryResult {
        RecoveryResult::new(self.seen.execution_id, outcome, detail)
    }

    /// The execution as it was seen, as arguments of a function.
    fn identity(&self) -> String {
        format!(
            "{}, {}, {}, {}, {}",
            self.seen.execution_id,
            self.worker(),
            moment(self.seen.started_at),
            number(self.seen.backend_pid),
            moment(self.seen.backend_start),
        )
    }

    /// The worker as it was seen. If some of its bytes were invalid, the one in the row, provided that all the rest is the
    /// same.
    fn worker(&self) -> String {
        if !self.seen.worker_id.contains('\u{fffd}') {
            return text(&self.seen.worker_id);
        }
        format!(
            "(SELECT e.worker_id FROM {}.task_execution_log AS e WHERE e.id = {} AND {})",
            self.schema.quoted(),
            self.seen.execution_id,
            is("e.worker_id", Some(&self.seen.worker_id)),
        )
    }

    /// The initiator and the reason, as arguments of a function.
    fn initiator(&self) -> String {
        let reason = self.order.reason.as_deref().map_or_else(|| "NULL".to_owned(), note);
        format!("{}, {reason}", note(&self.order.actor.to_string()))
    }

    /// Makes the server close the execution, if it is still as it was seen. If `quiet`, a sign of life after the plan was
    /// made prevents that.
    async fn recover(&self, quiet: bool) -> RecoveryResult {
        let seen_at = moment(quiet.then_some(self.plan.taken_at));
        let call = format!("recover_seen_execution({}, {seen_at}, {})", self.identity(), self.initiator());
        match self.answer(&call).await {
            Ok(answer) => self.result_of(answer),
            Err(error) => self.unanswered(&error, RecoveryNeed::Recover),
        }
    }

    /// Terminates the holder of the key, waits until the key is free, and closes the execution.
    async fn terminate_and_recover(&self, pid: i32, start: Timestamp) -> RecoveryResult {
        let (identity, start) = (self.identity(), moment(Some(start)));
        let call = format!("ask_seen_termination({identity}, {pid}, {start}, {})", self.initiator());
        let audit_id = match self.answer(&call).await {
            Ok(RecoverAnswer { outcome, audit_id: Some(audit_id), .. }) if outcome == "asked" => audit_id,
            // The holder ended without being terminated.
            Ok(answer) if answer.outcome == "free" => return self.recover(false).await,
            Ok(answer) => return self.result_of(answer),
            Err(error) => return self.unanswered(&error, RecoveryNeed::Terminate),
        };
        // If it is still the same session.
        let end = format!("SELECT {}.terminate_task_holder({audit_id})", self.schema.quoted());
        let ended_pid = match self.is_true(Access::ReadWrite, &end).await {
            Ok(is_ended) => is_ended.then_some(pid),
            Err(error) => {
                let result = self.unanswered(&error, RecoveryNeed::Terminate);
                return RecoveryResult { audit_id: Some(audit_id), ..result };
            }
        };
        let waited = if ended_pid.is_some() { self.wait(pid).await } else { Ok(true) };
        let result = match waited {
            Ok(true) => self.recover(false).await,
            Ok(false) => {
                let waited = locktop_base::text::duration(self.order.wait.as_secs_f64());
                let detail = format!("pid {pid} was terminated, but still holds its key after {waited}");
                RecoveryResult { holder_pid: Some(pid), ..self.result(RecoveryOutcome::Held, detail) }
            }
            Err(error) => self.unanswered(&error, RecoveryNeed::Terminate),
        };
        let detail = match ended_pid {
            Some(pid) if result.outcome != RecoveryOutcome::Held => {
                format!("pid {pid} was terminated; {}", result.detail)
            }
            Some(_) => result.detail,
            None => {
                format!("pid {pid} was not terminated, because it no longer held the key; {}", result.detail)
            }
        };
        RecoveryResult { detail, ended_pid, audit_id: Some(audit_id), ..result }
    }

    /// Whether a process released the key in time. Checks without locking: the process may need the row for its last
    /// statements.
    async fn wait(&self, pid: i32) -> Result<bool, Unanswered> {
        let Some(key) = self.seen.lock_id else { return Ok(true) };
        let schema = self.schema.quoted();
        let holds = format!("SELECT EXISTS (SELECT FROM {schema}.key_holders({key}) h WHERE h.pid = {pid})");
        let start = clock::monotonic();
        loop {
            if !self.is_true(Access::ReadOnly, &holds).await? {
                return Ok(true);
            }
            let left = self.order.wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            tokio::time::sleep(PAUSE.min(left)).await;
        }
    }

    async fn is_true(&self, access: Access, sql: &str) -> Result<bool, Unanswered> {
        let rows = send(self.client, access, &guarded(self.schema, sql)).await?;
        Ok(rows.first().is_some_and(|answer| answer == "t"))
    }

    async fn answer(&self, call: &str) -> Result<RecoverAnswer, Unanswered> {
        let sql = format!("SELECT {} FROM {}.{call} r", packed("to_jsonb(r)"), self.schema.quoted());
        let rows = send(self.client, Access::ReadWrite, &guarded(self.schema, &sql)).await?;
        serde_json::from_str(rows.first().map_or("", String::as_str))
            .map_err(|error| Unanswered::Unread(error.to_string()))
    }

    fn result_of(&self, answer: RecoverAnswer) -> RecoveryResult {
        let detail = answer.detail.unwrap_or_default();
        let Some(outcome) = RecoveryOutcome::parse(&answer.outcome) else {
            return self.result(
                RecoveryOutcome::Uncertain,
                format!("the server answered \"{}\": {detail}", answer.outcome),
            );
        };
        let result = self.result(outcome, detail);
        RecoveryResult { holder_pid: answer.holder_pid, next_run_at: answer.next_run_at, ..result }
    }

    fn unanswered(&self, error: &Unanswered, need: RecoveryNeed) -> RecoveryResult {
        match error.code() {
            None => {
                let known = match error {
                    Unanswered::Unread(_) => "the effect on the server",
                    _ => "whether it was done",
                };
                let detail = format!("{error}: {known} is not known");
                self.result(RecoveryOutcome::Uncertain, detail)
            }
            Some(FORBIDDEN) => {
                let role = &self.order.actor.role;
                let grants = grants(&self.schema.name, role, need).join("; ");
                self.result(RecoveryOutcome::Forbidden, format!("{error}; what the role needs: {grants}"))
            }
            // lock_not_available
            Some("55P03") => {
                self.result(RecoveryOutcome::Locked, format!("another session has locked its task: {error}"))
            }
            Some(_) => self.result(RecoveryOutcome::Failed, error.to_string()),
        }
    }
}
