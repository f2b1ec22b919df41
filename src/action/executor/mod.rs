//! Carries out what somebody has confirmed: one command after the other, on a task of its own, so that neither the screens nor the poll
//! ever wait for it.
//!
//! Each target is asked for alone, and what is going to be asked is put on record before. Where that cannot be done nothing is requested: a
//! record that lacks what was done is worse than none. Dropped in the middle, what was asked stays on record without a result.
//!
//! Where nobody may act there is no executor.

mod command;
pub(in crate::action) mod recovery;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::actor::Actor;
use super::lines::Lines;
use super::record::Record;
use crate::model::plan::{ActionCommand, Outcome, RecoveryPlan, Report, Request, TargetResult};
use crate::model::view::TargetId;
use crate::pg::trust::TrustedOwners;
use crate::redis::RedisUrl;

/// Commands that wait for their turn. A person confirms each.
const WAITING: usize = 16;

/// Why nothing is tried that was asked for where another server was on the screen.
const ANOTHER_SERVER: &str = "that belongs to another server";

/// What can be asked of the executor.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Carry out this command, which a person has confirmed.
    Act(Arc<ActionCommand>),
    /// Look which executions would be recovered, and what it would do to each.
    PlanRecovery {
        /// The server that is asked.
        server: TargetId,
        /// A number of the asker's, which comes back with the answer.
        number: u64,
        /// The schema that the tables are in.
        schema: String,
        /// Which executions are wanted.
        request: Arc<Request>,
    },
}

impl Order {
    /// The server that it is for.
    pub fn server(&self) -> TargetId {
        match self {
            Self::Act(command) => command.server,
            Self::PlanRecovery { server, .. } => *server,
        }
    }
}

/// What the executor answers, in the order of the work.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutorReply {
    /// Of how many targets of a command it is known what came of them, by its number. One or the other may be left out.
    Progress(u64, usize),
    /// What came of each target of a command.
    Reported(Arc<Report>),
    /// What would be recovered, or in one line why that cannot be told.
    RecoveryPlanned(u64, Result<Arc<RecoveryPlan>, String>),
}

/// In whose name the executor acts, and what it may use.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server that it acts on: what is for another one is not tried.
    pub server: TargetId,
    /// The person, in whose name everything is recorded.
    pub actor: Actor,
    /// For times of day in words.
    pub offset: chrono::FixedOffset,
    /// The Redis servers, in the order in which they are read: one set after the other.
    pub redis: Vec<RedisUrl>,
    /// Whose tables and functions may be used, beside those of superusers and of the role that is connected.
    pub trusted_owners: TrustedOwners,
}

/// The executor. Dropping it ends it, whatever it is doing.
pub struct Executor {
    orders: mpsc::Sender<Order>,
    answers: mpsc::Receiver<ExecutorReply>,
    pids: Box<dyn Fn() -> Vec<i32> + Send + Sync>,
    task: JoinHandle<()>,
}

impl Executor {
    /// Starts the executor in a task of its own.
    pub fn start(lines: impl Lines, record: impl Record, settings: Settings) -> Self {
        let (orders, mut waiting) = mpsc::channel(WAITING);
        let (sender, answers) = mpsc::channel(WAITING);
        let lines = Arc::new(lines);
        let of_pids = Arc::clone(&lines);
        let task = tokio::spawn(async move {
            let worker = command::Worker { lines, record, settings };
            while let Some(order) = waiting.recv().await {
                let answer = match order {
                    other if other.server() != worker.settings.server => refuse(&other, ANOTHER_SERVER),
                    Order::Act(command) => {
                        // Where nobody takes them in fast enough the next one says it all.
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

    /// Hands an order over, without waiting. The answer comes at once where it cannot be taken.
    pub fn order(&self, order: Order) -> Option<ExecutorReply> {
        let why = match self.orders.try_send(order) {
            Ok(()) => return None,
            Err(mpsc::error::TrySendError::Full(order)) => (order, "too many actions are pending"),
            Err(mpsc::error::TrySendError::Closed(order)) => (order, "the program is ending"),
        };
        Some(refuse(&why.0, why.1))
    }

    /// The processes that serve locktop itself, as far as that is known.
    pub fn own_pids(&self) -> Vec<i32> {
        (self.pids)()
    }

    /// What it answers next; none once it has ended.
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

/// The answer to what is not even tried.
pub fn refuse(order: &Order, why: &str) -> ExecutorReply {
    match order {
        Order::Act(command) => ExecutorReply::Reported(Arc::new(not_tried(command, why))),
        Order::PlanRecovery { number, .. } => ExecutorReply::RecoveryPlanned(*number, Err(why.to_owned())),
    }
}

fn not_tried(command: &ActionCommand, why: &str) -> Report {
    let result = |target: &crate::model::plan::Target| TargetResult {
        name: target.name.clone(),
        subject: target.subject,
        outcome: Outcome::NotTried,
        detail: format!("not tried: {why}"),
    };
    let results = command.targets.iter().map(result).collect();
    Report { number: command.number, verb: command.verb, results, notes: Vec::new() }
}
