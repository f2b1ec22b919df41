use chrono::TimeDelta;

use super::block::{Block, fit, time};
use super::{Report, Style};
use crate::model::blame::{Ending, Episode, GONE, Span};
use crate::order::Order;
use crate::text::{count, duration};

/// Maximum seconds until the server counts a deadlock.
const COUNTED: i64 = 60;

pub(super) fn ranked(report: &Report) -> Vec<&Episode> {
    let mut episodes: Vec<&Episode> =
        report.blame.episodes_in(Span::All).filter(|episode| episode.sums.most > 0).collect();
    episodes.order_by(|a, b| b.sums.seconds.total_cmp(&a.sums.seconds).then(a.number.cmp(&b.number)));
    episodes
}

/// The blocker of an episode: `4312 app@billing`.
pub(super) fn party(episode: &Episode) -> String {
    match (episode.pid, &*episode.who) {
        (0, _) => fit(&episode.who),
        (pid, "") => pid.to_string(),
        (pid, _) => format!("{pid} {}", fit(&episode.who)),
    }
}

pub(super) fn ended(report: &Report, episode: &Episode) -> String {
    match episode.ending {
        Ending::Itself if episode.note.is_empty() => "its transaction ended, or the waits ended".to_owned(),
        Ending::Itself if &*episode.note == GONE => format!("{GONE} outside locktop"),
        Ending::Itself | Ending::Action => fit(&episode.note),
        Ending::Deadlock => match victim(report, episode) {
            Some(victim) => format!("the server broke a deadlock; {}", fit(victim)),
            None => "the server broke a deadlock".to_owned(),
        },
        Ending::GoesOn if report.blame.goes_on(episode) => "it was ongoing at the end".to_owned(),
        Ending::GoesOn => "no session was waiting at the end".to_owned(),
    }
}

/// The victim of a deadlock. The server counts a deadlock some time after it has broken it.
fn victim<'a>(report: &'a Report, episode: &Episode) -> Option<&'a str> {
    let counted = episode.begin..=episode.last + TimeDelta::seconds(COUNTED);
    let (_, victim) = report.victims.iter().find(|(at, _)| counted.contains(at))?;
    Some(victim)
}

pub(super) fn part(report: &Report, style: Style) -> Vec<Block> {
    let ranked = ranked(report);
    if ranked.is_empty() {
        return Vec::new();
    }
    let mut shown: Vec<&Episode> = ranked.iter().copied().take(style.top).collect();
    shown.order_by_key(|episode| (episode.begin, episode.number));
    let about = "An episode is the time during which one root blocker blocked others on one lock. It ends when three \
                 snapshots in a row show no session behind it.";
    let mut blocks = vec![
        Block::Paragraph(about.to_owned()),
        Block::Episodes(shown.into_iter().map(|episode| episode.number).collect()),
    ];
    if ranked.len() > style.top {
        let left = ranked.len() - style.top;
        blocks.push(Block::Paragraph(format!("{} cheaper ones are omitted.", count(left as u64))));
    }
    blocks
}

/// Headings (true for numbers), and a row for each episode.
pub(super) fn table(report: &Report, style: Style, numbers: &[u64]) -> Block {
    let heads = vec![
        ("number", true),
        ("began", false),
        ("length", true),
        ("most", true),
        ("cost", true),
        ("root", false),
        ("on", false),
        ("ended", false),
    ];
    let episodes = numbers.iter().filter_map(|number| report.blame.episode(*number));
    let cells = episodes.map(|episode| {
        vec![
            episode.number.to_string(),
            time(style, episode.begin),
            duration(episode.length()),
            episode.sums.most.to_string(),
            duration(episode.sums.seconds),
            party(episode),
            fit(&episode.lock),
            ended(report, episode),
        ]
    });
    Block::Table(heads, cells.collect())
}
