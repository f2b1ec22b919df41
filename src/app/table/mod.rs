//! The tables: which columns a pane has, what a row says in each, and by what it is sorted and filtered.

mod backends;
mod chains;
mod events;
mod generators;
mod leases;
mod limits;
mod locks;
mod meaning;
mod queue;
mod tasks;

use std::borrow::Cow;

use super::index::Scene;
use super::line::Tone;
use super::screen::Pane;
use crate::model::backend::{BackendId, State};
use crate::model::id_generator::GeneratorId;
use crate::model::lease::{LeaseId, LeaseState};
use crate::model::lock::{LockMode, LockTag, VirtualTransaction};
use crate::model::rate_limit::{LimitId, LimitState};
use crate::model::task::{TaskId, TaskState};
use crate::model::wait_graph::Party;
use crate::model::work_queue::{ItemId, ItemState};

pub(in crate::app) use crate::text::literal as quote;
pub(in crate::app) use chains::root_state;
pub use chains::{ChainRow, Group, chain_rows, with_ancestors};
pub use events::event_rows;
pub(in crate::app) use events::{members, time as event_time, tone as event_tone, what as event_text};
pub use generators::generator_rows;
pub(in crate::app) use generators::last as last_id;
pub use leases::lease_rows;
pub(in crate::app) use leases::tone as lease_tone;
pub use limits::limit_rows;
pub(in crate::app) use limits::tone as limit_tone;
pub use locks::{advisory_rows, lock_rows};
pub(in crate::app) use locks::{age_words, lock_age};
pub use meaning::meaning;
pub use queue::item_rows;
pub(in crate::app) use queue::tone as item_tone;
pub use tasks::task_rows;
pub(in crate::app) use tasks::tone as task_tone;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Heading.
    pub title: &'static str,
    /// Its name in a filter: `wait>30`.
    pub name: &'static str,
    /// Least width.
    pub min: u16,
    /// Width with room to spare; 0 takes what is left.
    pub max: u16,
    /// Numbers and ages stand right.
    pub right: bool,
    /// The higher, the sooner it is left out when the screen is narrow; 0 stays.
    pub rank: u8,
}

/// A row of a pane, by where it is in the view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row {
    /// A line of the forest.
    Chain(ChainRow),
    /// Index in `snapshot.locks`.
    Lock(u32),
    /// Index in `snapshot.backends`.
    Backend(u32),
    /// Index in the view's tasks.
    Task(u32),
    /// Index in the view's leases.
    Lease(u32),
    /// Index in the view's items of the work queue.
    Item(u32),
    /// Index in the snapshot's tables of rate limits, and there.
    Limit(u32, u32),
    /// Index in the snapshot's tables of id generators, and there.
    Generator(u32, u32),
    /// Number of an event, and how many from there on are one line.
    Event(u64, u32),
}

/// What a row is about, whatever its place: the selection and the marks hold on to this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowId {
    /// A backend.
    Backend(BackendId),
    /// A prepared transaction.
    Prepared(VirtualTransaction),
    /// Waiters for one lock in one mode behind one party, folded into a line.
    Group(Party, LockTag, LockMode),
    /// A lock, who holds it or waits for it, in which mode, and whether it is granted.
    Lock(LockTag, Owner, LockMode, bool),
    /// A task; where several executions of it run, all but the newest by their own id.
    Task(TaskId, Option<i64>),
    /// A lease.
    Lease(LeaseId),
    /// An item of the work queue.
    Item(ItemId),
    /// A rate limit.
    Limit(LimitId),
    /// An id generator.
    Generator(GeneratorId),
    /// An event, or so many that are alike from there on.
    Event(u64, u32),
}

/// Who holds a lock or waits for it. The `virtualtransaction` of a row is no identity: for a session-level lock it is that
/// of whatever its session does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A process.
    Backend(BackendId),
    /// A prepared transaction.
    Prepared(VirtualTransaction),
}

/// What stands in one cell: one harmless line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// What it means.
    pub tone: Tone,
}

impl Cell {
    /// Text without a special meaning.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }

    /// Text with a meaning.
    #[must_use]
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    /// What nobody knows or what is not there.
    #[must_use]
    pub fn none() -> Self {
        Self { text: "-".to_owned(), tone: Tone::Dim }
    }
}

/// What a row is sorted and filtered by.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// NULL: sorted last.
    Missing,
    /// A count, or an age in seconds.
    Number(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// The name of a state, and all that its cell says.
    State(Cow<'a, str>, Cow<'a, str>),
}

impl Value<'_> {
    /// A number, or nothing.
    #[must_use]
    pub fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Number)
    }
}

impl<'a> Value<'a> {
    /// A state whose cell says nothing but its name.
    #[must_use]
    pub fn state(name: impl Into<Cow<'a, str>>) -> Self {
        let name = name.into();
        Self::State(name.clone(), name)
    }
}

/// What a state is called where its own name has no room, and those that are no state of one kind of row.
const OTHER_STATES: [&str; 4] = ["idle in xact", "idle aborted", "fastpath", "split"];

/// Whether that is the name of a state of any table.
#[must_use]
pub fn is_state(word: &str) -> bool {
    let is = |name: &str| name.eq_ignore_ascii_case(word);
    State::ALL.iter().any(|state| is(state.as_str()))
        || TaskState::ALL.iter().any(|state| is(state.as_str()))
        || ItemState::ALL.iter().any(|state| is(state.as_str()))
        || LeaseState::ALL.iter().any(|state| is(state.as_str()))
        || LimitState::ALL.iter().any(|state| is(state.as_str()))
        || OTHER_STATES.into_iter().any(is)
}

/// The columns of a pane.
#[must_use]
pub fn columns(pane: Pane) -> &'static [Column] {
    match pane {
        Pane::Chains => chains::COLUMNS,
        Pane::Advisory => locks::ADVISORY,
        Pane::Locks => locks::COLUMNS,
        Pane::Tasks => tasks::COLUMNS,
        Pane::Leases => leases::COLUMNS,
        Pane::Queue => queue::COLUMNS,
        Pane::Limits => limits::COLUMNS,
        Pane::Generators => generators::COLUMNS,
        Pane::Backends => backends::COLUMNS,
        Pane::Events => events::COLUMNS,
    }
}

/// What a filter may name of a pane beside its columns.
#[must_use]
pub fn filter_only(pane: Pane) -> &'static [&'static str] {
    match pane {
        Pane::Locks => locks::FILTER_ONLY,
        Pane::Backends => backends::FILTER_ONLY,
        _ => &[],
    }
}

/// The text of a cell. `room` is the width it has: some say less where it is narrow.
#[must_use]
pub fn cell(scene: &Scene<'_>, groups: &[Group], row: Row, column: &str, room: u16) -> Cell {
    match row {
        Row::Chain(row) => chains::cell(scene, groups, row, column, room),
        Row::Lock(at) => locks::cell(scene, at, column, room),
        Row::Backend(at) => backends::cell(scene, at, column, room),
        Row::Task(at) => tasks::cell(scene, at, column, room),
        Row::Lease(at) => leases::cell(scene, at, column, room),
        Row::Item(at) => queue::cell(scene, at, column, room),
        Row::Limit(table, at) => limits::cell(scene, (table, at), column, room),
        Row::Generator(table, at) => generators::cell(scene, (table, at), column, room),
        Row::Event(number, count) => events::cell(scene, (number, count), column),
    }
}

/// What a row is sorted and filtered by in a column.
#[must_use]
pub fn value<'a>(scene: &Scene<'a>, groups: &[Group], row: Row, column: &str) -> Value<'a> {
    match row {
        Row::Chain(row) => chains::value(scene, groups, row, column),
        Row::Lock(at) => locks::value(scene, at, column),
        Row::Backend(at) => backends::value(scene, at, column),
        Row::Task(at) => tasks::value(scene, at, column),
        Row::Lease(at) => leases::value(scene, at, column),
        Row::Item(at) => queue::value(scene, at, column),
        Row::Limit(table, at) => limits::value(scene, (table, at), column),
        Row::Generator(table, at) => generators::value(scene, (table, at), column),
        Row::Event(number, count) => events::value(scene, (number, count), column),
    }
}

/// The identity of a row.
#[must_use]
pub fn id(scene: &Scene<'_>, groups: &[Group], row: Row) -> Option<RowId> {
    match row {
        Row::Chain(row) => chains::id(scene, groups, row),
        Row::Lock(at) => locks::id(scene, at),
        Row::Task(at) => tasks::id(scene, at),
        Row::Lease(at) => leases::id(scene, at),
        Row::Item(at) => queue::id(scene, at),
        Row::Limit(table, at) => limits::id(scene, table, at),
        Row::Generator(table, at) => generators::id(scene, table, at),
        Row::Event(number, count) => Some(RowId::Event(number, count)),
        Row::Backend(at) => scene.snapshot.backends.rows.get(at as usize).map(|row| RowId::Backend(row.id())),
    }
}

/// All backends, in the server's order.
#[must_use]
pub fn backend_rows(scene: &Scene<'_>) -> Vec<Row> {
    (0..u32::try_from(scene.snapshot.backends.rows.len()).unwrap_or(u32::MAX)).map(Row::Backend).collect()
}

/// An age as a cell.
fn age(seconds: Option<f64>, tone: Tone) -> Cell {
    seconds.map_or_else(Cell::none, |seconds| Cell::toned(crate::text::duration(seconds), tone))
}

/// `█████▌░░░  61%`: a share as a bar with its percentage, in so much room.
fn bar(share: f64, room: u16) -> String {
    let columns = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let width = usize::from(room.min(22)).saturating_sub(6);
    let filled = (0..width).filter(|cell| columns(*cell) + 0.5 < share * columns(width)).count();
    let percent = if share < 10.0 { format!("{:>4.0}%", (share * 100.0).floor()) } else { " >9x".to_owned() };
    format!("{}{}{percent}", "█".repeat(filled), "░".repeat(width.saturating_sub(filled)))
}

/// A column narrower than this shows names without their schemas: all of them, so that rows can be compared.
const ROOM_FOR_SCHEMAS: u16 = 36;

/// Names without their schemas where there is no room for them. The detail view has them whole.
fn fit_names(text: String, room: u16) -> String {
    if room >= ROOM_FOR_SCHEMAS || text.contains('"') {
        return text;
    }
    let short = |word: &str| match word.rsplit_once('.') {
        Some((schema, name)) if !schema.is_empty() && !word.starts_with('(') => name.to_owned(),
        _ => word.to_owned(),
    };
    text.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

/// The name of a worker: where it has no room its beginning and its end stay, which tells `worker-0012` from `worker-0013`.
fn worker(name: Option<&str>, room: u16) -> Cell {
    let cell = server_text(name);
    let fitted = crate::text::fit_middle(&cell.text, usize::from(room)).into_owned();
    Cell { text: fitted, ..cell }
}

/// Server text as one harmless line.
fn server_text(text: Option<&str>) -> Cell {
    match text {
        // No screen is wider; a query may have a megabyte.
        Some(text) => Cell::plain(crate::text::one_line_prefix(text, 500)),
        None => Cell::none(),
    }
}
