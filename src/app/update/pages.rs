//! Pages over the screens, and jumps to the row of another screen.

use crate::app::context::Context;
use crate::app::help::is_heading;
use crate::app::keymap::Action;
use crate::app::line::Line;
use crate::app::message::{Effect, Update};
use crate::app::page::Page;
use crate::app::pane::{PaneState, Sort};
use crate::app::panes::{Pane, RowId};
use crate::app::related::{self, RelatedLink};
use crate::app::screens::Screen;
use crate::app::subject;
use crate::app::{App, Origin};
use crate::model::lock::{LockTag, LockType};

/// Terminals accept no more in OSC 52.
const MOST_COPIED: usize = 64 * 1024;

fn scroll(page: &mut Page, by: isize) {
    match page {
        Page::Help { scroll, .. } | Page::Detail { scroll, .. } => {
            *scroll = scroll.saturating_add_signed(by);
        }
        Page::Related { at, .. } => *at = at.saturating_add_signed(by),
        Page::Sort { selected, .. } => *selected = selected.saturating_add_signed(by),
    }
}

impl App {
    pub(super) fn page_key(&mut self, action: Option<Action>) -> Update {
        let Some(action) = action else { return Update::none() };
        let rows = isize::try_from(self.page_rows.max(1)).unwrap_or(isize::MAX);
        let by = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -rows,
            Action::PageDown => rows,
            Action::First => isize::MIN,
            Action::Last => isize::MAX,
            _ => return self.page_action(action),
        };
        self.scroll_page(by)
    }

    pub(super) fn scroll_page(&mut self, by: isize) -> Update {
        if let Some(page) = self.pages.last_mut() {
            scroll(page, by);
        }
        self.clamp_page();
        Update::redraw()
    }

    fn page_action(&mut self, action: Action) -> Update {
        match action {
            Action::Back if self.help_search().is_some_and(|search| !search.is_empty()) => {
                self.search_help("")
            }
            Action::Back | Action::Quit => self.close_page(),
            Action::Open => self.choose(),
            Action::NextPane => self.go_to_part(true),
            Action::PreviousPane => self.go_to_part(false),
            Action::Help if matches!(self.pages.last(), Some(Page::Help { .. })) => self.close_page(),
            Action::Sort if matches!(self.pages.last(), Some(Page::Sort { .. })) => self.choose(),
            Action::Go(_) => {
                self.pages.clear();
                self.act(action)
            }
            Action::Related if matches!(self.pages.last(), Some(Page::Related { .. })) => self.close_page(),
            Action::Related if matches!(self.pages.last(), Some(Page::Detail { .. })) => self.go_to_related(),
            Action::Filter => self.start_search(),
            Action::Follow => self.follow_page(),
            Action::Copy => self.copy_page(),
            Action::Command(_) if self.past.is_some() => self.is_past(),
            Action::Command(command) => self.ask_on_page(command),
            _ if action.step().is_some() => self.act(action),
            Action::Help
            | Action::Findings
            | Action::Pause
            | Action::GoToTime
            | Action::Faster
            | Action::Slower
            | Action::Wrap
            | Action::Mouse
            | Action::Refresh
            | Action::Suspend => self.act(action),
            _ => Update::none(),
        }
    }

    fn go_to_part(&mut self, forward: bool) -> Update {
        let Some(lines) = self.page_lines() else { return Update::none() };
        let Some(Page::Help { scroll, .. } | Page::Detail { scroll, .. }) = self.pages.last_mut() else {
            return Update::none();
        };
        let mut headings = lines.iter().enumerate().filter(|(_, line)| is_heading(line)).map(|(at, _)| at);
        let found =
            if forward { headings.find(|at| *at > *scroll) } else { headings.rfind(|at| *at < *scroll) };
        *scroll = found.unwrap_or(if forward { *scroll } else { 0 });
        self.clamp_page();
        Update::redraw()
    }

    fn close_page(&mut self) -> Update {
        self.pages.pop();
        Update::redraw()
    }

    /// The lines of a scrolling page. `None` for other pages, or if the subject of the page no longer exists.
    fn page_lines(&self) -> Option<Vec<Line>> {
        let width = usize::from(self.size.0);
        match self.pages.last()? {
            Page::Detail { subject, .. } => self.detail_lines(*subject, width),
            Page::Help { search, .. } => Some(crate::app::help::lines(self, width, search)),
            _ => None,
        }
    }

    fn clamp_page(&mut self) {
        let last = self.page_lines().map_or(0, |lines| lines.len()).saturating_sub(self.page_rows);
        match self.pages.last_mut() {
            Some(Page::Related { links, at }) => *at = (*at).min(links.len().saturating_sub(1)),
            Some(Page::Sort { pane, selected }) => {
                *selected = (*selected).min(pane.table().headings().len());
            }
            Some(Page::Help { scroll, .. } | Page::Detail { scroll, .. }) => {
                *scroll = (*scroll).min(last);
            }
            None => {}
        }
    }

    fn choose(&mut self) -> Update {
        match self.pages.last().cloned() {
            Some(Page::Sort { pane, selected }) => {
                self.pages.pop();
                let headings = pane.table().headings();
                match headings.get(selected) {
                    Some(column) => self.sort_by(pane, column.name),
                    None => self.order(pane, None),
                }
            }
            Some(Page::Related { links, at }) => {
                self.pages.pop();
                links.get(at).map_or_else(Update::none, |link| self.go_to_link(link))
            }
            Some(Page::Help { .. }) => self.close_page(),
            _ => Update::none(),
        }
    }

    /// Sorts by a column; by the same column again, reverses the order. Numbers start in descending order.
    pub(super) fn sort_by(&mut self, pane: Pane, name: &str) -> Update {
        let headings = pane.table().headings();
        let Some(column) = headings.iter().find(|column| column.name == name) else {
            return Update::none();
        };
        let descending = match self.pane(pane).sort {
            Some(sort) if sort.column == column.name => !sort.descending,
            _ => column.right,
        };
        self.order(pane, Some(Sort { column: column.name, descending }))
    }

    /// `None` restores the pane's default order.
    fn order(&mut self, pane: Pane, sort: Option<Sort>) -> Update {
        let (all_locks, seen) = (self.all_locks, self.table_rows);
        self.with_pane(pane, |state, context| {
            state.keep_selected();
            state.sort = sort;
            state.rebuild(all_locks, seen, context);
        });
        Update::redraw()
    }

    fn follow_page(&mut self) -> Update {
        if let Some(Page::Detail { subject, .. }) = self.pages.last() {
            self.follow = if self.follow == Some(*subject) { None } else { Some(*subject) };
            return Update::redraw();
        }
        Update::none()
    }

    fn copy_page(&mut self) -> Update {
        let lines = match self.pages.last() {
            Some(Page::Detail { subject, .. }) => {
                self.context().and_then(|context| crate::app::detail::lines(&context, *subject, 0, false))
            }
            _ => None,
        };
        let Some(lines) = lines else { return Update::none() };
        let mut text =
            lines.iter().map(|line| line.plain().trim_end().to_owned()).collect::<Vec<_>>().join("\n");
        let whole = text.len() <= MOST_COPIED;
        if !whole {
            let end = (0..=MOST_COPIED).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or(0));
        }
        self.show_note(if whole { "copied this page" } else { "copied the first 64 kB of this page" });
        Update::effect(Effect::Copy(text))
    }
}

impl App {
    /// Shows the subject of the selected finding on `screen`. `None` if the finding belongs to another screen or its subject
    /// does not exist.
    pub(super) fn show_finding_on(&mut self, screen: Screen) -> Option<Update> {
        let RowId::Finding(_, subject) = self.pane(Pane::Findings).selected? else { return None };
        let is_here = self.screen == Screen::Overview && self.focus == Pane::Findings;
        let row =
            RowId::of(subject).filter(|row| is_here && subject::screens_of(*row).first() == Some(&screen))?;
        self.jump_to(row, &[screen], None)
    }

    /// Goes to the row of the selected event. Opens the event itself if it stands for several events, or its subject has no row
    /// or no longer exists.
    pub(super) fn open_event(&mut self, number: u64, count: u32) -> Update {
        let event = self.view.as_ref().and_then(|view| view.events.get(number));
        let subject = event.filter(|_| count == 1).and_then(|event| event.subject);
        let row = subject.and_then(RowId::of);
        if let Some(update) = row.and_then(|row| self.jump_to(row, &subject::screens_of(row), None)) {
            return update;
        }
        if row.is_some() {
            self.show_note("the object of this event no longer exists");
        }
        self.open_page(Page::Detail { subject: RowId::Event(number, count), scroll: 0 })
    }

    /// Goes to a row, with a way back. `None` if the row does not exist.
    fn jump_to(&mut self, row: RowId, screens: &[Screen], page: Option<Page>) -> Option<Update> {
        let (screen, focus, before) = (self.screen, self.focus, self.jumped_from.take());
        let all_locks = self.all_locks;
        self.jumped_from = Some(Origin { screen, focus, page, all_locks });
        let is_awaited =
            |tag: &LockTag| self.context().is_some_and(|context| context.awaited_lock(tag).is_some());
        let is_other =
            matches!(row, RowId::Awaited(tag) if tag.locktype() != LockType::Advisory && !is_awaited(&tag));
        self.show_all_locks(all_locks || is_other);
        for screen in screens.iter().copied() {
            self.go(screen);
            for pane in self.panes() {
                self.focus = pane;
                self.refresh_panes();
                if let Some(update) = self.select_here(row) {
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
        let Some(of) = of else { return self.show_note("nothing selected") };
        let Some(context) = self.context() else { return Update::none() };
        let mut links = related::related(&context, of, self.screen);
        match links.len() {
            0 => self.show_note("no current session, lock, task or lease belongs to this row"),
            1 => self.go_to_link(&links.remove(0)),
            _ => self.open_page(Page::Related { links, at: 0 }),
        }
    }

    /// Follows a link, with a way back to the open page.
    pub(super) fn go_to_link(&mut self, link: &RelatedLink) -> Update {
        let page = self.pages.last().cloned();
        let pages = std::mem::take(&mut self.pages);
        if let Some(update) = self.jump_to(link.to, &[link.screen], page) {
            return update;
        }
        self.pages = pages;
        self.show_note(format!("{} no longer exists", link.label))
    }

    /// Selects the row in the focused table, clearing the filter if it hides the row.
    fn select_here(&mut self, row: RowId) -> Option<Update> {
        if self.select_row(row) {
            return Some(Update::redraw());
        }
        let filter = self.pane(self.focus).filter_text.clone();
        if !filter.is_empty() {
            self.set_filter(self.focus, "");
            if self.select_row(row) {
                return Some(self.show_note(format!("cleared the filter \"{filter}\", which hid it")));
            }
            self.set_filter(self.focus, &filter);
        }
        None
    }

    fn select_row(&mut self, row: RowId) -> bool {
        let select = |state: &mut PaneState, context: &Context<'_>| {
            state.select_where(context, |id| subject::is_row_of(row, id))
        };
        self.with_pane(self.focus, select).unwrap_or(false)
    }
}
