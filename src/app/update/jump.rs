//! From a finding or an event to the row it is about.

use crate::app::App;
use crate::app::message::Update;
use crate::app::page::{self, FindingId, Page};
use crate::app::panes::{Pane, RowId};
use crate::app::screens::Screen;
use crate::model::backend::BackendId;
use crate::model::finding::Subject;
use crate::model::lock::LockTag;
use crate::model::wait_graph::Party;

/// The row a finding is about, and the screens where it may be, the best first.
enum Place {
    Backend(BackendId),
    Row(RowId),
    Lock(LockTag),
    /// The work queue as a whole.
    Queue,
}

impl Place {
    /// None for what is about the whole server.
    fn of(subject: &Subject) -> Option<Self> {
        Some(match *subject {
            Subject::Backend(id) => Self::Backend(id),
            Subject::Party(Party::Backend(pid)) => Self::Backend(BackendId { pid, backend_start: None }),
            Subject::Party(Party::Prepared(xact)) => Self::Row(RowId::Prepared(xact)),
            Subject::Lock(tag) => Self::Lock(tag),
            Subject::Task(task) => Self::Row(RowId::Task(task, None)),
            Subject::Lease(id) => Self::Row(RowId::Lease(id)),
            Subject::Item(id) => Self::Row(RowId::Item(id)),
            Subject::Job(id) => Self::Row(RowId::Job(id)),
            Subject::JobQueue(id) => Self::Row(RowId::JobQueue(id)),
            Subject::Limit(id) => Self::Row(RowId::Limit(id)),
            Subject::Generator(id) => Self::Row(RowId::Generator(id)),
            Subject::Queue => Self::Queue,
            Subject::Server | Subject::Section(_) => return None,
        })
    }

    fn is(&self, row: RowId) -> bool {
        match (self, row) {
            (Self::Backend(wanted), RowId::Backend(id)) => {
                id.pid == wanted.pid && (wanted.backend_start.is_none() || id == *wanted)
            }
            (Self::Row(wanted), row) => *wanted == row,
            (Self::Queue, RowId::Item(_)) => true,
            (Self::Lock(tag), RowId::Lock(other, ..)) => *tag == other,
            _ => false,
        }
    }

    fn screens(&self) -> Vec<Screen> {
        match self {
            // A backend in the forest is best seen there.
            Self::Backend(_) => vec![Screen::Chains, Screen::Backends],
            Self::Row(row) => Screen::with(row.home()).collect(),
            Self::Queue => Screen::with(Pane::Queue).collect(),
            Self::Lock(_) => Screen::with(Pane::Locks).collect(),
        }
    }
}

impl App {
    /// Goes to the row of a finding. A filter that hides it is cleared.
    pub(super) fn jump_to_finding(&mut self, chosen: Option<&FindingId>) -> Update {
        let findings = self.view.as_ref().map(|view| view.findings.as_slice()).unwrap_or_default();
        let found = page::position(findings, chosen).and_then(|at| findings.get(at));
        let Some(subject) = found.map(|finding| finding.subject.clone()) else {
            return self.say("no finding selected");
        };
        let Some(place) = Place::of(&subject) else {
            return self.say("about the whole server: there is no row to go to");
        };
        let page = self.pages.last().cloned();
        let pages = std::mem::take(&mut self.pages);
        if let Some(update) = self.jump_to(&place, page) {
            return update;
        }
        self.pages = pages;
        self.say("what this finding is about is gone")
    }

    /// Selects what a finding is about where it is on the screen already; false where it is not.
    pub(super) fn select_here_if_shown(&mut self, subject: &Subject) -> bool {
        let Some(place) = Place::of(subject) else { return false };
        let focus = self.focus;
        for pane in self.visible_panes() {
            self.focus = pane;
            if self.select_place(&place) {
                return true;
            }
        }
        self.focus = focus;
        false
    }

    /// Goes to the row of the selected event. One that stands for several, that is about nothing that has a row, or about what is
    /// not there any more, is opened itself.
    pub(super) fn open_event(&mut self, number: u64, count: u32) -> Update {
        let event = self.view.as_ref().and_then(|view| view.events.get(number));
        let subject = event.filter(|_| count == 1).and_then(|event| event.subject.clone());
        let place = subject.as_ref().and_then(Place::of);
        if let Some(update) = place.as_ref().and_then(|place| self.jump_to(place, None)) {
            return update;
        }
        if place.is_some() {
            self.say("what this event is about is gone");
        }
        self.open_page(Page::Detail { subject: RowId::Event(number, count), scroll: 0 })
    }

    /// Goes to a place, with a way back to where we are; none where it is not there.
    fn jump_to(&mut self, place: &Place, page: Option<Page>) -> Option<Update> {
        let (screen, focus, before) = (self.screen, self.focus, self.jumped_from.take());
        self.jumped_from = Some((screen, focus, page));
        for screen in place.screens() {
            self.go(screen);
            for pane in self.panes() {
                self.focus = pane;
                self.refresh_panes();
                if let Some(update) = self.select_here(place) {
                    return Some(update);
                }
            }
        }
        self.go(screen);
        (self.focus, self.jumped_from) = (focus, before);
        None
    }

    /// Selects the place in the focused table, if it is there.
    fn select_here(&mut self, place: &Place) -> Option<Update> {
        if self.select_place(place) {
            return Some(Update::redraw());
        }
        let filter = self.pane(self.focus).filter_text.clone();
        if !filter.is_empty() {
            self.set_filter(self.focus, "");
            if self.select_place(place) {
                return Some(self.say(format!("cleared the filter \"{filter}\", which hid it")));
            }
            self.set_filter(self.focus, &filter);
        }
        None
    }

    fn select_place(&mut self, place: &Place) -> bool {
        let selected = self.with_pane(self.focus, |state, context| {
            let found =
                (0..state.rows.len()).find(|at| state.id_at(context, *at).is_some_and(|id| place.is(id)));
            if let Some(at) = found {
                state.select(context, at);
            }
            found.is_some()
        });
        selected.unwrap_or(false)
    }
}
