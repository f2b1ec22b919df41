//! What the executor of the dashboard is given: on whose behalf it acts, and the record that it keeps.

use tokio_postgres::Client;

use super::super::settings::Settings;
use super::look;
use crate::action::audit::{self, Keeper, ServerName};
use crate::action::{Actor, Asked, Record, executor};
use crate::clock;
use crate::feed::diary::Diary;
use crate::model::event::{Kind, Told};
use crate::model::finding::Severity;
use crate::model::plan::{Fate, TargetResult};
use crate::pg::conninfo::ConnInfo;

pub(super) fn settings(settings: &Settings, info: &ConnInfo) -> executor::Settings {
    executor::Settings {
        actor: actor(info),
        offset: clock::offset(),
        redis: look::redis(settings).map(|(servers, _)| servers).unwrap_or_default(),
    }
}

fn actor(info: &ConnInfo) -> Actor {
    Actor::of_process("locktop", info.user())
}

/// The record: what the keeper writes, and the events on the screens.
pub(super) struct Book {
    keeper: Keeper,
    diary: Diary,
}

impl Record for Book {
    async fn asked(&self, client: Option<&Client>, asked: &Asked<'_>) -> Result<(), String> {
        self.keeper.asked(client, asked).await?;
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
        let severity = if result.fate == Fate::Done { Severity::Info } else { Severity::Warning };
        let fate = result.fate.as_str().replace('_', " ");
        let text = format!("{} {} {fate}: {}", words(asked), result.name, result.detail);
        self.tell(Kind::ActionResult, severity, text, asked);
        self.keeper.told(client, asked, result).await
    }

    async fn notes(&self) -> Vec<String> {
        self.keeper.notes().await
    }
}

impl Book {
    pub(super) fn new(info: &ConnInfo, diary: Diary) -> Self {
        let directory = audit::directory(&|name| std::env::var(name).ok());
        Self { keeper: Keeper::new(directory, actor(info), ServerName::of(info)), diary }
    }

    fn tell(&self, kind: Kind, severity: Severity, text: String, asked: &Asked<'_>) {
        self.diary.tell(Told { kind, severity, text, subject: Some(asked.target.subject.clone()) });
    }
}

/// `make due`
fn words(asked: &Asked<'_>) -> String {
    asked.deed.verb.as_str().replace('_', " ")
}
