//! Expected blockers in a dialog.

use crate::app::line::{Line, Tone};
use crate::model::expected::ExpectedBlocker;
use crate::model::plan::Known;

pub(super) fn field(label: &str, text: impl Into<String>, tone: Tone) -> Line {
    Line::new().with(format!("{label:<9} "), Tone::Dim).with(text, tone)
}

pub(super) fn lines(known: &Known) -> Vec<Line> {
    let mut lines = Vec::new();
    let entries = known.entries();
    for entry in &entries {
        let label = |at: usize| if at == 0 { "entry" } else { "" };
        let keys = entry.toml();
        lines.extend(keys.lines().enumerate().map(|(at, key)| field(label(at), key, Tone::Plain)));
    }
    let (sessions, blocking) = known.met;
    if known.takes_away {
        lines.push(field("effect", "its waits are reported like any others", Tone::Good));
        lines.push(field("", "in this run; the config file is not changed", Tone::Plain));
    } else {
        lines.push(field("effect", "its waits are only info findings, in this run", Tone::Good));
        lines.push(field("", "printed at quit, to be copied into the config file", Tone::Plain));
    }
    let one = if sessions == 1 { "session matches" } else { "sessions match" };
    let blocks = if blocking == 1 { "blocks" } else { "block" };
    let text = format!("{sessions} {one} it now; {blocking} {blocks} others");
    let tone = if sessions > known.rows.len() { Tone::Warning } else { Tone::Plain };
    lines.push(field("who", text, tone));
    if !known.takes_away && entries.iter().any(is_wide) {
        let wide = "every session of this role matches it, now and later";
        lines.push(field("!", wide, Tone::Warning));
    }
    lines.extend(known.refused.iter().map(|why| field("!", why.as_str(), Tone::Warning)));
    lines
}

/// The entry names neither an application nor a statement, as for a prepared transaction, which has neither.
fn is_wide(entry: &ExpectedBlocker) -> bool {
    let ExpectedBlocker { application, lock, statement, .. } = entry;
    application.is_none() && lock.is_none() && statement.is_none()
}
