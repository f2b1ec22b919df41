use std::path::PathBuf;

use tui_input::{Input, InputRequest};

use crate::app::filter::Filter;
use crate::app::message::{Effect, Update};
use crate::app::page::{Page, Prompt, PromptKind};
use crate::app::pane::PaneState;
use crate::app::panes::Pane;
use crate::app::{App, keymap};
use crate::keys::{Code, Key};

/// No typed text is longer, but a paste can be megabytes.
const LONGEST: usize = 500;

impl App {
    pub(super) fn start_filter(&mut self) -> Update {
        self.type_into(PromptKind::Filter, self.pane(self.focus).filter_text.clone())
    }

    pub(super) fn start_search(&mut self) -> Update {
        let Some(before) = self.help_search().map(str::to_owned) else { return Update::none() };
        self.type_into(PromptKind::Search, before)
    }

    pub(super) fn help_search(&self) -> Option<&str> {
        match self.pages.last() {
            Some(Page::Help { search, .. }) => Some(search),
            _ => None,
        }
    }

    pub(super) fn search_help(&mut self, text: &str) -> Update {
        if let Some(Page::Help { scroll, search }) = self.pages.last_mut() {
            *scroll = 0;
            text.clone_into(search);
        }
        Update::redraw()
    }

    pub(super) fn prompt_key(&mut self, key: Key) -> Update {
        let Some(prompt) = &mut self.prompt else { return Update::none() };
        let control = |character| key == Key::ctrl(character);
        match key.code {
            Code::Esc => return self.leave_prompt(false),
            _ if control('c') => return self.leave_prompt(false),
            Code::Enter => return self.leave_prompt(true),
            _ => {}
        }
        let request = match key.code {
            Code::Char(character) if keymap::is_text(key) => {
                if prompt.input.value().chars().count() >= LONGEST {
                    return Update::none();
                }
                InputRequest::InsertChar(character)
            }
            Code::Backspace => InputRequest::DeletePrevChar,
            Code::Delete => InputRequest::DeleteNextChar,
            Code::Left => InputRequest::GoToPrevChar,
            Code::Right => InputRequest::GoToNextChar,
            Code::Home => InputRequest::GoToStart,
            Code::End => InputRequest::GoToEnd,
            _ if control('a') => InputRequest::GoToStart,
            _ if control('e') => InputRequest::GoToEnd,
            _ if control('w') => InputRequest::DeletePrevWord,
            _ if control('u') => InputRequest::DeleteLine,
            _ if control('k') => InputRequest::DeleteTillEnd,
            _ => return Update::none(),
        };
        prompt.input.handle(request);
        self.try_filter()
    }

    pub(super) fn paste(&mut self, text: &str) -> Update {
        let Some(prompt) = &mut self.prompt else { return Update::none() };
        let room = LONGEST.saturating_sub(prompt.input.value().chars().count());
        let text = crate::text::one_line_prefix(text, LONGEST).into_owned();
        for character in text.chars().take(room) {
            prompt.input.handle(InputRequest::InsertChar(character));
        }
        self.try_filter()
    }

    /// Filters while typing. Invalid text leaves the rows unchanged.
    fn try_filter(&mut self) -> Update {
        let Some(prompt) = &self.prompt else { return Update::none() };
        let (pane, text) = (prompt.pane, prompt.input.value().to_owned());
        let error = match prompt.typing {
            PromptKind::Filter => self.set_filter(pane, &text),
            PromptKind::Time => self.time_typed(&text).err(),
            PromptKind::Search => {
                self.search_help(&text);
                None
            }
            PromptKind::Save | PromptKind::Note => None,
        };
        if let Some(prompt) = &mut self.prompt {
            prompt.error = error;
        }
        Update::redraw()
    }

    fn leave_prompt(&mut self, keep: bool) -> Update {
        let Some(prompt) = self.prompt.take() else { return Update::none() };
        let text = if keep { prompt.input.value() } else { &prompt.before };
        match prompt.typing {
            PromptKind::Search => return self.search_help(text),
            PromptKind::Time if keep => return self.go_to_time(text),
            PromptKind::Save if keep && !text.trim().is_empty() => {
                return Update::effect(Effect::Save(PathBuf::from(text.trim())));
            }
            PromptKind::Note if keep && !text.trim().is_empty() => {
                return Update::effect(Effect::Note(text.trim().to_owned()));
            }
            PromptKind::Time | PromptKind::Save | PromptKind::Note => return Update::redraw(),
            PromptKind::Filter => {}
        }
        if !keep || prompt.error.is_some() {
            self.set_filter(prompt.pane, &prompt.before);
        }
        match prompt.error {
            Some(error) if keep => return self.show_note(error),
            None if keep => {
                self.with_pane(prompt.pane, PaneState::select_hit);
            }
            _ => {}
        }
        Update::redraw()
    }

    pub(super) fn set_filter(&mut self, pane: Pane, text: &str) -> Option<String> {
        let columns: Vec<&str> = pane.table().all().iter().map(|heading| heading.name).collect();
        let filter = match Filter::parse(text, &columns) {
            Ok(filter) => filter,
            Err(error) => return Some(error.to_string()),
        };
        let (all_locks, seen) = (self.all_locks, self.table_rows);
        let state = self.pane_mut(pane);
        state.keep_selected();
        state.filter = filter;
        text.clone_into(&mut state.filter_text);
        self.with_pane(pane, |state, context| {
            state.rebuild(all_locks, seen, context);
            state.select_hits_only();
        });
        None
    }
}

/// Longest target name within a file name, in columns.
const NAME: usize = 40;

impl App {
    /// Opens the prompt for a file name. The default has the target and the time, in the current directory.
    pub(super) fn start_save(&mut self) -> Update {
        if self.replay.is_some() {
            return self.show_note("this is a recording: use locktop cut to copy a part of it");
        }
        if !self.settings.history {
            return self.show_note("the history is off: see [history] in the config");
        }
        let Some(context) = self.context() else { return self.show_note("no snapshot yet") };
        let time = context.snapshot.taken_at.format("%Y%m%dT%H%M%SZ");
        let safe = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        let target: String = self.settings.target.chars().map(safe).take(NAME).collect();
        let name = format!("{}-{time}.ltr", target.trim_matches('-'));
        self.type_into(PromptKind::Save, name)
    }

    pub(super) fn start_note(&mut self) -> Update {
        if self.replay.is_some() {
            return self.show_note("no filter is set, and a recording cannot have notes");
        }
        if self.past.is_some() {
            return self.is_past();
        }
        self.type_into(PromptKind::Note, String::new())
    }

    pub(super) fn type_into(&mut self, typing: PromptKind, before: String) -> Update {
        let (pane, input) = (self.focus, Input::from(before.clone()));
        self.prompt = Some(Prompt { typing, pane, input, before, error: None });
        Update::redraw()
    }
}
