//! What a pane is: one value, from which the screens, the keys, the filter, the help and the drawing take what they need.

use super::column::Table;
use super::facts::Fact;
use super::row::{Row, RowId};
use crate::app::context::Context;
use crate::app::keymap::Action;
use crate::app::line::Line;
use crate::app::screens::Has;
use crate::model::Timestamp;
use crate::model::adapter::Parts;
use crate::model::snapshot::{Section, Snapshot};

/// A pane, whatever its rows are.
pub struct Definition {
    /// Its name, on its title line.
    pub title: &'static str,
    /// The same while it has advisory locks alone, if that is another name.
    pub advisory_title: Option<&'static str>,
    /// What one of its rows is called.
    pub one: &'static str,
    /// Its columns, whatever its rows are.
    pub table: &'static dyn Table,
    /// Its rows in this view, in the order in which the view has them.
    pub rows: fn(&Context<'_>, Wanted) -> Vec<Row>,
    /// Sorts the rows by urgency, where the user chose no order. Ties fall to what does not change between two polls, so
    /// that rows do not jump.
    pub order: fn(&Context<'_>, &mut Vec<Row>),
    /// What its rows follow from, which says when they may have changed.
    pub basis: Basis,
    /// What it shows of the job systems of others.
    pub parts: Parts,
    /// Whether what it shows is there at all.
    pub is_there: fn(Has) -> bool,
    /// Said where it is not; none: it was only not read yet.
    pub absent: Option<&'static str>,
    /// The search of the catalog that finds the tables of its rows.
    pub search: Option<fn(&Snapshot) -> &Section<()>>,
    /// Said where it has no rows.
    pub empty: &'static str,
    /// The same in so many columns, with what is known of earlier ones.
    pub calm: Option<fn(&Context<'_>, usize) -> String>,
    /// What its title says beside its name.
    pub facts: fn(&Context<'_>, Total) -> Vec<Fact>,
    /// When its rows were read, and why they could not be read anew.
    pub read: for<'a> fn(&Context<'a>) -> Read<'a>,
    /// A line above the headings; none where it needs no more than its title.
    pub above: Option<fn(&Context<'_>) -> Line>,
    /// The widths of its columns by the width of the pane, in the steps of `fit`; empty if they follow from the columns.
    pub widths: Widths,
    /// It has no headings above its rows.
    pub is_headless: bool,
    /// Columns of a high rank give way to names that would be cut.
    pub prefers_names: bool,
    /// Keys that do something here and on no other pane, for the footer.
    pub keys: &'static [Action],
    /// Whether a word is the name of a state of its rows.
    pub is_state: fn(&str) -> bool,
    /// The heading of the detail page of what is at home here.
    pub name: fn(&Context<'_>, RowId) -> String,
    /// The same in a few words, for the footer.
    pub label: fn(&Context<'_>, RowId) -> String,
    /// The detail page of what is at home here, at a width; none when it is gone.
    pub detail: fn(&Context<'_>, RowId, usize) -> Option<Vec<Line>>,
}

/// Columns by their names with their widths, from narrow panes to wide ones; 0 leaves a column out.
pub(super) type Widths = &'static [(&'static str, [u16; 5])];

/// Which rows are wanted of a pane.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// All lock types, not advisory locks alone.
    pub all_locks: bool,
    /// What is alike may be one line; a filter wants each by itself.
    pub folded: bool,
    /// A long chain of sessions may be one line.
    pub runs: bool,
}

/// What a title counts, before any filter.
#[derive(Debug, Clone, Copy)]
pub struct Total {
    /// Rows of the pane without the filter.
    pub rows: usize,
    /// They are of all lock types, not of advisory locks alone.
    pub all_locks: bool,
}

/// Where the rows of a pane come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// From anything in the view: they are taken anew from each.
    View,
    /// From `pg_locks` alone: where that is the same as before, the rows are, and their order.
    Locks,
    /// They are lines of a forest: a filter keeps what a line stands under, and trees are sorted as a whole.
    Forest,
}

/// When rows were read, and why not anew.
#[derive(Debug, Clone, Copy, Default)]
pub struct Read<'a> {
    /// When last; none before the first time.
    pub at: Option<Timestamp>,
    /// Why not anew; none where they were, or where the title says it in its own words.
    pub error: Option<&'a str>,
}

impl Definition {
    /// A pane with these rows; the rest as most panes have it.
    pub const fn new(
        (title, one): (&'static str, &'static str),
        table: &'static dyn Table,
        rows: fn(&Context<'_>, Wanted) -> Vec<Row>,
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
            is_there: |_| true,
            absent: None,
            search: None,
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
}

/// When `pg_locks` was read, and why not anew.
fn locks_read<'a>(context: &Context<'a>) -> Read<'a> {
    let locks = &context.snapshot.locks;
    Read { at: locks.taken_at, error: locks.error.as_deref() }
}

/// The process id, where it is about one.
fn label_of(_: &Context<'_>, id: RowId) -> String {
    crate::app::subject::pid_of(id).map_or_else(|| "a lock".to_owned(), |pid| pid.to_string())
}
