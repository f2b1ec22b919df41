use chrono::TimeDelta;
use rustc_hash::FxHashMap;

use super::{Block, IncidentReport, Style, TimelineColumn, fit, time};
use crate::model::blame::{BlamePeriod, Ending, Episode, GONE};
use crate::order::SortExt;
use crate::text::{count, duration};

/// Maximum seconds until the server counts a deadlock.
const COUNTED: i64 = 60;

pub(super) fn ranked(report: &IncidentReport) -> Vec<&Episode> {
    let mut episodes: Vec<&Episode> =
        report.blame.episodes_in(BlamePeriod::All).filter(|episode| episode.sums.most > 0).collect();
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

pub(super) fn ended(report: &IncidentReport, episode: &Episode) -> String {
    match episode.ending {
        Ending::Itself if episode.note.is_empty() => "its transaction ended, or the waits ended".to_owned(),
        Ending::Itself if &*episode.note == GONE => format!("{GONE} outside locktop"),
        Ending::Itself | Ending::Action => fit(&episode.note),
        Ending::Deadlock => match victim(report, episode) {
            Some(victim) => format!("the server broke a deadlock; {}", fit(victim)),
            None => "the server broke a deadlock".to_owned(),
        },
        Ending::GoesOn if report.blame.is_ongoing(episode) => "it was ongoing at the end".to_owned(),
        Ending::GoesOn => "no session was waiting at the end".to_owned(),
    }
}

/// The victim of a deadlock. The server counts a deadlock some time after it has broken it.
fn victim<'a>(report: &'a IncidentReport, episode: &Episode) -> Option<&'a str> {
    let counted = episode.begin..=episode.last + TimeDelta::seconds(COUNTED);
    let (_, victim) = report.victims.iter().find(|(at, _)| counted.contains(at))?;
    Some(victim)
}

pub(super) fn part(report: &IncidentReport, style: Style) -> Vec<Block> {
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

pub(super) fn table(report: &IncidentReport, style: Style, numbers: &[u64]) -> Block {
    let episodes = numbers.iter().filter_map(|number| report.blame.episode(*number));
    Block::table(
        episodes,
        [
            ("number", true, &|of| of.number.to_string()),
            ("began", false, &|of| time(style, of.begin)),
            ("length", true, &|of| duration(of.length())),
            ("most", true, &|of| of.sums.most.to_string()),
            ("cost", true, &|of| duration(of.sums.seconds)),
            ("root", false, &|of| party(of)),
            ("on", false, &|of| fit(&of.lock)),
            ("ended", false, &|of| ended(report, of)),
        ],
    )
}

// The episodes as series of the chart.

const LETTERS: [char; 6] = ['A', 'B', 'C', 'D', 'E', 'F'];

#[derive(Debug)]
pub(super) struct ChartSeries {
    /// `None` for a series without a letter of its own.
    pub(super) letter: Option<char>,
    pub(super) name: String,
    /// The most sessions that waited behind it at the same time.
    pub(super) most: u32,
}

#[derive(Debug)]
pub(super) struct Stack {
    /// Most expensive first; the last series is for sessions whose root is not known.
    pub(super) series: Vec<ChartSeries>,
    of_episode: FxHashMap<u64, usize>,
    of_party: FxHashMap<String, usize>,
}

impl Stack {
    pub(super) fn of(report: &IncidentReport) -> Self {
        let episodes: Vec<&Episode> =
            report.blame.episodes_in(BlamePeriod::All).filter(|episode| episode.sums.most > 0).collect();
        let mut names: Vec<String> = episodes.iter().map(|episode| party(episode)).collect();
        names.sort_unstable();
        names.dedup();
        // If there are many, the sessions of one application are one series.
        let is_each = names.len() <= LETTERS.len();
        let name = |episode: &Episode| if is_each { party(episode) } else { several(episode) };
        let mut costs: FxHashMap<String, (f64, u32)> = FxHashMap::default();
        for episode in &episodes {
            let (seconds, most) = costs.entry(name(episode)).or_default();
            *seconds += episode.sums.seconds;
            *most = (*most).max(episode.sums.most);
        }
        let mut ranked: Vec<(String, (f64, u32))> = costs.into_iter().collect();
        ranked.order_by(|(a, (x, _)), (b, (y, _))| y.total_cmp(x).then_with(|| a.cmp(b)));
        let places: FxHashMap<String, usize> = ranked
            .iter()
            .enumerate()
            .map(|(place, (name, _))| (name.clone(), place.min(LETTERS.len())))
            .collect();
        let most_of_others = ranked.iter().skip(LETTERS.len()).map(|(_, (_, most))| *most).max();
        let mut series: Vec<ChartSeries> = ranked
            .into_iter()
            .zip(LETTERS)
            .map(|((name, (_, most)), letter)| ChartSeries { letter: Some(letter), name, most })
            .collect();
        let other = |name: &str, most| ChartSeries { letter: None, name: name.to_owned(), most };
        series.extend(most_of_others.map(|most| other("other root blockers", most)));
        series.push(other("root blocker not known", 0));
        let place = |episode: &Episode| places.get(&name(episode)).copied();
        Self {
            series,
            of_episode: episodes.iter().filter_map(|of| Some((of.number, place(of)?))).collect(),
            of_party: episodes.iter().filter_map(|of| Some((party(of), place(of)?))).collect(),
        }
    }

    pub(super) fn of_episode(&self, number: u64) -> Option<usize> {
        self.of_episode.get(&number).copied()
    }

    pub(super) fn of_party(&self, party: &str) -> Option<usize> {
        self.of_party.get(party).copied()
    }

    /// The waiting sessions of a column, divided among the series. A session behind two roots is shared between them.
    pub(super) fn parts(&self, column: &TimelineColumn) -> Vec<f64> {
        let mut parts = vec![0.0; self.series.len()];
        let all: f64 = column.behind.iter().map(|(_, waiting)| f64::from(*waiting)).sum();
        for (number, waiting) in &column.behind {
            let place = self.of_episode(*number).unwrap_or(parts.len().saturating_sub(1));
            if let Some(part) = parts.get_mut(place).filter(|_| all > 0.0) {
                *part += f64::from(*waiting) / all * f64::from(column.waiting);
            }
        }
        if let Some(unknown) = parts.last_mut().filter(|_| all <= 0.0) {
            *unknown = f64::from(column.waiting);
        }
        parts
    }
}

fn several(episode: &Episode) -> String {
    if episode.who.is_empty() { party(episode) } else { fit(&episode.who) }
}
