//! A finding as a line: how bad it is, what it is, and the key that helps.

use crate::app::App;
use crate::app::line::{Line, Tone};
use crate::model::finding::{Finding, Severity};
use crate::model::output::Channel;

/// The least room in which it is of use to say more.
const LEAST: usize = 12;

/// Appends who that is, and what it is about, as far as there is room.
pub(super) fn about(line: &mut Line, finding: &Finding, room: usize) {
    let spare = room.saturating_sub(line.width() + 3);
    let about = if spare >= LEAST { finding.about_in(Channel::Screen) } else { return };
    if !about.is_empty() {
        line.push(" · ", Tone::Dim);
        line.push(crate::text::fit(&about, spare), Tone::Dim);
    }
}

/// The key that helps: `K terminate`. None where nothing may be done.
pub(super) fn help(app: &App, finding: &Finding) -> Option<Line> {
    // Nobody acts on what was.
    if app.is_stale() || app.past.is_some() {
        return None;
    }
    let (action, does) = crate::app::dialog::help(finding)?;
    let key = app.settings.keymap.key(action)?.to_string();
    if app.context().is_some_and(|context| !crate::app::dialog::is_permitted(&context, finding, action)) {
        return Some(Line::new().with(format!("{key} not permitted"), Tone::Dim));
    }
    Some(Line::new().with(key, Tone::Key).with(format!(" {does}"), Tone::Plain))
}

/// Columns of a finding's line that others need: how bad it is, and how many more there are.
const BESIDE: usize = 18;

/// A finding as a line. The word says how bad it is, whatever the colours.
pub(super) fn finding_line(app: &App, finding: &Finding, width: u16) -> Line {
    let (word, tone) = match finding.severity {
        severity if app.is_stale() => (before(severity), Tone::Past),
        Severity::Critical => ("CRIT  ", Tone::Critical),
        Severity::Warning => ("WARN  ", Tone::Warning),
        Severity::Info => ("info  ", Tone::Dim),
    };
    let short = width < 100 || crate::text::width(&finding.summary) + BESIDE > usize::from(width);
    let summary = if short { &finding.short } else { &finding.summary };
    let (text, gap) = if app.is_stale() { (Tone::Past, " ") } else { (Tone::Plain, "") };
    Line::new().with(word, tone).with(format!("{gap}{}", crate::text::one_line(summary)), text)
}

/// How bad it was when it was last seen.
fn before(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "(crit)",
        Severity::Warning => "(warn)",
        Severity::Info => "(info)",
    }
}
