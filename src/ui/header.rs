//! The header: which server, how it is, and the worst that is wrong.
//!
//! ```text
//! prod 17.2 primary · 224/500 conn · 19 waiting · 3 idle in xact           LIVE 1s 14:02:31
//! CRIT 4312 idle in xact 3m12s, blocks 17: 1 now, 16 in turn                        1 of 4 !
//! waiting ▁▁▂▅▇▇ 19 · began 13:59:40 · longest 2m51s
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;

use super::finding_line::{about, finding_line, help};
use super::theme::Theme;
use super::viewport::Viewport;
use super::widgets::sparkline;
use super::{draw_ends, draw_line};
use crate::app::App;
use crate::app::context::Context;
use crate::app::line::{Line, Tone};
use crate::app::message::Spot;
use crate::app::page::finding_id;
use crate::app::panes::{leases, queue, tasks};
use crate::model::backend::State;
use crate::model::snapshot::{Following, Server};
use crate::model::task::TaskState;
use crate::model::view::Link;

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, app: &App, viewport: &mut Viewport, theme: &Theme) {
    let row = |at: u16| Rect { y: area.y + at, height: 1, ..area };
    let right = link_line(app, area.width >= 100);
    let room = usize::from(area.width).saturating_sub(right.width() + 1);
    draw_ends(frame, row(0), &server_line(app, room), &right, theme);
    if let Some(past) = app.past.as_deref() {
        let line = super::time_line::rows(area.height);
        let findings = Rect { y: area.y + 1, height: area.height.saturating_sub(1 + line), ..area };
        render_findings(frame, findings, app, viewport, theme);
        let line = Rect { y: findings.bottom(), height: line, ..area };
        super::time_line::render(frame, line, app, past, theme);
        return;
    }
    let findings = area.height.saturating_sub(2);
    // What is known of the past is worth less than why there is nothing newer.
    if why_down(app, area.width, usize::from(findings) + 1).len() > usize::from(findings) {
        render_findings(frame, Rect { y: area.y + 1, height: findings + 1, ..area }, app, viewport, theme);
        return;
    }
    render_findings(frame, Rect { y: area.y + 1, height: findings, ..area }, app, viewport, theme);
    draw_line(frame, row(area.height.saturating_sub(1)), &waiting_line(app, area.width), theme);
}

/// Which server, and what is special about how it is looked at: that nothing can be done stands where everybody sees it.
fn name(app: &App, server: Option<&Server>, most: usize) -> String {
    let target = crate::text::one_line_prefix(&app.settings.target, 500);
    let target = match (several(&target), server) {
        // Which of them it is that answers.
        (Some(more), Some(server)) => format!("{} +{more}", crate::text::one_line(&server.place())).into(),
        _ => target,
    };
    let mut name = crate::text::fit_middle(&target, most).into_owned();
    if let Some(note) = &app.settings.note {
        name = format!("{name} [{note}]");
    }
    // A recording says so already.
    if app.settings.read_only && app.replay.is_none() {
        name = format!("{name} [read-only]");
    }
    name
}

/// How many hosts more there are, where a target is known by the first of them: `app@one:5432 +2`.
fn several(target: &str) -> Option<u32> {
    target.rsplit_once(" +")?.1.parse().ok()
}

/// Pieces of the first line, the dispensable ones with a higher number.
fn server_line(app: &App, room: usize) -> Line {
    let mut pieces: Vec<(u8, String, Tone)> = Vec::new();
    let shown = app.context().and_then(|context| Some((context, context.snapshot.server()?)));
    let most = (room * 2 / 5).clamp(16, 48);
    let named = |most: usize| name(app, shown.as_ref().map(|(_, server)| *server), most);
    let Some((context, server)) = shown else { return Line::new().with(named(most), Tone::Title) };
    let role = if server.in_recovery { "standby" } else { "primary" };
    let first = |most: usize| format!("{} {} {role}", named(most), crate::text::one_line(&server.version));
    pieces.push((0, first(most), Tone::Title));
    if let Some(following) = server.following(context.snapshot.taken_at) {
        pieces.extend(behind(following));
    }
    pieces.extend(server.pooling.words().map(|words| (1, words.to_owned(), Tone::Plain)));
    if let Some(up) = context.age(server.started_at) {
        pieces.push((6, format!("up {}", crate::text::duration(up)), Tone::Dim));
    }
    // The name of a place has its database in it.
    if app.settings.target != server.place() && several(&app.settings.target).is_none() {
        pieces.push((5, crate::text::one_line_prefix(&server.database, 20).into_owned(), Tone::Plain));
    }
    let full = context.view.findings.iter().any(|finding| finding.check == "connections");
    let tone = if full { Tone::Critical } else { Tone::Plain };
    pieces.push((2, format!("{}/{} conn", server.connections, server.max_connections), tone));
    let (active, idle) = states(&context);
    // What is hidden from the role may be either.
    let least = if context.hidden() > 0 { "≥" } else { "" };
    pieces.push((4, format!("{least}{active} active"), Tone::Plain));
    let waiting = context.view.graph.waiting;
    let tone = match waiting {
        _ if context.locks_old().is_some() => Tone::Past,
        0 => Tone::Plain,
        _ => Tone::Warning,
    };
    pieces.push((0, format!("{waiting} waiting"), tone));
    let tone = if idle > 0 { Tone::Warning } else { Tone::Plain };
    if idle > 0 || least.is_empty() {
        pieces.push((3, format!("{least}{idle} idle in xact"), tone));
    }
    // A name says as much without its middle: the counts are worth more than all of it.
    let mut length = most.min(crate::text::width(&crate::text::one_line_prefix(&app.settings.target, 500)));
    for (rank, least) in [(COUNTS, SHORT_NAME), (0, SHORTEST_NAME)] {
        let needed =
            pieces.iter().filter(|piece| piece.0 <= rank).map(|piece| crate::text::width(&piece.1) + 3);
        let excess = needed.sum::<usize>().saturating_sub(room + 3);
        if let Some(piece) = pieces.first_mut().filter(|_| excess > 0) {
            length = length.saturating_sub(excess).max(least.min(length));
            piece.1 = first(length);
        }
    }
    joined(pieces, room)
}

/// The pieces of up to this number are counts that are worth more than the middle of the server's name.
const COUNTS: u8 = 3;

/// The columns that the server's name keeps where all of it would push out a count.
const SHORT_NAME: usize = 20;

/// The least columns of the server's name.
const SHORTEST_NAME: usize = 12;

/// How far a standby is behind. One that gets its WAL from an archive alone has no stream either.
fn behind(following: Following) -> Vec<(u8, String, Tone)> {
    let words = |seconds: f64| crate::text::duration(seconds.floor());
    match following {
        Following::Lag(seconds) => vec![(0, format!("lag {}", words(seconds)), Tone::Plain)],
        Following::Alone(since) => {
            let last = since.map(|since| (1, format!("last change {} ago", words(since)), Tone::Warning));
            std::iter::once((0, "no WAL stream".to_owned(), Tone::Warning)).chain(last).collect()
        }
    }
}

/// Leaves out pieces, the most dispensable first, until the line fits.
fn joined(mut pieces: Vec<(u8, String, Tone)>, room: usize) -> Line {
    let width = |pieces: &[(u8, String, Tone)]| -> usize {
        pieces.iter().map(|(_, text, _)| crate::text::width(text) + 3).sum::<usize>().saturating_sub(3)
    };
    while width(&pieces) > room {
        let worst = pieces.iter().map(|piece| piece.0).max().unwrap_or(0);
        if worst == 0 {
            break;
        }
        pieces.retain(|piece| piece.0 != worst);
    }
    let mut line = Line::new();
    for (at, (_, text, tone)) in pieces.into_iter().enumerate() {
        line.push(if at > 0 { " · " } else { "" }, Tone::Dim);
        line.push(text, tone);
    }
    line
}

fn states(context: &Context<'_>) -> (usize, usize) {
    let clients = context.snapshot.backends.last_rows().iter();
    clients.fold((0, 0), |(active, idle), backend| match backend.state {
        Some(State::Active | State::FastpathFunctionCall) => (active + 1, idle),
        Some(state) if state.is_idle_in_transaction() => (active, idle + 1),
        _ => (active, idle),
    })
}

/// How fresh the data is: nothing old is ever shown as live.
fn link_line(app: &App, wide: bool) -> Line {
    let mut line = Line::new();
    let time = app.context().map(|context| match app.replay {
        // Who reads it was not there: neither the day nor the zone is a matter of course.
        Some(_) => crate::app::time::dated(context.snapshot.taken_at, context.zone, wide),
        None => context.time_of_day(context.snapshot.taken_at),
    });
    let old = crate::text::duration(app.silence.floor());
    match app.link() {
        _ if app.replay.is_some() => {
            let replay = app.replay.unwrap_or(crate::app::Replay { speed: 1.0, plays: false });
            let is_last = app.past.as_ref().is_some_and(|past| past.place + 1 >= past.moments.len());
            let word = match (replay.plays, is_last) {
                (true, false) => "PLAYS",
                // It goes on when the file grows.
                (true, true) => "AT END",
                (false, _) => "STANDS",
            };
            line.push(format!("{word} ×{}", replay.speed), Tone::Past);
        }
        state if app.past.is_some() => {
            // What is newer than this does not come just now.
            if matches!(state, Link::Down { .. }) {
                line.push("DOWN · ", Tone::Critical);
            }
            let newest = app.latest.as_ref().and_then(|latest| latest.snapshot.as_ref());
            let age = newest
                .zip(app.context())
                .map(|(newest, context)| (newest.taken_at - context.snapshot.taken_at).as_seconds_f64());
            line.push(format!("PAST {}", crate::text::duration(age.unwrap_or_default().floor())), Tone::Past);
        }
        _ if app.paused => {
            let behind = app.latest.as_ref().and_then(|latest| {
                let newest = latest.snapshot.as_ref()?.taken_at;
                Some((newest - app.context()?.snapshot.taken_at).as_seconds_f64())
            });
            let behind =
                behind.map_or_else(String::new, |s| format!(" {} behind", crate::text::duration(s.floor())));
            line.push(format!("PAUSED{behind}"), Tone::Past);
        }
        Link::Connecting => line.push("CONNECTING", Tone::Warning),
        Link::Down { .. } => line.push(format!("DOWN, data {old} old"), Tone::Critical),
        Link::Live if app.is_stale() => line.push(format!("NO ANSWER, data {old} old"), Tone::Critical),
        Link::Live => {
            line.push("LIVE ", Tone::Good);
            line.push(format!("{}s", app.interval), Tone::Plain);
            if let Some(slowed) = app.slowed() {
                line.push(format!(" → {}s", slowed.interval), Tone::Warning);
            }
            if let Some(context) = app.context().filter(|_| wide) {
                line.push(format!(" · {:.0}ms", context.snapshot.poll_seconds * 1000.0), Tone::Dim);
            }
        }
    }
    if let Some(time) = time {
        line.push(if wide { " · " } else { " " }, Tone::Dim);
        line.push(time, Tone::Plain);
    }
    line
}

/// Why there is no connection, over as many rows as that takes: it is what somebody can do something about.
fn why_down(app: &App, width: u16, rows: usize) -> Vec<Line> {
    let Link::Down { reason, attempt, .. } = app.link() else { return Vec::new() };
    let when = match app.retry.ceil() {
        soon if soon < 1.0 => "now".to_owned(),
        seconds => format!("in {seconds}s"),
    };
    let text = format!("{}; attempt {attempt} {when}", crate::text::one_line(&reason));
    let mut said = crate::text::lines(&text, usize::from(width.saturating_sub(6)));
    // What has no room is cut in the middle: when it is tried again stands at the end.
    if said.len() > rows {
        let when = format!("…; attempt {attempt} {when}");
        said.truncate(rows);
        if let Some(last) = said.last_mut() {
            let room = usize::from(width.saturating_sub(6)).saturating_sub(crate::text::width(&when));
            *last = format!("{}{when}", crate::text::fit(last, room).trim_end_matches('…'));
        }
    }
    let head = |at: usize| if at == 0 { "DOWN  " } else { "      " };
    let line =
        |(at, text): (usize, String)| Line::new().with(head(at), Tone::Critical).with(text, Tone::Critical);
    said.into_iter().enumerate().map(line).collect()
}

fn render_findings(frame: &mut Frame<'_>, area: Rect, app: &App, viewport: &mut Viewport, theme: &Theme) {
    let down =
        if app.past.is_some() { Vec::new() } else { why_down(app, area.width, usize::from(area.height)) };
    let mut lines = down;
    let findings = app.view.as_ref().map(|view| view.findings.as_slice()).unwrap_or_default();
    let above = lines.len();
    let room = usize::from(area.height).saturating_sub(above);
    let mut helps: Vec<Option<Line>> = vec![None; lines.len()];
    helps.extend(findings.iter().take(room).map(|finding| help(app, finding)));
    lines.extend(findings.iter().take(room).map(|finding| finding_line(app, finding, area.width)));
    let hidden = findings.len().saturating_sub(room);
    if lines.is_empty() && app.context().is_some() {
        lines.push(Line::new().with("ok    ", Tone::Good).with("no problems found", Tone::Dim));
    }
    for (y, finding) in (area.y..area.bottom()).skip(above).zip(findings) {
        viewport.spot(Rect { y, height: 1, ..area }, Spot::Finding(finding_id(finding)));
    }
    for (at, line) in (0u16..area.height).zip(&lines) {
        let last = at + 1 == area.height && above < usize::from(area.height);
        let helps = helps.get(usize::from(at)).and_then(Option::as_ref);
        let key = app.settings.keymap.key(crate::app::keymap::Action::Findings);
        let mut more = helps.cloned().unwrap_or_default();
        if let Some(key) = key.filter(|_| last && hidden > 0) {
            more.push(if more.spans.is_empty() { "" } else { "   " }, Tone::Plain);
            more.push(format!("{hidden} more: "), Tone::Dim);
            more.push(key.to_string(), Tone::Key);
        }
        let mut line = line.clone();
        if let Some(finding) = usize::from(at).checked_sub(above).and_then(|at| findings.get(at)) {
            about(&mut line, finding, usize::from(area.width).saturating_sub(more.width() + 2));
        }
        draw_ends(frame, Rect { y: area.y + at, height: 1, ..area }, &line, &more, theme);
    }
}

fn waiting_line(app: &App, width: u16) -> Line {
    let Some(context) = app.context() else {
        return Line::new().with("waiting for the first answer from the server", Tone::Dim);
    };
    let urgent = urgent(&context);
    let most = usize::from(width / 4).clamp(10, 40);
    // What is urgent stays; then when it began, then the longest wait, then the length of the bars.
    for (columns, said) in [(most, 2), (most, 1), (most, 0), (10, 0)] {
        let mut line = bars(&context, columns);
        for (text, tone) in waits(&context).into_iter().take(said).chain(urgent.clone()) {
            line.push(" · ", Tone::Dim);
            line.push(text, tone);
        }
        if line.width() <= usize::from(width) {
            return line;
        }
    }
    let mut line = bars(&context, 10);
    for (text, tone) in urgent {
        if line.width() + 3 + crate::text::width(&text) > usize::from(width) {
            break;
        }
        line.push(" · ", Tone::Dim);
        line.push(text, tone);
    }
    line
}

/// How many waited, and wait now.
fn bars(context: &Context<'_>, columns: usize) -> Line {
    let series = &context.view.series;
    let start = series.samples.len().saturating_sub(columns);
    let counts: Vec<u32> = series.samples.iter().skip(start).map(|sample| sample.waiting).collect();
    let waiting = context.view.graph.waiting;
    let old = context.locks_old();
    let tone = match waiting {
        _ if old.is_some() => Tone::Past,
        0 => Tone::Dim,
        _ => Tone::Warning,
    };
    let mut line = Line::new().with("waiting ", Tone::Dim);
    line.push(sparkline::bars(&counts, columns), tone);
    line.push(format!(" {waiting}"), tone);
    if let Some(old) = old {
        line.push(format!(" {} ago: pg_locks cannot be read", crate::text::duration(old)), Tone::Past);
    }
    line
}

/// When the waiting began, and the longest wait; nothing where nobody waits, or it is not known who.
fn waits(context: &Context<'_>) -> Vec<(String, Tone)> {
    if context.view.graph.waiting == 0 || context.locks_old().is_some() {
        return Vec::new();
    }
    let since = context.view.series.waiting_since;
    let began = since.map(|since| (format!("began {}", context.time_of_day(since)), Tone::Plain));
    let waiters = context.view.graph.queues.iter().flat_map(|queue| &queue.waiters);
    let longest = context.wait_age(waiters.filter_map(|waiter| waiter.wait_start).min());
    let longest = longest.map(|age| (format!("longest {}", crate::text::duration(age)), Tone::Plain));
    began.into_iter().chain(longest).collect()
}

/// How many tasks and leases need somebody.
fn urgent(context: &Context<'_>) -> Vec<(String, Tone)> {
    // What is left out where there is no room comes last.
    let count =
        |states: &[TaskState]| states.iter().filter_map(|state| tasks::count(context, *state)).collect();
    let mut urgent: Vec<_> = count(&[
        TaskState::Orphan,
        TaskState::MaybeOrphan,
        TaskState::Slow,
        TaskState::MaybeSlow,
        TaskState::Failed,
        TaskState::Overdue,
    ]);
    urgent.extend(queue::urgent(context));
    urgent.extend(leases::urgent(context));
    urgent.extend::<Vec<_>>(count(&[TaskState::Leaked]));
    urgent
}
