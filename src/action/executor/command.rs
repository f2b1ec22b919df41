use std::sync::Arc;
use std::time::Duration;

use locktop_tasks::recovery::Order;
use tokio_postgres::Client;

use super::{Settings, not_tried, recovery};
use crate::action::record::{Progress, Record, Recorder};
use crate::action::session::{self, Asking, Pending};
use crate::action::{Lines, adapter, published, redis_lease, table};
use crate::model::plan::{
    ActionCommand, Outcome, PublishedHolder, PublishedTarget, RecoveryPlan, Report, Request, Target,
    TargetKind, TargetResult, Verb,
};
use crate::schema::{Schema, SchemaName};

const IN_DOUBT: &str = "not tried: the result of a previous one is not known";

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
        let results = self.each(client.as_deref(), &mut recorder).await;
        let mut notes = recorder.notes;
        notes.extend(self.record.notes().await);
        Report { number: command.number, verb: command.verb, results, notes }
    }

    /// Requests one target after another until a result is unknown; then waits for the signals to take effect.
    async fn each(&self, client: Option<&Client>, recorder: &mut Recorder<'_, R>) -> Vec<TargetResult> {
        let command = recorder.command;
        let mut results: Vec<Option<TargetResult>> = vec![None; command.targets.len()];
        let mut pending = Vec::new();
        let mut in_doubt = false;
        for ((place, target), result) in command.targets.iter().enumerate().zip(&mut results) {
            let short = short(command, target);
            let asking = if in_doubt {
                Asking::Over(Outcome::NotTried, IN_DOUBT.to_owned())
            } else if self.is_own(target) {
                Asking::Over(Outcome::Refused, session::OWN.to_owned())
            } else {
                match recorder.asked(client, target, &short).await {
                    Ok(()) => self.one(client, command, target).await,
                    Err(why) => Asking::Over(Outcome::Refused, why),
                }
            };
            match asking {
                Asking::Taken(signal, session) => {
                    pending.push(Pending { place, target, signal, session, short });
                }
                Asking::Over(outcome, detail) => {
                    // Redis servers that do not answer do not put the next lock in doubt.
                    in_doubt |=
                        outcome == Outcome::Uncertain && !matches!(target.what, TargetKind::RedisLease(_));
                    *result = Some(recorder.told(client, target, &short, (outcome, detail)).await);
                }
            }
        }
        if let Some(client) = client {
            session::watch(client, recorder, pending, &mut results).await;
        }
        results.into_iter().flatten().collect()
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
        let wait = || Duration::try_from_secs_f64(command.wait).unwrap_or_default();
        let order = || Order { actor: actor.clone(), reason: None, wait: wait() };
        let (verb, what) = (command.verb, &target.what);
        if let (TargetKind::Session(session), Some(signal), Some(client)) =
            (what, verb.definition().signal, client)
        {
            return session::ask(client, signal, session, None, *offset).await;
        }
        let (outcome, detail) = match (verb, what, client) {
            (Verb::Unlock, TargetKind::RedisLease(lease), _) => redis_lease::unlock(lease, redis).await,
            (Verb::Recover, TargetKind::Published(target), Some(client)) => {
                let failed = published::fail(client, target, &order(), owners, *offset).await;
                (failed.outcome, failed.detail)
            }
            (Verb::Recover | Verb::Unlock, TargetKind::Adapter(target), Some(client)) => {
                adapter::settle(client, target, owners).await
            }
            (Verb::Recover, TargetKind::Execution(target), Some(client)) => {
                recovery::one(client, target, &order(), owners).await
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

    pub(super) async fn plan(&self, schema: &str, request: &Request) -> Result<RecoveryPlan, String> {
        let name = SchemaName::new(schema).map_err(|error| error.to_string())?;
        let schema = Schema { name, trusted_owners: self.settings.trusted_owners.clone() };
        let client = self.lines.client().await?;
        locktop_tasks::recovery::plan(&client, schema, request).await.map_err(|error| error.to_string())
    }
}

fn short(command: &ActionCommand, target: &Target) -> String {
    let verb = command.verb;
    match (&target.what, verb.row_change(&target.what), verb.definition().signal) {
        (_, Some(change), _) => change.short,
        (TargetKind::Session(session), _, Some(signal)) => session::short(signal, session),
        (TargetKind::RedisLease(lease), ..) => redis_lease::short(lease),
        (TargetKind::Published(target), ..) => published::short(target),
        (TargetKind::Adapter(target), ..) => adapter::short(target),
        (TargetKind::Execution(target), ..) => recovery::short(target),
        _ => verb.as_str().to_owned(),
    }
}
