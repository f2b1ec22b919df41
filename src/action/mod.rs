//! Actions that locktop executes on a server when requested; all other parts only read.
//!
//! Confirmed commands are executed one after another in a separate task, so that neither the screens nor the poll wait for
//! it. The statement that acts compares the target with what was seen, so that no similar target is affected. Each target
//! is requested separately; the request and its result are recorded in a file of the user ([`audit`]) and in the schema's
//! `locktop_audit`. If the request cannot be recorded, nothing is sent. If the executor is dropped, a recorded request may
//! stay without a result.
//!
//! If actions are not permitted, there is no executor.

pub mod audit;
mod foreign;
pub mod recover;
mod session;
mod table;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use locktop_tasks::{actor, message, recovery};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use self::session::SentSignal;
use crate::model::plan::{
    ActionCommand, ActionReport, Outcome, PublishedHolder, PublishedTarget, RecoveryPlan, Request,
    SessionTarget, Signal, Target, TargetKind, TargetResult, Verb,
};
pub use crate::model::plan::{ExecutorOrder, ExecutorReply};
use crate::model::view::TargetId;
use crate::pg::trust::TrustedOwners;
use crate::redis::RedisUrl;
use crate::schema::{Schema, SchemaName};
pub use locktop_tasks::actor::Actor;

/// Connections that are opened in advance: when all connection slots are in use, it is too late to open one.
pub trait Connections: Send + Sync + 'static {
    /// A connection that can be used now.
    ///
    /// # Errors
    /// Why there is none, in one line.
    fn client(&self) -> impl Future<Output = Result<Arc<Client>, String>> + Send;

    /// Process ids of these connections, as far as known. locktop never acts on them.
    fn pids(&self) -> Vec<i32>;
}

#[derive(Debug, Clone, Copy)]
pub struct ActionRequest<'a> {
    /// The number of its command.
    pub number: u64,
    pub verb: Verb,
    pub target: &'a Target,
    /// A short form of the statement with its conditions, such as `pg_terminate_backend(4312)`. It contains no secret.
    pub statement: &'a str,
}

/// If the program or the server ends between [`ActionRecord::asked`] and [`ActionRecord::write_result`], the request has no result on
/// record, and its outcome is unknown.
pub trait ActionRecord: Send + Sync + 'static {
    /// A request on record, until its result is.
    type Entry: Send;

    /// Records a request before it is sent on `client`; `None` if the target is not on the PostgreSQL server.
    ///
    /// # Errors
    /// Why it could not be recorded and a remedy, in one line: then the request is not sent.
    fn asked(
        &self,
        client: Option<&Client>,
        asked: &ActionRequest<'_>,
    ) -> impl Future<Output = Result<Self::Entry, String>> + Send;

    /// Records a result; without an entry that of an action that was not tried, or not recorded before.
    ///
    /// # Errors
    /// Why it could not be recorded, in one line, for the report.
    fn write_result(
        &self,
        client: Option<&Client>,
        asked: &ActionRequest<'_>,
        entry: Option<Self::Entry>,
        result: &TargetResult,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Problems since the last call that did not prevent an action, in readable lines.
    fn notes(&self) -> impl Future<Output = Vec<String>> + Send {
        std::future::ready(Vec::new())
    }
}

/// The result of a request, in words.
type ReportedOutcome = (Outcome, String);

/// The connection that acts, and for whom.
#[derive(Clone, Copy)]
struct ActionContext<'a> {
    client: &'a Client,
    order: &'a recovery::RecoveryOrder,
    /// Owners of tables and functions that may be used.
    owners: &'a TrustedOwners,
    /// For times of day in messages.
    offset: chrono::FixedOffset,
}

type Progress<'a> = &'a (dyn Fn(usize) + Send + Sync);

/// Records the results of a command.
struct ActionRecorder<'a, R> {
    record: &'a R,
    client: Option<&'a Client>,
    /// Problems that did not prevent an action, in readable lines.
    notes: Vec<String>,
    /// The results so far, by the places of their targets.
    results: BTreeMap<usize, TargetResult>,
    progress: Progress<'a>,
}

impl<R: ActionRecord> ActionRecorder<'_, R> {
    async fn finish(
        &mut self,
        (place, asked): (usize, ActionRequest<'_>),
        entry: Option<R::Entry>,
        (outcome, detail): ReportedOutcome,
    ) {
        let result = asked.target.result(outcome, &detail);
        if let Err(error) = self.record.write_result(self.client, &asked, entry, &result).await {
            self.notes.push(format!("{}: its result is not recorded: {error}", asked.target.name));
        }
        self.results.insert(place, result);
        (self.progress)(self.results.len());
    }
}

/// Number of commands that can be queued. A person confirms each.
const WAITING: usize = 16;

const ANOTHER_SERVER: &str = "that belongs to another server";

#[derive(Debug, Clone)]
pub struct ExecutorSettings {
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
    orders: mpsc::Sender<ExecutorOrder>,
    answers: mpsc::Receiver<ExecutorReply>,
    pids: Box<dyn Fn() -> Vec<i32> + Send + Sync>,
    task: JoinHandle<()>,
}

impl Executor {
    pub fn start(
        connections: impl Connections,
        record: impl ActionRecord,
        settings: ExecutorSettings,
    ) -> Self {
        let (orders, mut waiting) = mpsc::channel(WAITING);
        let (sender, answers) = mpsc::channel(WAITING);
        let connections = Arc::new(connections);
        let of_pids = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            let worker = ActionWorker { connections, record, settings };
            while let Some(order) = waiting.recv().await {
                let answer = match order {
                    other if other.server() != worker.settings.server => refuse(&other, ANOTHER_SERVER),
                    ExecutorOrder::Act(command) => {
                        // If the channel is full, a later message has the newer count.
                        let progress =
                            |done| drop(sender.try_send(ExecutorReply::Progress(command.number, done)));
                        ExecutorReply::Reported(Arc::new(worker.act(&command, &progress).await))
                    }
                    ExecutorOrder::PlanRecovery { number, schema, request, .. } => {
                        ExecutorReply::RecoveryPlanned(
                            number,
                            worker.plan(&schema, &request).await.map(Arc::new),
                        )
                    }
                };
                if sender.send(answer).await.is_err() {
                    return;
                }
            }
        });
        Self { orders, answers, pids: Box::new(move || of_pids.pids()), task }
    }

    /// Queues an order without waiting. Returns a reply at once if it cannot be queued.
    pub fn order(&self, order: ExecutorOrder) -> Option<ExecutorReply> {
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

impl Drop for Executor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn refuse(order: &ExecutorOrder, why: &str) -> ExecutorReply {
    match order {
        ExecutorOrder::Act(command) => ExecutorReply::Reported(Arc::new(not_tried(command, why))),
        ExecutorOrder::PlanRecovery { number, .. } => {
            ExecutorReply::RecoveryPlanned(*number, Err(why.to_owned()))
        }
    }
}

fn not_tried(command: &ActionCommand, why: &str) -> ActionReport {
    let detail = format!("not tried: {why}");
    let results = command.targets.iter().map(|target| target.result(Outcome::NotTried, &detail)).collect();
    ActionReport { number: command.number, verb: command.verb, results, notes: Vec::new() }
}

const IN_DOUBT: &str = "not tried: the result of a previous one is not known";

struct ActionWorker<L, R> {
    connections: Arc<L>,
    record: R,
    settings: ExecutorSettings,
}

impl<L: Connections, R: ActionRecord> ActionWorker<L, R> {
    async fn act(&self, command: &ActionCommand, progress: Progress<'_>) -> ActionReport {
        let needs_server =
            command.targets.iter().any(|target| !matches!(target.what, TargetKind::RedisLease(_)));
        let client = match self.connections.client().await {
            Ok(client) => Some(client),
            Err(why) if needs_server => return not_tried(command, &why),
            Err(_) => None,
        };
        let (client, results, notes) = (client.as_deref(), BTreeMap::new(), Vec::new());
        let mut recorder = ActionRecorder { record: &self.record, client, notes, results, progress };
        self.each(command, &mut recorder).await;
        let ActionRecorder { mut notes, results, .. } = recorder;
        notes.extend(self.record.notes().await);
        let results = results.into_values().collect();
        ActionReport { number: command.number, verb: command.verb, results, notes }
    }

    /// Requests one target after another until a result is unknown; then waits for the signals to take effect.
    async fn each(&self, command: &ActionCommand, recorder: &mut ActionRecorder<'_, R>) {
        let (client, verb) = (recorder.client, command.verb);
        let shorts: Vec<String> = command.targets.iter().map(|target| short(verb, target)).collect();
        let mut pending = Vec::new();
        let mut in_doubt = false;
        for (place, (target, statement)) in command.targets.iter().zip(&shorts).enumerate() {
            let asked = ActionRequest { number: command.number, verb, target, statement };
            let (entry, asking) = if in_doubt {
                (None, Err((Outcome::NotTried, IN_DOUBT.to_owned())))
            } else if self.is_own(target) {
                (None, Err((Outcome::Refused, session::OWN.to_owned())))
            } else {
                match self.record.asked(client, &asked).await {
                    Ok(entry) => (Some(entry), self.one(client, command, target).await),
                    Err(why) => (None, Err((Outcome::Refused, not_recorded(&why)))),
                }
            };
            match asking {
                Ok((signal, session)) => {
                    pending.push(SentSignal { asked: (place, asked), entry, signal, session });
                }
                Err((outcome, detail)) => {
                    // Redis servers that do not answer do not put the next lock in doubt.
                    in_doubt |=
                        outcome == Outcome::Uncertain && !matches!(target.what, TargetKind::RedisLease(_));
                    recorder.finish((place, asked), entry, (outcome, detail)).await;
                }
            }
        }
        session::watch(recorder, pending, command.wait).await;
    }

    fn is_own(&self, target: &Target) -> bool {
        let session = match &target.what {
            TargetKind::Session(session) => session,
            TargetKind::Published(PublishedTarget { holder: PublishedHolder::Worker(session), .. }) => {
                session
            }
            _ => return false,
        };
        self.connections.pids().contains(&session.pid)
    }

    /// The signal that a session has accepted; else the result.
    async fn one<'a>(
        &self,
        client: Option<&Client>,
        command: &ActionCommand,
        target: &'a Target,
    ) -> Result<(Signal, &'a SessionTarget), ReportedOutcome> {
        let ExecutorSettings { actor, trusted_owners: owners, redis, offset, .. } = &self.settings;
        let (verb, what) = (command.verb, &target.what);
        let impossible = || (Outcome::Refused, format!("{} is not possible for this", verb.as_str()));
        if let (Verb::Unlock, TargetKind::RedisLease(lease)) = (verb, what) {
            return Err(foreign::unlock(lease, redis).await);
        }
        let client = client.ok_or_else(impossible)?;
        let order = recovery::RecoveryOrder { actor: actor.clone(), reason: None, wait: command.wait };
        let acting = ActionContext { client, order: &order, owners, offset: *offset };
        Err(match (verb, what, verb.definition().signal) {
            (_, TargetKind::Session(session), Some(signal)) => {
                return acting.signal_session(signal, session, None).await.map(|()| (signal, session));
            }
            (Verb::Recover, TargetKind::Published(target), _) => acting.fail(target).await.0,
            (Verb::Recover | Verb::Unlock, TargetKind::Adapter(target), _) => acting.settle(target).await,
            (Verb::Recover, TargetKind::Execution(target), _) => acting.recover(target).await,
            _ => {
                let change = verb.row_change(what).ok_or_else(impossible)?;
                acting.carry_out(change).await.unwrap_or_else(|refusal| refusal)
            }
        })
    }

    async fn plan(&self, schema: &str, request: &Request) -> Result<RecoveryPlan, String> {
        let name = SchemaName::new(schema).map_err(|error| error.to_string())?;
        let schema = Schema { name, trusted_owners: self.settings.trusted_owners.clone() };
        let client = self.connections.client().await?;
        locktop_tasks::recovery::plan(&client, schema, request).await.map_err(|error| error.to_string())
    }
}

fn not_recorded(why: &str) -> String {
    format!("not done, because it could not be recorded: {why}")
}

fn short(verb: Verb, target: &Target) -> String {
    match (&target.what, verb.row_change(&target.what), verb.definition().signal) {
        (_, Some(change), _) => change.short,
        (TargetKind::Session(session), _, Some(signal)) => session::short(signal, session),
        (TargetKind::RedisLease(lease), ..) => foreign::redis_short(lease),
        (TargetKind::Published(target), ..) => recover::published_short(target),
        (TargetKind::Adapter(target), ..) => foreign::short(target),
        (TargetKind::Execution(target), ..) => recover::recovery_short(target),
        _ => verb.as_str().to_owned(),
    }
}
