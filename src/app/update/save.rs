use std::path::PathBuf;

use tui_input::Input;

use crate::app::App;
use crate::app::message::{Effect, Update};
use crate::app::page::{Prompt, Typing};

/// Longest target name within a file name, in columns.
const NAME: usize = 40;

impl App {
    /// Opens the prompt for a file name. The default has the target and the time, in the current directory.
    pub(super) fn start_save(&mut self) -> Update {
        if self.replay.is_some() {
            return self.say("this is a recording: use locktop cut to copy a part of it");
        }
        if !self.settings.history {
            return self.say("the history is off: see [history] in the config");
        }
        let Some(context) = self.context() else { return self.say("no snapshot yet") };
        let time = context.snapshot.taken_at.format("%Y%m%dT%H%M%SZ");
        let safe = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        let target: String = self.settings.target.chars().map(safe).take(NAME).collect();
        let name = format!("{}-{time}.ltr", target.trim_matches('-'));
        self.type_into(Typing::Save, Input::from(name))
    }

    pub(super) fn start_note(&mut self) -> Update {
        if self.replay.is_some() {
            return self.say("no filter is set, and a recording cannot have notes");
        }
        if self.past.is_some() {
            return self.is_past();
        }
        self.type_into(Typing::Note, Input::default())
    }

    fn type_into(&mut self, typing: Typing, input: Input) -> Update {
        let pane = self.focus;
        self.prompt = Some(Prompt { typing, pane, input, before: String::new(), error: None });
        Update::redraw()
    }
}

pub(super) fn typed(typing: Typing, text: &str) -> Update {
    let text = text.trim();
    match typing {
        Typing::Save if !text.is_empty() => Update::effect(Effect::Save(PathBuf::from(text))),
        Typing::Note if !text.is_empty() => Update::effect(Effect::Note(text.to_owned())),
        _ => Update::redraw(),
    }
}
