//! Executes confirmed commands one after another in a separate task, so that neither the screens nor the poll wait for
//! it.
//!
//! Each target is requested separately, and the request is recorded before it is sent. If it cannot be recorded,
//! nothing is sent. If the executor is dropped, a recorded request may stay without a result.
//!
//! If actions are not permitted, there is no executor.

mod command;
pub(in crate::action) mod recovery;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Lines;
use super::actor::Actor;
use super::record::Record;
use crate::model::plan::{ActionCommand, Outcome, Report};
pub use crate::model::plan::{ExecutorReply, Order};
use crate::model::view::TargetId;
use crate::pg::trust::TrustedOwners;
use crate::redis::RedisUrl;

/// Number of commands that can be queued. A person confirms each.
const WAITING: usize = 16;

const ANOTHER_SERVER: &str = "that belongs to another server";

#[derive(Debug, Clone)]
pub struct Settings {
    /// Orders for another server are not tried.
    pub server: TargetId,
    /// The person named in the record.
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
            let worker = command::Worker { lines, record, settings };
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
