//! The state of one table: its rows, in order, which of them is selected, and which are marked.

use std::cmp::Ordering;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashSet;

use super::context::Context;
use super::filter::Filter;
use super::panes::{Basis, Pane, Row, RowId, Value, Wanted, chains, party};
use super::subject;
use crate::model::lock::Lock;
use crate::model::plan::SelectedRow;

/// For so many looks a key that finds no more to do to what was done with means the next one.
const LOOKS: u8 = 30;

/// By what a table is sorted when the user chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// [`Heading::name`](super::panes::Heading::name) of the column.
    pub column: &'static str,
    /// The largest comes first; what is missing always last.
    pub descending: bool,
}

/// The state of one table, which stays when views come and go.
#[derive(Debug, Clone)]
pub struct PaneState {
    pane: Pane,
    /// The rows that pass the filter, in order.
    pub rows: Vec<Row>,
    /// How many rows there are without the filter.
    pub total: usize,
    /// Which rows are shown, as it was understood.
    pub filter: Filter,
    /// The filter as it was typed.
    pub filter_text: String,
    /// The order, when the user chose one.
    pub sort: Option<Sort>,
    /// The selected row, by what it is about.
    pub selected: Option<RowId>,
    /// Where the selected row is, or was before it vanished.
    pub cursor: usize,
    /// Rows that were marked, also those that a filter hides.
    pub marks: FxHashSet<RowId>,
    /// The target of an acting shortcut when the rows were last filled.
    target: Option<SelectedRow>,
    /// Columns scrolled out on the left.
    pub column_offset: usize,
    /// Long chains of sessions are shown in full.
    is_unfolded: bool,
    /// Something was selected at some time: from then on nothing is selected by itself.
    touched: bool,
    /// The user selected it, or did something with the rows while it was selected.
    chosen: bool,
    /// What the user had selected and is gone; nothing was selected since.
    lost: Option<RowId>,
    /// What something was done to just now, and for how many more looks that is so.
    done: Option<(RowId, u8)>,
    /// How many times a row was selected.
    pub selections: u64,
    /// How many times the cursor came to another row by itself.
    exchanges: u64,
    /// How many of these have been on the screen for long enough.
    settled: u64,
    /// What `rows` follow from, where that is `pg_locks` alone: its rows, and whether all of them are wanted.
    basis: Option<(Weak<Vec<Lock>>, bool)>,
}

impl PaneState {
    /// A table without rows, filter and selection.
    pub fn new(pane: Pane) -> Self {
        Self {
            pane,
            rows: Vec::new(),
            total: 0,
            filter: Filter::default(),
            filter_text: String::new(),
            sort: None,
            selected: None,
            cursor: 0,
            marks: FxHashSet::default(),
            target: None,
            column_offset: 0,
            is_unfolded: false,
            touched: false,
            chosen: false,
            lost: None,
            done: None,
            selections: 0,
            exchanges: 0,
            settled: 0,
            basis: None,
        }
    }

    /// Fills in the rows of a new view. Selection and marks stay on what they are about. `page` is how many rows are seen at a time.
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
        self.done = self.done.and_then(|(row, looks)| Some((row, looks.checked_sub(1)?)));
        let before = (self.selected, self.target);
        self.find_selected(page, context);
        self.target = self.selected.map(|id| subject::selected(context.view, id));
        // The lock under the cursor is the same, and another session holds it.
        let is_lock = matches!(self.selected, Some(RowId::Awaited(_)));
        if is_lock && before.0 == self.selected && before.1.is_some() && before.1 != self.target {
            self.exchanges += 1;
        }
        self.drop_gone_marks(all_locks, context);
    }

    /// Shows long chains in full, or one line for each; the cursor stays on the run. Whether there is such a chain.
    pub fn unfold(&mut self, is_unfolded: bool, context: &Context<'_>) -> bool {
        self.is_unfolded = is_unfolded;
        let selected = self.selected.take();
        let rows = (self.pane.definition().rows)(context, self.wanted(false));
        let id = |row: &Row| self.pane.table().id(context, *row);
        let is_run = |row: &Row| matches!(row, Row::Chain(line) if line.is_run);
        self.selected = selected.and_then(|selected| match selected {
            RowId::Run(first) => Some(party::party_id(context, first)),
            _ => {
                rows.iter().find(|row| chains::is_in_run(context, **row, selected)).map_or(Some(selected), id)
            }
        });
        is_unfolded || rows.iter().any(is_run)
    }

    fn wanted(&self, all_locks: bool) -> Wanted {
        let folded = self.filter.is_empty();
        Wanted { all_locks, folded, runs: folded && !self.is_unfolded }
    }

    /// Whether long chains are shown in full.
    pub fn is_unfolded(&self) -> bool {
        self.is_unfolded
    }

    /// Whether a run hides the selected session.
    fn hides_selected(&self, context: &Context<'_>, rows: &[Row]) -> bool {
        self.selected
            .is_some_and(|selected| rows.iter().any(|row| chains::is_in_run(context, *row, selected)))
    }

    /// Leaves the rows that the filter lets through; in a forest also those that they stand under.
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

    /// Whether the rows are the same as before, in the same order: most polls of a large lock table change nothing.
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
        let mut keyed: Vec<(Value<'_>, Row)> = rows.iter().map(|row| (value(*row), *row)).collect();
        keyed.sort_by(|a, b| compare(&a.0, &b.0, sort.descending));
        *rows = keyed.into_iter().map(|(_, row)| row).collect();
    }

    /// Identity of the row at a position.
    pub fn id_at(&self, context: &Context<'_>, at: usize) -> Option<RowId> {
        self.pane.table().id(context, *self.rows.get(at)?)
    }

    /// Whether the filter lets the row at a position through; what is only there for a row under it, it does not.
    pub fn is_hit(&self, at: usize) -> bool {
        !matches!(self.rows.get(at), Some(Row::Chain(line)) if line.is_context)
    }

    /// Lets go of a row that a new filter does not let through.
    pub fn select_hits_only(&mut self) {
        if self.selected.is_some() && !self.is_hit(self.cursor) {
            self.lose_selected();
        }
    }

    /// Whoever has typed a filter means what it lets through: the first row of that, where none of it is selected.
    pub fn select_hit(&mut self, context: &Context<'_>) {
        let first = self.first_hit(0);
        if self.selected.is_none() && !self.filter.is_empty() && self.is_hit(first) {
            self.select(context, first);
        }
    }

    /// The first row from there on that the filter lets through: nobody looked for those that are only there for it.
    fn first_hit(&self, from: usize) -> usize {
        (from..self.rows.len()).chain(0..from).find(|at| self.is_hit(*at)).unwrap_or(from)
    }

    /// How many rows the filter lets through.
    pub fn hits(&self) -> usize {
        (0..self.rows.len()).filter(|at| self.is_hit(*at)).count()
    }

    /// What the rows are about that the filter lets through.
    pub fn shown(&self, context: &Context<'_>) -> impl Iterator<Item = RowId> {
        let hits = (0..self.rows.len()).filter(|at| self.is_hit(*at));
        hits.filter_map(|at| self.id_at(context, at))
    }

    fn find_selected(&mut self, page: usize, context: &Context<'_>) {
        let Some(selected) = self.selected else {
            if !self.touched && !self.rows.is_empty() {
                self.select(context, self.first_hit(0));
                self.chosen = false;
            }
            return;
        };
        // Until the first movement the cursor is on the worst finding, whichever that is.
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
            // Nobody asked for it, and what is in sight would scroll away with it.
            Some(at) if !self.chosen && at.abs_diff(self.cursor) >= page => {
                (self.selected, self.cursor) = (None, 0);
            }
            Some(at) => self.cursor = at,
            // Gone: better nothing selected than a stranger under the cursor.
            None => self.lose_selected(),
        }
    }

    fn lose_selected(&mut self) {
        self.lost = self.selected.take().filter(|_| self.chosen);
    }

    /// What was asked for is done. Where the row goes out of sight by it, as a recovered task may, the view does not follow: what is
    /// worst and stands on top is what comes next.
    pub fn done_with(&mut self, rows: &[RowId], asked_at: u64) {
        // Who has selected a row since means that, also where it is the same one.
        let is_same = self.selections == asked_at;
        if let Some(row) = self.selected.or(self.lost).filter(|row| is_same && rows.contains(row)) {
            (self.chosen, self.lost, self.done) = (false, None, Some((row, LOOKS)));
        }
    }

    /// What is selected is what something was done to just now, and nobody has selected it since.
    pub fn is_done(&self) -> bool {
        self.done.is_some_and(|(row, _)| self.selected == Some(row))
    }

    /// Other rows are asked for: what was selected by itself among the ones before is not meant, and the first is selected anew.
    pub fn begin_anew(&mut self) {
        if !self.chosen {
            (self.selected, self.cursor, self.touched) = (None, 0, false);
        }
    }

    /// The table is looked at anew. What is selected further down than so many rows is let go, and so is what nobody chose: its rows may
    /// be those of long ago. The pane has to be built again then. What is marked is meant.
    pub fn begin_at_the_top(&mut self, rows: usize) -> bool {
        let is_below = self.marks.is_empty() && (!self.chosen || self.cursor >= rows);
        if is_below {
            (self.chosen, self.basis) = (false, None);
            self.begin_anew();
        }
        is_below
    }

    /// The user means the selected row: from now on the view goes where it goes.
    pub fn keep_selected(&mut self) {
        (self.chosen, self.done) = (true, None);
    }

    /// Selects the row at a position, or the last one.
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

    /// Moves the selection. After the selected row vanished the first move selects what is in its place.
    pub fn step(&mut self, context: &Context<'_>, by: isize) {
        match self.selected {
            Some(_) => self.select(context, self.cursor.saturating_add_signed(by)),
            None => self.select(context, self.first_hit(self.cursor)),
        }
    }

    /// Selects the next row that the filter lets through, or the one before, round the end; false where there is none.
    pub fn step_match(&mut self, context: &Context<'_>, forward: bool) -> bool {
        let count = self.rows.len();
        // Where nothing is selected, the row at the cursor is one to go to.
        let skip = usize::from(self.selected.is_some() || !forward);
        let places = (0..count).map(|step| {
            let step = (step + skip) % count.max(1);
            let back = count - step % count.max(1);
            (self.cursor + if forward { step } else { back }) % count.max(1)
        });
        match places.into_iter().find(|at| self.is_hit(*at)) {
            Some(at) => {
                self.select(context, at);
                true
            }
            None => false,
        }
    }

    /// Marks the selected row, or unmarks it.
    pub fn toggle_mark(&mut self) {
        self.keep_selected();
        if let Some(selected) = self.selected
            && !self.marks.remove(&selected)
        {
            self.marks.insert(selected);
        }
    }

    /// Marks all rows shown; unmarks them when all are marked.
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

    /// A mark ends with what it was on. What a filter hides stays marked.
    fn drop_gone_marks(&mut self, all_locks: bool, context: &Context<'_>) {
        if self.marks.is_empty() {
            return;
        }
        let all = || (self.pane.definition().rows)(context, Wanted { all_locks, folded: false, runs: false });
        let rows = if self.filter.is_empty() { self.rows.clone() } else { all() };
        let there: FxHashSet<RowId> =
            rows.into_iter().filter_map(|row| self.pane.table().id(context, row)).collect();
        self.marks.retain(|mark| there.contains(mark));
    }
}

/// Missing values last, whichever way round.
fn compare(a: &Value<'_>, b: &Value<'_>, descending: bool) -> Ordering {
    let turned = |ordering: Ordering| if descending { ordering.reverse() } else { ordering };
    match (a, b) {
        (Value::Missing, Value::Missing) => Ordering::Equal,
        (Value::Missing, _) => Ordering::Greater,
        (_, Value::Missing) => Ordering::Less,
        (Value::Number(a), Value::Number(b)) => turned(a.total_cmp(b)),
        (Value::Text(a) | Value::State(_, a), Value::Text(b) | Value::State(_, b)) => turned(a.cmp(b)),
        (Value::Number(_), Value::Text(_) | Value::State(..)) => turned(Ordering::Less),
        (Value::Text(_) | Value::State(..), Value::Number(_)) => turned(Ordering::Greater),
    }
}

/// Sorts a forest by its tops; what is under a top stays under it.
fn sort_trees<'a>(rows: &mut Vec<Row>, value: impl Fn(Row) -> Value<'a>, sort: Sort) {
    let mut trees: Vec<(Value<'a>, Vec<Row>)> = Vec::new();
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
