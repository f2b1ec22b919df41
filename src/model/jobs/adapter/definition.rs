use serde::Serialize;

use super::{Job, JobState, Part, Presence, Proof, Template};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};

/// An adapter, checked as far as possible without a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adapter {
    /// The name in the config: `[a-z0-9_]+`.
    pub name: Text,
    pub title: Text,
    pub licence: Text,
    /// The version of the project that the facts were taken from.
    pub seen: Text,
    pub is_built_in: bool,
    pub schema: Option<Text>,
    /// The time zone of its timestamps without a zone, if set in the config. None: UTC.
    pub time_zone: Option<Text>,
    /// `[detect]`: the tables that identify an installation.
    pub tables: Vec<TableRule>,
    /// The versions of the project; the first whose needs are met applies.
    pub versions: Vec<Version>,
    /// `[settings]`, with the overrides of `[adapters.NAME]` of the config.
    pub settings: Vec<Setting>,
    pub evidence: Evidence,
    /// `[presence]`: what identifies the sessions of its workers in `pg_stat_activity`.
    pub presence: Presence,
    /// What its system does with a lost job automatically, by the proof of the loss.
    pub comes_back: Vec<(Proof, Text)>,
    /// The queries; for each part, the first whose needs are met and that passes the checks applies.
    pub queries: Vec<AdapterQuery>,
    /// Commands for the system's own console, by state.
    pub advise: Vec<(JobState, Text)>,
    pub actions: Vec<AdapterAction>,
    pub allows_actions: bool,
}

impl Adapter {
    pub fn table(&self, key: &str) -> Option<&TableRule> {
        self.tables.iter().find(|table| &*table.key == key)
    }

    pub fn has_each(&self) -> bool {
        self.tables.iter().any(|table| matches!(table.name, TableName::Begins(_)))
    }

    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| &*setting.name == name)
    }

    /// The alternatives for an action, with their numbers in the file, from 1.
    pub fn actions_of(&self, kind: ActionKind) -> impl Iterator<Item = (usize, &AdapterAction)> {
        (1..).zip(self.actions.iter().filter(move |action| action.kind == kind))
    }

    pub fn action(&self, kind: ActionKind, number: usize) -> Option<&AdapterAction> {
        self.actions_of(kind).find(|(one, _)| *one == number).map(|(_, action)| action)
    }

    /// In seconds. None if its setting is not a duration.
    pub fn beat_limit(&self) -> Option<f64> {
        self.limit(self.evidence.beat_seconds, self.evidence.beat_setting.as_deref())
    }

    pub fn age_limit(&self) -> Option<f64> {
        self.limit(self.evidence.age_seconds, self.evidence.age_setting.as_deref())
    }

    fn limit(&self, seconds: Option<f64>, setting: Option<&str>) -> Option<f64> {
        seconds.or_else(|| self.setting(setting?)?.seconds)
    }

    pub fn comes_back(&self, proof: Proof) -> Option<&Text> {
        self.comes_back.iter().find(|(of, _)| *of == proof).map(|(_, text)| text)
    }

    /// The console command for a job in this state, with its id, queue and worker filled in. None if one of these contains
    /// unsafe characters: the text is typed into a console, and any user that may add a job can choose it.
    pub fn advice(&self, state: JobState, job: &Job) -> Option<String> {
        // Without its own entry, an orphan uses the text for lost jobs.
        let of = |state: JobState| self.advise.iter().find(|(one, _)| *one == state);
        let (_, text) = of(state).or_else(|| of(JobState::Lost).filter(|_| state == JobState::Orphan))?;
        let mut text = text.to_string();
        let values =
            [("{id}", Some(&job.id)), ("{queue}", job.queue.as_ref()), ("{worker}", job.worker.as_ref())];
        for (word, value) in values.into_iter().filter(|(word, _)| text.contains(word)).collect::<Vec<_>>() {
            let value = value.filter(|value| is_name(value))?;
            text = text.replace(word, value);
        }
        Some(text)
    }
}

/// A longer value may have been cut, and would name another row.
const LONGEST_NAME: usize = 499;

/// Whether the text has only characters of a name: none ends a quotation or a command, or starts an option.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(['-', ' '])
        && text.chars().count() <= LONGEST_NAME
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '@' | ' '))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRule {
    /// The name in the queries.
    pub key: Text,
    pub name: TableName,
    pub columns: Vec<(Text, AdapterColumnKind)>,
    pub optional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableName {
    Exact(Text),
    /// `suffix`: the end of the name; all tables of an installation have the same prefix.
    Suffix(Text),
    /// `begins`: the beginning of the name; all tables of an installation have the same suffix. There is a table for each
    /// queue, and each queue is an installation.
    Begins(Text),
}

impl TableName {
    /// The part of the name before or after the rule's part. None if the name does not match.
    pub fn rest<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self {
            Self::Exact(exact) => (**exact == *name).then_some(""),
            Self::Suffix(suffix) => name.strip_suffix(&**suffix),
            Self::Begins(begins) => name.strip_prefix(&**begins).filter(|rest| !rest.is_empty()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterColumnKind {
    /// `int`: `smallint`, `integer` or `bigint`.
    Int,
    /// `text`: `text`, `varchar`, `char` or `name`.
    Text,
    /// A date or a timestamp, with or without a time zone.
    Time,
    Bool,
    Uuid,
    Jsonb,
    Number,
    Interval,
    Enum,
    /// `text[]`: an array of `text` or `varchar`.
    TextArray,
}

impl AdapterColumnKind {
    pub const ALL: [(&'static str, Self); 10] = [
        ("int", Self::Int),
        ("text", Self::Text),
        ("time", Self::Time),
        ("bool", Self::Bool),
        ("uuid", Self::Uuid),
        ("jsonb", Self::Jsonb),
        ("number", Self::Number),
        ("interval", Self::Interval),
        ("enum", Self::Enum),
        ("text[]", Self::TextArray),
    ];

    /// The kind of a type by its OID, which is one of the built-in types (`src/include/catalog/pg_type.dat`); an enum is
    /// user-defined.
    pub fn of(oid: u32, is_enum: bool) -> Option<Self> {
        Some(match oid {
            _ if is_enum => Self::Enum,
            20 | 21 | 23 => Self::Int,
            19 | 25 | 1042 | 1043 => Self::Text,
            1082 | 1114 | 1184 => Self::Time,
            16 => Self::Bool,
            2950 => Self::Uuid,
            3802 => Self::Jsonb,
            700 | 701 | 1700 => Self::Number,
            1186 => Self::Interval,
            1009 | 1015 => Self::TextArray,
            _ => return None,
        })
    }
}

/// A requirement: `table.column`, or `table.column=label` of an enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredColumn {
    pub table: Text,
    pub column: Text,
    /// A label that the enum of the column must have. None: the column is sufficient.
    pub label: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The version text; `{0}` stands for the result of the query.
    pub text: Text,
    /// Required columns and labels. Empty: always met.
    pub needs: Vec<RequiredColumn>,
    /// A query of one value, for `{0}` of the text. None: the text is complete.
    pub sql: Option<Template>,
}

rows! {
    as evidence_rows;

    pub struct Setting in Settings {
        1 name: Text,
        2 value: Text,
        /// The value in seconds, if it is a duration.
        3 seconds: Option<f64>,
    }

    #[derive(Default)]
    pub struct Evidence in Evidences {
        /// A running job holds its key until it ends.
        1 has_key: bool,
        /// A worker without a row is gone.
        2 absent_is_lost: bool,
        /// The limit of a heartbeat, or the name of a setting that has it.
        3 beat_seconds: Option<f64>,
        4 beat_setting: Option<Text>,
        /// The system's rescuer requeues jobs that run for longer.
        5 age_seconds: Option<f64>,
        6 age_setting: Option<Text>,
        /// A stored process id is that of the working backend.
        7 has_session: bool,
        /// Every worker has a row: without a row, there is no worker.
        8 lists_workers: bool,
        /// The owner of one of its leases is the leader, which rescues jobs and makes scheduled jobs due. Without a lease there is
        /// no leader.
        9 leads_by_lease: bool,
        /// A worker always has an identifiable session: without one, no worker is connected.
        10 has_presence: bool,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterQuery {
    pub part: Part,
    /// Required columns and labels. If one is missing, the next query of the part is tried.
    pub needs: Vec<RequiredColumn>,
    pub sql: Template,
}

words! {
    /// An action of an adapter: `R` or `U` on a row, if the config has `allow_actions`.
    pub enum ActionKind {
        /// `[actions.recover]`: returns a job that has lost its worker to its system.
        Recover,
        /// `[actions.unlock]`: ends a lease before its expiry.
        Unlock,
    }
}

impl ActionKind {
    pub const fn values(self) -> &'static [ActionValue] {
        match self {
            Self::Recover => {
                &[ActionValue::Id, ActionValue::Worker, ActionValue::Attempt, ActionValue::StartedAt]
            }
            Self::Unlock => {
                &[ActionValue::Id, ActionValue::Owner, ActionValue::AcquiredAt, ActionValue::ExpiresAt]
            }
        }
    }

    /// Values that distinguish one run or holder from the next: the statement must name one of them.
    pub const fn identifying_values(self) -> &'static [ActionValue] {
        match self {
            Self::Recover => &[ActionValue::StartedAt, ActionValue::Attempt],
            Self::Unlock => &[ActionValue::AcquiredAt, ActionValue::ExpiresAt],
        }
    }
}

words! {
    /// A value that was read of the row, which the statement names in braces and the server compares.
    pub enum ActionValue {
        Id,
        Worker,
        Attempt,
        StartedAt,
        Owner,
        AcquiredAt,
        ExpiresAt,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct AdapterAction {
    pub kind: ActionKind,
    /// Required columns and labels. If one is missing, the next action of this kind is tried.
    pub needs: Vec<RequiredColumn>,
    /// For jobs: one of these must prove that the job is lost. For leases nothing is proved.
    pub proofs: Vec<Proof>,
    /// The advisory lock of the job must be free, and is held until the end of the transaction.
    pub holds_key: bool,
    pub writes: Vec<Text>,
    pub sql: Template,
    /// How its system handles the job or lease afterwards.
    pub then: Text,
    /// The effect if the worker was only silent and finishes late.
    pub late: Option<Text>,
}

/// The record stores them under these names.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ActionValues {
    pub id: Text,
    /// The worker of a job, or the owner of a lease. None if the row names none.
    #[serde(rename = "worker")]
    pub who: Option<Text>,
    /// None if its system does not count attempts, and for a lease.
    pub attempt: Option<i64>,
    /// When the job was started, or the lease acquired. None if the row does not have it.
    pub since: Option<Timestamp>,
    /// When a lease ends. None if the row does not have it, and for a job.
    pub until: Option<Timestamp>,
    #[serde(skip)]
    pub key: Option<LockKey>,
}

impl ActionValues {
    /// Whether the row has this value: otherwise a statement that names it cannot be sent.
    pub fn has(&self, value: ActionValue) -> bool {
        match value {
            ActionValue::Id => true,
            ActionValue::Worker | ActionValue::Owner => self.who.is_some(),
            ActionValue::Attempt => self.attempt.is_some(),
            ActionValue::StartedAt | ActionValue::AcquiredAt => self.since.is_some(),
            ActionValue::ExpiresAt => self.until.is_some(),
        }
    }
}
