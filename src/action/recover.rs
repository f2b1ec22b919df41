//! Recovers executions: those of locktop's own tables by the functions of their schema, and those in a published log, which
//! names no session.
//!
//! A row of a published log is failed only if it is unchanged and no session works on it. The row and its key are locked
//! until the end of the transaction. If a session works on the row, it is terminated first: the statement that signals
//! compares the session, the key that it holds, and the row. Published tables leave the task due.

use std::sync::Arc;

use locktop_tasks::recovery::{RecoveryOrder, execute_one, not_tried};
use tokio_postgres::Client;

use super::message::{moment, note};
use super::session::{self, SignalGuards};
use super::table::{ActedRow, ActedTable, free};
use super::{ActionContext, ActionRecord, ActionRequest, ReportedOutcome, not_recorded};
use crate::model::finding::Subject;
use crate::model::plan::rows::{Condition, PlanColumnKind};
use crate::model::plan::{
    ExecutionTarget, Outcome, Planned, PublishedHolder, PublishedTarget, RecoveryOutcome, RecoveryPlan,
    RecoveryResult, Signal, Step, Target, TargetKind, Verb,
};
use crate::model::task::{CLOSED, Execution};
use crate::schema::{Schema, SchemaName};
use crate::text::{duration, one_line};

/// As [`locktop_tasks::recovery::execute`]. For published tables, `published` has the executions to fail. A step that
/// cannot be recorded is not taken.
pub async fn execute_recorded(
    client: &Client,
    schema: impl Into<Schema>,
    (plan, published): (&RecoveryPlan, &[PublishedTarget]),
    order: &RecoveryOrder,
    record: &impl ActionRecord,
    mut report: impl FnMut(&RecoveryResult),
) -> Vec<RecoveryResult> {
    let schema = &schema.into();
    // UTC, as in all output of the command.
    let offset = chrono::Offset::fix(&chrono::Utc);
    let acting = ActionContext { client, order, owners: &schema.trusted_owners, offset };
    let shared = Arc::new(plan.clone());
    let act = async |row: &Planned| {
        let id = row.seen.execution_id;
        if !row.acts() {
            return execute_one(client, schema, plan, row, order).await;
        }
        let what = ExecutionTarget { plan: Arc::clone(&shared), row: row.clone() };
        let statement = recovery_short(&what);
        let name = one_line(&format!("execution {id} of {}", row.seen.task_name)).into_owned();
        let target = Target { what: TargetKind::Execution(what), name, subject: Subject::Server };
        let asked = ActionRequest { number: 1, verb: Verb::Recover, target: &target, statement: &statement };
        let entry = match record.asked(Some(client), &asked).await {
            Ok(entry) => entry,
            Err(why) => return RecoveryResult::new(id, RecoveryOutcome::Failed, not_recorded(&why)),
        };
        let mut result = match published.iter().find(|target| target.execution.id == id) {
            Some(target) => {
                let (result, ended_pid) = acting.fail(target).await;
                let also_ended = ended_pid.map(|_| row.also_ended.clone()).unwrap_or_default();
                RecoveryResult {
                    ended_pid,
                    also_ended,
                    ..RecoveryResult::new(id, recovery_outcome(result.0), result.1)
                }
            }
            None => execute_one(client, schema, plan, row, order).await,
        };
        // The outcome already shows that it was recovered.
        let said = match result.outcome {
            RecoveryOutcome::Recovered => result.detail.clone(),
            other => format!("{}: {}", other.as_str(), result.detail),
        };
        let recorded = target.result(outcome_of(&result), &said);
        if let Err(why) = record.write_result(Some(client), &asked, Some(entry), &recorded).await {
            result.detail.extend(["; its result is not recorded: ", why.as_str()]);
        }
        result
    };
    let mut results = Vec::with_capacity(plan.rows.len());
    for row in &plan.rows {
        let result = match not_tried(row, &results) {
            Some(result) => result,
            None => act(row).await,
        };
        report(&result);
        results.push(result);
    }
    results
}

pub(super) fn recovery_short(target: &ExecutionTarget) -> String {
    let (id, schema) = (target.row.seen.execution_id, &target.plan.schema);
    match target.row.step {
        Step::Terminate { pid, .. } => {
            format!("terminate pid {pid}, which holds its key, and recover execution {id} in schema {schema}")
        }
        _ => format!("recover execution {id} in schema {schema}"),
    }
}

const DUE_AGAIN: &str = "its task is due again";

/// A session that was asked to end and still holds the key has not done what was requested.
fn outcome_of(result: &RecoveryResult) -> Outcome {
    match result.outcome {
        RecoveryOutcome::Recovered => Outcome::Done,
        RecoveryOutcome::GaveUp => Outcome::GivenUp,
        RecoveryOutcome::Held if result.ended_pid.is_some() => Outcome::StillThere,
        RecoveryOutcome::NotRunning | RecoveryOutcome::NotFound | RecoveryOutcome::Changed => {
            Outcome::Changed
        }
        RecoveryOutcome::LeftAlone
        | RecoveryOutcome::Locked
        | RecoveryOutcome::Held
        | RecoveryOutcome::HeldByUs
        | RecoveryOutcome::Prepared
        | RecoveryOutcome::Shared
        | RecoveryOutcome::Unknown
        | RecoveryOutcome::NotSlow
        | RecoveryOutcome::Failed => Outcome::Refused,
        RecoveryOutcome::Hidden | RecoveryOutcome::Forbidden => Outcome::Forbidden,
        RecoveryOutcome::Uncertain => Outcome::Uncertain,
        RecoveryOutcome::NotTried => Outcome::NotTried,
    }
}

pub(super) fn published_short(target: &PublishedTarget) -> String {
    let PublishedTarget { execution, key, holder, .. } = target;
    let (source, id) = (&execution.source, execution.id);
    let update = format!("UPDATE {source} SET status = 'failed' WHERE id = {id} if it is still running");
    match holder {
        PublishedHolder::None => format!("{update} and no session holds key {key}"),
        PublishedHolder::Worker(session) => format!(
            "{} and it runs execution {id} of {} in {source}; then {update}",
            session::short(Signal::Terminate, session),
            one_line(execution.worker.as_deref().unwrap_or_default())
        ),
        PublishedHolder::Other { pid, execution, .. } => {
            format!("{update} and no session but {pid} holds key {key}, for execution {execution}")
        }
    }
}

fn recovery_outcome(outcome: Outcome) -> RecoveryOutcome {
    match outcome {
        Outcome::Done => RecoveryOutcome::Recovered,
        Outcome::Changed => RecoveryOutcome::Changed,
        Outcome::Forbidden => RecoveryOutcome::Forbidden,
        Outcome::Uncertain => RecoveryOutcome::Uncertain,
        Outcome::NotTried => RecoveryOutcome::NotTried,
        Outcome::StillThere => RecoveryOutcome::Held,
        Outcome::Refused | Outcome::GivenUp => RecoveryOutcome::Failed,
    }
}

impl ActionContext<'_> {
    /// Recovers an execution of locktop's own tables.
    pub(super) async fn recover(self, target: &ExecutionTarget) -> ReportedOutcome {
        let ExecutionTarget { plan, row } = target;
        let schema = match SchemaName::new(&plan.schema) {
            Ok(name) => Schema { name, trusted_owners: self.owners.clone() },
            Err(error) => return (Outcome::Refused, error.to_string()),
        };
        let result = execute_one(self.client, &schema, plan, row, self.order).await;
        let outcome = outcome_of(&result);
        let RecoveryResult { detail, next_run_at, .. } = result;
        // The caller already reports that it was recovered.
        match (result.outcome, next_run_at) {
            (RecoveryOutcome::Recovered, Some(_)) if detail.is_empty() => (outcome, DUE_AGAIN.to_owned()),
            (RecoveryOutcome::Recovered, Some(_)) => (outcome, format!("{DUE_AGAIN}; {detail}")),
            _ => (outcome, detail),
        }
    }

    /// The result, and the process id of the session that was terminated for it.
    pub(super) async fn fail(self, target: &PublishedTarget) -> (ReportedOutcome, Option<i32>) {
        let mut ended_pid = None;
        let result = self.failed(target, &mut ended_pid).await;
        (result.unwrap_or_else(|result| result), ended_pid)
    }

    /// Sets the process id of the session that was terminated for it. The error is a result without a change of the row.
    async fn failed(
        self,
        target: &PublishedTarget,
        ended_pid: &mut Option<i32>,
    ) -> Result<ReportedOutcome, ReportedOutcome> {
        let Self { client, order, .. } = self;
        let seen = &target.execution;
        let table = self.find(seen.table, false).await?;
        let row = ActedRow { table: &table, id: format!("t.id = {}", seen.id), conditions: conditions(seen) };
        let mut ended = String::new();
        if let PublishedHolder::Worker(session) = &target.holder {
            let work = SignalGuards { guard: table.guard.clone(), is_seen: row.is_still_seen() };
            self.signal_session(Signal::Terminate, session, Some(&work)).await?;
            *ended_pid = Some(session.pid);
            ended = format!("session {} was terminated", session.pid);
            match session::ended(client, session, order.wait).await {
                Ok(true) => ended.push_str("; "),
                Ok(false) => {
                    let waited = duration(order.wait.as_secs_f64());
                    return Err((Outcome::StillThere, format!("{ended}, but still exists after {waited}")));
                }
                Err(why) => return Err((Outcome::Uncertain, format!("{ended}; then {why}"))),
            }
        }
        let act = row.update_while(&set(&table, target, order), &may_close(&table, target));
        let (outcome, detail) = match row.act(self, &act).await {
            Ok(answer) if answer.is_busy => {
                let detail = format!("a session holds key {}: a worker may be working on it", target.key);
                (Outcome::Refused, detail)
            }
            Ok(_) => (Outcome::Done, "marked as failed".to_owned()),
            Err(result) => result,
        };
        Ok((outcome, ended + &detail))
    }
}

fn conditions(seen: &Execution) -> Vec<Condition> {
    let started = moment(seen.started_at);
    vec![
        Condition::new("it has ended", "t.status::text = 'running'"),
        Condition::cut("another worker holds it", "t.worker_id::text", seen.worker.as_ref()),
        Condition::same("its start has changed", "t.started_at::timestamptz", &started),
    ]
}

/// Whether no session works on the row, in SQL. This is certain after its session was terminated, even if another
/// session has taken the key since.
fn may_close(table: &ActedTable, target: &PublishedTarget) -> String {
    let key = target.key;
    match &target.holder {
        PublishedHolder::None => free(Some(key)),
        PublishedHolder::Worker(_) => "true".to_owned(),
        PublishedHolder::Other { pid, backend_start, execution, worker } => {
            let other = ActedRow {
                table,
                id: format!("t.id = {execution}"),
                conditions: vec![
                    Condition::new("it has ended", "t.status::text = 'running'"),
                    Condition::cut("another worker holds it", "t.worker_id::text", Some(worker)),
                ],
            };
            format!(
                "({} OR EXISTS (SELECT FROM pg_stat_get_activity({pid}) AS a JOIN pg_lock_status() AS l ON l.pid = a.pid \
                 WHERE a.backend_start = {} AND l.granted AND l.mode = 'ExclusiveLock' AND l.locktype = 'advisory' \
                 AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()) AND l.objsubid = 1 \
                 AND (l.classid::int8 << 32) | l.objid::int8 = {key}) AND {})",
                free(Some(key)),
                moment(Some(*backend_start)),
                other.is_still_seen()
            )
        }
    }
}

fn set(table: &ActedTable, target: &PublishedTarget, order: &RecoveryOrder) -> String {
    let mut set = "status = 'failed'".to_owned();
    if matches!(
        table.found.kind("completed_at"),
        Some(PlanColumnKind::Zoned | PlanColumnKind::Time | PlanColumnKind::Date)
    ) {
        set.push_str(", completed_at = clock_timestamp()");
    }
    if table.found.has("error_message") {
        let [ended, terminated, stale] = CLOSED;
        let why = match target.holder {
            PublishedHolder::None => ended,
            PublishedHolder::Worker(_) => terminated,
            PublishedHolder::Other { .. } => stale,
        };
        let reason = order.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        set.push_str(", error_message = ");
        set.push_str(&note(&format!("{why}{}{reason}", order.actor)));
    }
    set
}
