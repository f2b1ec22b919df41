//! Expected blockers in a dialog: the entries apply to this run, and are written to the config file only if the user
//! selects that.

use std::path::PathBuf;

use super::Choice;
use super::labelled::field;
use crate::app::line::{Line, Tone};
use crate::model::expected::ExpectedBlocker;
use crate::model::plan::Known;

/// The key of the switch for the config file.
pub(super) const FILE: char = 'f';

#[derive(Debug, Clone)]
pub struct Expecting {
    pub known: Known,
    /// `None` if there is no config file.
    pub(in crate::app) file: Option<PathBuf>,
    /// Whether the entries are also written to the file.
    writes: bool,
}

impl Expecting {
    pub(super) fn new(known: Known) -> Self {
        Self { known, file: None, writes: false }
    }

    pub fn written(&self) -> Vec<ExpectedBlocker> {
        if self.writes && !self.known.takes_away { self.known.entries() } else { Vec::new() }
    }

    pub(super) fn choices(&self) -> Vec<Choice> {
        let file = self.file.as_ref().filter(|_| !self.known.takes_away);
        let switch = |file: &PathBuf| Choice {
            letter: FILE,
            title: crate::text::one_line(&format!("also write it to {}", file.display())).into_owned(),
            taken: self.writes,
            is_switch: true,
        };
        file.map(switch).into_iter().collect()
    }

    /// Toggles the switch; returns whether a switch has this letter.
    pub(super) fn choose(&mut self, letter: char) -> bool {
        let is_there = self.choices().iter().any(|choice| choice.letter == letter);
        self.writes ^= is_there;
        is_there
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for entry in self.known.entries() {
            let label = |at: usize| if at == 0 { "entry" } else { "" };
            let keys = entry.toml();
            lines.extend(keys.lines().enumerate().map(|(at, key)| field(label(at), key, Tone::Plain)));
        }
        let (sessions, blocking) = self.known.met;
        if self.known.takes_away {
            lines.push(field("effect", "its waits are reported like any others", Tone::Good));
            lines.push(field("", "in this run; the config file is not changed", Tone::Plain));
        } else {
            lines.push(field("effect", "its waits are only info findings, in this run", Tone::Good));
            if self.file.is_none() {
                let how = "to keep it, add the entry to the config file (locktop config path)";
                lines.push(field("", how, Tone::Plain));
            }
        }
        let one = if sessions == 1 { "session matches" } else { "sessions match" };
        let blocks = if blocking == 1 { "blocks" } else { "block" };
        let text = format!("{sessions} {one} it now; {blocking} {blocks} others");
        let tone = if sessions > self.known.rows.len() { Tone::Warning } else { Tone::Plain };
        lines.push(field("who", text, tone));
        if !self.known.takes_away && self.known.entries().iter().any(is_wide) {
            let wide = "every session of this role matches it, now and later";
            lines.push(field("!", wide, Tone::Warning));
        }
        lines.extend(self.known.refused.iter().map(|why| field("!", why.as_str(), Tone::Warning)));
        lines
    }
}

/// The entry names neither an application nor a statement, as for a prepared transaction, which has neither.
fn is_wide(entry: &ExpectedBlocker) -> bool {
    let ExpectedBlocker { application, lock, statement, .. } = entry;
    application.is_none() && lock.is_none() && statement.is_none()
}
