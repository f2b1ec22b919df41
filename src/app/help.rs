//! The text of the help: all keys, from the same table that the keys themselves come from, and what the words on the screens mean.

use std::collections::BTreeSet;

use super::App;
use super::detail::wrapped;
use super::keymap::{Action, BINDINGS, Binding};
use super::line::{Line, Tone};
use super::panes::Pane;
use crate::model::snapshot::{Pooling, Tls};

/// Columns of a key or a word, before what it means.
const LABEL: usize = 16;

/// Signs that stand beside a value or in its place.
const SIGNS: [(&str, &str); 15] = [
    (">", "the selected row; * a marked one"),
    ("└ ├", "waits for the session above it"),
    ("·10└", "the same, ten levels down, where the column has no room to indent"),
    ("queue ×16", "16 sessions that wait for one lock in one mode; Enter lists them"),
    ("+2", "in WAITS FOR: two more block it; in WHO: two other clients among them"),
    ("name?", "a guess: other software may use that key"),
    ("≥41s", "held for at least that long: as long as locktop has seen it"),
    ("3m40s w", "a transaction of that age with a transaction ID: it may have written"),
    ("10,000+", "at least so many: nobody counts a table of millions at every look"),
    ("…", "cut: more of it is in the detail (Enter)"),
    ("-", "nothing, or not known"),
    ("LIVE 1s · 4ms", "a look every second, and what the last one took"),
    ("waiting ▁▃█ 20", "sessions waiting for locks, over the last looks and now"),
    ("· 4312", "below the findings: the row of the finding under the cursor"),
    ("crit", "in small letters: a finding of before the connection was lost"),
];

/// Signs of the header while what was is shown.
const PAST: [(&str, &str); 4] = [
    ("13:47 ··▂▅! 14:02", "how many waited, from the first look that is kept to the last"),
    ("▲ 631 of 900", "the look that is shown, and how many there are"),
    (
        "!  x  a  ~",
        "on that line: somebody began to block others, or an orphan; a deadlock or a circle; an action; no answer",
    ),
    ("PAST 4m29s", "the look of so long ago, at the time beside it; Esc is back to now"),
];

/// The same in a recording, which has no now.
const RECORDING: [(&str, &str); 4] = [
    ("STANDS ×1", "it stands still at the time beside it; p plays it as fast as it was"),
    ("PLAYS ×4", "it plays four times as fast as it was"),
    ("AT END ×4", "it has played what there is, and goes on where a recorder adds to it"),
    ("[replay]", "a recording: no server is asked, and nothing can act"),
];

const WORDS: [(&str, &str); 21] = [
    ("root", "blocks somebody and waits for nobody: what to look at first"),
    ("blocks 17", "17 sessions wait behind it, directly or through others"),
    ("1 continues now, 16 in turn", "one session continues at once; the others follow one after another"),
    ("0 now: 3 more must end", "it helps no session unless three others end, too"),
    ("convoy", "many sessions queue behind a request that waits itself"),
    ("orphan", "a task that is running by the log, while nobody holds its key: its session is gone"),
    ("slow", "a task past its timeout whose key is held: its session is there"),
    ("overdue", "a task that is due, enabled and not started"),
    ("leaked", "a task's key, held by an idle session while the task does not run"),
    ("failed", "a task that has given up: its last attempts failed, and nothing starts it again"),
    ("orphan?", "the number that its worker should lock is free; whether it ever locked that is a guess"),
    (
        "running?",
        "somebody holds that number, and nothing ties him to the worker; slow?: and it is past its timeout",
    ),
    ("leftover", "running by the log, while its key is held for another execution: the row is stale"),
    ("unknown", "running by the log, and no more can be told"),
    ("due", "a task that is due since a moment ago; disabled: switched off, nobody takes it"),
    (
        "seen 12s",
        "held for at least so long: locktop has seen it without a gap since then; ≥41s: proved by the server",
    ),
    ("expired", "a lease past its end: the next who asks gets it"),
    ("no end", "a lease without a term: it stays until somebody ends it"),
    ("lost", "a queue item that is being worked on by the table, while its session is gone"),
    ("pending", "a queue item that waits for a worker; resting: after a failure, until it is due again"),
    ("settling", "a task or queue item whose session has just gone: orphan, or lost, once the grace is over"),
];

/// The entries that have a text in them, in small or capital letters, with their headings; all where it is empty. As it is drawn
/// at this width: whoever scrolls counts these lines.
pub fn lines(app: &App, width: usize, search: &str) -> Vec<Line> {
    let mut lines = keys(app);
    lines.extend(connection(app));
    lines.extend(role(app));
    lines.extend(columns(app));
    lines.push(heading("Signs"));
    lines.extend(signs(app).map(|(sign, meaning)| entry(sign, meaning, Tone::Warning)));
    lines.push(heading("Words"));
    lines.extend(WORDS.map(|(word, meaning)| entry(word, meaning, Tone::Warning)));
    found(lines, search).into_iter().flat_map(|line| wrapped(line, width)).collect()
}

fn found(lines: Vec<Line>, search: &str) -> Vec<Line> {
    let search = search.trim().to_lowercase();
    if search.is_empty() {
        return lines;
    }
    let mut found = Vec::new();
    let mut above = None;
    for line in lines {
        if is_heading(&line) {
            above = Some(line);
        } else if line.plain().to_lowercase().contains(&search) {
            found.extend(above.take());
            found.push(line);
        }
    }
    if found.is_empty() {
        found.push(Line::new().with("nothing in the help has that in it", Tone::Dim));
    }
    found
}

/// Whether a line begins a part of a long page.
pub fn is_heading(line: &Line) -> bool {
    line.spans.first().is_some_and(|span| span.tone == Tone::Title)
}

/// The signs that there can be: nothing is live in a recording, and without a history there is no past.
fn signs(app: &App) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_recording = app.replay.is_some();
    let always = SIGNS.into_iter().filter(move |(sign, _)| !(is_recording && sign.starts_with("LIVE")));
    let recording = RECORDING.into_iter().filter(move |_| is_recording);
    let has_past = app.settings.history;
    let past =
        PAST.into_iter().filter(move |(sign, _)| has_past && !(is_recording && sign.starts_with("PAST")));
    recording.chain(past).chain(always)
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
    let is_recording = app.replay.is_some();
    let does = |binding: &&Binding| {
        let is_of_now = matches!(binding.action, Action::Save | Action::Command(_));
        !(read_only && binding.action.acts() || is_recording && is_of_now)
    };
    for binding in BINDINGS.iter().filter(does) {
        let binding = if is_recording { binding.in_recording() } else { *binding };
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

/// The columns of all panes, those of this screen first; what means the same in several is told once.
fn columns(app: &App) -> Vec<Line> {
    let mut panes = app.panes();
    let here = panes.clone();
    panes.extend(Pane::ALL.into_iter().filter(|pane| !here.contains(pane)));
    let mut told = BTreeSet::new();
    let mut lines = Vec::new();
    for pane in panes {
        let headings = pane.table().headings().into_iter();
        let columns = headings.map(|heading| (heading.title, heading.help));
        let new: Vec<_> = columns.filter(|column| told.insert(*column)).collect();
        if !new.is_empty() {
            lines.push(heading(&format!("Columns: {}", pane.title())));
            lines.extend(new.into_iter().map(|(title, meaning)| entry(title, meaning, Tone::Warning)));
        }
    }
    lines
}

/// Which server, database and role all this is from, and by which connection.
fn connection(app: &App) -> Vec<Line> {
    let Some(server) = app.context().and_then(|context| context.snapshot.server()) else { return Vec::new() };
    let place = crate::text::one_line(&server.place()).into_owned();
    let version = crate::text::one_line(&server.version).into_owned();
    let role = if server.in_recovery { "standby" } else { "primary" };
    let tls = match server.tls {
        Tls::VerifyFull => "yes: the certificate's authority and name are verified",
        Tls::VerifyCa => "yes: the certificate's authority is verified; its name is with sslmode=verify-full",
        Tls::Require => "yes; sslmode=verify-full also verifies who is at the other end",
        Tls::None if server.host.starts_with(['/', '@']) => "no: it is a socket of this machine",
        Tls::None => "no: what is sent can be read on its way; sslmode=verify-full asks for it",
    };
    let pooler = match server.pooling {
        Pooling::None => "none in between",
        Pooling::Sessions => "in between, in session mode",
        Pooling::Transactions => {
            "in between, in transaction mode: each look is one transaction, which takes all its settings with it"
        }
    };
    let entry = |word, text: &str| entry(word, text.to_owned(), Tone::Warning);
    if app.replay.is_some() {
        return vec![
            heading("This recording"),
            entry("server", &format!("{place}, PostgreSQL {version}, {role}, as it was at this look")),
        ];
    }
    vec![
        heading("This connection"),
        entry("server", &format!("{place}, PostgreSQL {version}, {role}")),
        entry("TLS", tls),
        entry("pooler", pooler),
    ]
}

/// What the role may see and do.
fn role(app: &App) -> Vec<Line> {
    let Some((context, server)) =
        app.context().and_then(|context| Some((context, context.snapshot.server()?)))
    else {
        return Vec::new();
    };
    let sees = if server.sees_all { "all sessions" } else { "its own sessions; pg_read_all_stats shows all" };
    let user = crate::text::one_line(&server.user).into_owned();
    if app.replay.is_some() {
        let saw = if server.sees_all {
            "all sessions"
        } else {
            "its own sessions alone: pg_read_all_stats shows all"
        };
        return vec![entry("recorded as", format!("{user}, who saw {saw}"), Tone::Warning)];
    }
    let mut lines = vec![heading("This role")];
    if app.settings.read_only {
        lines.push(entry(&user, format!("sees {sees}"), Tone::Warning));
        lines.push(entry(
            "read-only",
            "ends, cancels and changes nothing, whatever the role may do",
            Tone::Warning,
        ));
        return lines;
    }
    if let Some(rights) = context.view.rights.as_deref() {
        lines.extend(rights.words().into_iter().map(|(word, text)| entry(word, text, Tone::Warning)));
        let tables =
            "to what is in tables: as its grants allow; what is missing is named when the server refuses";
        lines.push(entry("recovers", tables, Tone::Warning));
        return lines;
    }
    let sees = if server.sees_all {
        "sees the activity of all roles".to_owned()
    } else {
        format!("does not see other roles' activity: GRANT pg_read_all_stats TO {user};")
    };
    lines.push(entry(&user, sees, Tone::Warning));
    lines
}
