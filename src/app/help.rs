use std::collections::BTreeSet;

use super::App;
use super::detail::{heading, wrapped};
use super::keymap::{Action, BINDINGS, Binding};
use super::line::{Line, Tone};
use super::panes::Pane;
use crate::model::snapshot::{Pooling, Tls};

const LABEL: usize = 16;

const SIGNS: [(&str, &str); 16] = [
    (">", "the selected row; * a marked one"),
    ("└ ├", "waits for the session above it"),
    ("·10└", "the same, ten levels deep, if the column is too narrow to indent"),
    ("queue ×16", "16 sessions that wait for one lock in one mode; Enter lists them"),
    ("…8 deep", "8 sessions in a chain, each waiting for the one above; Enter unfolds, Esc folds"),
    (
        "+2",
        "in WAITS FOR: two more sessions block it; in WHO: two other clients; in REQUESTED: two more modes",
    ),
    ("name?", "a guess: other software may use that key"),
    ("≥41s", "held for at least that long, without interruption"),
    ("3m40s w", "a transaction of that age with a transaction ID: it may have written"),
    ("10,000+", "at least that many: large tables are not counted at every poll"),
    ("…", "truncated: the detail (Enter) has all of it"),
    ("-", "nothing, or not known"),
    ("LIVE 1s · 4ms", "one poll per second; the last one took 4 ms"),
    ("waiting ▁▃█ 20", "sessions waiting for locks, in the last snapshots and now"),
    ("· 4312", "below the findings: the row of the finding under the cursor"),
    ("crit", "in lower case: a finding from before the connection was lost"),
];

const PAST: [(&str, &str); 4] = [
    ("13:47 ··▂▅! 14:02", "waiting sessions, from the first snapshot in the history to the last"),
    ("▲ 631 of 900", "the snapshot that is shown, and the number of snapshots"),
    (
        "!  x  a  ~",
        "on that line: a session began to block others, or an orphan; a deadlock or a wait cycle; an action; no answer",
    ),
    ("PAST 4m29s", "a snapshot of that long ago, at the time next to it; Esc returns to live"),
];

/// Signs of the header in a recording, which has no live state.
const RECORDING: [(&str, &str); 4] = [
    ("PAUSED ×1", "paused at the time next to it; p plays it at the original speed"),
    ("PLAYS ×4", "plays at four times the original speed"),
    ("AT END ×4", "at the end of the recording; continues if a recorder appends to it"),
    ("[replay]", "a recording: no server is connected, and no shortcut acts"),
];

const WORDS: [(&str, &str); 22] = [
    ("root", "blocks others and does not wait itself: check it first"),
    ("blocks 17", "17 sessions wait behind it, directly or through others"),
    ("1 continues now, 16 in turn", "one session continues at once; the others follow one after another"),
    ("3 now or in turn", "all three continue, at least one of them at once; the order is not known"),
    ("0 now: 3 more must end", "frees no session unless three others end, too"),
    ("convoy", "many sessions queue behind a request that is itself waiting"),
    ("orphan", "a task recorded as running, but no session holds its key: its session has ended"),
    ("slow", "a task past its timeout whose key is held: its session is connected"),
    ("overdue", "a task that is due, enabled and not started"),
    ("leaked", "a task's key, held by an idle session while the task does not run"),
    ("failed", "a task that failed for good: its last attempts failed, and it will not be started again"),
    ("orphan?", "the key that its worker should lock is free; that its worker uses this key is a guess"),
    (
        "running?",
        "a session holds that key, but nothing links it to the worker; slow?: also past its timeout",
    ),
    ("leftover", "recorded as running, but its key is held for another execution: the row is stale"),
    ("unknown", "recorded as running; not known whether it is"),
    ("due", "a task that is due now; disabled: no worker takes it"),
    ("seen 12s", "in every poll of the last 12 s; it may have been released and acquired again in between"),
    ("expired", "a lease past its expiry: the next request gets it"),
    ("no end", "a lease without a term: it is held until it is released"),
    ("lost", "a queue item recorded as in progress, but its session has ended"),
    ("pending", "a queue item that waits for a worker; resting: after a failure, until it is due again"),
    (
        "settling",
        "a task or queue item whose session has just ended: orphan, or lost, after the grace period",
    ),
];

/// The entries that contain `search`, ignoring case, with their headings; all if it is empty. Lines are wrapped as
/// drawn at this width, because scrolling counts them.
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
        found.push(Line::new().with("no match in the help", Tone::Dim));
    }
    found
}

pub fn is_heading(line: &Line) -> bool {
    line.spans.first().is_some_and(|span| span.tone == Tone::Title)
}

/// The signs that can occur: a recording is never live, and without a history there is no past.
fn signs(app: &App) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_recording = app.replay.is_some();
    let always = SIGNS.into_iter().filter(move |(sign, _)| !(is_recording && sign.starts_with("LIVE")));
    let recording = RECORDING.into_iter().filter(move |_| is_recording);
    let has_past = app.settings.history;
    let past =
        PAST.into_iter().filter(move |(sign, _)| has_past && !(is_recording && sign.starts_with("PAST")));
    recording.chain(past).chain(always)
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

/// The columns of all panes, those of this screen first; a column with the same meaning in several panes is listed once.
fn columns(app: &App) -> Vec<Line> {
    let mut panes = app.panes();
    let here = panes.clone();
    panes.extend(Pane::ALL.into_iter().filter(|pane| !here.contains(pane)));
    let mut listed = BTreeSet::new();
    let mut lines = Vec::new();
    for pane in panes {
        let headings = pane.table().headings().into_iter();
        let columns = headings.map(|heading| (heading.title, heading.help));
        let new: Vec<_> = columns.filter(|column| listed.insert(*column)).collect();
        if !new.is_empty() {
            lines.push(heading(format!("Columns: {}", pane.title())));
            lines.extend(new.into_iter().map(|(title, meaning)| entry(title, meaning, Tone::Warning)));
        }
    }
    lines
}

fn connection(app: &App) -> Vec<Line> {
    let Some(server) = app.context().and_then(|context| context.snapshot.server()) else { return Vec::new() };
    let place = crate::text::one_line(&server.place()).into_owned();
    let version = crate::text::one_line(&server.version).into_owned();
    let role = if server.in_recovery { "standby" } else { "primary" };
    let tls = match server.tls {
        Tls::VerifyFull => "yes: the certificate's authority and name are verified",
        Tls::VerifyCa => {
            "yes: the certificate's authority is verified; sslmode=verify-full also verifies its name"
        }
        Tls::Require => "yes; sslmode=verify-full also verifies the server's identity",
        Tls::None if server.host.starts_with(['/', '@']) => "no: a local socket",
        Tls::None => "no: the network can read it; use sslmode=verify-full",
    };
    let pooler = match server.pooling {
        Pooling::None => "none",
        Pooling::Sessions => "yes, in session mode",
        Pooling::Transactions => {
            "yes, in transaction mode: each poll is one transaction with all its settings"
        }
    };
    let entry = |word, text: &str| entry(word, text, Tone::Warning);
    let server = format!("{place}, PostgreSQL {version}, {role}");
    if app.replay.is_some() {
        return vec![heading("This recording"), entry("server", &format!("{server}, as of this snapshot"))];
    }
    let server = entry("server", &server);
    vec![heading("This connection"), server, entry("TLS", tls), entry("pooler", pooler)]
}

fn role(app: &App) -> Vec<Line> {
    let Some(context) = app.context() else { return Vec::new() };
    let Some(server) = context.snapshot.server() else { return Vec::new() };
    let sees =
        if server.sees_all { "all sessions" } else { "only its own sessions; pg_read_all_stats shows all" };
    let user = crate::text::one_line(&server.user).into_owned();
    if app.replay.is_some() {
        return vec![entry("recorded as", format!("{user}, which saw {sees}"), Tone::Warning)];
    }
    let mut lines = vec![heading("This role")];
    if app.settings.read_only {
        lines.push(entry(&user, format!("sees {sees}"), Tone::Warning));
        lines.push(entry("read-only", "no shortcut acts on the server", Tone::Warning));
        return lines;
    }
    if let Some(rights) = context.view.rights.as_deref() {
        lines.extend(rights.words().into_iter().map(|(word, text)| entry(word, text, Tone::Warning)));
        let tables =
            "rows of tables, if its grants permit; if the server refuses, the missing grant is named";
        lines.push(entry("can recover", tables, Tone::Warning));
        return lines;
    }
    let sees = if server.sees_all {
        "sees the activity of all roles".to_owned()
    } else {
        format!("cannot see the activity of other roles: GRANT pg_read_all_stats TO {user};")
    };
    lines.push(entry(&user, sees, Tone::Warning));
    lines
}
