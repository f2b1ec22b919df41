use tokio_postgres::Client;

use super::super::settings::Settings;
use super::env;
use crate::action::audit::{self, AuditLog, ServerName, Unfinished};
use crate::action::{Actor, Asked, Record, executor};
use crate::clock;
use crate::feed::event_sender::EventSender;
use crate::model::event::{Kind, Told};
use crate::model::finding::Severity;
use crate::model::plan::{Outcome, TargetResult};
use crate::model::view::TargetId;
use crate::pg::trust::TrustedOwners;
use crate::text::one_line;
use pg_connect::conninfo::ConnInfo;

pub(super) fn settings(settings: &Settings, info: &ConnInfo) -> executor::Settings {
    executor::Settings {
        server: TargetId::default(),
        actor: actor(info),
        offset: clock::offset(),
        redis: settings.redis.sets.servers().cloned().collect(),
        trusted_owners: settings.trusted_owners.clone(),
    }
}

fn actor(info: &ConnInfo) -> Actor {
    Actor::of_process("locktop", info.user())
}

/// Records actions in the audit log and as events on the screens.
pub(super) struct DashboardLog {
    log: AuditLog,
    event_sender: EventSender,
}

impl Record for DashboardLog {
    async fn asked(&self, client: Option<&Client>, asked: &Asked<'_>) -> Result<(), String> {
        self.log.asked(client, asked).await?;
        let text = format!("{} {} asked", words(asked), asked.target.name);
        self.tell(Kind::ActionAsked, Severity::Info, text, asked);
        Ok(())
    }

    async fn told(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
        result: &TargetResult,
    ) -> Result<(), String> {
        let (severity, text) = if result.outcome == Outcome::Done {
            (Severity::Info, format!("{} {}: {}", asked.command.verb.done(), result.name, result.detail))
        } else {
            let outcome = result.outcome.as_str().replace('_', " ");
            (Severity::Warning, format!("{} {} {outcome}: {}", words(asked), result.name, result.detail))
        };
        self.tell(Kind::ActionResult, severity, text, asked);
        self.log.told(client, asked, result).await
    }

    async fn notes(&self) -> Vec<String> {
        self.log.notes().await
    }
}

impl DashboardLog {
    pub(super) fn new(info: &ConnInfo, event_sender: EventSender, trusted_owners: TrustedOwners) -> Self {
        let directory = audit::directory(&env);
        let log = AuditLog::new(directory, actor(info), ServerName::of(info)).trusting(trusted_owners);
        Self { log, event_sender }
    }

    fn tell(&self, kind: Kind, severity: Severity, text: String, asked: &Asked<'_>) {
        self.event_sender.tell(Told { kind, severity, text, subject: Some(asked.target.subject) });
    }
}

/// Reports actions that an earlier process requested but whose result it did not record, and whether the audit log cannot
/// be written.
pub(super) async fn tell_unfinished(info: ConnInfo, event_sender: EventSender) {
    let directory = audit::directory(&env);
    let log = AuditLog::new(directory, actor(&info), ServerName::of(&info));
    match log.unfinished().await {
        Ok(lost) => lost.iter().for_each(|lost| event_sender.tell(of_lost(lost))),
        Err(error) => event_sender.tell(warning(&error.to_string())),
    }
}

fn of_lost(lost: &Unfinished) -> Told {
    let at = lost.at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let verb = lost.verb.replace('_', " ");
    warning(&format!("{verb} {} outcome unknown: asked at {at} by a locktop that has exited", lost.name))
}

fn warning(text: &str) -> Told {
    let text = one_line(text).into_owned();
    Told { kind: Kind::ActionResult, severity: Severity::Warning, text, subject: None }
}

fn words(asked: &Asked<'_>) -> String {
    asked.command.verb.as_str().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_saw_the_end_of_is_told_harmlessly() {
        let lost = Unfinished {
            at: "2026-11-21T03:00:00.5Z".parse().unwrap(),
            verb: "set_aside".to_owned(),
            name: "item 7\u{1b}[2J".to_owned(),
        };
        let told = of_lost(&lost);
        let text = "set aside item 7␛[2J outcome unknown: asked at 2026-11-21T03:00:00Z by a locktop that has exited";
        assert_eq!((told.text.as_str(), told.severity), (text, Severity::Warning));
    }
}
