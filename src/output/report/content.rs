//! The words of a report, before they become HTML or Markdown: each text is one harmless line.

use super::episodes::{self, ended, party, ranked};
use super::{
    AT_END, Block, Hole, IncidentReport, LONG, Mark, Style, TaskIncident, Tries, fit, listed, log, time,
};
use crate::model::blame::{BlameGrouping, BlamePeriod, BlameRow, Sums};
use crate::text::{count, duration, one_line_prefix};

/// Lines of the lock tree for each listed row, and their minimum.
const CHAIN: (usize, usize) = (6, 20);

const RAN: usize = 3;

const MARKS: usize = 10;

#[derive(Debug)]
pub(super) struct ReportContent<'a> {
    pub(super) report: &'a IncidentReport,
    pub(super) style: Style,
    pub(super) title: String,
    pub(super) headline: Vec<String>,
    pub(super) ends: (String, String),
    pub(super) parts: Vec<ReportPart>,
}

impl ReportContent<'_> {
    pub(super) fn about(&self) -> String {
        let IncidentReport { server, program, target, .. } = self.report;
        let about = format!("{server} · recorded by {program}, target {target}");
        one_line_prefix(&about, LONG).into_owned()
    }
}

#[derive(Debug)]
pub(super) struct ReportPart {
    pub(super) heading: String,
    pub(super) blocks: Vec<Block>,
}

fn fit_all(text: &str) -> String {
    one_line_prefix(text, 4 * LONG).into_owned()
}

/// In percent of the total.
fn share(sums: &Sums, total: &Sums) -> f64 {
    if total.seconds > 0.0 { (100.0 * sums.seconds / total.seconds).min(100.0) } else { 0.0 }
}

/// The time waited, and twice its standard error: `31m02s ± 1m02s`.
fn cost(sums: &Sums) -> String {
    format!("{} ± {}", duration(sums.seconds), duration(2.0 * sums.standard_error()))
}

pub(super) fn of(report: &IncidentReport, style: Style) -> ReportContent<'_> {
    let mut parts = vec![ReportPart { heading: "Timeline".to_owned(), blocks: line(report, style) }];
    let mut part = |heading: &str, blocks: Vec<Block>| {
        if !blocks.is_empty() {
            parts.push(ReportPart { heading: heading.to_owned(), blocks });
        }
    };
    part("Episodes", episodes::part(report, style));
    part("Root blockers", roots(report, style));
    part("Repeated statements", tries(report, style));
    part("The worst moment", worst(report, style));
    part("Earlier statements of the root blockers", ran(report, style));
    part("Tasks", tasks(report, style));
    part("Actions", actions(report, style));
    part("From the server's log", log::part(report, style));
    part("Settings", settings(report));
    part("Limits of this report", unknown(report, style));
    let place = if report.place.is_empty() { &report.target } else { &report.place };
    let from = report.from.with_timezone(&style.zone);
    let to = report.to.with_timezone(&style.zone);
    let end = if from.date_naive() == to.date_naive() { "%H:%M:%S %:z" } else { "%Y-%m-%d %H:%M:%S %:z" };
    let title = format!("{} from {} to {}", fit(place), from.format("%Y-%m-%d %H:%M:%S"), to.format(end));
    let ends = (time(style, report.from), time(style, report.to));
    ReportContent { report, style, title, headline: headline(report, style), ends, parts }
}

fn headline(report: &IncidentReport, style: Style) -> Vec<String> {
    let total = report.blame.total(BlamePeriod::All);
    let logged = report.log.as_ref().and_then(log::LogReport::headline);
    let Some(worst) = ranked(report).into_iter().next() else {
        let seen = if total.waits > 0 { "hardly any session" } else { "no session" };
        let first = format!(
            "In {} snapshots, {seen} was seen waiting for a lock.",
            count(report.snapshots.len() as u64)
        );
        return std::iter::once(first)
            .chain(tried(report, style))
            .chain(report.blame.before.words().map(|words| format!("{words}.")))
            .chain(logged)
            .collect();
    };
    let was = worst.keys.last().map(|key| key.words()).filter(|words| !words.is_empty());
    let was = was.map(|words| format!(" ({})", fit(&words))).unwrap_or_default();
    let first = format!(
        "{}–{}: {}{was} on {} cost {} of waiting; at most {} waited at the same time; {}.",
        time(style, worst.begin),
        time(style, worst.last),
        party(worst),
        fit(&worst.lock),
        cost(&worst.sums),
        worst.sums.most,
        ended(report, worst),
    );
    let all = format!(
        "In total, sessions waited {} in {} waits; this episode is {:.0}% of that.",
        cost(&total),
        count(total.waits),
        share(&worst.sums, &total)
    );
    let before = report.blame.before.words().map(|words| format!("{words}."));
    // A client that reconnects each time is one root all the same.
    let rows = report.blame.by(BlameGrouping::Root, BlamePeriod::All);
    let often = rows.first().filter(|row| row.episodes > 1 && row.sums.seconds > worst.sums.seconds);
    let often = often.map(|row| {
        format!(
            "{} on {} cost {} in {} episodes, {:.0}% of all waiting. The most expensive single one:",
            fit(&row.name),
            fit(&row.on),
            cost(&row.sums),
            count(row.episodes),
            share(&row.sums, &total)
        )
    });
    often.into_iter().chain([first, all]).chain(tried(report, style)).chain(before).chain(logged).collect()
}

/// `14 runs of ALTER TABLE orders … by app@migrate, from 14:02:01 to 14:02:27, the longest 0.3 s`
fn runs(style: Style, tries: &Tries) -> String {
    format!(
        "{} runs of {} by {}, from {} to {}, the longest {}",
        count(tries.runs as u64),
        fit(&tries.statement),
        fit(&tries.who),
        time(style, tries.from),
        time(style, tries.to),
        duration(tries.longest)
    )
}

/// The statement with the most runs. The shorter its waits, the fewer of them a snapshot shows.
fn tried(report: &IncidentReport, style: Style) -> Option<String> {
    let most = report.tries.iter().max_by_key(|tries| tries.runs)?;
    let about = format!(
        "{}: sessions may have queued behind these runs, which snapshots show only in part, so the root blocker named \
         here is possibly not the cause of all waits.",
        runs(style, most)
    );
    Some(fit_all(&about))
}

fn tries(report: &IncidentReport, style: Style) -> Vec<Block> {
    if report.tries.is_empty() {
        return Vec::new();
    }
    let line = |tries: &Tries| {
        let waiting = match tries.waiting {
            0 => "no snapshot shows one waiting".to_owned(),
            1 => "1 snapshot shows one waiting".to_owned(),
            many => format!("{} snapshots show one waiting", count(many as u64)),
        };
        fit_all(&format!("{}; {waiting}.", runs(style, tries)))
    };
    let about = "Statements that take a strong lock on a table and were begun at least 3 times, for example by a migration \
                 that tries again after lock_timeout. While one waits, later requests for the table queue behind it. Runs \
                 between two snapshots are missing, and so are the waits behind them: their cost may be too low, or be \
                 attributed to another root blocker.";
    vec![Block::List(listed(&report.tries, style.top, line)), Block::Paragraph(about.to_owned())]
}

fn line(report: &IncidentReport, style: Style) -> Vec<Block> {
    let most = report.columns.iter().map(|column| column.waiting).max().unwrap_or_default();
    let about = format!(
        "At most {} waited at the same time. {} snapshots, one every {}.",
        count(most.into()),
        count(report.snapshots.len() as u64),
        duration(report.refresh)
    );
    let mut blocks = vec![Block::Line, Block::Paragraph(about)];
    let room = MARKS * style.top;
    let shown = report.marks.iter().take(room);
    let mut marks: Vec<String> = shown.map(|mark| mark_line(style, mark)).collect();
    let more = report.marks.len().saturating_sub(room) + report.marks_omitted;
    if more > 0 {
        marks.push(format!("and {} more", count(more as u64)));
    }
    if !marks.is_empty() {
        blocks.push(Block::List(marks));
    }
    blocks
}

/// `14:02:31 ! 4312 app@web-3 began to block others`
fn mark_line(style: Style, mark: &Mark) -> String {
    format!("{} {} {}", time(style, mark.at), mark.sign, fit(&mark.text))
}

fn roots(report: &IncidentReport, style: Style) -> Vec<Block> {
    let rows = report.blame.by(BlameGrouping::Root, BlamePeriod::All);
    let total = report.blame.total(BlamePeriod::All);
    if rows.is_empty() {
        return Vec::new();
    }
    let on = |row: &BlameRow| match row.more {
        0 => fit(&row.on),
        more => format!("{} and {more} more", fit(&row.on)),
    };
    let table = Block::table(
        rows.iter().take(style.top),
        [
            ("cost", true, &|row| cost(&row.sums)),
            ("share", true, &|row| format!("{:.0}%", share(&row.sums, &total))),
            ("most", true, &|row| row.sums.most.to_string()),
            ("root", false, &|row| fit(&row.name)),
            ("on", false, &on),
            ("waits", true, &|row| count(row.sums.waits)),
            ("episodes", true, &|row| count(row.episodes)),
        ],
    );
    let mut blocks = vec![table];
    if rows.len() > style.top {
        let rest: f64 = rows.iter().skip(style.top).map(|row| row.sums.seconds).sum();
        let left = rows.len() - style.top;
        blocks.push(Block::Paragraph(format!("{left} others cost {} together.", duration(rest))));
    }
    let each: u64 = rows.iter().map(|row| row.sums.waits).sum();
    if each > total.waits {
        let about = format!(
            "The waits of all roots add up to {}, more than the {} observed, because a session that waits behind several roots counts for each of them.",
            count(each),
            count(total.waits)
        );
        blocks.push(Block::Paragraph(about));
    }
    blocks.push(Block::Paragraph(
        "Cost is session time: each snapshot adds the time since the previous one for every waiting session, split \
         evenly among its root blockers. ± is two standard errors, a 95 % interval."
            .to_owned(),
    ));
    blocks
}

fn worst(report: &IncidentReport, style: Style) -> Vec<Block> {
    let Some(worst) = &report.worst else { return Vec::new() };
    let mut blocks =
        vec![Block::Paragraph(format!("{}: {} waited.", time(style, worst.at), count(worst.waiting.into())))];
    if !worst.findings.is_empty() {
        blocks.push(Block::List(worst.findings.iter().take(style.top).map(|finding| fit(finding)).collect()));
    }
    let room = (CHAIN.0 * style.top).max(CHAIN.1);
    let about = "Lock tree: a session waits for the one above it. Only the end of the topmost, the root blocker, lets the \
                 others continue: now, or in turn, one after another. +1: it also waits for 1 session that is not drawn above it.";
    blocks.push(Block::Paragraph(about.to_owned()));
    blocks.push(Block::Tree(room));
    let why =
        worst.why.iter().take(style.top).map(|why| fit_all(&format!("{}: {}", why.who, why.said.join(" "))));
    let why: Vec<String> = why.collect();
    if !why.is_empty() {
        blocks.push(Block::Paragraph("Reasons, for the first waiter of each lock:".to_owned()));
        blocks.push(Block::List(why));
    }
    blocks
}

/// `14:02:31 nightly report was orphaned on worker-7: its session ended; was recovered by ops at 14:03:00`
fn tasks(report: &IncidentReport, style: Style) -> Vec<Block> {
    let line = |task: &TaskIncident| {
        let ended = task.ended.as_ref().map(|(at, how)| {
            let when = if how.ends_with(AT_END) { String::new() } else { format!(" ({})", time(style, *at)) };
            format!("; {}{when}", fit(how))
        });
        format!("{} {}{}", time(style, task.at), fit(&task.text), ended.unwrap_or_default())
    };
    let lines = listed(&report.tasks, MARKS * style.top, line);
    if lines.is_empty() { Vec::new() } else { vec![Block::List(lines)] }
}

fn ran(report: &IncidentReport, style: Style) -> Vec<Block> {
    let mut blocks = Vec::new();
    let with_statements = ranked(report).into_iter().filter(|episode| !episode.ran.is_empty());
    for episode in with_statements.take(RAN.min(style.top)) {
        let begin = episode.xact_start.map(|at| format!(", transaction of {}", time(style, at)));
        blocks.push(Block::Paragraph(format!("{}{}", party(episode), begin.unwrap_or_default())));
        let statements = episode.ran.iter().map(|ran| {
            let at = ran.at.map(|at| format!("{} ", time(style, at))).unwrap_or_default();
            let who = if ran.in_line == 0 { String::new() } else { format!("{} in line: ", ran.in_line) };
            format!("{at}{who}{}", fit(&ran.statement))
        });
        blocks.push(Block::List(statements.collect()));
    }
    if !blocks.is_empty() {
        let about = "As seen in snapshots: statements between two snapshots are missing.";
        blocks.push(Block::Paragraph(about.to_owned()));
    }
    blocks
}

fn actions(report: &IncidentReport, style: Style) -> Vec<Block> {
    if report.actions.is_empty() {
        return vec![Block::Paragraph(
            "The recording has no actions. Actions of another locktop or of psql are not recorded."
                .to_owned(),
        )];
    }
    let line = |mark: &Mark| format!("{} {}", time(style, mark.at), fit(&mark.text));
    let about = "Sessions that another locktop or psql terminated or canceled, and leases that it ended, are not listed; recovered, enabled and disabled tasks always are.";
    vec![Block::List(listed(&report.actions, MARKS * style.top, line)), Block::Paragraph(about.to_owned())]
}

fn settings(report: &IncidentReport) -> Vec<Block> {
    if report.settings.is_empty() {
        return Vec::new();
    }
    let line = |setting: &super::AdvisedSetting| match &setting.value {
        Some(value) => format!("{} = {}: {}", setting.name, fit(value), fit(&setting.advice)),
        None => format!("{} (per session; not visible to others): {}", setting.name, fit(&setting.advice)),
    };
    vec![Block::List(report.settings.iter().map(line).collect())]
}

fn unknown(report: &IncidentReport, style: Style) -> Vec<Block> {
    let hole = |hole: &Hole| {
        let length = duration((hole.to - hole.from).as_seconds_f64());
        format!("No snapshots from {} to {} ({length}).", time(style, hole.from), time(style, hole.to))
    };
    let holes = listed(&report.holes, style.top, hole);
    let unread =
        listed(&report.stale, style.top, |mark| format!("{} {}", time(style, mark.at), fit(&mark.text)));
    let mut lines: Vec<String> = holes.into_iter().chain(unread).collect();
    if report.damaged > 0 {
        lines.push(format!("{} snapshots of the recording are damaged.", count(report.damaged)));
    }
    if report.is_counted_anew {
        lines.push(
            "The recording has no costs: they were computed from its snapshots, and how an episode ended is not known."
                .to_owned(),
        );
    }
    if report.redaction != "none" && !report.redaction.is_empty() {
        lines
            .push(format!("{} were removed from statements when this was recorded.", fit(&report.redaction)));
    }
    lines.push(format!(
        "Waits that began and ended between two snapshots, {} apart: on average they are in the sums, but not among the episodes.",
        duration(report.refresh)
    ));
    vec![Block::List(lines)]
}
