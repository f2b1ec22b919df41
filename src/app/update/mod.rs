mod actions;
mod dialog;
mod pages;
mod prompt;
mod view;

use super::keymap::{self, Action};
use super::message::{ClickTarget, Effect, Message, Update};
use super::panes::{Pane, RowId};
use super::screens::Screen;
use super::{App, Notice, Origin, SMALLEST};
use crate::keys::Key;
use crate::model::adapter::Parts;
use crate::model::plan::ExecutorReply;
pub(super) use view::PendingStep;
pub use view::ReplayState;

/// Ticks (seconds) for which a refusal is shown, unless a key is pressed.
const NOTICE: u8 = 10;

impl App {
    pub fn update(&mut self, message: Message) -> Update {
        let mut update = self.updated(message);
        // Any message can change the selected line, and the episodes are those of that line.
        if self.screen == Screen::Blame {
            self.refresh_panes();
        }
        let shown = self.panes().into_iter().fold(Parts::NONE, |all, pane| all.and(pane.definition().parts));
        if std::mem::replace(&mut self.shown, shown) != shown {
            update.effects.push(Effect::Watch(shown));
        }
        update
    }

    fn updated(&mut self, message: Message) -> Update {
        match message {
            Message::View(_, view) => self.view_arrived(view),
            Message::Key(key) => self.key(key),
            Message::Paste(text) => self.paste(&text),
            Message::Click(spot) => self.click(&spot),
            Message::Wheel(pane, by) => self.wheel(pane, by),
            Message::Resize(columns, rows) => {
                self.size = (columns, rows);
                self.refresh_panes();
                self.disarm();
                Update::redraw()
            }
            Message::Tick(silence) => self.tick(silence),
            Message::Answer(ExecutorReply::RecoveryPlanned(number, plan)) => self.planned(number, plan),
            Message::Answer(ExecutorReply::Progress(number, done)) => self.progress(number, done),
            Message::Answer(ExecutorReply::Reported(report)) => self.reported(&report),
            Message::Past(answer) => self.arrived(answer),
            Message::Saved(said) => self.insist(said),
            Message::Drawn(revision) => self.drawn(revision),
            Message::Settled(exchange) => {
                self.pane_mut(self.focus).settle(exchange);
                Update::none()
            }
        }
    }

    fn is_too_small(&self) -> bool {
        self.size.0 < SMALLEST.0 || self.size.1 < SMALLEST.1
    }

    fn key(&mut self, key: Key) -> Update {
        // On a too small terminal q quits, as the screen says: a question or filter that cannot be seen must not take the key.
        if self.is_too_small()
            && (key == Key::char('q') || self.settings.keymap.action(key) == Some(Action::Quit))
        {
            return Update::effect(Effect::Quit);
        }
        // The notice has been read, and it covers the key hints.
        let read = |notice: &mut Notice| notice.seen || notice.ticks.is_some();
        let had_notice = self.notice.take_if(read).is_some();
        if self.focus == Pane::Findings {
            self.findings_read = self.view.as_ref().and_then(|view| Some(view.snapshot.as_ref()?.taken_at));
        }
        let mut update = self.key_pressed(key);
        update.redraw |= had_notice;
        update
    }

    fn key_pressed(&mut self, key: Key) -> Update {
        if self.dialog.is_some() {
            return self.dialog_key(key);
        }
        if key == Key::ctrl('c') && self.prompt.is_none() {
            // Ctrl-C always quits, whatever the config binds it to.
            return Update::effect(Effect::Quit);
        }
        if self.prompt.is_some() {
            return self.prompt_key(key);
        }
        let action = self.settings.keymap.action(key);
        if let Some(would) = self.settings.keymap.unbound(key) {
            let does = keymap::binding(would).map_or("", |binding| binding.short);
            let why = if self.replay.is_some() { "this is a recording" } else { "read-only" };
            return self.show_note(format!("{why}: {key} ({does}) does nothing here"));
        }
        if !self.pages.is_empty() {
            return self.page_key(action);
        }
        action.map_or_else(Update::none, |action| self.act(action))
    }

    fn step(&mut self, by: isize) -> Update {
        if self.focus_first_rows() {
            return Update::redraw();
        }
        self.with_pane(self.focus, |state, context| state.step(context, by));
        Update::redraw()
    }

    /// Goes to a screen by its key, without a way back. Tables start at the worst row if the selection would hide it.
    fn leave_for(&mut self, screen: Screen) -> Update {
        self.jumped_from = None;
        let rows = self.table_rows;
        for pane in screen.panes(self.has()) {
            if self.follow.is_none() && self.pane_mut(pane).begin_at_the_top(rows) {
                self.stale.push(pane);
            }
        }
        self.go(screen)
    }

    /// Goes to a screen, or says why it has nothing to show.
    fn go(&mut self, screen: Screen) -> Update {
        if !screen.is_there(self.has()) {
            return self.show_note(screen.definition().absent);
        }
        let is_again = self.screen == screen;
        self.screen = screen;
        self.zoom = false;
        if is_again && let Some(first) = self.panes().first() {
            self.focus = *first;
        }
        self.keep_focus();
        self.refresh_panes();
        if screen == Screen::Locks {
            if !self.focus_lock()
                && let Some(words) = self.why_no_lock()
            {
                return self.show_note(words);
            }
        } else if let Some(pane) = self.visible_panes().first().copied() {
            self.go_to_followed(pane);
        }
        if is_again && self.pane(self.focus).selected.is_none() {
            self.jump(0);
        }
        Update::redraw()
    }

    /// Moves the focus on the Locks screen to the pane of the followed row, and returns whether there is one. Without waits, an
    /// empty upper pane gives the focus to the lower one.
    pub(super) fn focus_lock(&mut self) -> bool {
        let found = self.visible_panes().into_iter().find(|pane| self.go_to_followed(*pane));
        if let Some(pane) = found {
            self.focus = pane;
        } else if self.focus == Pane::Locks {
            self.focus_first_rows();
        }
        found.is_some()
    }

    /// Empty if no key is bound to it.
    fn key_of(&self, action: Action) -> String {
        self.settings.keymap.key(action).map(|key| key.to_string()).unwrap_or_default()
    }

    /// Why the followed backend has no row on the Locks screen.
    fn why_no_lock(&self) -> Option<String> {
        let RowId::Backend(followed) = self.follow? else { return None };
        let context = self.context()?;
        let locks = context.snapshot.locks.last_rows();
        let count = locks.iter().filter(|lock| lock.pid == Some(followed.pid)).count();
        let pid = followed.pid;
        let all = self.key_of(Action::AllLocks);
        Some(match count {
            0 => format!("{pid} holds no lock and waits for none"),
            _ if self.all_locks => format!("the filter hides the locks of {pid}"),
            1 => format!("{pid} has no advisory lock; {all} shows its other lock"),
            _ => format!("{pid} has no advisory lock; {all} shows its {count} other locks"),
        })
    }

    /// Shows the findings alone; pressed again, goes back.
    fn go_to_findings(&mut self) -> Update {
        if self.screen == Screen::Overview && self.focus == Pane::Findings {
            return if self.zoom { self.back() } else { self.toggle_zoom() };
        }
        let page = self.pages.last().cloned();
        self.pages.clear();
        let from = Origin { screen: self.screen, focus: self.focus, page, all_locks: self.all_locks };
        self.go(Screen::Overview);
        (self.focus, self.zoom, self.jumped_from) = (Pane::Findings, true, Some(from));
        self.refresh_panes();
        Update::redraw()
    }

    /// Shows a notice that disappears after some time.
    pub fn show_note(&mut self, text: impl Into<String>) -> Update {
        // An unread notice that waits for a key is more important.
        if self.notice.as_ref().is_none_or(|notice| notice.seen || notice.ticks.is_some()) {
            self.notice = Some(Notice { text: text.into(), ticks: Some(NOTICE), seen: false });
        }
        Update::redraw()
    }

    pub fn show_until_key(&mut self, text: impl Into<String>) {
        let _ = self.insist(text);
    }

    /// Whether a question is open or a confirmed action is still running.
    pub fn is_asking(&self) -> bool {
        self.dialog.is_some() || !self.pending_actions.is_empty()
    }

    /// Shows a notice that stays until a key is pressed.
    fn insist(&mut self, text: impl Into<String>) -> Update {
        self.notice = Some(Notice { text: text.into(), ticks: None, seen: false });
        Update::redraw()
    }

    fn act(&mut self, action: Action) -> Update {
        let page = isize::try_from(self.page_rows.max(1)).unwrap_or(isize::MAX);
        match action {
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-page),
            Action::PageDown => self.step(page),
            Action::First => self.jump(0),
            Action::Last => self.jump(usize::MAX),
            Action::Left => self.scroll_columns(-1),
            Action::Right => self.scroll_columns(1),
            Action::Go(screen) => match self.show_finding_on(screen) {
                Some(update) => update,
                None => self.leave_for(screen),
            },
            Action::NextPane => self.next_pane(1),
            Action::PreviousPane => self.next_pane(-1),
            Action::Zoom => self.toggle_zoom(),
            Action::Open => self.open(),
            Action::Pause if self.replay.is_some() => self.play_or_stop(),
            Action::Faster | Action::Slower if self.replay.is_some() => {
                self.change_speed(action == Action::Faster)
            }
            Action::Back if self.replay.is_none() && (self.past.is_some() || self.going.is_some()) => {
                self.back_to_now()
            }
            Action::Back => self.back(),
            Action::Filter => self.start_filter(),
            Action::NextMatch if self.pane(self.focus).filter.is_empty() => self.start_note(),
            Action::NextMatch => self.next_match(true),
            Action::Save => self.start_save(),
            Action::PreviousMatch => self.next_match(false),
            Action::Sort => self.start_sort(),
            Action::Mark => self.mark(),
            Action::MarkAll => self.mark_all(),
            Action::Follow => self.toggle_follow(),
            Action::Related => self.go_to_related(),
            Action::Pause | Action::Command(_) if self.past.is_some() => self.is_past(),
            Action::Pause => self.toggle_pause(),
            Action::LookBack
            | Action::LookOn
            | Action::MinuteBack
            | Action::MinuteOn
            | Action::TroubleBefore
            | Action::NextTrouble => action.step().map_or_else(Update::none, |step| self.step_in_time(step)),
            Action::GoToTime => self.start_time(),
            Action::Faster => self.change_interval(true),
            Action::Slower => self.change_interval(false),
            Action::Findings => self.go_to_findings(),
            Action::Help => self.open_page(super::page::Page::Help { scroll: 0, search: String::new() }),
            Action::AllLocks => self.toggle_all_locks(),
            Action::BlameBy => self.change_blame((self.blamed.0.next(), self.blamed.1)),
            Action::BlameSpan => self.change_blame((self.blamed.0, self.blamed.1.next())),
            Action::Wrap => self.toggle_wrap(),
            Action::Copy => self.copy(),
            Action::Mouse => self.toggle_mouse(),
            Action::Refresh => Update { effects: vec![Effect::Refresh, Effect::Clear], redraw: true },
            Action::Suspend => Update::effect(Effect::Suspend),
            Action::Quit => Update::effect(Effect::Quit),
            Action::Command(command) => self.ask_here(command),
        }
    }
}

impl App {
    fn click(&mut self, spot: &ClickTarget) -> Update {
        if self.prompt.is_some() || self.dialog.is_some() || self.is_too_small() {
            return Update::none();
        }
        let notice = self.notice.take_if(|notice| notice.seen || notice.ticks.is_some());
        let mut update = match *spot {
            ClickTarget::Key(action) if self.pages.is_empty() => self.act(action),
            ClickTarget::Key(action) => self.page_key(Some(action)),
            ClickTarget::Row(pane, at) if self.is_open_to(pane) => self.click_row(pane, at),
            ClickTarget::Heading(pane, column) if self.is_open_to(pane) => {
                self.focus = pane;
                self.sort_by(pane, column)
            }
            ClickTarget::Row(..) | ClickTarget::Heading(..) => Update::none(),
        };
        update.redraw |= notice.is_some();
        update
    }

    fn is_open_to(&self, pane: Pane) -> bool {
        self.pages.is_empty() && self.visible_panes().contains(&pane)
    }

    fn click_row(&mut self, pane: Pane, at: usize) -> Update {
        self.focus = pane;
        self.with_pane(pane, |state, context| {
            if at < state.rows.len() {
                state.select(context, at);
            }
        });
        Update::redraw()
    }

    fn wheel(&mut self, pane: Option<Pane>, by: isize) -> Update {
        if self.dialog.is_some() {
            return self.scroll_dialog(by);
        }
        if !self.pages.is_empty() {
            return self.scroll_page(by);
        }
        match pane {
            Some(pane) if self.prompt.is_none() && self.visible_panes().contains(&pane) => {
                self.focus = pane;
                self.step(by)
            }
            _ => Update::none(),
        }
    }
}
