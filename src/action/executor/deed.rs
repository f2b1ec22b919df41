//! One deed, target after target.

use std::sync::Arc;

use tokio_postgres::Client;

use super::{Settings, not_tried, recovery};
use crate::action::lines::Lines;
use crate::action::record::{Progress, Record, Recorder};
use crate::action::recover;
use crate::action::session::{self, IN_DOUBT};
use crate::action::{lease, published, queue, redis_lease, task};
use crate::model::plan::{Deed, Fate, RecoveryPlan, Report, Request, Target, Verb, What};
use crate::schema::{Schema, SchemaName};

/// Who does it.
pub(super) struct Worker<L, R> {
    pub(super) lines: Arc<L>,
    pub(super) record: R,
    pub(super) settings: Settings,
}

impl<L: Lines, R: Record> Worker<L, R> {
    pub(super) async fn act(&self, deed: &Deed, progress: Progress<'_>) -> Report {
        let needs_server = deed.targets.iter().any(|target| !matches!(target.what, What::RedisLease(_)));
        let client = match self.lines.client().await {
            Ok(client) => Some(client),
            Err(why) if needs_server => return not_tried(deed, &why),
            Err(_) => None,
        };
        let mut recorder = Recorder::new(&self.record, deed, progress);
        let results = match (deed.verb, &client) {
            (Verb::Cancel | Verb::Terminate, Some(client)) => {
                session::carry_out(client, &mut recorder, self.settings.offset, &self.lines.pids()).await
            }
            _ => self.each(client.as_ref(), &mut recorder).await,
        };
        let mut notes = recorder.notes;
        notes.extend(self.record.notes().await);
        Report { number: deed.number, verb: deed.verb, results, notes }
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
        let deed = recorder.deed;
        for target in &deed.targets {
            let short = Self::short(deed, target);
            let told = if in_doubt {
                (Fate::NotTried, IN_DOUBT.to_owned())
            } else {
                match recorder.asked(client, target, &short).await {
                    Ok(()) => self.one(client, deed, target).await,
                    Err(why) => (Fate::Refused, why),
                }
            };
            // Redis servers that do not answer say nothing of the next lock.
            in_doubt |= told.0 == Fate::Uncertain && !matches!(target.what, What::RedisLease(_));
            results.push(recorder.told(client, target, &short, told).await);
        }
        results
    }

    async fn one(&self, client: Option<&Client>, deed: &Deed, target: &Target) -> (Fate, String) {
        let Settings { actor, trusted_owners: owners, .. } = &self.settings;
        match (deed.verb, &target.what, client) {
            (Verb::Unlock, What::RedisLease(lease), _) => {
                redis_lease::unlock(lease, &self.settings.redis).await
            }
            (Verb::Unlock, What::Lease(lease), Some(client)) => {
                lease::unlock(client, lease, actor, owners).await
            }
            (Verb::Enable | Verb::Disable | Verb::MakeDue, What::Task(task), Some(client)) => {
                task::change(client, deed.verb, task, actor, owners).await
            }
            (Verb::Requeue | Verb::SetAside, What::Item(item), Some(client)) => {
                queue::settle(client, deed.verb, item, actor, owners).await
            }
            (Verb::Recover, What::Published(target), Some(client)) => {
                published::fail(client, target, actor, owners).await
            }
            (Verb::Recover, What::Execution { id }, Some(client)) => {
                recovery::one(client, deed, *id, actor, owners).await
            }
            _ => (Fate::Refused, format!("{} is not for this", deed.verb.as_str())),
        }
    }

    /// What is going to be asked, in short.
    fn short(deed: &Deed, target: &Target) -> String {
        match &target.what {
            What::RedisLease(lease) => redis_lease::short(lease),
            What::Lease(lease) => lease::short(lease),
            What::Task(task) => task::short(deed.verb, task),
            What::Item(item) => queue::short(deed.verb, item),
            What::Published(target) => published::short(target),
            What::Execution { id } => recovery::short(deed, *id),
            What::Session(_) => deed.verb.as_str().to_owned(),
        }
    }

    pub(super) async fn plan(&self, schema: &str, request: &Request) -> Result<RecoveryPlan, String> {
        let name = SchemaName::new(schema).map_err(|error| error.to_string())?;
        let schema = Schema { name, trusted_owners: self.settings.trusted_owners.clone() };
        let client = self.lines.client().await?;
        recover::plan(&client, schema, request).await.map_err(|error| error.to_string())
    }
}
