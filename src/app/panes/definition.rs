use super::column::Table;
use super::facts::Fact;
use super::{Row, RowId};
use crate::app::context::Context;
use crate::app::keymap::Action;
use crate::app::line::Line;
use crate::model::Timestamp;
use crate::model::adapter::Parts;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::view::View;

pub struct Definition {
    pub title: &'static str,
    /// The title while it shows only advisory locks, if it differs.
    pub advisory_title: Option<&'static str>,
    /// The name of one of its rows.
    pub one: &'static str,
    pub table: &'static dyn Table,
    pub rows: fn(&Context<'_>, Wanted) -> Vec<Row>,
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
    pub read: for<'a> fn(&Context<'a>) -> Read<'a>,
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
pub struct Wanted {
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
pub struct Read<'a> {
    /// The last time; `None` before the first.
    pub at: Option<Timestamp>,
    /// `None` if the last attempt succeeded, or if the title reports the error in its own words.
    pub error: Option<&'a str>,
}

impl Definition {
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

fn locks_read<'a>(context: &Context<'a>) -> Read<'a> {
    let locks = &context.snapshot.locks;
    Read { at: locks.taken_at, error: locks.error.as_deref() }
}

fn label_of(_: &Context<'_>, id: RowId) -> String {
    crate::app::subject::pid_of(id).map_or_else(|| "a lock".to_owned(), |pid| pid.to_string())
}
