use std::cmp::Ordering;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashSet;

use super::context::Context;
use super::filter::Filter;
use super::panes::{Basis, Pane, PaneMap, Row, RowId, RowOptions, SortValue, backends, chains};
use super::subject;
use crate::model::lock::Lock;

/// Number of polls for which a row counts as done after an action: a key with nothing left to do to it is meant for the
/// next row.
const POLLS: u8 = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// [`Heading::name`](super::panes::Heading::name) of the column.
    pub column: &'static str,
    /// The largest value comes first; missing values always come last.
    pub descending: bool,
}

/// The state of one table, which persists across views.
#[derive(Debug, Clone, Default)]
pub struct PaneState {
    pane: Pane,
    pub rows: Vec<Row>,
    pub total: usize,
    pub filter: Filter,
    pub filter_text: String,
    /// `None` for the default order.
    pub sort: Option<Sort>,
    pub selected: Option<RowId>,
    /// Position of the selected row, or its last position before it disappeared.
    pub cursor: usize,
    /// Marked rows, also those that the filter hides.
    pub marks: FxHashSet<RowId>,
    /// The target of an action key when the rows were last filled.
    target: Option<RowId>,
    pub column_offset: usize,
    pub is_unfolded: bool,
    /// A row was selected at some time: from then on nothing is selected automatically.
    touched: bool,
    /// The user selected the row, or acted on rows while it was selected.
    chosen: bool,
    /// The row that the user had selected and that disappeared; nothing was selected since.
    lost: Option<RowId>,
    /// The row of the last action, and for how many more polls it counts as done.
    done: Option<(RowId, u8)>,
    pub selections: u64,
    /// Number of times the cursor moved to another row automatically.
    exchanges: u64,
    /// The number of exchanges that have been on the screen for long enough.
    settled: u64,
    /// The source of `rows` if they depend only on `pg_locks`: its rows, and whether all of them are shown.
    basis: Option<(Weak<Vec<Lock>>, bool)>,
}

impl PaneState {
    pub fn new(pane: Pane) -> Self {
        Self { pane, ..Self::default() }
    }

    /// Fills the rows from a new view. Selection and marks stay with their subjects. `page` is the number of visible rows.
    pub fn rebuild(&mut self, all_locks: bool, page: usize, context: &Context<'_>) {
        if self.is_unchanged(all_locks, context) {
            return;
        }
        let definition = self.pane.definition();
        let mut rows = (definition.rows)(context, self.wanted(all_locks));
        if self.hides_selected(context, &rows) {
            self.is_unfolded = true;
            rows = (definition.rows)(context, self.wanted(all_locks));
        }
        self.total = rows.len();
        if !self.filter.is_empty() {
            self.filter_rows(context, &mut rows);
        }
        self.order(context, &mut rows);
        self.rows = rows;
        self.done = self.done.and_then(|(row, polls)| Some((row, polls.checked_sub(1)?)));
        let before = (self.selected, self.target);
        self.find_selected(page, context);
        self.target = self.selected.map(|id| subject::selected(context.view, id));
        // The lock under the cursor is the same, but another session holds it.
        let is_lock = matches!(self.selected, Some(RowId::Awaited(_)));
        if is_lock && before.0 == self.selected && before.1.is_some() && before.1 != self.target {
            self.exchanges += 1;
        }
        self.drop_ended_marks(all_locks, context);
    }

    /// Shows long chains in full, or one line for each; the cursor stays on the run. Returns whether there is such a chain.
    pub fn unfold(&mut self, is_unfolded: bool, context: &Context<'_>) -> bool {
        self.is_unfolded = is_unfolded;
        let selected = self.selected.take();
        let rows = (self.pane.definition().rows)(context, self.wanted(false));
        let id = |row: &Row| self.pane.table().id(context, *row);
        let is_run = |row: &Row| matches!(row, Row::Chain(line) if line.is_run);
        self.selected = selected.and_then(|selected| match selected {
            RowId::Run(first) => Some(backends::party_id(context, first)),
            _ => {
                rows.iter().find(|row| chains::is_in_run(context, **row, selected)).map_or(Some(selected), id)
            }
        });
        is_unfolded || rows.iter().any(is_run)
    }

    fn wanted(&self, all_locks: bool) -> RowOptions {
        let folded = self.filter.is_empty();
        RowOptions { all_locks, folded, runs: folded && !self.is_unfolded }
    }

    fn hides_selected(&self, context: &Context<'_>, rows: &[Row]) -> bool {
        self.selected
            .is_some_and(|selected| rows.iter().any(|row| chains::is_in_run(context, *row, selected)))
    }

    /// Keeps the rows that pass the filter, and in a forest also their ancestors.
    fn filter_rows(&self, context: &Context<'_>, rows: &mut Vec<Row>) {
        let table = self.pane.table();
        let shown = table.headings().len();
        let passes = |row: Row| self.filter.passes(shown, |column| table.value(context, row, column));
        if self.pane.definition().basis != Basis::Forest || !matches!(rows.first(), Some(Row::Chain(_))) {
            rows.retain(|row| passes(*row));
            return;
        }
        let lines = rows.iter().filter_map(|row| match row {
            Row::Chain(line) => Some(*line),
            _ => None,
        });
        let kept = chains::with_ancestors(&lines.collect::<Vec<_>>(), |line| passes(Row::Chain(line)));
        *rows = kept.into_iter().map(Row::Chain).collect();
    }

    /// Whether the rows and their order are unchanged: most polls of a large lock table change nothing.
    fn is_unchanged(&mut self, all_locks: bool, context: &Context<'_>) -> bool {
        let by_locks_alone =
            self.pane.definition().basis == Basis::Locks && self.filter.is_empty() && self.sort.is_none();
        let locks = context.snapshot.locks.last_rows();
        let before = self.basis.take();
        self.basis = by_locks_alone.then(|| (Arc::downgrade(locks), all_locks));
        before.is_some_and(|(before, all)| {
            by_locks_alone && all == all_locks && std::ptr::eq(before.as_ptr(), Arc::as_ptr(locks))
        })
    }

    fn order(&self, context: &Context<'_>, rows: &mut Vec<Row>) {
        let definition = self.pane.definition();
        let chosen = self.sort.and_then(|sort| Some((sort, definition.table.position(sort.column)?)));
        let Some((sort, column)) = chosen else { return (definition.order)(context, rows) };
        let value = |row: Row| definition.table.value(context, row, column);
        if definition.basis == Basis::Forest {
            return sort_trees(rows, value, sort);
        }
        let mut keyed: Vec<(SortValue<'_>, Row)> = rows.iter().map(|row| (value(*row), *row)).collect();
        keyed.sort_by(|a, b| compare(&a.0, &b.0, sort.descending));
        *rows = keyed.into_iter().map(|(_, row)| row).collect();
    }

    pub fn id_at(&self, context: &Context<'_>, at: usize) -> Option<RowId> {
        self.pane.table().id(context, *self.rows.get(at)?)
    }

    /// Whether the row at a position passes the filter; false for a row that is shown only because a row below it passes.
    pub fn is_hit(&self, at: usize) -> bool {
        !matches!(self.rows.get(at), Some(Row::Chain(line)) if line.is_context)
    }

    /// Deselects a row that does not pass a new filter.
    pub fn select_hits_only(&mut self) {
        if self.selected.is_some() && !self.is_hit(self.cursor) {
            self.lose_selected();
        }
    }

    /// Selects the first row that passes the filter if no row is selected: a filter is typed to find such a row.
    pub fn select_hit(&mut self, context: &Context<'_>) {
        let first = self.first_hit(0);
        if self.selected.is_none() && !self.filter.is_empty() && self.is_hit(first) {
            self.select(context, first);
        }
    }

    /// The first row from this position on that passes the filter, not a row that is shown only for its context.
    fn first_hit(&self, from: usize) -> usize {
        (from..self.rows.len()).chain(0..from).find(|at| self.is_hit(*at)).unwrap_or(from)
    }

    pub fn hits(&self) -> usize {
        (0..self.rows.len()).filter(|at| self.is_hit(*at)).count()
    }

    pub fn shown(&self, context: &Context<'_>) -> impl Iterator<Item = RowId> {
        let hits = (0..self.rows.len()).filter(|at| self.is_hit(*at));
        hits.filter_map(|at| self.id_at(context, at))
    }

    /// The direction of the order by a column; empty if the rows are not sorted by it.
    pub fn arrow(&self, column: &str) -> &'static str {
        match self.sort.filter(|sort| sort.column == column) {
            Some(sort) if sort.descending => "↓",
            Some(_) => "↑",
            None => "",
        }
    }

    fn find_selected(&mut self, page: usize, context: &Context<'_>) {
        let Some(selected) = self.selected else {
            if !self.touched && !self.rows.is_empty() {
                self.select(context, self.first_hit(0));
                self.chosen = false;
            }
            return;
        };
        // Until the first move the cursor is on the worst finding, whichever that is.
        if self.pane == Pane::Findings && !self.chosen && !self.rows.is_empty() {
            let settled = self.settled;
            self.select(context, self.first_hit(0));
            (self.chosen, self.settled) = (false, settled);
            self.exchanges += u64::from(self.selected != Some(selected));
            return;
        }
        if self.id_at(context, self.cursor) == Some(selected) {
            return;
        }
        match (0..self.rows.len()).find(|at| self.id_at(context, *at) == Some(selected)) {
            // The user did not select the row, and following it would scroll away the visible rows.
            Some(at) if !self.chosen && at.abs_diff(self.cursor) >= page => {
                (self.selected, self.cursor) = (None, 0);
            }
            Some(at) => self.cursor = at,
            // The row has disappeared: no selection is better than an unrelated row under the cursor.
            None => self.lose_selected(),
        }
    }

    fn lose_selected(&mut self) {
        self.lost = self.selected.take().filter(|_| self.chosen);
    }

    /// An action is done. If its row moves out of sight as a result, as a recovered task may, the view does not follow: the
    /// worst row at the top is next.
    pub fn done_with(&mut self, rows: &[RowId], asked_at: u64) {
        // A later selection is intended, even if it is the same row.
        let is_same = self.selections == asked_at;
        if let Some(row) = self.selected.or(self.lost).filter(|row| is_same && rows.contains(row)) {
            (self.chosen, self.lost, self.done) = (false, None, Some((row, POLLS)));
        }
    }

    /// Whether the selected row is the one of the last action, and was not selected again since.
    pub fn is_done(&self) -> bool {
        self.done.is_some_and(|(row, _)| self.selected == Some(row))
    }

    /// Other rows are requested: an automatic selection is dropped, and the first row is selected again.
    pub fn restart(&mut self) {
        if !self.chosen {
            (self.selected, self.cursor, self.touched) = (None, 0, false);
        }
    }

    /// The table is shown again. Drops a selection that is below the first `rows` rows or that the user did not choose,
    /// because its rows may be old; the pane must then be rebuilt. If rows are marked, the selection stays.
    pub fn begin_at_the_top(&mut self, rows: usize) -> bool {
        let is_below = self.marks.is_empty() && (!self.chosen || self.cursor >= rows);
        if is_below {
            (self.chosen, self.basis) = (false, None);
            self.restart();
        }
        is_below
    }

    /// The user has chosen the selected row: from now on the view follows it.
    pub fn keep_selected(&mut self) {
        (self.chosen, self.done) = (true, None);
    }

    pub fn select(&mut self, context: &Context<'_>, at: usize) {
        self.cursor = at.min(self.rows.len().saturating_sub(1));
        self.selected = self.id_at(context, self.cursor);
        self.target = self.selected.map(|id| subject::selected(context.view, id));
        self.touched = self.touched || self.selected.is_some();
        self.chosen = self.chosen || self.selected.is_some();
        self.lost = self.lost.filter(|_| self.selected.is_none());
        self.done = None;
        self.selections += 1;
        self.settled = self.exchanges;
    }

    /// Selects the first row with such an identity; false if there is none.
    pub fn select_where(&mut self, context: &Context<'_>, is_wanted: impl Fn(RowId) -> bool) -> bool {
        let found = (0..self.rows.len()).find(|at| self.id_at(context, *at).is_some_and(&is_wanted));
        if let Some(at) = found {
            self.select(context, at);
        }
        found.is_some()
    }

    /// The number of the last exchange, if the row under the cursor is too new to act on.
    pub fn unsettled(&self) -> Option<u64> {
        (self.settled != self.exchanges).then_some(self.exchanges)
    }

    /// The row under the cursor has been the same for long enough, unless it was exchanged again.
    pub fn settle(&mut self, exchange: u64) {
        if exchange == self.exchanges {
            self.settled = exchange;
        }
    }

    /// Moves the selection. If the selected row has disappeared, the first move selects the row in its place.
    pub fn step(&mut self, context: &Context<'_>, by: isize) {
        match self.selected {
            Some(_) => self.select(context, self.cursor.saturating_add_signed(by)),
            None => self.select(context, self.first_hit(self.cursor)),
        }
    }

    /// Selects the next or the previous row that passes the filter, and wraps around; false if there is none.
    pub fn step_match(&mut self, context: &Context<'_>, forward: bool) -> bool {
        let count = self.rows.len();
        // Without a selection, the row at the cursor is a candidate.
        let skip = usize::from(self.selected.is_some() || !forward);
        let places = (0..count).map(|step| {
            let step = (step + skip) % count.max(1);
            let back = count - step % count.max(1);
            (self.cursor + if forward { step } else { back }) % count.max(1)
        });
        let found = places.into_iter().find(|at| self.is_hit(*at));
        if let Some(at) = found {
            self.select(context, at);
        }
        found.is_some()
    }

    pub fn toggle_mark(&mut self) {
        self.keep_selected();
        if let Some(selected) = self.selected
            && !self.marks.remove(&selected)
        {
            self.marks.insert(selected);
        }
    }

    /// Marks all rows shown, or unmarks them if all are marked.
    pub fn mark_all(&mut self, context: &Context<'_>) {
        let shown: Vec<RowId> = self.shown(context).collect();
        if shown.iter().all(|id| self.marks.contains(id)) {
            for id in &shown {
                self.marks.remove(id);
            }
        } else {
            self.marks.extend(shown);
        }
    }

    /// Removes the marks of rows that no longer exist. Rows that the filter hides stay marked.
    fn drop_ended_marks(&mut self, all_locks: bool, context: &Context<'_>) {
        if self.marks.is_empty() {
            return;
        }
        let all =
            || (self.pane.definition().rows)(context, RowOptions { all_locks, folded: false, runs: false });
        let rows = if self.filter.is_empty() { self.rows.clone() } else { all() };
        let there: FxHashSet<RowId> =
            rows.into_iter().filter_map(|row| self.pane.table().id(context, row)).collect();
        self.marks.retain(|mark| there.contains(mark));
    }
}

impl Default for PaneMap<PaneState> {
    fn default() -> Self {
        Self::new(PaneState::new)
    }
}

/// Missing values come last in both directions.
fn compare(a: &SortValue<'_>, b: &SortValue<'_>, descending: bool) -> Ordering {
    let turned = |ordering: Ordering| if descending { ordering.reverse() } else { ordering };
    match (a, b) {
        (SortValue::Missing, SortValue::Missing) => Ordering::Equal,
        (SortValue::Missing, _) => Ordering::Greater,
        (_, SortValue::Missing) => Ordering::Less,
        (SortValue::Number(a), SortValue::Number(b)) => turned(a.total_cmp(b)),
        (SortValue::Text(a) | SortValue::State(_, a), SortValue::Text(b) | SortValue::State(_, b)) => {
            turned(a.cmp(b))
        }
        (SortValue::Number(_), SortValue::Text(_) | SortValue::State(..)) => turned(Ordering::Less),
        (SortValue::Text(_) | SortValue::State(..), SortValue::Number(_)) => turned(Ordering::Greater),
    }
}

/// Sorts a forest by its roots; the rows of a tree stay together.
fn sort_trees<'a>(rows: &mut Vec<Row>, value: impl Fn(Row) -> SortValue<'a>, sort: Sort) {
    let mut trees: Vec<(SortValue<'a>, Vec<Row>)> = Vec::new();
    for row in rows.drain(..) {
        let top = !matches!(row, Row::Chain(line) if line.depth > 0);
        match trees.last_mut() {
            Some((_, tree)) if !top => tree.push(row),
            _ => trees.push((value(row), vec![row])),
        }
    }
    trees.sort_by(|a, b| compare(&a.0, &b.0, sort.descending));
    rows.extend(trees.into_iter().flat_map(|(_, tree)| tree));
}
