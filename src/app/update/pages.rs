//! What the keys do on a page over the screen.

use crate::app::App;
use crate::app::keymap::Action;
use crate::app::message::{Effect, Update};
use crate::app::page::Page;
use crate::app::pane::Sort;
use crate::app::screen::{Pane, Screen};
use crate::app::table::{self, RowId};
use crate::model::backend::BackendId;
use crate::model::finding::Subject;
use crate::model::wait_graph::Party;

/// Moves what scrolls or is selected on a page.
pub(super) fn scroll(page: &mut Page, by: isize) {
    match page {
        Page::Help { scroll } | Page::Detail { scroll, .. } => *scroll = scroll.saturating_add_signed(by),
        Page::Findings { selected } | Page::Sort { selected, .. } => {
            *selected = selected.saturating_add_signed(by);
        }
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
        if let Some(page) = self.pages.last_mut() {
            scroll(page, by);
        }
        self.clamp_page();
        Update::redraw()
    }

    fn page_action(&mut self, action: Action) -> Update {
        match action {
            Action::Back | Action::Quit => {
                self.pages.pop();
                Update::redraw()
            }
            Action::Open => self.choose(),
            // The key that opened a page closes it.
            Action::Help if matches!(self.pages.last(), Some(Page::Help { .. })) => self.close_page(),
            Action::Findings if matches!(self.pages.last(), Some(Page::Findings { .. })) => self.close_page(),
            Action::Sort if matches!(self.pages.last(), Some(Page::Sort { .. })) => self.choose(),
            Action::Overview | Action::Chains | Action::Locks | Action::Tasks | Action::Backends => {
                self.pages.clear();
                self.act(action)
            }
            Action::Follow => self.follow_page(),
            Action::Copy => self.copy_page(),
            Action::Help
            | Action::Findings
            | Action::Pause
            | Action::Faster
            | Action::Slower
            | Action::Wrap
            | Action::Mouse
            | Action::Refresh
            | Action::Suspend => self.act(action),
            _ => Update::none(),
        }
    }

    fn close_page(&mut self) -> Update {
        self.pages.pop();
        Update::redraw()
    }

    /// Keeps the position on a page within what there is.
    fn clamp_page(&mut self) {
        let findings = self.view.as_ref().map_or(0, |view| view.findings.len());
        let width = usize::from(self.size.0);
        let lines = match self.pages.last() {
            Some(Page::Detail { subject, .. }) => {
                self.detail_lines(*subject, width).map_or(0, |lines| lines.len())
            }
            Some(Page::Help { .. }) => super::super::keymap::BINDINGS.len() + 21,
            _ => 0,
        };
        let last = lines.saturating_sub(self.page_rows);
        match self.pages.last_mut() {
            Some(Page::Findings { selected }) => *selected = (*selected).min(findings.saturating_sub(1)),
            Some(Page::Sort { pane, selected }) => {
                *selected = (*selected).min(table::columns(*pane).len().saturating_sub(1));
            }
            Some(Page::Help { scroll } | Page::Detail { scroll, .. }) => *scroll = (*scroll).min(last),
            None => {}
        }
    }

    fn choose(&mut self) -> Update {
        match self.pages.last().cloned() {
            Some(Page::Sort { pane, selected }) => {
                self.pages.pop();
                self.sort_by(pane, selected)
            }
            Some(Page::Findings { selected }) => self.jump_to_finding(selected),
            Some(Page::Help { .. }) => self.close_page(),
            _ => Update::none(),
        }
    }

    /// Sorts by a column; by the same one again, the other way round. Numbers begin with the largest.
    fn sort_by(&mut self, pane: Pane, selected: usize) -> Update {
        let Some(column) = table::columns(pane).get(selected) else { return Update::none() };
        let all_locks = self.all_locks;
        self.with_pane(pane, |state, scene| {
            let descending = match state.sort {
                Some(sort) if sort.column == column.name => !sort.descending,
                _ => column.right,
            };
            state.sort = Some(Sort { column: column.name, descending });
            state.rebuild(pane, all_locks, scene);
        });
        Update::redraw()
    }

    fn jump_to_finding(&mut self, selected: usize) -> Update {
        let subject =
            self.view.as_ref().and_then(|view| view.findings.get(selected)).map(|f| f.subject.clone());
        let Some(subject) = subject else { return Update::none() };
        let (screen, wanted) = match subject {
            Subject::Backend(id) => (None, RowId::Backend(id)),
            Subject::Party(Party::Backend(pid)) => {
                (None, RowId::Backend(BackendId { pid, backend_start: None }))
            }
            Subject::Party(Party::Prepared(xact)) => (Some(Screen::Chains), RowId::Prepared(xact)),
            Subject::Lock(tag) => {
                let xact = crate::model::lock::VirtualTransaction { proc_number: 0, local_xid: 0 };
                (
                    Some(Screen::Locks),
                    RowId::Lock(tag, None, xact, crate::model::lock::LockMode::Exclusive, true),
                )
            }
            Subject::Task(task) => (Some(Screen::Tasks), RowId::Task(task, None)),
            Subject::Server | Subject::Section(_) => {
                return self.say("this finding is about the whole server");
            }
        };
        self.pages.clear();
        // A backend in the forest is best seen there.
        let screens = match screen {
            Some(screen) => vec![screen],
            None => vec![Screen::Chains, Screen::Backends],
        };
        for screen in screens {
            self.go(screen);
            if self.select_subject(wanted) {
                return Update::redraw();
            }
        }
        self.say("what this finding is about is not there any more")
    }

    fn select_subject(&mut self, wanted: RowId) -> bool {
        let same = |id: RowId| match (id, wanted) {
            (RowId::Backend(id), RowId::Backend(wanted)) => {
                id.pid == wanted.pid && (wanted.backend_start.is_none() || id == wanted)
            }
            (RowId::Lock(tag, ..), RowId::Lock(wanted, ..)) => tag == wanted,
            _ => id == wanted,
        };
        self.with_pane(self.focus, |state, scene| {
            let found = (0..state.rows.len()).find(|at| state.id_at(scene, *at).is_some_and(same));
            if let Some(at) = found {
                state.select(scene, at);
            }
            found.is_some()
        })
        .unwrap_or(false)
    }

    fn follow_page(&mut self) -> Update {
        if let Some(Page::Detail { subject, .. }) = self.pages.last() {
            self.follow = if self.follow == Some(*subject) { None } else { Some(*subject) };
            return Update::redraw();
        }
        Update::none()
    }

    /// Copies the whole text of a detail page.
    fn copy_page(&mut self) -> Update {
        let Some(Page::Detail { subject, .. }) = self.pages.last() else { return Update::none() };
        let Some(lines) = self.detail_lines(*subject, 10_000) else { return Update::none() };
        let text: Vec<String> = lines.iter().map(|line| line.plain().trim_end().to_owned()).collect();
        self.say("copied this page");
        Update::effect(Effect::Copy(text.join("\n")))
    }
}
