use crate::app::context::Context;
use crate::app::message::Update;
use crate::app::page::Page;
use crate::app::pane::PaneState;
use crate::app::panes::{Pane, RowId};
use crate::app::related::{self, Related};
use crate::app::screens::Screen;
use crate::app::subject::Place;
use crate::app::{App, Origin};
use crate::model::lock::{LockTag, LockType};

impl App {
    /// Shows the subject of the selected finding on `screen`. `None` if the finding belongs to another screen or its subject
    /// does not exist.
    pub(super) fn show_finding_on(&mut self, screen: Screen) -> Option<Update> {
        let RowId::Finding(_, subject) = self.pane(Pane::Findings).selected? else { return None };
        let is_here = self.screen == Screen::Overview && self.focus == Pane::Findings;
        let place = Place::of(subject).filter(|place| is_here && place.screens().first() == Some(&screen))?;
        self.jump_to(place, &[screen], None)
    }

    /// Goes to the row of the selected event. Opens the event itself if it stands for several events, or its subject has no row
    /// or no longer exists.
    pub(super) fn open_event(&mut self, number: u64, count: u32) -> Update {
        let event = self.view.as_ref().and_then(|view| view.events.get(number));
        let subject = event.filter(|_| count == 1).and_then(|event| event.subject);
        let place = subject.and_then(Place::of);
        if let Some(update) = place.and_then(|place| self.jump_to(place, &place.screens(), None)) {
            return update;
        }
        if place.is_some() {
            self.say("the object of this event no longer exists");
        }
        self.open_page(Page::Detail { subject: RowId::Event(number, count), scroll: 0 })
    }

    /// Goes to a place, with a way back. `None` if the place does not exist.
    fn jump_to(&mut self, place: Place, screens: &[Screen], page: Option<Page>) -> Option<Update> {
        let (screen, focus, before) = (self.screen, self.focus, self.jumped_from.take());
        let all_locks = self.all_locks;
        self.jumped_from = Some(Origin { screen, focus, page, all_locks });
        let is_awaited =
            |tag: &LockTag| self.context().is_some_and(|context| context.awaited_lock(tag).is_some());
        let is_other =
            place.tag().is_some_and(|tag| tag.locktype() != LockType::Advisory && !is_awaited(&tag));
        self.show_all_locks(all_locks || is_other);
        for screen in screens.iter().copied() {
            self.go(screen);
            for pane in self.panes() {
                self.focus = pane;
                self.refresh_panes();
                if let Some(update) = self.select_here(place) {
                    return Some(update);
                }
            }
        }
        self.show_all_locks(all_locks);
        self.go(screen);
        (self.focus, self.jumped_from) = (focus, before);
        None
    }

    /// Offers links for the selected row or the open page; follows the link if there is only one.
    pub(super) fn go_to_related(&mut self) -> Update {
        let of = match self.pages.last() {
            Some(Page::Detail { subject, .. }) => Some(*subject),
            _ => self.pane(self.focus).selected,
        };
        let Some(of) = of else { return self.say("nothing selected") };
        let Some(context) = self.context() else { return Update::none() };
        let mut links = related::related(&context, of, self.screen);
        match links.len() {
            0 => self.say("no current session, lock, task or lease belongs to this row"),
            1 => self.go_to_link(&links.remove(0)),
            _ => self.open_page(Page::Related { links, at: 0 }),
        }
    }

    /// Follows a link, with a way back to the open page.
    pub(super) fn go_to_link(&mut self, link: &Related) -> Update {
        let page = self.pages.last().cloned();
        let pages = std::mem::take(&mut self.pages);
        if let Some(update) = self.jump_to(link.place, &[link.screen], page) {
            return update;
        }
        self.pages = pages;
        self.say(format!("{} no longer exists", link.label))
    }

    /// Selects the place in the focused table, clearing the filter if it hides the place.
    fn select_here(&mut self, place: Place) -> Option<Update> {
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

    fn select_place(&mut self, place: Place) -> bool {
        let select =
            |state: &mut PaneState, context: &Context<'_>| state.select_where(context, |id| place.is(id));
        self.with_pane(self.focus, select).unwrap_or(false)
    }
}
