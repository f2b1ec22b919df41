//! Executes confirmed commands one after another in a separate task, so that neither the screens nor the poll wait for
//! it.
//!
//! Each target is requested separately, and the request is recorded before it is sent. If it cannot be recorded,
//! nothing is sent. If the executor is dropped, a recorded request may stay without a result.
//!
//! If actions are not permitted, there is no executor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use locktop_tasks::recovery;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::actor::Actor;
use super::session::{self, Asking, Pending};
use super::{Asked, Lines, Progress, Record, Recorder, published, redis_lease, table};
use crate::model::plan::{
    ActionCommand, ExecutionTarget, Outcome, Planned, PublishedHolder, PublishedTarget, RecoveryOutcome,
    RecoveryPlan, RecoveryResult, Report, Request, Step, Target, TargetKind, Verb,
};
pub use crate::model::plan::{ExecutorReply, Order};
use crate::model::view::TargetId;
use crate::pg::trust::TrustedOwners;
use crate::redis::RedisUrl;
use crate::schema::{Schema, SchemaName};

/// Number of commands that can be queued. A person confirms each.
const WAITING: usize = 16;

const ANOTHER_SERVER: &str = "that belongs to another server";

#[derive(Debug, Clone)]
pub struct Settings {
    /// Orders for another server are not tried.
    pub server: TargetId,
    pub actor: Actor,
    /// For times of day in messages.
    pub offset: chrono::FixedOffset,
    /// The Redis servers in the order in which they are read, one set after another.
    pub redis: Vec<RedisUrl>,
    /// Owners of tables and functions that may be used, in addition to superusers and the connected role.
    pub trusted_owners: TrustedOwners,
}

/// Dropping it aborts its task, whatever it is doing.
pub struct Executor {
    orders: mpsc::Sender<Order>,
    answers: mpsc::Receiver<ExecutorReply>,
    pids: Box<dyn Fn() -> Vec<i32> + Send + Sync>,
    task: JoinHandle<()>,
}

impl Executor {
    pub fn start(lines: impl Lines, record: impl Record, settings: Settings) -> Self {
        let (orders, mut waiting) = mpsc::channel(WAITING);
        let (sender, answers) = mpsc::channel(WAITING);
        let lines = Arc::new(lines);
        let of_pids = Arc::clone(&lines);
        let task = tokio::spawn(async move {
            let worker = Worker { lines, record, settings };
            while let Some(order) = waiting.recv().await {
                let answer = match order {
                    other if other.server() != worker.settings.server => refuse(&other, ANOTHER_SERVER),
                    Order::Act(command) => {
                        // If the channel is full, a later message has the newer count.
                        let progress =
                            |done| drop(sender.try_send(ExecutorReply::Progress(command.number, done)));
                        ExecutorReply::Reported(Arc::new(worker.act(&command, &progress).await))
                    }
                    Order::PlanRecovery { number, schema, request, .. } => ExecutorReply::RecoveryPlanned(
                        number,
                        worker.plan(&schema, &request).await.map(Arc::new),
                    ),
                };
                if sender.send(answer).await.is_err() {
                    return;
                }
            }
        });
        Self { orders, answers, pids: Box::new(move || of_pids.pids()), task }
    }

    /// Queues an order without waiting. Returns a reply at once if it cannot be queued.
    pub fn order(&self, order: Order) -> Option<ExecutorReply> {
        let why = match self.orders.try_send(order) {
            Ok(()) => return None,
            Err(mpsc::error::TrySendError::Full(order)) => (order, "too many actions are pending"),
            Err(mpsc::error::TrySendError::Closed(order)) => (order, "the program is ending"),
        };
        Some(refuse(&why.0, why.1))
    }

    pub fn own_pids(&self) -> Vec<i32> {
        (self.pids)()
    }

    /// The next reply; `None` after the executor has ended.
    pub async fn answer(&mut self) -> Option<ExecutorReply> {
        self.answers.recv().await
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("own_pids", &self.own_pids()).finish_non_exhaustive()
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn refuse(order: &Order, why: &str) -> ExecutorReply {
    match order {
        Order::Act(command) => ExecutorReply::Reported(Arc::new(not_tried(command, why))),
        Order::PlanRecovery { number, .. } => ExecutorReply::RecoveryPlanned(*number, Err(why.to_owned())),
    }
}

fn not_tried(command: &ActionCommand, why: &str) -> Report {
    let detail = format!("not tried: {why}");
    let results = command.targets.iter().map(|target| target.result(Outcome::NotTried, &detail)).collect();
    Report { number: command.number, verb: command.verb, results, notes: Vec::new() }
}

const IN_DOUBT: &str = "not tried: the result of a previous one is not known";

struct Worker<L, R> {
    lines: Arc<L>,
    record: R,
    settings: Settings,
}

impl<L: Lines, R: Record> Worker<L, R> {
    async fn act(&self, command: &ActionCommand, progress: Progress<'_>) -> Report {
        let needs_server =
            command.targets.iter().any(|target| !matches!(target.what, TargetKind::RedisLease(_)));
        let client = match self.lines.client().await {
            Ok(client) => Some(client),
            Err(why) if needs_server => return not_tried(command, &why),
            Err(_) => None,
        };
        let client = client.as_deref();
        let (results, notes) = (BTreeMap::new(), Vec::new());
        let mut recorder = Recorder { record: &self.record, client, notes, results, progress };
        self.each(client, command, &mut recorder).await;
        let Recorder { mut notes, results, .. } = recorder;
        notes.extend(self.record.notes().await);
        let results = results.into_values().collect();
        Report { number: command.number, verb: command.verb, results, notes }
    }

    /// Requests one target after another until a result is unknown; then waits for the signals to take effect.
    async fn each(&self, client: Option<&Client>, command: &ActionCommand, recorder: &mut Recorder<'_, R>) {
        let verb = command.verb;
        let shorts: Vec<String> = command.targets.iter().map(|target| short(verb, target)).collect();
        let mut pending = Vec::new();
        let mut in_doubt = false;
        for (place, (target, statement)) in command.targets.iter().zip(&shorts).enumerate() {
            let asked = Asked { number: command.number, verb, target, statement };
            let (entry, asking) = if in_doubt {
                (None, Asking::Over(Outcome::NotTried, IN_DOUBT.to_owned()))
            } else if self.is_own(target) {
                (None, Asking::Over(Outcome::Refused, session::OWN.to_owned()))
            } else {
                match self.record.asked(client, &asked).await {
                    Ok(entry) => (Some(entry), self.one(client, command, target).await),
                    Err(why) => (None, Asking::Over(Outcome::Refused, not_recorded(&why))),
                }
            };
            match asking {
                Asking::Taken(signal, session) => {
                    pending.push(Pending { asked: (place, asked), entry, signal, session });
                }
                Asking::Over(outcome, detail) => {
                    // Redis servers that do not answer do not put the next lock in doubt.
                    in_doubt |=
                        outcome == Outcome::Uncertain && !matches!(target.what, TargetKind::RedisLease(_));
                    recorder.told((place, asked), entry, (outcome, detail)).await;
                }
            }
        }
        if let Some(client) = client {
            session::watch(client, recorder, pending, seconds(command.wait)).await;
        }
    }

    fn is_own(&self, target: &Target) -> bool {
        let session = match &target.what {
            TargetKind::Session(session) => session,
            TargetKind::Published(PublishedTarget { holder: PublishedHolder::Worker(session), .. }) => {
                session
            }
            _ => return false,
        };
        self.lines.pids().contains(&session.pid)
    }

    async fn one<'a>(
        &self,
        client: Option<&Client>,
        command: &ActionCommand,
        target: &'a Target,
    ) -> Asking<'a> {
        let Settings { actor, trusted_owners: owners, redis, offset, .. } = &self.settings;
        let wait = seconds(command.wait);
        let order = || recovery::Order { actor: actor.clone(), reason: None, wait };
        let (verb, what) = (command.verb, &target.what);
        if let (TargetKind::Session(session), Some(signal), Some(client)) =
            (what, verb.definition().signal, client)
        {
            return session::ask(client, signal, session, None, *offset).await;
        }
        let (outcome, detail) = match (verb, what, client) {
            (Verb::Unlock, TargetKind::RedisLease(lease), _) => redis_lease::unlock(lease, redis).await,
            (Verb::Recover, TargetKind::Published(target), Some(client)) => {
                let (outcome, detail, _) = published::fail(client, target, &order(), owners, *offset).await;
                (outcome, detail)
            }
            (Verb::Recover | Verb::Unlock, TargetKind::Adapter(target), Some(client)) => {
                published::settle(client, target, owners).await
            }
            (Verb::Recover, TargetKind::Execution(target), Some(client)) => {
                one(client, target, &order(), owners).await
            }
            _ => match (verb.row_change(what), client) {
                (Some(change), Some(client)) => {
                    table::carry_out(client, change, actor, owners).await.unwrap_or_else(|told| told)
                }
                _ => (Outcome::Refused, format!("{} is not possible for this", verb.as_str())),
            },
        };
        Asking::Over(outcome, detail)
    }

    async fn plan(&self, schema: &str, request: &Request) -> Result<RecoveryPlan, String> {
        let name = SchemaName::new(schema).map_err(|error| error.to_string())?;
        let schema = Schema { name, trusted_owners: self.settings.trusted_owners.clone() };
        let client = self.lines.client().await?;
        locktop_tasks::recovery::plan(&client, schema, request).await.map_err(|error| error.to_string())
    }
}

fn seconds(wait: f64) -> Duration {
    Duration::try_from_secs_f64(wait).unwrap_or_default()
}

pub(in crate::action) fn not_recorded(why: &str) -> String {
    format!("not done, because it could not be recorded: {why}")
}

fn short(verb: Verb, target: &Target) -> String {
    match (&target.what, verb.row_change(&target.what), verb.definition().signal) {
        (_, Some(change), _) => change.short,
        (TargetKind::Session(session), _, Some(signal)) => session::short(signal, session),
        (TargetKind::RedisLease(lease), ..) => redis_lease::short(lease),
        (TargetKind::Published(target), ..) => published::short(target),
        (TargetKind::Adapter(target), ..) => published::adapter_short(target),
        (TargetKind::Execution(target), ..) => recovery_short(target),
        _ => verb.as_str().to_owned(),
    }
}

pub(in crate::action) fn recovery_short(target: &ExecutionTarget) -> String {
    let ExecutionTarget { id, plan } = target;
    let schema = &plan.schema;
    match target.row() {
        Some(Planned { step: Step::Terminate { pid, .. }, .. }) => {
            format!("terminate pid {pid}, which holds its key, and recover execution {id} in schema {schema}")
        }
        _ => format!("recover execution {id} in schema {schema}"),
    }
}

async fn one(
    client: &Client,
    target: &ExecutionTarget,
    order: &recovery::Order,
    owners: &TrustedOwners,
) -> (Outcome, String) {
    let plan = &target.plan;
    let Some(row) = target.row() else { return (Outcome::Refused, "it has no plan".to_owned()) };
    let schema = match SchemaName::new(&plan.schema) {
        Ok(name) => Schema { name, trusted_owners: owners.clone() },
        Err(error) => return (Outcome::Refused, error.to_string()),
    };
    told(recovery::execute_one(client, &schema, plan, row, order).await)
}

const DUE_AGAIN: &str = "its task is due again";

fn told(result: RecoveryResult) -> (Outcome, String) {
    let RecoveryResult { outcome, detail, next_run_at, ended_pid, .. } = result;
    let told = outcome_of(outcome, ended_pid.is_some());
    // The caller already reports that it was recovered.
    match (outcome, next_run_at) {
        (RecoveryOutcome::Recovered, Some(_)) if detail.is_empty() => (told, DUE_AGAIN.to_owned()),
        (RecoveryOutcome::Recovered, Some(_)) => (told, format!("{DUE_AGAIN}; {detail}")),
        _ => (told, detail),
    }
}

/// A session that was asked to end and still holds the key has not done what was requested.
pub(in crate::action) fn outcome_of(outcome: RecoveryOutcome, is_asked: bool) -> Outcome {
    match outcome {
        RecoveryOutcome::Recovered => Outcome::Done,
        RecoveryOutcome::GaveUp => Outcome::GivenUp,
        RecoveryOutcome::Held if is_asked => Outcome::StillThere,
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
