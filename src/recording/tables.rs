use std::sync::Arc;
use std::time::Duration;

use super::cell::{column, rows, stored_as};
use super::columns::{codes, columns, flat_rows, tuples};
use super::strings::{Decoded, Strings};
use crate::model::id_generator::IdGenerator;
use crate::model::lease::Lease;
use crate::model::lock::{LockMode, LockTag};
use crate::model::rate_limit::RateLimit;
use crate::model::redis_lease::{
    Bytes, Expiry, LockValue, RedisLease, RedisLeases, ServerKey, ServerState, Standing, redis_lease_rows,
};
use crate::model::refusals::Refusals;
use crate::model::snapshot::Section;
use crate::model::source_tables::{CountedWaits, Source, SourceTables, TableRows, source_rows, table_kinds};
use crate::model::table_rows::TaskWorker;
use crate::model::table_rows::{Growth, Owner};
use crate::model::table_rows::{queried_rows, table_rows};
use crate::model::task::{Execution, KeyRule, Schedule, TaskSet, TaskTables, task_tables_rows};
use crate::model::work_queue::{Item, StateCount};
use crate::model::{Text, Timestamp};

table_rows!(columns);
queried_rows!(columns);
task_tables_rows!(columns);
source_rows!(columns);

columns! {
    /// The owner of a table.
    Owners of Owner { 1 name: Text, 2 stranger: Option<Text>, 3 hides: Option<Text>, }
    /// How large a table is.
    Growths of Growth { 1 rows: u64, 2 is_limited: bool, 3 old: Option<u64>, }
    LeaseTables of FlatTable<Lease> { 1 source: Source, 2 rows: Vec<Lease>, 3 is_cut: bool, }
    CountTables of FlatTable<StateCount> { 1 source: Source, 2 rows: Vec<StateCount>, 3 is_cut: bool, }
    ItemTables of FlatTable<Item> { 1 source: Source, 2 rows: Vec<Item>, 3 is_cut: bool, }
    LimitTables of FlatTable<RateLimit> { 1 source: Source, 2 rows: Vec<RateLimit>, 3 is_cut: bool, }
    /// Tables with id generators.
    GeneratorTables of FlatTable<IdGenerator> { 1 source: Source, 2 rows: Vec<IdGenerator>, 3 is_cut: bool, }
    WorkerTables of FlatTable<TaskWorker> { 1 source: Source, 2 rows: Vec<TaskWorker>, 3 is_cut: bool, }
    /// Tables with waits that were counted.
    ContendedTables of FlatTable<CountedWaits> { 1 source: Source, 2 rows: Vec<CountedWaits>, 3 is_cut: bool, }
    RefusalTables of FlatTable<Refusals> { 1 source: Source, 2 rows: Vec<Refusals>, 3 is_cut: bool, }
}

flat_rows! {
    /// [`TaskSet`] without the states of its sections.
    FlatSets of FlatSet {
        1 tables: TaskTables,
        2 tasks: Vec<Schedule>,
        3 executions: Vec<Execution>,
        4 tasks_cut: bool,
        5 running_cut: bool,
    }
}

tuples! {
    /// [`KeyRule`] with its text beside it.
    FlatRules of (u32, Option<Text>) as (rule, expression) {
        1 rule: u32,
        2 expression: Option<Text>,
    }
    Places of (Option<u32>, Option<u16>) as (page, line) {
        1 page: Option<u32>,
        2 line: Option<u16>,
    }
}

stored_as! {
    KeyRule as (u32, Option<Text>):
        |rule| match rule {
            KeyRule::Unsaid => (0, None),
            KeyRule::Id => (1, None),
            KeyRule::LockId => (2, None),
            KeyRule::Expression(text) => (3, Some(Text::clone(text))),
        },
        |(rule, expression)| match rule {
            1 => KeyRule::Id,
            2 => KeyRule::LockId,
            3 => KeyRule::Expression(expression.unwrap_or_default()),
            _ => KeyRule::Unsaid,
        };
    Option<(u32, u16)> as (Option<u32>, Option<u16>): |place| place.unzip(), |(page, line)| page.zip(line);
}

/// [`TableRows`] without the state of its section.
struct FlatTable<T> {
    source: Source,
    rows: Vec<T>,
    is_cut: bool,
}

pub(super) fn set_states(sets: &[TaskSet]) -> impl Iterator<Item = SectionState> {
    sets.iter().flat_map(|set| [SectionState::of(&set.tasks), SectionState::of(&set.executions)])
}

pub(super) fn of_sets(sets: &[TaskSet], strings: &mut Strings) -> FlatSets {
    let flat = sets.iter().map(|set| FlatSet {
        tables: TaskTables::clone(&set.tables),
        tasks: set.tasks.last_rows().to_vec(),
        executions: set.executions.last_rows().to_vec(),
        tasks_cut: set.tasks.is_cut,
        running_cut: set.executions.is_cut,
    });
    column(&flat.collect::<Vec<_>>(), strings)
}

pub(super) fn sets(kept: &FlatSets, states: &mut States, strings: &Decoded) -> Vec<TaskSet> {
    let set = |flat: FlatSet| {
        let tasks = states.section(flat.tasks).cut(flat.tasks_cut);
        let executions = states.section(flat.executions).cut(flat.running_cut);
        TaskSet::new(Arc::new(flat.tables), tasks, executions)
    };
    rows::<FlatSet>(kept, strings).into_iter().map(set).collect()
}

// Locks in Redis are not in tables: they are kept separately.
macro_rules! systems {
    ($($(#[$_doc:meta])* $tag:literal $kind:ident: $_row:ident in $columns:ident = $_section:literal,)*) => {
        #[derive(Clone, PartialEq, prost::Message)]
        pub(super) struct SystemTables {
            $(
                #[prost(message, required, tag = $tag)]
                $kind: $columns,
            )*
        }

        pub(super) fn of_systems(systems: &SourceTables, strings: &mut Strings) -> SystemTables {
            SystemTables { $($kind: column(&flat(&systems.$kind), strings),)* }
        }

        pub(super) fn systems(kept: &SystemTables, states: &mut States, strings: &Decoded) -> SourceTables {
            SourceTables { $($kind: tables(rows(&kept.$kind, strings), states),)* redis: Arc::default() }
        }

        /// Whether the rows are the same ones in memory.
        pub(super) fn same_systems(before: &SourceTables, after: &SourceTables) -> bool {
            $(same_tables(&before.$kind, &after.$kind))&&*
        }
    };
}

table_kinds!(systems);

/// The states of their sections, in the order in which [`systems`] reads them.
pub(super) fn system_states(systems: &SourceTables) -> impl Iterator<Item = SectionState> {
    systems.sections().map(|(.., taken_at, error)| SectionState { taken_at, error: error.cloned() })
}

fn flat<T: Clone>(tables: &[TableRows<T>]) -> Vec<FlatTable<T>> {
    tables
        .iter()
        .map(|table| FlatTable {
            source: Source::clone(&table.source),
            rows: table.section.last_rows().to_vec(),
            is_cut: table.section.is_cut,
        })
        .collect()
}

fn tables<T>(flat: Vec<FlatTable<T>>, states: &mut States) -> Vec<TableRows<T>> {
    flat.into_iter()
        .map(|table| TableRows {
            source: Arc::new(table.source),
            section: states.section(table.rows).cut(table.is_cut),
        })
        .collect()
}

fn same_tables<T>(before: &[TableRows<T>], after: &[TableRows<T>]) -> bool {
    let same = |(before, after): (&TableRows<T>, &TableRows<T>)| {
        Arc::ptr_eq(&before.source, &after.source)
            && Arc::ptr_eq(before.section.last_rows(), after.section.last_rows())
            && before.section.is_cut == after.section.is_cut
    };
    before.len() == after.len() && before.iter().zip(after).all(same)
}

flat_rows! {
    /// A section without its rows.
    SectionStates of #[derive(Debug, Clone, Default, PartialEq)] SectionState {
        1 taken_at: Option<Timestamp>,
        2 error: Option<Text>,
    }
}

impl SectionState {
    pub(super) fn of<T>(section: &Section<T>) -> Self {
        Self { taken_at: section.taken_at, error: section.error.clone() }
    }
}

// When each section of a snapshot was read, or why not; kept separately from its rows.

pub(super) struct States(std::vec::IntoIter<SectionState>);

impl States {
    pub(super) fn new(states: Vec<SectionState>) -> Self {
        Self(states.into_iter())
    }

    /// The next section, with these rows. Without a state, it was never read.
    pub(super) fn section<T>(&mut self, rows: Vec<T>) -> Section<T> {
        let SectionState { taken_at, error } = self.0.next().unwrap_or_default();
        Section::restored(Arc::new(rows), taken_at, error)
    }

    /// The next section, without rows. Recordings of earlier releases have no state for it; then it counts as read.
    pub(super) fn later_section<T>(&mut self, at: Timestamp) -> Section<T> {
        match self.0.next() {
            Some(SectionState { taken_at, error }) => Section::restored(Arc::default(), taken_at, error),
            None => Section::fresh(Vec::new(), at),
        }
    }
}

// Locks in Redis.

codes! {
    Standing, else Unknown; {
        0 Unknown, 1 Held, 2 Split, 3 Minority,
    }
}

redis_lease_rows!(columns);

flat_rows! {
    /// [`LockValue`] with the fields of all its kinds. A string: 0; Redisson's hash: 1, with `bytes` for its mode; anything else: 2.
    FlatValues of #[derive(Default)] FlatValue {
        1 kind: u32,
        2 bytes: Bytes,
        3 whole: bool,
        4 fields: Vec<Bytes>,
        5 counts: Vec<i64>,
        6 has_mode: bool,
        7 other: Option<Text>,
    }
}

tuples! {
    /// Another value, and on how many servers it is.
    FlatOthers of (LockValue, u32) as (value, votes) { 1 value: LockValue, 2 votes: u32, }
}

stored_as! {
    LockValue as FlatValue: flat_value, lock_value;
    // Nanoseconds left; -1 for a key that never expires.
    Expiry as Option<i64>:
        |expiry| Some(match expiry {
            Expiry::After(left) => i64::try_from(left.as_nanos()).unwrap_or(i64::MAX),
            Expiry::Never => -1,
        }),
        |nanos| match nanos.and_then(|nanos| u64::try_from(nanos).ok()) {
            Some(nanos) => Expiry::After(Duration::from_nanos(nanos)),
            None => Expiry::Never,
        };
}

fn flat_value(value: &LockValue) -> FlatValue {
    let empty = FlatValue::default();
    match value {
        LockValue::Text { bytes, whole } => FlatValue { bytes: Arc::clone(bytes), whole: *whole, ..empty },
        LockValue::Redisson { holders, mode } => FlatValue {
            kind: 1,
            bytes: mode.clone().unwrap_or_default(),
            fields: holders.iter().map(|(field, _)| Arc::clone(field)).collect(),
            counts: holders.iter().map(|(_, count)| *count).collect(),
            has_mode: mode.is_some(),
            ..empty
        },
        LockValue::Other(kind) => FlatValue { kind: 2, other: Some(Text::clone(kind)), ..empty },
    }
}

fn lock_value(flat: FlatValue) -> LockValue {
    match flat.kind {
        0 => LockValue::Text { bytes: flat.bytes, whole: flat.whole },
        1 => LockValue::Redisson {
            holders: flat.fields.into_iter().zip(flat.counts).collect(),
            mode: flat.has_mode.then_some(flat.bytes),
        },
        _ => LockValue::Other(flat.other.unwrap_or_default()),
    }
}
