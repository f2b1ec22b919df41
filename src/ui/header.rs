//! The header: the server, the age of the data, and the number of waiting sessions. All positions are fixed.
//!
//! ```text
//! prod · app as ops · 17.2 primary · 224/500 connections         LIVE 1s  14:02:31
//! waiting ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▅▇█     17 · since 13:59:40 · longest 2m51s
//! ```

use ratatui::layout::Rect;

use super::{Canvas, split_top, widgets};
use crate::app::App;
use crate::app::context::Context;
use crate::app::keymap::Action;
use crate::app::line::{Line, Tone};
use crate::app::screens::Screen;
use crate::model::backend::State;
use crate::model::past::{Moment, PastView};
use crate::model::snapshot::{Following, Server};
use crate::model::view::ConnectionState;

pub(super) fn render(canvas: &mut Canvas<'_, '_>, area: Rect) {
    let app = canvas.app;
    let (first, second) = split_top(area, 1);
    let right = link_line(app, area.width >= 100);
    let room = usize::from(area.width).saturating_sub(right.width() + 1);
    canvas.ends(first, &server_line(app, room), &right);
    if let Some(past) = app.past.as_deref() {
        return time_line(canvas, second, past);
    }
    // The reason for a lost connection is more important than old data. The Overview shows it below.
    let down = if app.screen == Screen::Overview { Vec::new() } else { why_down(app, area.width, 1) };
    let line = down.into_iter().next().unwrap_or_else(|| waiting_line(app, area.width));
    canvas.line(second, &line);
}

/// The name of the server, with notes on the connection. That no action is possible must be visible on every screen.
fn name(app: &App, server: Option<&Server>, most: usize) -> String {
    let target = crate::text::one_line_prefix(&app.settings.target, 500);
    // The number of further hosts in a target that is known by its first host: `app@one:5432 +2`.
    let several = target.rsplit_once(" +").and_then(|(_, more)| more.parse::<u32>().ok());
    let target = match (several, server) {
        // Shows which of the hosts answers.
        (Some(more), Some(server)) => format!("{} +{more}", crate::text::one_line(&server.place())).into(),
        _ => target,
    };
    let mut name = crate::text::fit_middle(&target, most).into_owned();
    if let Some(note) = &app.settings.note {
        name = format!("{name} [{note}]");
    }
    // A recording is already marked as such.
    if app.settings.read_only && app.replay.is_none() {
        name = format!("{name} [read-only]");
    }
    name
}

/// Pieces of the first line; those with higher numbers are omitted first.
fn server_line(app: &App, room: usize) -> Line {
    let mut pieces: Vec<(u8, String, Tone)> = Vec::new();
    let shown = app.context().and_then(|context| Some((context, context.snapshot.server()?)));
    let most = (room * 2 / 5).clamp(16, 48);
    let named = |most: usize| name(app, shown.as_ref().map(|(_, server)| *server), most);
    let Some((context, server)) = shown else { return Line::new().with(named(most), Tone::Title) };
    pieces.push((0, named(most), Tone::Title));
    let short = |text: &str| crate::text::one_line_prefix(text, 24).into_owned();
    pieces.push((3, format!("{} as {}", short(&server.database), short(&server.user)), Tone::Plain));
    let role = if server.in_recovery { "standby" } else { "primary" };
    let version = format!("{} {role}", crate::text::one_line(&server.version));
    let up = context.age(server.started_at).map(|up| format!(", up {}", crate::text::age(up)));
    let up = up.filter(|_| room >= WIDE).unwrap_or_default();
    pieces.push((0, version + &up, Tone::Plain));
    if let Some(following) = server.following(context.snapshot.taken_at) {
        pieces.extend(behind(following));
    }
    pieces.extend(server.pooling.words().map(|words| (1, words.to_owned(), Tone::Plain)));
    let full =
        context.view.findings.iter().any(|finding| finding.check == "connections" && finding.ended.is_none());
    let tone = if full { Tone::Critical } else { Tone::Plain };
    let least = if context.hidden() > 0 { "≥" } else { "" };
    let count = |number: usize| crate::text::count(number as u64);
    let (used, most) = (count(server.connections as usize), count(server.max_connections as usize));
    pieces.push((2, format!("{used}/{most} connections"), tone));
    let (active, idle) = states(&context);
    // Sessions that the role cannot see can be in either state.
    pieces.push((5, format!("{least}{} active", count(active)), Tone::Plain));
    let tone = if idle > 0 { Tone::Warning } else { Tone::Plain };
    pieces.push((4, format!("{least}{} idle in transaction", count(idle)), tone));
    // The middle of the name is worth less than the other pieces.
    let needed =
        pieces.iter().filter(|piece| piece.0 <= COUNTS).map(|piece| crate::text::width(&piece.1) + 3);
    let excess = needed.sum::<usize>().saturating_sub(room + 3);
    if let Some(piece) = pieces.first_mut().filter(|_| excess > 0) {
        let length = crate::text::width(&piece.1);
        piece.1 = named(length.saturating_sub(excess).max(SHORTEST_NAME.min(length)));
    }
    joined(pieces, room)
}

const WIDE: usize = 90;

/// Pieces up to this number are worth more than the middle of the server's name.
const COUNTS: u8 = 2;

const SHORTEST_NAME: usize = 12;

/// How far a standby is behind. A standby that gets its WAL only from an archive has no stream either.
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

/// The age of the data: old data is never shown as live.
fn link_line(app: &App, wide: bool) -> Line {
    let mut line = Line::new();
    let time = app.context().map(|context| match app.replay {
        // The reader of a recording needs the day and the time zone.
        Some(_) => crate::app::time::dated(context.snapshot.taken_at, context.zone, wide),
        None => context.time_of_day(context.snapshot.taken_at),
    });
    let old = crate::text::duration(app.silence.floor());
    // Seconds from the snapshot that is shown to the newest.
    let behind = || {
        let newest = app.latest.as_ref()?.snapshot.as_ref()?.taken_at;
        Some((newest - app.context()?.snapshot.taken_at).as_seconds_f64().floor())
    };
    match (app.replay, app.link()) {
        (Some(replay), _) => {
            let is_last = app.past.as_ref().is_some_and(|past| past.place + 1 >= past.moments.len());
            let word = match (replay.plays, is_last) {
                (true, false) => "PLAYS",
                // It continues when the file grows.
                (true, true) => "AT END",
                (false, _) => "PAUSED",
            };
            line.push(format!("{word} ×{}", replay.speed), Tone::Past);
        }
        (None, state) if app.past.is_some() => {
            // Newer snapshots do not arrive at the moment.
            if matches!(state, ConnectionState::Down { .. }) {
                line.push("DOWN · ", Tone::Critical);
            }
            line.push(format!("PAST {}", crate::text::duration(behind().unwrap_or_default())), Tone::Past);
        }
        (None, _) if app.paused => {
            let behind = behind().map(|behind| format!(" {} behind", crate::text::duration(behind)));
            line.push(format!("PAUSED{}", behind.unwrap_or_default()), Tone::Past);
        }
        (None, ConnectionState::Connecting) => line.push("CONNECTING", Tone::Warning),
        (None, ConnectionState::Down { .. }) => line.push(format!("DOWN, data {old} old"), Tone::Critical),
        (None, ConnectionState::Live) if app.is_stale() => {
            line.push(format!("NO ANSWER, data {old} old"), Tone::Critical);
        }
        (None, ConnectionState::Live) => {
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
        line.push("  ", Tone::Dim);
        line.push(time, Tone::Plain);
    }
    line
}

/// Why there is no connection, over several rows if necessary, because the operator may be able to fix the cause.
pub(super) fn why_down(app: &App, width: u16, rows: usize) -> Vec<Line> {
    let ConnectionState::Down { reason, attempt, .. } = app.link() else { return Vec::new() };
    let when = match app.retry.ceil() {
        soon if soon < 1.0 => "now".to_owned(),
        seconds => format!("in {seconds}s"),
    };
    let text = format!("{}; attempt {attempt} {when}", crate::text::one_line(&reason));
    let mut said = crate::text::lines(&text, usize::from(width.saturating_sub(6)));
    // Text that does not fit is cut in the middle, because the time of the next attempt is at the end.
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

fn waiting_line(app: &App, width: u16) -> Line {
    let Some(context) = app.context() else { return Line::new() };
    let columns = match width {
        160.. => 60,
        120.. => 40,
        _ => 20,
    };
    let series = &context.view.series;
    let start = series.samples.len().saturating_sub(columns);
    let counts: Vec<u32> = series.samples.iter().skip(start).map(|sample| sample.waiting).collect();
    let waiting = context.view.graph.waiting;
    let old = context.locks_old();
    let tone = match waiting {
        _ if old.is_some() => Tone::Past,
        0 => Tone::Plain,
        _ => Tone::Warning,
    };
    let bars = widgets::bars(&counts, columns);
    let mut line = Line::new().with("waiting ", Tone::Dim);
    // The last bar is the current one.
    let last = bars.char_indices().next_back().map_or(0, |(at, _)| at);
    let (before, now) = bars.split_at(last);
    line.push(before, Tone::Dim);
    line.push(now, tone);
    line.push(format!("{:>7}", crate::text::count(waiting.into())), tone);
    if let Some(old) = old {
        line.push(format!(" · {} ago: pg_locks cannot be read", crate::text::age(old)), Tone::Past);
        return line;
    }
    for text in waits(&context) {
        line.push(" · ", Tone::Dim);
        line.push(text, Tone::Plain);
    }
    line
}

fn waits(context: &Context<'_>) -> Vec<String> {
    if context.view.graph.waiting == 0 {
        let waits = &context.view.lock_waits;
        let last = context.age(waits.locks.iter().map(|lock| lock.last).max());
        let since = || waits.since.map(|since| format!("no wait since {}", context.time_of_day(since)));
        let last = last.map(|age| format!("last wait {} ago", crate::text::age(age)));
        return last.or_else(since).into_iter().collect();
    }
    let since = context.view.series.waiting_since;
    let began = since.map(|since| format!("since {}", context.time_of_day(since)));
    let waiters = context.view.graph.queues.iter().flat_map(|queue| &queue.waiters);
    let longest = context.wait_age(waiters.filter_map(|waiter| waiter.wait_start).min());
    let longest = longest.map(|age| format!("longest {}", crate::text::age(age)));
    began.into_iter().chain(longest).collect()
}

/// Below this length of the past, in minutes, its ends are shown with seconds.
const SHORT: i64 = 10;

/// The line of all kept snapshots, while one of the past is shown.
///
/// ```text
/// 13:47 ···▁▁··▂▂▁··!▃▅▆█▲▇▇▅·a·▁·· 14:02  ▲ 631 of 900   ( ) trouble  Esc now
/// ```
fn time_line(canvas: &mut Canvas<'_, '_>, area: Rect, past: &PastView) {
    let (Some(first), Some(last)) = (past.moments.first(), past.moments.last()) else { return };
    // Both ends of a short past would show the same minute, or nearly.
    let is_short = (last.at - first.at).num_minutes() < SHORT;
    let format = if is_short { "%H:%M:%S" } else { "%H:%M" };
    let time =
        |moment: &Moment| moment.at.with_timezone(&canvas.app.settings.zone).format(format).to_string();
    let (begin, end) = (format!("{} ", time(first)), format!(" {}", time(last)));
    let place = format!("▲ {} of {}", past.place + 1, past.moments.len());
    let keys = keys(canvas.app);
    let beside = crate::text::width(&place) + keys.width() + 4;
    let room = usize::from(area.width).saturating_sub(begin.len() + end.len() + beside);
    let (bars, at) = bars(past, room.max(10));
    let mut line = Line::new().with(begin.as_str(), Tone::Dim);
    for (column, bar) in bars.iter().enumerate() {
        match (*bar, column == at) {
            (_, true) => line.push("▲", Tone::Key),
            (Bar::Sign(sign), _) => line.push(sign.to_string(), Tone::Critical),
            (Bar::Waiting(bar), _) => line.push(bar.to_string(), Tone::Warning),
            (Bar::Calm, _) => line.push("·", Tone::Dim),
        }
    }
    line.push(end, Tone::Dim);
    line.push("  ", Tone::Plain);
    line.push(place, Tone::Key);
    canvas.ends(area, &line, &keys);
}

fn keys(app: &App) -> Line {
    let key = |action| app.settings.keymap.key(action).map(|key| key.to_string()).unwrap_or_default();
    let mut line = Line::new();
    line.push(format!("{} {}", key(Action::TroubleBefore), key(Action::NextTrouble)), Tone::Key);
    line.push(" incident  ", Tone::Dim);
    match app.replay {
        None => {
            line.push(key(Action::Back), Tone::Key);
            line.push(" now", Tone::Dim);
        }
        Some(replay) => {
            line.push(key(Action::Pause), Tone::Key);
            line.push(if replay.plays { " stop" } else { " play" }, Tone::Dim);
        }
    }
    line
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bar {
    /// No session waited.
    Calm,
    Waiting(char),
    /// There was trouble; the sign of the worst.
    Sign(char),
}

fn bars(past: &PastView, room: usize) -> (Vec<Bar>, usize) {
    let count = past.moments.len();
    let columns = room.min(count).max(1);
    let column = |place: usize| place * columns / count.max(1);
    let mut most = vec![0; columns];
    let mut signs = vec![None; columns];
    for (place, moment) in past.moments.iter().enumerate() {
        if let (Some(most), Some(sign)) = (most.get_mut(column(place)), signs.get_mut(column(place))) {
            *most = moment.waiting.max(*most);
            *sign = moment.incident.max(*sign);
        }
    }
    let heights = widgets::bars(&most, columns);
    let bars = heights.chars().zip(most).zip(signs).map(|((bar, most), sign)| match (sign, most) {
        (Some(trouble), _) => Bar::Sign(trouble.sign()),
        (None, 0) => Bar::Calm,
        (None, _) => Bar::Waiting(bar),
    });
    (bars.collect(), column(past.place).min(columns - 1))
}
