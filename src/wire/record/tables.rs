use std::sync::Arc;

use super::cell::{Cell, Column, column, rows};
use super::columns::{codes, columns, flat_rows, lists};
use super::section_states::{SectionState, States};
use super::strings::{Decoded, Strings};
use crate::model::counted_waits::CountedWaits;
use crate::model::growth::Growth;
use crate::model::id_generator::IdGenerator;
use crate::model::lease::Lease;
use crate::model::owner::Owner;
use crate::model::rate_limit::RateLimit;
use crate::model::refusals::Refusals;
use crate::model::systems::{Source, Systems, TableRows};
use crate::model::task::{Execution, KeyRule, Schedule, TaskSet, TaskTables};
use crate::model::task_worker::TaskWorker;
use crate::model::work_queue::{Item, StateCount};
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Unsaid,
    Id,
    LockId,
    Expression,
}

codes! {
    Rule, else Unsaid; {
        0 Unsaid, 1 Id, 2 LockId, 3 Expression,
    }
}

columns! {
    Schedules of Schedule {
        1 id: i64,
        2 name: Option<Text>,
        3 kind: Option<Text>,
        4 cron: Option<Text>,
        5 enabled: Option<bool>,
        6 last_run_at: Option<Timestamp>,
        7 next_run_at: Option<Timestamp>,
        8 priority: Option<i64>,
        9 timeout: Option<f64>,
        10 max_attempts: Option<i64>,
        11 attempts: Option<i64>,
        12 key: Option<i64>,
    }
    Executions of Execution {
        1 id: i64,
        2 task_id: i64,
        3 worker: Option<Text>,
        4 status: Option<Text>,
        5 started_at: Option<Timestamp>,
        6 completed_at: Option<Timestamp>,
        7 error: Option<Text>,
        8 lock_id: Option<i64>,
        9 backend_pid: Option<i32>,
        10 backend_start: Option<Timestamp>,
        11 attempt: Option<i64>,
        12 heartbeat_at: Option<Timestamp>,
        13 recovered_by: Option<Text>,
    }
    /// The owner of a table.
    Owners of Owner {
        1 name: Text,
        2 stranger: Option<Text>,
        3 hides: Option<Text>,
    }
    /// How large a table is.
    Growths of Growth {
        1 rows: u64,
        2 is_limited: bool,
        3 old: Option<u64>,
    }
    /// Pairs of task tables.
    TaskTableRows of TaskTables {
        1 table: u32,
        2 log: Option<u32>,
        3 schedules: Text,
        4 executions: Option<Text>,
        5 own_keys: bool,
        6 key_rule: KeyRule,
        7 has_function: bool,
        8 owner: Owner,
        9 growth: Growth,
    }
    Leases of Lease {
        1 id: Text,
        2 owner: Option<Text>,
        3 renewed_at: Option<Timestamp>,
        4 term: Option<f64>,
        5 expires_at: Option<Timestamp>,
        6 token: Option<i64>,
        7 acquired_at: Option<Timestamp>,
        8 released_at: Option<Timestamp>,
        9 backend_pid: Option<i32>,
        10 backend_start: Option<Timestamp>,
        11 place: Option<(u32, u16)>,
    }
    StateCounts of StateCount {
        1 status: Option<Text>,
        2 count: u64,
        3 is_more: bool,
        4 oldest_at: Option<Timestamp>,
        5 last_minute: Option<u64>,
    }
    Items of Item {
        1 id: i64,
        2 name: Option<Text>,
        3 status: Option<Text>,
        4 worker: Option<Text>,
        5 created_at: Option<Timestamp>,
        6 started_at: Option<Timestamp>,
        7 completed_at: Option<Timestamp>,
        8 attempt: Option<i64>,
        9 max_attempts: Option<i64>,
        10 backend_pid: Option<i32>,
        11 backend_start: Option<Timestamp>,
        12 heartbeat_at: Option<Timestamp>,
        13 error: Option<Text>,
        14 timeout: Option<f64>,
        15 due_at: Option<Timestamp>,
        16 key: Option<i64>,
        17 locker: Option<u32>,
    }
    RateLimits of RateLimit {
        1 key: Text,
        2 count: Option<i64>,
        3 window_start: Option<Timestamp>,
        4 max_requests: Option<i64>,
        5 expires_at: Option<Timestamp>,
    }
    Generators of IdGenerator {
        1 worker: i64,
        2 sequence: Option<i64>,
        3 last_timestamp: Option<i64>,
    }
    /// The table of a lock system.
    Sources of Source {
        1 table: u32,
        2 name: Text,
        3 own_keys: bool,
        4 key_rule: KeyRule,
        5 has_function: bool,
        6 owner: Owner,
        7 growth: Growth,
    }
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
    /// [`KeyRule`] with its text beside it.
    FlatRules of FlatRule {
        1 rule: Rule,
        2 expression: Option<Text>,
    }
    /// [`TaskSet`] without the states of its sections.
    FlatSets of FlatSet {
        1 tables: TaskTables,
        2 tasks: Vec<Schedule>,
        3 executions: Vec<Execution>,
        4 tasks_cut: bool,
        5 running_cut: bool,
    }
}

lists! {
    ScheduleLists of Schedule;
    ExecutionLists of Execution;
    LeaseLists of Lease;
    StateCountLists of StateCount;
    ItemLists of Item;
    RateLimitLists of RateLimit;
    GeneratorLists of IdGenerator;
}

impl Cell for KeyRule {
    type Column = FlatRules;
}

impl Column<KeyRule> for FlatRules {
    fn push(&mut self, value: &KeyRule, strings: &mut Strings) {
        let (rule, expression) = match value {
            KeyRule::Unsaid => (Rule::Unsaid, None),
            KeyRule::Id => (Rule::Id, None),
            KeyRule::LockId => (Rule::LockId, None),
            KeyRule::Expression(text) => (Rule::Expression, Some(Text::clone(text))),
        };
        self.push(&FlatRule { rule, expression }, strings);
    }

    fn get(&self, at: usize, strings: &Decoded) -> KeyRule {
        let FlatRule { rule, expression } = self.get(at, strings);
        match rule {
            Rule::Unsaid => KeyRule::Unsaid,
            Rule::Id => KeyRule::Id,
            Rule::LockId => KeyRule::LockId,
            Rule::Expression => KeyRule::Expression(expression.unwrap_or_default()),
        }
    }

    fn rows(&self) -> usize {
        Column::<FlatRule>::rows(self)
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Places {
    #[prost(message, required, tag = 1)]
    page: <Option<u32> as Cell>::Column,
    #[prost(message, required, tag = 2)]
    line: <Option<u16> as Cell>::Column,
}

impl Cell for Option<(u32, u16)> {
    type Column = Places;
}

impl Column<Option<(u32, u16)>> for Places {
    fn push(&mut self, value: &Option<(u32, u16)>, strings: &mut Strings) {
        self.page.push(&value.map(|place| place.0), strings);
        self.line.push(&value.map(|place| place.1), strings);
    }

    fn get(&self, at: usize, strings: &Decoded) -> Option<(u32, u16)> {
        let page = Column::<Option<u32>>::get(&self.page, at, strings)?;
        Some((page, Column::<Option<u16>>::get(&self.line, at, strings)?))
    }

    fn rows(&self) -> usize {
        Column::<Option<u32>>::rows(&self.page)
    }
}

/// [`TableRows`] without the state of its section.
pub(super) struct FlatTable<T> {
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
        tasks_cut: set.tasks_cut,
        running_cut: set.running_cut,
    });
    column(&flat.collect::<Vec<_>>(), strings)
}

pub(super) fn sets(kept: &FlatSets, states: &mut States, strings: &Decoded) -> Vec<TaskSet> {
    let set = |flat: FlatSet| {
        let (tasks, executions) = (states.section(flat.tasks), states.section(flat.executions));
        TaskSet::new(Arc::new(flat.tables), tasks, executions).cut(flat.tasks_cut, flat.running_cut)
    };
    rows::<FlatSet>(kept, strings).into_iter().map(set).collect()
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SystemTables {
    #[prost(message, required, tag = 1)]
    leases: LeaseTables,
    #[prost(message, required, tag = 2)]
    counts: CountTables,
    #[prost(message, required, tag = 3)]
    items: ItemTables,
    #[prost(message, required, tag = 4)]
    limits: LimitTables,
    #[prost(message, required, tag = 5)]
    generators: GeneratorTables,
    #[prost(message, required, tag = 6)]
    workers: WorkerTables,
    #[prost(message, required, tag = 7)]
    contended: ContendedTables,
    #[prost(message, required, tag = 8)]
    refusals: RefusalTables,
}

/// The other lock systems except those in Redis, which are kept separately.
pub(super) fn of_systems(systems: &Systems, strings: &mut Strings) -> SystemTables {
    SystemTables {
        leases: column(&flat(&systems.leases), strings),
        counts: column(&flat(&systems.counts), strings),
        items: column(&flat(&systems.items), strings),
        limits: column(&flat(&systems.limits), strings),
        generators: column(&flat(&systems.generators), strings),
        workers: column(&flat(&systems.workers), strings),
        contended: column(&flat(&systems.contended), strings),
        refusals: column(&flat(&systems.refusals), strings),
    }
}

/// The states of their sections, in the order in which [`systems`] reads them.
pub(super) fn system_states(systems: &Systems) -> impl Iterator<Item = SectionState> {
    fn of<T>(tables: &[TableRows<T>]) -> impl Iterator<Item = SectionState> {
        tables.iter().map(|table| SectionState::of(&table.section))
    }
    // Taken apart, so that a kind of table that is new is not forgotten. What is in Redis has no section here.
    let Systems { leases, counts, items, limits, generators, workers, contended, refusals, redis: _ } =
        systems;
    of(leases)
        .chain(of(counts))
        .chain(of(items))
        .chain(of(limits))
        .chain(of(generators))
        .chain(of(workers))
        .chain(of(contended))
        .chain(of(refusals))
}

pub(super) fn systems(kept: &SystemTables, states: &mut States, strings: &Decoded) -> Systems {
    Systems {
        leases: tables(rows(&kept.leases, strings), states),
        counts: tables(rows(&kept.counts, strings), states),
        items: tables(rows(&kept.items, strings), states),
        limits: tables(rows(&kept.limits, strings), states),
        generators: tables(rows(&kept.generators, strings), states),
        workers: tables(rows(&kept.workers, strings), states),
        contended: tables(rows(&kept.contended, strings), states),
        refusals: tables(rows(&kept.refusals, strings), states),
        redis: Arc::default(),
    }
}

fn flat<T: Clone>(tables: &[TableRows<T>]) -> Vec<FlatTable<T>> {
    tables
        .iter()
        .map(|table| FlatTable {
            source: Source::clone(&table.source),
            rows: table.section.last_rows().to_vec(),
            is_cut: table.is_cut,
        })
        .collect()
}

fn tables<T>(flat: Vec<FlatTable<T>>, states: &mut States) -> Vec<TableRows<T>> {
    flat.into_iter()
        .map(|table| TableRows {
            source: Arc::new(table.source),
            section: states.section(table.rows),
            is_cut: table.is_cut,
        })
        .collect()
}
