use super::column::{ColumnWords, PaneTable, Rows};
use super::{Column, Row, RowId};
use crate::app::context::Context;
use crate::app::keymap::Action;
use crate::app::line::{Line, Tone};
use crate::model::adapter::{InstallationRows, Part, Parts};
use crate::model::snapshot::{Section, Snapshot};
use crate::model::source_tables::TableRows;
use crate::model::view::View;
use crate::model::{Text, Timestamp};
use crate::text;

pub struct PaneDefinition {
    pub title: &'static str,
    /// The title while it shows only advisory locks, if it differs.
    pub advisory_title: Option<&'static str>,
    /// The name of one of its rows.
    pub one: &'static str,
    pub table: &'static dyn PaneTable,
    pub rows: fn(&Context<'_>, RowOptions) -> Vec<Row>,
    /// Sorts the rows by urgency if the user chose no order. Ties are decided by values that do not change between two
    /// polls, so that rows do not jump.
    pub order: fn(&Context<'_>, &mut Vec<Row>),
    pub basis: Basis,
    pub parts: Parts,
    /// Whether its data exist; `None`: always.
    pub is_there: Option<fn(&View, &Snapshot) -> bool>,
    /// Shown if the data does not exist; `None` if it was only not read yet.
    pub absent: Option<&'static str>,
    pub empty: &'static str,
    /// What is shown without rows in a given width, with what is known of earlier rows.
    pub calm: Option<fn(&Context<'_>, usize) -> String>,
    pub facts: fn(&Context<'_>, Total) -> Vec<Fact>,
    /// When its rows were last read, and why they could not be read again.
    pub read: for<'a> fn(&Context<'a>) -> ReadState<'a>,
    pub above: Option<fn(&Context<'_>) -> Line>,
    /// The widths of its columns by the width of the pane, in the steps of `fit`; empty if they follow from the columns.
    pub widths: Widths,
    pub is_headless: bool,
    /// Columns of a high rank are omitted if names would otherwise be cut.
    pub prefers_names: bool,
    /// Keys that have an effect only on this pane, for the footer.
    pub keys: &'static [Action],
    pub is_state: fn(&str) -> bool,
    pub name: fn(&Context<'_>, RowId) -> String,
    pub label: fn(&Context<'_>, RowId) -> String,
    /// The detail page of one of its subjects, for a width; `None` if it no longer exists.
    pub detail: fn(&Context<'_>, RowId, usize) -> Option<Vec<Line>>,
}

/// Column names and their widths, from narrow panes to wide ones; 0 omits a column.
pub(super) type Widths = &'static [(&'static str, [u16; 5])];

#[derive(Debug, Clone, Copy)]
pub struct RowOptions {
    pub all_locks: bool,
    /// Similar rows may share one line; a filter needs one line for each.
    pub folded: bool,
    pub runs: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Total {
    pub rows: usize,
    pub all_locks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// From anything in the view: they are taken again from each view.
    View,
    /// From `pg_locks` alone: while it is unchanged, the rows and their order are unchanged.
    Locks,
    /// Lines of a forest: a filter keeps the ancestors of a line, and trees are sorted as a whole.
    Forest,
}

/// When rows were read, and why they could not be read again.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadState<'a> {
    /// The last time; `None` before the first.
    pub at: Option<Timestamp>,
    /// `None` if the last attempt succeeded, or if the title reports the error in its own words.
    pub error: Option<&'a str>,
}

impl PaneDefinition {
    pub const fn new(
        (title, one): (&'static str, &'static str),
        table: &'static dyn PaneTable,
        rows: fn(&Context<'_>, RowOptions) -> Vec<Row>,
    ) -> Self {
        Self {
            title,
            advisory_title: None,
            one,
            table,
            rows,
            order: |_, _| {},
            basis: Basis::View,
            parts: Parts::NONE,
            is_there: None,
            absent: None,
            empty: "nothing",
            calm: None,
            facts: |_, _| Vec::new(),
            read: locks_read,
            above: None,
            widths: &[],
            is_headless: false,
            prefers_names: false,
            keys: &[],
            is_state: |_| false,
            name: |_, _| String::new(),
            label: label_of,
            detail: |_, _, _| None,
        }
    }

    /// The catalog search that finds the tables of its rows.
    pub fn search<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Section<()>> {
        let (is_searched, is_adapter) = (self.is_there.is_some(), self.parts != Parts::NONE);
        let detection = &snapshot.detection;
        is_searched.then_some(if is_adapter { &detection.adapters } else { &detection.tables })
    }
}

fn locks_read<'a>(context: &Context<'a>) -> ReadState<'a> {
    let locks = &context.snapshot.locks;
    ReadState { at: locks.taken_at, error: locks.error.as_deref() }
}

fn label_of(_: &Context<'_>, id: RowId) -> String {
    crate::app::subject::pid_of(id).map_or_else(|| "a lock".to_owned(), |pid| pid.to_string())
}

pub type Fact = (String, Tone);

/// A number with its noun in the singular or plural: `2 roots`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

pub fn stale(context: &Context<'_>, taken: Option<Timestamp>, error: &str) -> Fact {
    let age = context
        .age(taken)
        .map_or_else(|| "cannot be read".to_owned(), |age| format!("{} old", text::duration(age)));
    (format!("{age}: {}", text::one_line_prefix(error, 500)), Tone::Past)
}

pub(super) fn stale_tables<T>(context: &Context<'_>, tables: &[TableRows<T>]) -> Vec<Fact> {
    let error =
        |table: &TableRows<T>| Some(stale(context, table.section.taken_at, table.section.error.as_ref()?));
    tables.iter().filter_map(error).collect()
}

/// When one of the tables was read; `None` before the first time.
pub(super) fn taken<T>(tables: &[TableRows<T>]) -> Option<Timestamp> {
    tables.iter().find_map(|table| table.section.taken_at)
}

pub(super) fn more_unread(is_cut: bool) -> Option<Fact> {
    is_cut.then(|| ("more are not read".to_owned(), Tone::Warning))
}

pub(super) fn cut<T>(tables: &[TableRows<T>]) -> Option<Fact> {
    more_unread(tables.iter().any(|table| table.section.is_cut))
}

/// `3 keys`: the rows of all tables.
pub(super) fn rows<T>(tables: &[TableRows<T>], one: &str, many: &str) -> String {
    let number: usize = tables.iter().map(|table| table.section.last_rows().len()).sum();
    format!("{} {}", text::count(number as u64), if number == 1 { one } else { many })
}

/// If the search for tables failed, a table may exist.
pub(super) fn is_unsearched(snapshot: &Snapshot) -> bool {
    snapshot.detection.tables.error.is_some()
}

/// Whether one of these parts of a job system was read, or could not be.
pub(super) fn is_tried(snapshot: &Snapshot, parts: &[Part]) -> bool {
    let is_tried = |rows: &InstallationRows, part: &Part| {
        let (taken_at, error, _) = rows.read_of(*part);
        taken_at.is_some() || error.is_some()
    };
    snapshot.adapters.iter().any(|rows| parts.iter().any(|part| is_tried(rows, part)))
}

const SOURCE: ColumnWords = ("SOURCE", "source", "the system it belongs to, and its schema");

/// With several installations, their names distinguish rows.
pub(super) const fn source<R: Rows>(
    get: for<'a> fn(R::Row<'a>, &Context<'a>) -> Option<&'a str>,
) -> Column<R> {
    Column::text(SOURCE, (11, 20), get).rank(3).only_where(|context| context.snapshot.adapters.len() > 1)
}

pub(super) fn name(rows: &InstallationRows) -> String {
    text::one_line_prefix(&rows.installation.label(), 40).into_owned()
}

/// The title of a detail page: `Job of GoodJob`.
pub(super) fn of_source(what: &str, source: Option<&Text>) -> String {
    source.map_or_else(|| what.to_owned(), |source| format!("{what} of {}", text::one_line(source)))
}

/// An installation by its index, for a detail page: `pg_cron cron, version 1.6`.
pub(super) fn with_version(context: &Context<'_>, place: usize) -> String {
    let Some(rows) = context.snapshot.adapters.get(place) else { return String::new() };
    let version = rows.installation.version.as_deref();
    let version = version.map(|version| format!(", {}", text::one_line(version))).unwrap_or_default();
    format!("{}{version}", text::one_line(&rows.installation.label()))
}

/// Parts that could not be read, or not completely, in all installations; the first of each.
pub(super) fn gaps(context: &Context<'_>, part: Part) -> Vec<Fact> {
    let parts = || context.snapshot.adapters.iter().map(|rows| rows.read_of(part));
    let mut facts: Vec<Fact> =
        parts().find_map(|(at, error, _)| Some(stale(context, at, error?))).into_iter().collect();
    facts.extend(more_unread(parts().any(|(.., is_cut)| is_cut)));
    facts
}

pub(super) fn read_at(context: &Context<'_>, part: Part) -> Option<Timestamp> {
    context.snapshot.adapters.iter().filter_map(|rows| rows.read_of(part).0).max()
}
