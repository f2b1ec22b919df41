use crate::app::context::Context;
use crate::app::keymap::Action;
use crate::app::message::{Effect, Update};
use crate::app::page::Page;
use crate::app::pane::PaneState;
use crate::app::panes::jobs::job;
use crate::app::panes::{Pane, RowId, findings};
use crate::app::screens::Screen;
use crate::app::{App, Origin, detail, subject};
use crate::model::blame::{BlameGrouping, BlamePeriod};
use crate::model::wait_graph::Party;

/// The refresh intervals for `+` and `-`, in seconds.
const INTERVALS: [f64; 8] = [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

impl App {
    /// If the focused table is empty and has no filter, moves the focus to the first table with rows. Returns whether it moved.
    pub(super) fn focus_first_rows(&mut self) -> bool {
        let here = self.pane(self.focus);
        if !here.rows.is_empty() || !here.filter.is_empty() {
            return false;
        }
        let panes = self.visible_panes();
        let Some(first) = panes.into_iter().find(|pane| !self.pane(*pane).rows.is_empty()) else {
            return false;
        };
        self.focus = first;
        self.with_pane(first, |state, context| state.step(context, 0));
        true
    }

    pub(super) fn jump(&mut self, at: usize) -> Update {
        self.focus_first_rows();
        self.with_pane(self.focus, |state, context| state.select(context, at));
        Update::redraw()
    }

    pub(super) fn scroll_columns(&mut self, by: isize) -> Update {
        let most = self.focus.table().headings().len().saturating_sub(2);
        let state = self.pane_mut(self.focus);
        state.column_offset = state.column_offset.saturating_add_signed(by).min(most);
        Update::redraw()
    }

    pub(super) fn next_pane(&mut self, by: isize) -> Update {
        let panes = self.panes();
        let Some(at) = panes.iter().position(|pane| *pane == self.focus) else { return Update::none() };
        let count = isize::try_from(panes.len()).unwrap_or(1);
        let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(count);
        let Some(pane) = panes.get(next.unsigned_abs()).copied() else { return Update::none() };
        self.refresh_panes();
        // The row of the selected finding.
        let marked = self.marked(pane);
        self.focus = pane;
        if let Some(at) = marked {
            self.with_pane(pane, |state, context| state.select(context, at));
        }
        self.refresh_panes();
        Update::redraw()
    }

    pub(super) fn toggle_zoom(&mut self) -> Update {
        if self.panes().len() < 2 {
            return self.show_note("this screen has only one pane");
        }
        self.zoom = !self.zoom;
        self.refresh_panes();
        Update::redraw()
    }

    pub(super) fn open(&mut self) -> Update {
        match self.pane(self.focus).selected {
            Some(RowId::Event(number, count)) => self.go_to_event(number, count),
            Some(RowId::Run(_)) => {
                self.unfold(true);
                Update::redraw()
            }
            Some(selected) => {
                let subject = self.context().map_or(selected, |context| opened(&context, selected));
                self.open_page(Page::Detail { subject, scroll: 0 })
            }
            None if self.pane(self.focus).rows.is_empty() => self.show_note("no row to open"),
            None => {
                self.jump(0);
                self.open()
            }
        }
    }

    /// Returns whether this changed anything.
    fn unfold(&mut self, is_unfolded: bool) -> bool {
        let (all_locks, seen) = (self.all_locks, self.table_rows);
        let changes = self.with_pane(self.focus, |state, context| {
            let changes = state.unfold(is_unfolded, context);
            state.rebuild(all_locks, seen, context);
            changes
        });
        changes.unwrap_or_default()
    }

    pub(super) fn open_page(&mut self, page: Page) -> Update {
        self.pages.push(page);
        Update::redraw()
    }

    /// One step back, in this order: the filter, the marks, unfolded chains, the zoom, a jump, the followed row.
    pub(super) fn back(&mut self) -> Update {
        let state = self.pane_mut(self.focus);
        if !state.filter_text.is_empty() {
            self.set_filter(self.focus, "");
        } else if !state.marks.is_empty() {
            state.marks.clear();
        } else if state.is_unfolded && self.unfold(false) {
            // `unfold` has done the step.
        } else if self.zoom {
            return self.toggle_zoom();
        } else if let Some(Origin { screen, focus, page, all_locks }) = self.jumped_from.take() {
            self.show_all_locks(all_locks);
            self.go(screen);
            self.focus = focus;
            self.keep_focus();
            self.refresh_panes();
            if let Some(page) = page {
                return self.open_page(page);
            }
        } else if self.follow.is_some() {
            self.follow = None;
        } else {
            return Update::none();
        }
        Update::redraw()
    }

    /// Selects the next row that passes the filter; wraps around at the end.
    pub(super) fn next_match(&mut self, forward: bool) -> Update {
        if self.pane(self.focus).filter.is_empty() {
            return self.show_note(format!("no filter is set; {} sets one", self.key_of(Action::Filter)));
        }
        let found = self.with_pane(self.focus, |state, context| state.step_match(context, forward));
        if found == Some(true) { Update::redraw() } else { self.show_note("no row matches the filter") }
    }

    pub(super) fn start_sort(&mut self) -> Update {
        let pane = self.focus;
        let current = self.pane(pane).sort.map(|sort| sort.column);
        let selected = current.and_then(|column| pane.table().position(column)).unwrap_or(0);
        self.open_page(Page::Sort { pane, selected })
    }

    pub(super) fn mark(&mut self) -> Update {
        if self.pane(self.focus).selected.is_none() {
            return self.show_note("nothing selected to mark; an arrow selects a row, * marks all");
        }
        self.pane_mut(self.focus).toggle_mark();
        self.step(1)
    }

    pub(super) fn mark_all(&mut self) -> Update {
        self.with_pane(self.focus, PaneState::mark_all);
        Update::redraw()
    }

    pub(super) fn toggle_follow(&mut self) -> Update {
        let selected = self.pane(self.focus).selected.map(|id| {
            // To follow an event means to follow its subject.
            self.context().and_then(|context| subject::subject_of(&context, id)).unwrap_or(id)
        });
        let same = self.context().is_some_and(|context| {
            let both = selected.zip(self.follow);
            both.is_some_and(|(selected, followed)| subject::same_subject(&context, selected, followed))
        });
        self.follow = match (selected, self.follow) {
            (Some(_), Some(_)) if same => None,
            (Some(selected), _) => Some(selected),
            (None, None) => return self.show_note("nothing selected to follow; an arrow selects a row"),
            (None, Some(_)) => None,
        };
        Update::redraw()
    }

    pub(super) fn toggle_pause(&mut self) -> Update {
        self.paused = !self.paused;
        if let (false, Some(latest)) = (self.paused, self.latest.take()) {
            self.show(latest);
        }
        Update::redraw()
    }

    pub(super) fn change_interval(&mut self, faster: bool) -> Update {
        let next = if faster {
            INTERVALS.iter().rev().find(|step| **step < self.interval)
        } else {
            INTERVALS.iter().find(|step| **step > self.interval)
        };
        let Some(next) = next.copied() else {
            let end = if faster { "shortest" } else { "longest" };
            return self.show_note(format!("refresh every {}s: the {end} there is", self.interval));
        };
        self.interval = next;
        match self.slowed().filter(|slowed| slowed.interval > next) {
            Some(slowed) => {
                let why = "to limit the server's load (server_load in the config)";
                self.show_note(format!("requested every {next}s; every {}s {why}", slowed.interval))
            }
            None => self.show_note(format!("refresh every {next}s")),
        };
        Update::effect(Effect::SetInterval(next))
    }

    pub(super) fn toggle_all_locks(&mut self) -> Update {
        if self.screen == Screen::Locks {
            self.all_locks = !self.all_locks;
        } else {
            // The user asked for all types, so that stays after Esc.
            let from = Origin { screen: self.screen, focus: self.focus, page: None, all_locks: true };
            self.go(Screen::Locks);
            (self.jumped_from, self.all_locks, self.focus) = (Some(from), true, Pane::Held);
            self.show_note("Locks, all types; Esc goes back");
        }
        self.pane_mut(Pane::Held).restart();
        self.invalidate();
        self.refresh_panes();
        self.focus_lock();
        Update::redraw()
    }

    pub(super) fn show_all_locks(&mut self, all: bool) {
        if std::mem::replace(&mut self.all_locks, all) != all {
            self.invalidate();
        }
    }

    pub(super) fn change_blame(&mut self, blamed: (BlameGrouping, BlamePeriod)) -> Update {
        if self.screen != Screen::Blame {
            let key = self.key_of(Action::Go(Screen::Blame));
            return self.show_note(format!("only for the Blame screen ({key})"));
        }
        self.blamed = blamed;
        self.invalidate();
        self.refresh_panes();
        // The selected line no longer exists.
        if self.pane(Pane::Blame).selected.is_none() {
            self.with_pane(Pane::Blame, |state, context| state.select(context, 0));
        }
        Update::redraw()
    }

    pub(super) fn toggle_wrap(&mut self) -> Update {
        if !matches!(self.pages.last(), Some(Page::Detail { .. })) {
            return self.show_note("wrapping is only for the detail view (Enter)");
        }
        self.wrap = !self.wrap;
        Update::redraw()
    }

    pub(super) fn toggle_mouse(&mut self) -> Update {
        self.mouse = !self.mouse;
        self.show_note(if self.mouse {
            "mouse on: click a row, a heading, a finding or a key; Shift selects text in most terminals"
        } else {
            "mouse off: the terminal selects text again"
        });
        Update::effect(Effect::Mouse(self.mouse))
    }

    /// Copies the process ids of the marked rows in row order, or that of the selected row.
    pub(super) fn copy(&mut self) -> Update {
        let chosen = self.chosen(self.focus);
        let Some((what, text)) = self.context().and_then(|context| copied(&context, &chosen)) else {
            return self.show_note("nothing to copy: no row with a process id is selected or marked");
        };
        self.show_note(format!("copied {what}"));
        Update::effect(Effect::Copy(text))
    }

    pub(super) fn shown_marks(&mut self, pane: Pane) -> usize {
        let count = self.with_pane(pane, |state, context| {
            state.shown(context).filter(|id| state.marks.contains(id)).count()
        });
        count.unwrap_or(0)
    }

    pub(super) fn chosen(&mut self, pane: Pane) -> Vec<RowId> {
        let marked = self.with_pane(pane, |state, context| {
            if state.marks.is_empty() {
                Vec::new()
            } else {
                state.shown(context).filter(|id| state.marks.contains(id)).collect()
            }
        });
        match marked {
            Some(marked) if !marked.is_empty() => marked,
            _ => self.pane(pane).selected.into_iter().collect(),
        }
    }
}

/// The text to copy for these rows, after words that describe it.
fn copied(context: &Context<'_>, chosen: &[RowId]) -> Option<(String, String)> {
    if let [row] = chosen
        && let Some(Party::Prepared(xact)) = subject::party_of(context, *row)
        && let Some(row) = context.prepared(xact)
    {
        // A prepared transaction has no process; copy the statement that ends it.
        let statement = format!("ROLLBACK PREPARED {};", crate::text::literal(&row.gid));
        return Some((statement.clone(), statement));
    }
    if let [id @ RowId::Job(_)] = chosen
        && let Some(advice) = job(context, *id).and_then(|job| job.advice.as_deref())
    {
        let advice = crate::text::one_line(advice).into_owned();
        return Some((advice.clone(), advice));
    }
    let holders = |id: &RowId| match *id {
        // For use in notes only: no action uses this process id.
        RowId::Episode(number) => context.view.blame.episode(number).map(|one| one.pid).into_iter().collect(),
        RowId::Awaited(tag) => {
            let lock = context.awaited_lock(&tag);
            lock.into_iter().flat_map(|lock| &lock.holders).map(|hold| hold.party.pid()).collect()
        }
        id => subject::holder_of(context, id).into_iter().collect::<Vec<_>>(),
    };
    let mut seen = std::collections::BTreeSet::new();
    let pids = chosen.iter().flat_map(holders).filter(|pid| *pid != 0 && seen.insert(*pid));
    let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
    let what = match pids.len() {
        0 => return None,
        1 => "1 process id".to_owned(),
        count => format!("{count} process ids"),
    };
    Some((what, pids.join(" ")))
}

/// The row that Enter opens: for a finding its subject, unless the finding has details of its own.
fn opened(context: &Context<'_>, selected: RowId) -> RowId {
    let whole = findings::finding_of(context, selected).is_none_or(|finding| finding.details.is_empty());
    let subject = subject::subject_of(context, selected).filter(|_| whole);
    subject.filter(|subject| detail::lines(context, *subject, 80, true).is_some()).unwrap_or(selected)
}
