//! One command, target after target.

use std::sync::Arc;

use tokio_postgres::Client;

use super::{Settings, not_tried, recovery};
use crate::action::lines::Lines;
use crate::action::record::{Progress, Record, Recorder};
use crate::action::session::{self, IN_DOUBT};
use crate::action::{adapter, lease, published, queue, redis_lease, task};
use crate::model::plan::{ActionCommand, Outcome, RecoveryPlan, Report, Request, Target, TargetKind, Verb};
use crate::schema::{Schema, SchemaName};

/// Who does it.
pub(super) struct Worker<L, R> {
    pub(super) lines: Arc<L>,
    pub(super) record: R,
    pub(super) settings: Settings,
}

impl<L: Lines, R: Record> Worker<L, R> {
    pub(super) async fn act(&self, command: &ActionCommand, progress: Progress<'_>) -> Report {
        let needs_server =
            command.targets.iter().any(|target| !matches!(target.what, TargetKind::RedisLease(_)));
        let client = match self.lines.client().await {
            Ok(client) => Some(client),
            Err(why) if needs_server => return not_tried(command, &why),
            Err(_) => None,
        };
        let mut recorder = Recorder::new(&self.record, command, progress);
        let results = match (command.verb, &client) {
            (Verb::Cancel | Verb::Terminate, Some(client)) => {
                session::carry_out(client, &mut recorder, self.settings.offset, &self.lines.pids()).await
            }
            _ => self.each(client.as_ref(), &mut recorder).await,
        };
        let mut notes = recorder.notes;
        notes.extend(self.record.notes().await);
        Report { number: command.number, verb: command.verb, results, notes }
    }

    /// One after the other, until it is not known what came of one.
    async fn each(
        &self,
        client: Option<&Arc<Client>>,
        recorder: &mut Recorder<'_, R>,
    ) -> Vec<crate::model::plan::TargetResult> {
        let client = client.map(|client| &**client);
        let mut results = Vec::new();
        let mut in_doubt = false;
        let command = recorder.command;
        for target in &command.targets {
            let short = Self::short(command, target);
            let told = if in_doubt {
                (Outcome::NotTried, IN_DOUBT.to_owned())
            } else {
                match recorder.asked(client, target, &short).await {
                    Ok(()) => self.one(client, command, target).await,
                    Err(why) => (Outcome::Refused, why),
                }
            };
            // Redis servers that do not answer say nothing of the next lock.
            in_doubt |= told.0 == Outcome::Uncertain && !matches!(target.what, TargetKind::RedisLease(_));
            results.push(recorder.told(client, target, &short, told).await);
        }
        results
    }

    async fn one(
        &self,
        client: Option<&Client>,
        command: &ActionCommand,
        target: &Target,
    ) -> (Outcome, String) {
        let Settings { actor, trusted_owners: owners, .. } = &self.settings;
        match (command.verb, &target.what, client) {
            (Verb::Unlock, TargetKind::RedisLease(lease), _) => {
                redis_lease::unlock(lease, &self.settings.redis).await
            }
            (Verb::Unlock, TargetKind::Lease(lease), Some(client)) => {
                lease::unlock(client, lease, actor, owners).await
            }
            (verb, TargetKind::Task(task), Some(client)) => {
                task::change(client, verb, task, actor, owners).await
            }
            (verb, TargetKind::Item(item), Some(client)) => {
                queue::settle(client, verb, item, actor, owners).await
            }
            (Verb::Recover, TargetKind::Published(target), Some(client)) => {
                published::fail(client, target, actor, owners).await
            }
            (Verb::Recover | Verb::Unlock, TargetKind::Adapter(target), Some(client)) => {
                adapter::settle(client, target, owners).await
            }
            (Verb::Recover, TargetKind::Execution { id }, Some(client)) => {
                recovery::one(client, command, *id, actor, owners).await
            }
            _ => (Outcome::Refused, format!("{} is not for this", command.verb.as_str())),
        }
    }

    /// What is going to be asked, in short.
    fn short(command: &ActionCommand, target: &Target) -> String {
        match &target.what {
            TargetKind::RedisLease(lease) => redis_lease::short(lease),
            TargetKind::Lease(lease) => lease::short(lease),
            TargetKind::Task(task) => task::short(command.verb, task),
            TargetKind::Item(item) => queue::short(command.verb, item),
            TargetKind::Published(target) => published::short(target),
            TargetKind::Adapter(target) => adapter::short(target),
            TargetKind::Execution { id } => recovery::short(command, *id),
            TargetKind::Session(_) => command.verb.as_str().to_owned(),
        }
    }

    pub(super) async fn plan(&self, schema: &str, request: &Request) -> Result<RecoveryPlan, String> {
        let name = SchemaName::new(schema).map_err(|error| error.to_string())?;
        let schema = Schema { name, trusted_owners: self.settings.trusted_owners.clone() };
        let client = self.lines.client().await?;
        locktop_tasks::recovery::plan(&client, schema, request).await.map_err(|error| error.to_string())
    }
}
