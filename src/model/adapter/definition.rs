//! What the file of an adapter says.

use super::{Action, ActionKind, Job, Part, Presence, Proof, State, Template};
use crate::model::Text;

/// An adapter, checked as far as that needs no server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adapter {
    /// What it is called in the config: `[a-z0-9_]+`.
    pub name: Text,
    /// What it is called on the screens.
    pub title: Text,
    /// The licence of the project (`licence`), for people.
    pub licence: Text,
    /// The version of the project that the facts are from.
    pub seen: Text,
    /// Whether it is compiled in; else the user has written it.
    pub is_built_in: bool,
    /// The only schema in which it is looked for, where the config names one.
    pub schema: Option<Text>,
    /// The zone of its times that have none, where the config says one; else UTC.
    pub time_zone: Option<Text>,
    /// `[detect]`: by which tables an installation is known.
    pub tables: Vec<TableRule>,
    /// The versions of the project; the first whose needs hold is the one.
    pub versions: Vec<Version>,
    /// `[settings]`, with what `[adapters.NAME]` of the config sets in their place.
    pub settings: Vec<Setting>,
    /// What can be known of a worker.
    pub evidence: Evidence,
    /// `[presence]`: by what the sessions of its workers are known in `pg_stat_activity`.
    pub presence: Presence,
    /// What becomes of a lost job by itself, by the proof that it is lost.
    pub comes_back: Vec<(Proof, Text)>,
    /// The queries; of a part the first whose needs hold and that the gate lets pass.
    pub queries: Vec<Query>,
    /// What to type in the system's own console, by state.
    pub advise: Vec<(State, Text)>,
    /// What may be done to its rows.
    pub actions: Vec<Action>,
    /// `allow_actions` of the config: else its rows are only looked at.
    pub allows_actions: bool,
}

impl Adapter {
    /// The rule of the table with this key; none where the file has no such key.
    pub fn table(&self, key: &str) -> Option<&TableRule> {
        self.tables.iter().find(|table| &*table.key == key)
    }

    /// Whether it has a table for each queue.
    pub fn has_each(&self) -> bool {
        self.tables.iter().any(|table| matches!(table.name, TableName::Begins(_)))
    }

    /// The setting of this name; none where the file has no such setting.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| &*setting.name == name)
    }

    /// A limit in seconds; none where it is a setting that is no duration.
    pub fn seconds(&self, limit: &Limit) -> Option<f64> {
        match limit {
            Limit::Seconds(seconds) => Some(*seconds),
            Limit::Setting(name) => self.setting(name).and_then(|setting| setting.seconds),
        }
    }

    /// The alternatives of what is done to a row of it, with their numbers in the file, from 1.
    pub fn actions_of(&self, kind: ActionKind) -> impl Iterator<Item = (usize, &Action)> {
        (1..).zip(self.actions.iter().filter(move |action| action.kind == kind))
    }

    /// The alternative with this number, from 1; none where there are fewer.
    pub fn action(&self, kind: ActionKind, number: usize) -> Option<&Action> {
        self.actions_of(kind).find(|(one, _)| *one == number).map(|(_, action)| action)
    }

    /// How old a sign of life may be, in seconds.
    pub fn beat_limit(&self) -> Option<f64> {
        self.evidence.beat_limit.as_ref().and_then(|limit| self.seconds(limit))
    }

    /// What becomes by itself of a job that is lost by this proof.
    pub fn comes_back(&self, proof: Proof) -> Option<&Text> {
        self.comes_back.iter().find(|(of, _)| *of == proof).map(|(_, text)| text)
    }

    /// What to type about a job in this state, with its id, queue and worker put in. None where one of those has letters that no name has: it
    /// is typed into a console, and whoever may add a job has chosen it.
    pub fn advice(&self, state: State, job: &Job) -> Option<String> {
        // Whoever is an orphan is lost, where nothing else is said of orphans.
        let of = |state: State| self.advise.iter().find(|(one, _)| *one == state);
        let (_, text) = of(state).or_else(|| of(State::Lost).filter(|_| state == State::Orphan))?;
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

/// So long a value may have been cut, and would name another row.
const LONGEST_NAME: usize = 499;

/// Whether these are letters of a name, none of which ends a quotation or a command, or begins an option of one.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(['-', ' '])
        && text.chars().count() <= LONGEST_NAME
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '@' | ' '))
}

/// By what a table is known to be one of this system's: its name and its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRule {
    /// What it is called in the queries.
    pub key: Text,
    /// What it is called in the database.
    pub name: TableName,
    /// The columns that it must have.
    pub columns: Vec<(Text, ColumnKind)>,
    /// Whether an installation may lack it.
    pub optional: bool,
}

/// How much of a table's name is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableName {
    /// `name`: all of it.
    Exact(Text),
    /// `suffix`: its end, with the same before it as all tables of the installation.
    Suffix(Text),
    /// `begins`: its beginning, with the same behind it: a table for each queue, and each queue is an installation.
    Begins(Text),
}

impl TableName {
    /// What stands before, or behind, what the rule has of a name; none where this is not such a name.
    pub fn rest<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self {
            Self::Exact(exact) => (**exact == *name).then_some(""),
            Self::Suffix(suffix) => name.strip_suffix(&**suffix),
            Self::Begins(begins) => name.strip_prefix(&**begins).filter(|rest| !rest.is_empty()),
        }
    }
}

/// The kind of a column that a table must have, by the type in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// `int`: `smallint`, `integer` or `bigint`.
    Int,
    /// `text`: `text`, `varchar`, `char` or `name`.
    Text,
    /// A date or a moment, with a zone or without.
    Time,
    /// `bool`: `boolean`, which may be NULL.
    Bool,
    /// `uuid`: that type alone.
    Uuid,
    /// `jsonb`: that type alone, not `json`.
    Jsonb,
    /// A number that need not be whole.
    Number,
    /// `interval`: that type alone.
    Interval,
    /// `enum`: an enum of whatever name.
    Enum,
    /// `text[]`: an array of `text` or `varchar`.
    TextArray,
}

impl ColumnKind {
    /// The kinds with their words in a file.
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

    /// The kind of a type by its OID, which is one of the server's own (`src/include/catalog/pg_type.dat`); an enum is somebody's.
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

/// What has to be there: `table.column`, or `table.column=label` of an enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Key of the table, as `[detect]` has it.
    pub table: Text,
    /// Name of a column of that table.
    pub column: Text,
    /// A label that the enum of that column must have; none: the column is enough.
    pub label: Option<Text>,
}

/// A version of the project, and by what an installation is known to have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// What it is called; `{0}` in it is what the query brings.
    pub text: Text,
    /// Columns and labels that have to be there; empty: it holds everywhere.
    pub needs: Vec<Need>,
    /// A query of one value, for `{0}` of the text; none where the text says it all.
    pub sql: Option<Template>,
}

/// Something that the user may set.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its key in `[settings]`.
    pub name: Text,
    /// What it is set to, as written.
    pub value: Text,
    /// The same where it is a duration.
    pub seconds: Option<f64>,
}

/// A duration, or the setting that says it.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// So many seconds, as the file says.
    Seconds(f64),
    /// The setting of this name says it, and with it the user.
    Setting(Text),
}

/// What can be known of a worker.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// A job's key is held for as long as it runs.
    pub has_key: bool,
    /// A worker without a row is gone.
    pub absent_is_lost: bool,
    /// Whoever works has a row: where there is none, nobody does.
    pub lists_workers: bool,
    /// Who has one of its leases leads: rescues, and makes due what is scheduled. Without one nobody does.
    pub leads_by_lease: bool,
    /// A sign of life may be so old.
    pub beat_limit: Option<Limit>,
    /// The system's rescuer puts back what runs for longer.
    pub age_limit: Option<Limit>,
    /// A stored process id is that of the backend that works.
    pub has_session: bool,
    /// A worker always has a session by which it is known: where there is none, no worker is connected.
    pub has_presence: bool,
}

/// A query, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The part whose rows it reads.
    pub part: Part,
    /// Columns and labels that have to be there, else the next query of the part is tried.
    pub needs: Vec<Need>,
    /// The query, with `{…}` for tables, limits and settings.
    pub sql: Template,
}
