//! All keys, from the same table that the keys themselves come from, and what the words on the screens mean.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::App;
use crate::app::keymap::BINDINGS;
use crate::app::line::{Line, Tone};
use crate::ui::theme::Theme;
use crate::ui::viewport::Viewport;

const WORDS: [(&str, &str); 16] = [
    ("root", "blocks somebody and waits for nobody: what to look at first"),
    ("blocks", "everybody who waits behind it, however far"),
    ("frees", "who gets a lock at once if it ends; the rest wait behind them"),
    ("queue 16", "16 waiters for one lock in one mode; Enter lists them"),
    ("+2", "two more block this waiter, beside the one it is shown under"),
    ("≥41s", "held at least that long: as long as locktop has seen it"),
    ("3m40s w", "a transaction of that age which has written"),
    ("orphan", "a task that runs in the log while nobody holds its key: the session is gone"),
    ("slow", "a task past its limit whose key is held: its session lives"),
    ("overdue", "a task that is due, enabled and not started"),
    ("leaked", "the key of a task, held by an idle session while nothing runs"),
    ("expired", "a lease past its end that its owner did not give back: whoever asks next gets it"),
    ("no end", "a lease without a term: nobody else ever gets it"),
    ("lost", "an item of the work queue that is being worked on in the table, and its session is gone"),
    ("10,000+", "more than that: nobody counts a table of millions in every poll"),
    ("unknown", "a task that runs in the log, and nothing more can be said for sure"),
];

pub(super) fn render(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    scroll: usize,
    viewport: &mut Viewport,
    theme: &Theme,
) {
    viewport.page_rows = usize::from(area.height.saturating_sub(1));
    super::scrolled(frame, area, "Help", &lines(app), scroll, theme);
}

fn lines(app: &App) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut group = "";
    let read_only = app.settings.read_only;
    for binding in BINDINGS.iter().filter(|binding| !(read_only && binding.action.acts())) {
        if binding.group != group {
            group = binding.group;
            lines.push(Line::new().with(group, Tone::Title));
        }
        let keys: Vec<String> =
            app.settings.keymap.keys(binding.action).iter().map(ToString::to_string).collect();
        let keys = if keys.is_empty() { "not bound".to_owned() } else { keys.join(" ") };
        lines.push(Line::new().with(format!("  {keys:<16} "), Tone::Key).with(binding.help, Tone::Plain));
    }
    lines.push(Line::new().with("Words", Tone::Title));
    for (word, meaning) in WORDS {
        let word = crate::text::fit_pad(word, 16, crate::text::Align::Left);
        lines.push(Line::new().with(format!("  {word} "), Tone::Warning).with(meaning, Tone::Plain));
    }
    if let Some(server) = app.scene().and_then(|scene| scene.snapshot.server()) {
        lines.push(Line::new().with("This role", Tone::Title));
        if let Some(rights) = app.scene().and_then(|scene| scene.view.rights.as_deref()) {
            lines.extend(rights.words().into_iter().map(|(word, text)| {
                Line::new().with(format!("  {word:<16} "), Tone::Warning).with(text, Tone::Plain)
            }));
            let tables =
                "to what is in tables: as its grants allow; what is missing is named when the server refuses";
            lines.push(
                Line::new().with(format!("  {:<16} ", "recovers"), Tone::Warning).with(tables, Tone::Plain),
            );
            return lines;
        }
        let user = crate::text::one_line(&server.user).into_owned();
        let rights = if server.sees_all {
            "sees the activity of all roles".to_owned()
        } else {
            format!("does not see other roles' activity: GRANT pg_read_all_stats TO {user};")
        };
        lines.push(Line::new().with(format!("  {user:<16} "), Tone::Warning).with(rights, Tone::Plain));
    }
    lines
}
