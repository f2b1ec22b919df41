//! The Blame screen: which sessions made others wait, and the cost. Below it are the episodes of the selected line.
//!
//! ```text
//!   COST    SHARE             MAX ROOT                                   ON        EPISODES
//! ▸ 43m12s  ██████░░░░   61%   17 billing idle in xact, UPDATE accounts… accounts         3
//!   18m04s  ██░░░░░░░░   25%    9 migrate ALTER TABLE orders ADD COLUMN… orders           1
//! ```

use super::cell::{fit_names, part_bar};
use super::column::{Listed, listed_rows};
use super::definition::{Fact, PaneDefinition, ReadState};
use super::{Cell, RowId, SortValue};
use crate::app::context::Context;
use crate::app::detail::{field, fields, heading};
use crate::app::keymap::Action;
use crate::app::line::{Line, Tone};
use crate::model::blame::{
    self, Blame, BlameGrouping, BlamePeriod, BlameRow, Ending, Episode, EpisodeStatement, Sums,
};
use crate::order::SortExt;
use crate::text;

listed_rows!(Roots = BlameRow, |context| &context.index.blame.rows, |row| RowId::Blamed(row.id));

static COLUMNS: &[Column] = &[
    Column::duration(
        ("COST", "cost", "how long others waited for it, in total"),
        (7, 7),
        Tone::Warning,
        |row, _| Some(row.sums.seconds),
    ),
    Column::sorted(
        ("SHARE", "share", "share of all waiting in this time"),
        (11, 14),
        |row, context, room| Cell::plain(part_bar(share(context, row), room)),
        |row, context| SortValue::Number(100.0 * share(context, row)),
    ),
    Column::number(
        ("MAX", "max", "the most sessions that waited at the same time"),
        (4, 5),
        Tone::Plain,
        |row, _| Some(row.sums.most.into()),
    ),
    Column::cell(
        ("ROOT", "root", "the root blocker: application, state, and its statement without literals"),
        (24, 0),
        |row, _, _| Cell::plain(row.name.clone()),
    ),
    Column::sorted(
        ("ON", "on", "the lock they waited for; if several, the one that cost the most"),
        (12, 20),
        |row, _, room| Cell::plain(on(row, room)),
        |row, _| SortValue::text(Some(&row.on)),
    ),
    Column::number(
        (
            "EPISODES",
            "episodes",
            "number of episodes: one root blocker of one lock, from its first waiter to its last",
        ),
        (8, 8),
        Tone::Plain,
        |row, _| i64::try_from(row.episodes).ok(),
    ),
    Column::number(
        ("WAITS", "waits", "waits whose start was seen; a wait behind several roots counts for each"),
        (7, 7),
        Tone::Plain,
        |row, _| i64::try_from(row.sums.waits).ok(),
    )
    .rank(1),
    Column::duration(
        ("±", "error", "error of the cost: two standard errors"),
        (6, 6),
        Tone::Dim,
        |row, _| Some(error(&row.sums)),
    )
    .rank(2),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    empty: "no session was seen waiting for a lock in this time",
    facts: |context, _| facts(context),
    read: |context| ReadState { at: context.view.blame.until, error: None },
    keys: &[Action::BlameBy, Action::BlameSpan],
    name: |context, id| row(context, id).map_or_else(|| "Blame".to_owned(), |row| row.name.clone()),
    label: |context, id| {
        row(context, id).map_or_else(|| "a root".to_owned(), |row| text::fit(&row.name, 20).into_owned())
    },
    detail: |context, id, _| Some(root(context, row(context, id)?)),
    ..PaneDefinition::new(("Blame", "a root blocker; its episodes are below"), &COLUMNS, Roots::rows)
};

fn row<'a>(context: &Context<'a>, id: RowId) -> Option<&'a BlameRow> {
    let RowId::Blamed(id) = id else { return None };
    context.index.blame.row(id)
}

/// Two standard errors, in seconds: the sum is within them in 19 of 20 cases.
fn error(sums: &blame::Sums) -> f64 {
    2.0 * sums.standard_error()
}

fn share(context: &Context<'_>, row: &BlameRow) -> f64 {
    let total = context.view.blame.total(context.index.blame.span).seconds;
    if total > 0.0 { (row.sums.seconds / total).clamp(0.0, 1.0) } else { 0.0 }
}

/// The locked object; in a narrow column without the prefix that most names have.
pub(super) fn lock(name: &str, room: u16) -> String {
    let name = fit_names(name.to_owned(), room);
    match name.strip_prefix("rows of ") {
        Some(table) if text::width(&name) > usize::from(room) => table.to_owned(),
        _ => name,
    }
}

/// The lock with the highest cost, and the number of others: `accounts +2`.
fn on(row: &BlameRow, room: u16) -> String {
    let name = lock(&row.on, room);
    if row.more == 0 {
        return name;
    }
    let more = format!(" +{}", row.more);
    format!("{}{more}", text::fit(&name, usize::from(room).saturating_sub(more.len())))
}

/// `last 15m · 71m of waiting ± 33s · 812 waits · by role`
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let (blame, shown) = (&context.view.blame, &context.index.blame);
    let total = blame.total(shown.span);
    let mut facts = vec![(span(context, blame, shown.span), Tone::Plain)];
    facts.extend(
        (shown.group != BlameGrouping::Root).then(|| (format!("by {}", shown.group.as_str()), Tone::Key)),
    );
    if total.seconds > 0.0 || total.waits > 0 {
        let waited =
            format!("{} of waiting ± {}", text::duration(total.seconds), text::duration(error(&total)));
        facts.push((waited, Tone::Plain));
        let waits = if total.waits == 1 { "wait" } else { "waits" };
        facts.push((format!("{} {waits}", text::count(total.waits)), Tone::Plain));
    }
    if blame.missing >= 1.0 {
        facts.push((format!("{} not seen", text::duration(blame.missing)), Tone::Past));
    }
    // It does not apply to a span that begins later.
    if shown.span.first_minute(blame).is_none() && blame.before.sessions > 0 {
        let longest = blame.before.longest.map(|longest| format!(", ≤ {}", text::duration(longest)));
        let longest = longest.unwrap_or_default();
        facts.push((format!("{} already waiting{longest}", blame.before.sessions), Tone::Past));
    }
    facts
}

/// `last 15m`; `since 13:40:02` if there is no more than that.
fn span(context: &Context<'_>, blame: &Blame, span: BlamePeriod) -> String {
    match (span.minutes().filter(|_| span.first_minute(blame).is_some()), blame.since) {
        (Some(60), _) => "last 1h".to_owned(),
        (Some(minutes), _) => format!("last {minutes}m"),
        (None, Some(since)) => format!("since {}", context.time_of_day(since)),
        (None, None) => "nothing was counted".to_owned(),
    }
}

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

fn root(context: &Context<'_>, row: &BlameRow) -> Vec<Line> {
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
    episodes.order_by(|a, b| b.sums.seconds.total_cmp(&a.sums.seconds));
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
    let is_there = context.view.blame.is_ongoing(episode);
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
    let is_there = context.view.blame.is_ongoing(episode);
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
    let more = if context.view.blame.is_ongoing(episode) { "…" } else { "" };
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
    let (own, in_line): (Vec<&EpisodeStatement>, Vec<&EpisodeStatement>) =
        episode.ran.iter().partition(|ran| ran.in_line == 0);
    let line = |ran: &&EpisodeStatement| {
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
