use super::error;
use crate::app::context::Context;
use crate::app::detail::{field, fields, heading};
use crate::app::line::{Line, Tone};
use crate::model::blame::{Ending, Episode, Ran, Row, Sums};
use crate::text;

const LISTED: usize = 20;

/// `cost 31m02s ± 1m02s   waits 40   at most 17 at a time`
fn cost(sums: &Sums) -> Line {
    let cost = format!("{} ± {}", text::duration(sums.seconds), text::duration(error(sums)));
    fields(&[
        ("cost", cost),
        ("waits", text::count(sums.waits)),
        ("at most", format!("{} at a time", sums.most)),
    ])
}

pub(super) fn root(context: &Context<'_>, row: &Row) -> Vec<Line> {
    let mut lines = vec![field("root", row.name.clone(), Tone::Title), cost(&row.sums)];
    if let [key] = row.keys.as_slice() {
        let named = [
            ("application", &key.application),
            ("role", &key.role),
            ("database", &key.database),
            ("state", &key.doing),
            ("on", &key.lock),
            ("query tag", &key.tag),
            ("statement", &key.statement),
        ];
        let known = named.into_iter().filter(|(_, value)| !value.is_empty());
        lines.extend(known.map(|(label, value)| field(label, value.to_string(), Tone::Plain)));
    } else if row.keys.is_empty() {
        lines.push(Line::new().with("  Too many to list: these cost the least.", Tone::Dim));
    }
    let blame = &context.view.blame;
    let episodes = blame.episodes_in(context.index.blame.span).filter(|episode| row.has(episode));
    let mut episodes: Vec<&Episode> = episodes.collect();
    episodes.sort_by(|a, b| b.sums.seconds.total_cmp(&a.sums.seconds));
    if let Some(worst) = episodes.first() {
        lines.extend([Line::new(), heading(title(episodes.len()))]);
        lines.extend(episodes.iter().take(LISTED).map(|episode| listed(context, episode)));
        lines.extend(ran(context, worst));
    }
    lines.extend(how_counted());
    lines
}

fn title(count: usize) -> String {
    if count == 1 { "Its only episode".to_owned() } else { format!("The worst of {count} episodes") }
}

pub(in crate::app::panes) fn episode(context: &Context<'_>, episode: &Episode) -> Vec<Line> {
    let moment = |at| context.day_and_time(at);
    let mut lines =
        vec![field("root", party(episode), Tone::Title), field("on", episode.lock.to_string(), Tone::Plain)];
    let is_there = context.view.blame.goes_on(episode);
    let last = if is_there { "ongoing at" } else { "until" };
    lines.push(fields(&[
        ("blocked others from", moment(episode.begin)),
        (last, context.time_of_day(episode.last)),
        ("for", text::duration(episode.length())),
    ]));
    lines.push(cost(&episode.sums));
    let started = |at: Option<_>| at.map(moment).unwrap_or_default();
    lines.push(fields(&[
        ("episode", episode.number.to_string()),
        ("transaction since", started(episode.xact_start)),
    ]));
    lines.push(fields(&[("session since", started(episode.backend_start))]));
    let ended = ended(context, episode);
    if !ended.is_empty() {
        lines.push(field("ended", ended, Tone::Plain));
    }
    lines.push(Line::new());
    lines.extend(episode.keys.iter().map(|key| field("counted as", key.words(), Tone::Plain)));
    lines.extend(ran(context, episode));
    lines.extend(how_counted());
    lines
}

/// How an episode ended; empty if it continues.
fn ended(context: &Context<'_>, episode: &Episode) -> String {
    let is_there = context.view.blame.goes_on(episode);
    match episode.ending {
        Ending::GoesOn if is_there => String::new(),
        Ending::GoesOn => "no waiters now".to_owned(),
        Ending::Itself if episode.note.is_empty() => "its transaction ended, or the waits ended".to_owned(),
        Ending::Itself => format!("{}, outside locktop", episode.note),
        Ending::Deadlock => "the server broke a deadlock".to_owned(),
        Ending::Action => episode.note.to_string(),
    }
}

/// `  13:59:40  2m51s   17 blocked  31m02s  4312 app@billing on accounts · terminated 4312 app@billing`
fn listed(context: &Context<'_>, episode: &Episode) -> Line {
    let ended = match ended(context, episode) {
        ended if ended.is_empty() => ended,
        ended => format!(" · {ended}"),
    };
    let more = if context.view.blame.goes_on(episode) { "…" } else { "" };
    let length = format!("{}{more}", text::duration(episode.length()));
    Line::new()
        .with(format!("  {}  {length:>7}  ", context.time_of_day(episode.begin)), Tone::Dim)
        .with(format!("{:>4} blocked  ", episode.sums.most), Tone::Plain)
        .with(format!("{:>7}  ", text::duration(episode.sums.seconds)), Tone::Warning)
        .with(format!("{} on {}{ended}", party(episode), episode.lock), Tone::Plain)
}

/// Process id and name: `4312 app@billing`.
pub(in crate::app::panes) fn party(episode: &Episode) -> String {
    if episode.pid == 0 { episode.who.to_string() } else { format!("{} {}", episode.pid, episode.who) }
}

/// The statements of the root, and the requests that waited behind it and blocked others.
fn ran(context: &Context<'_>, episode: &Episode) -> Vec<Line> {
    let (own, in_line): (Vec<&Ran>, Vec<&Ran>) = episode.ran.iter().partition(|ran| ran.in_line == 0);
    let line = |ran: &&Ran| {
        let at = ran.at.map(|at| context.time_of_day(at)).unwrap_or_default();
        let who = if ran.in_line == 0 { String::new() } else { format!("{}  ", ran.in_line) };
        let line = Line::new().with(format!("  {at:<8}  {who}"), Tone::Dim);
        line.with(ran.statement.to_string(), Tone::Plain)
    };
    let mut lines = Vec::new();
    let ran = format!("Statements of {}, as seen in snapshots (others may be missing)", party(episode));
    let waited =
        "Requests that waited behind it and blocked others: without them, the others would have continued"
            .to_owned();
    for (title, rows) in [(waited, in_line), (ran, own)] {
        if !rows.is_empty() {
            lines.extend([Line::new(), heading(title)]);
            lines.extend(rows.iter().map(line));
        }
    }
    lines
}

fn how_counted() -> [Line; 4] {
    let line = |text: &str| Line::new().with(text, Tone::Dim);
    [
        Line::new(),
        line("  Each snapshot adds the time since the previous one for every waiting session,"),
        line("  split evenly among its root blockers: correct on average, and in"),
        line("  19 of 20 cases within ±."),
    ]
}
