//! The text of the help: all keys, from the same table that the keys themselves come from, and what the words on the screens mean.

use super::App;
use super::detail::wrapped;
use super::keymap::BINDINGS;
use super::line::{Line, Tone};

/// Columns of a key or a word, before what it means.
const LABEL: usize = 16;

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

/// The whole text, as it is drawn at this width: whoever scrolls counts these lines.
#[must_use]
pub fn lines(app: &App, width: usize) -> Vec<Line> {
    let mut lines = keys(app);
    lines.push(heading("Words"));
    lines.extend(WORDS.map(|(word, meaning)| entry(word, meaning, Tone::Warning)));
    lines.extend(role(app));
    lines.into_iter().flat_map(|line| wrapped(line, width)).collect()
}

fn heading(text: &str) -> Line {
    Line::new().with(text, Tone::Title)
}

fn entry(word: &str, meaning: impl Into<String>, tone: Tone) -> Line {
    let word = crate::text::fit_pad(word, LABEL, crate::text::Align::Left);
    Line::new().with(format!("  {word} "), tone).with(meaning, Tone::Plain)
}

fn keys(app: &App) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut group = "";
    let read_only = app.settings.read_only;
    for binding in BINDINGS.iter().filter(|binding| !(read_only && binding.action.acts())) {
        if binding.group != group {
            group = binding.group;
            lines.push(heading(group));
        }
        let keys: Vec<String> =
            app.settings.keymap.keys(binding.action).iter().map(ToString::to_string).collect();
        let keys = if keys.is_empty() { "not bound".to_owned() } else { keys.join(" ") };
        lines.push(entry(&keys, binding.help, Tone::Key));
    }
    lines
}

/// What the role may see and do.
fn role(app: &App) -> Vec<Line> {
    let Some((scene, server)) = app.scene().and_then(|scene| Some((scene, scene.snapshot.server()?))) else {
        return Vec::new();
    };
    let mut lines = vec![heading("This role")];
    if app.settings.read_only {
        let sees =
            if server.sees_all { "all sessions" } else { "its own sessions; pg_read_all_stats shows all" };
        let user = crate::text::one_line(&server.user).into_owned();
        lines.push(entry(&user, format!("sees {sees}"), Tone::Warning));
        lines.push(entry(
            "read-only",
            "ends, cancels and changes nothing, whatever the role may do",
            Tone::Warning,
        ));
        return lines;
    }
    if let Some(rights) = scene.view.rights.as_deref() {
        lines.extend(rights.words().into_iter().map(|(word, text)| entry(&word, text, Tone::Warning)));
        let tables =
            "to what is in tables: as its grants allow; what is missing is named when the server refuses";
        lines.push(entry("recovers", tables, Tone::Warning));
        return lines;
    }
    let user = crate::text::one_line(&server.user).into_owned();
    let sees = if server.sees_all {
        "sees the activity of all roles".to_owned()
    } else {
        format!("does not see other roles' activity: GRANT pg_read_all_stats TO {user};")
    };
    lines.push(entry(&user, sees, Tone::Warning));
    lines
}
