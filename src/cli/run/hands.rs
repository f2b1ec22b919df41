use super::super::settings::Settings;
use super::env;
use crate::action::audit::{self, AuditLog, ServerName, Unfinished};
use crate::action::{Actor, executor};
use crate::clock;
use crate::feed::event_sender::EventSender;
use crate::model::event::{Kind, Told};
use crate::model::finding::Severity;
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

/// The record of actions, which nothing opens before its first use.
pub(super) fn log(info: &ConnInfo, actor: Actor, trusted_owners: TrustedOwners) -> AuditLog {
    let mut log = AuditLog::new(audit::directory(&env), actor, ServerName::of(info));
    log.trusted_owners = trusted_owners;
    log
}

pub(super) fn actor(info: &ConnInfo) -> Actor {
    Actor::of_process("locktop", info.user())
}

/// Reports actions that an earlier process requested but whose result it did not record, and whether the audit log cannot
/// be written.
pub(super) async fn tell_unfinished(info: ConnInfo, event_sender: EventSender) {
    match log(&info, actor(&info), TrustedOwners::default()).unfinished().await {
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
