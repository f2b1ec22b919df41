//! The chart of a page: waiting sessions over time by root blocker, and the episodes as bars on the same axis. Only the
//! areas are SVG, which is stretched to the width of the page; words are text of the page, so that they are readable at any
//! width.

use std::fmt::Write;

use chrono::TimeDelta;

use super::content::ReportContent;
use super::episodes::{Stack, ended, party};
use super::{IncidentReport, Mark, Style, TimelineColumn, escape, fit, text, time};
use crate::model::Timestamp;
use crate::order::SortExt;
use crate::text::{count, duration, one_line_prefix};

/// Units of the picture: width of a column, and total height.
const WIDE: usize = 10;
const HIGH: f64 = 1_000.0;

/// Width of the picture with the bar of an episode, in units.
const BAR: f64 = 1_000.0;

/// Minimum distance between signs, as a fraction of the width.
const APART: f64 = 0.025;

const NAME: usize = 24;
const MARK: usize = 100;

const NAMED: usize = 3;

/// Fraction of the height from which an area has its letter inside.
const LETTER: f64 = 0.12;

const SIGNS: [(char, &str); 5] = [
    ('!', "a session began to block others, a wait cycle began, or a task lost its worker"),
    ('x', "the server detected a deadlock"),
    ('a', "action of an operator"),
    ('~', "the server stopped answering"),
    ('n', "note of an operator"),
];

impl Stack {
    pub(super) fn badge(&self, place: usize) -> String {
        let letter = self.series.get(place).and_then(|series| series.letter);
        format!("<i class=\"c{place}\">{}</i> ", letter.map(String::from).unwrap_or_default())
    }
}

pub(super) fn chart(content: &ReportContent<'_>, stack: &Stack) -> String {
    let (report, style) = (content.report, content.style);
    let most = report.columns.iter().map(|column| column.waiting).max().unwrap_or_default();
    let numbers = numbers(most);
    let top = f64::from(numbers.last().copied().unwrap_or(1));
    let ticks = times(report, style);
    let width = report.columns.len().max(1) * WIDE;
    let labels = numbers.iter().map(|number| {
        let bottom = percent(f64::from(*number) / top);
        format!("<span style=\"bottom:{bottom}\">{}</span>", count((*number).into()))
    });
    let lines =
        numbers.iter().map(|number| format!("M0 {:.0}h{width}", HIGH * (1.0 - f64::from(*number) / top)));
    let parts: Vec<Vec<f64>> = report.columns.iter().map(|column| stack.parts(column)).collect();
    [
        "<figure><figcaption>Sessions that wait for a lock, by root blocker</figcaption>\n<div class=\"g\">".to_owned(),
        format!("<span></span><div class=\"m\">{}</div>\n", signs(report, style)),
        format!("<div class=\"y\">{}</div>\n", labels.collect::<String>()),
        format!(
            "<div class=\"a\"><svg viewBox=\"0 0 {width} {HIGH}\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-label=\"number of waiting sessions over time\"><path class=\"l\" d=\"{}{}\"/>{}{}</svg>{}</div>\n",
            lines.collect::<String>(),
            verticals(&ticks, f64::from(u32::try_from(width).unwrap_or(u32::MAX)), HIGH),
            areas(report, &parts, top),
            titles(report, style, (stack, &parts)),
            letters((stack, &parts), top)
        ),
        format!("<span></span>{}</div>\n", time_labels(&ticks)),
        legend(report, stack),
        "</figure>\n".to_owned(),
    ]
    .concat()
}

pub(super) fn bars(content: &ReportContent<'_>, stack: &Stack, numbers: &[u64]) -> String {
    let (report, style) = (content.report, content.style);
    let (span, ticks) = (TimeSpan::of(report), times(report, style));
    let episodes = numbers.iter().filter_map(|number| report.blame.episode(*number));
    let rows = episodes.map(|episode| {
        let (begin, end) = (span.place(episode.begin), span.place(episode.last));
        let number = episode.number;
        let place = stack.of_episode(number).unwrap_or(stack.series.len());
        let words = format!(
            "{} on {}, {} from {}, at most {} waiting, cost {}",
            party(episode),
            fit(&episode.lock),
            duration(episode.length()),
            time(style, episode.begin),
            count(episode.sums.most.into()),
            duration(episode.sums.seconds)
        );
        format!(
            "<p>{}<b>{number}</b> {}. <b>Ended:</b> {}</p>\n<span></span>\
             <svg viewBox=\"0 0 {BAR} 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"episode {number}\">\
             <path class=\"l\" d=\"M0 5h{BAR}{}\"/><rect class=\"c{place}\" x=\"{:.0}\" width=\"{:.0}\" height=\"10\">\
             <title>{}–{}</title></rect></svg>\n",
            stack.badge(place),
            text(&words),
            text(&ended(report, episode)),
            verticals(&ticks, BAR, 10.0),
            (begin * BAR).min(BAR - 4.0),
            ((end - begin) * BAR).max(4.0),
            time(style, episode.begin),
            time(style, episode.last)
        )
    });
    let about = "<p>Each bar shows when sessions waited behind one root blocker, on the time axis of the chart above and in its \
                 colour. Cost is the waiting time of all sessions behind it together.</p>\n";
    let rows: String = rows.collect();
    format!("{about}<div class=\"g b\">\n{rows}<span></span>{}</div>\n", time_labels(&ticks))
}

fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

fn verticals(ticks: &[(f64, String)], width: f64, height: f64) -> String {
    let lines: Vec<String> =
        ticks.iter().map(|(place, _)| format!("M{:.0} 0v{height}", place * width)).collect();
    lines.concat()
}

fn time_labels(ticks: &[(f64, String)]) -> String {
    let labels = ticks.iter().map(|(place, label)| {
        let edge = match *place {
            place if place < 0.06 => " class=\"f\"",
            place if place > 0.94 => " class=\"e\"",
            _ => "",
        };
        format!("<time{edge} style=\"left:{}\">{}</time>", percent(*place), escape(label))
    });
    format!("<div class=\"x\">{}</div>", labels.collect::<String>())
}

fn areas(report: &IncidentReport, parts: &[Vec<f64>], top: f64) -> String {
    let series = parts.first().map_or(0, Vec::len);
    let mut paths = vec![String::new(); series];
    let mut unknown = String::new();
    let mut begin = 0;
    for (at, (column, part)) in report.columns.iter().zip(parts).enumerate() {
        let is_last = parts.get(at + 1) != Some(part)
            || report.columns.get(at + 1).is_none_or(|next| next.is_known != column.is_known);
        if !is_last {
            continue;
        }
        let (x, wide) = (begin * WIDE, (at + 1 - begin) * WIDE);
        begin = at + 1;
        if !column.is_known {
            // Writing to a string cannot fail.
            let _ = write!(unknown, "M{x} 0h{wide}v{HIGH}h-{wide}z");
        }
        let mut below = 0.0;
        for (path, value) in paths.iter_mut().zip(part).filter(|(_, value)| **value > 0.0) {
            let (low, high) = (HIGH * below / top, HIGH * (below + value) / top);
            below += value;
            let _ = write!(path, "M{x} {:.0}h{wide}v{:.0}h-{wide}z", HIGH - high, high - low);
        }
    }
    let paths = paths.iter().enumerate().filter(|(_, path)| !path.is_empty());
    let paths = paths.map(|(place, path)| format!("<path class=\"c{place}\" d=\"{path}\"/>"));
    let paths: String = paths.collect();
    if unknown.is_empty() { paths } else { format!("<path class=\"u\" d=\"{unknown}\"/>{paths}") }
}

fn titles(report: &IncidentReport, style: Style, (stack, parts): (&Stack, &[Vec<f64>])) -> String {
    let said: Vec<String> =
        report.columns.iter().zip(parts).map(|(column, part)| title(column, stack, part)).collect();
    let mut out = String::from("<g class=\"h\">");
    let mut begin = 0;
    for (at, words) in said.iter().enumerate() {
        if said.get(at + 1) == Some(words) {
            continue;
        }
        let from = report.columns.get(begin).map_or(report.from, |column| column.at);
        let to = report.columns.get(at + 1).map_or(report.to, |column| column.at);
        let (x, wide) = (begin * WIDE, (at + 1 - begin) * WIDE);
        let _ = write!(
            out,
            "<path d=\"M{x} 0h{wide}v{HIGH}h-{wide}z\"><title>{}–{}: {}</title></path>",
            time(style, from),
            time(style, to),
            escape(words)
        );
        begin = at + 1;
    }
    out + "</g>"
}

fn title(column: &TimelineColumn, stack: &Stack, parts: &[f64]) -> String {
    if !column.is_known {
        return "no snapshot".to_owned();
    }
    if column.waiting == 0 {
        return "no session waits".to_owned();
    }
    let mut named: Vec<(&str, f64)> = stack
        .series
        .iter()
        .zip(parts)
        .filter(|(_, part)| **part > 0.0)
        .map(|(series, part)| (&*series.name, *part))
        .collect();
    named.order_by(|a, b| b.1.total_cmp(&a.1));
    let each = named.iter().take(NAMED).map(|(name, part)| {
        let name = one_line_prefix(name, NAME);
        // A session behind two roots counts half for each.
        format!("{:.0} behind {name}", part.max(1.0))
    });
    let more = if named.len() > NAMED { ", …" } else { "" };
    format!("{} waiting: {}{more}", count(column.waiting.into()), each.collect::<Vec<_>>().join(", "))
}

fn letters((stack, parts): (&Stack, &[Vec<f64>]), top: f64) -> String {
    let share = |at: usize| f64::from(u32::try_from(at).unwrap_or(u32::MAX));
    let count = share(parts.len().max(1));
    let letters = stack.series.iter().enumerate().filter_map(|(place, series)| {
        let letter = series.letter?;
        let value = |part: &Vec<f64>| part.get(place).copied().unwrap_or_default();
        let highest = parts.iter().map(value).fold(0.0, f64::max);
        // In the middle of the period with this height.
        let at: Vec<usize> =
            (0..parts.len()).filter(|at| parts.get(*at).map(value) == Some(highest)).collect();
        let at = at.get(at.len() / 2).copied().filter(|_| highest / top >= LETTER)?;
        let below: f64 = parts.get(at)?.iter().take(place).sum();
        let (left, bottom) = ((share(at) + 0.5) / count, (below + highest / 2.0) / top);
        Some(format!("<b style=\"left:{};bottom:{}\">{letter}</b>", percent(left), percent(bottom)))
    });
    letters.collect()
}

/// The signs above the chart. Signs too close to the previous one are in its title.
fn signs(report: &IncidentReport, style: Style) -> String {
    let span = TimeSpan::of(report);
    let mut shown: Vec<(f64, Vec<&Mark>)> = Vec::new();
    for mark in &report.marks {
        let place = span.place(mark.at);
        match shown.last_mut() {
            Some((last, marks)) if place - *last < APART => marks.push(mark),
            _ => shown.push((place, vec![mark])),
        }
    }
    let signs = shown.iter().map(|(place, marks)| {
        let first = marks.iter().find(|mark| mark.sign == 'x').or(marks.first());
        let words = first.map(|mark| {
            let more =
                if marks.len() > 1 { format!(", and {} more", marks.len() - 1) } else { String::new() };
            format!("{} {}{more}", time(style, mark.at), one_line_prefix(&mark.text, MARK))
        });
        let sign = first.map_or(' ', |mark| mark.sign);
        let title = escape(&words.unwrap_or_default());
        format!("<b style=\"left:{}\" title=\"{title}\">{}</b>", percent(*place), escape(&sign.to_string()))
    });
    signs.collect()
}

fn legend(report: &IncidentReport, stack: &Stack) -> String {
    let known = stack.series.iter().enumerate().take(stack.series.len().saturating_sub(1));
    let known = known.map(|(place, series)| {
        let most = count(series.most.into());
        format!("<li>{}{}, at most {most} waiting</li>", stack.badge(place), text(&series.name))
    });
    let unknown = stack.series.len().saturating_sub(1);
    let has_unknown = report
        .columns
        .iter()
        .any(|column| column.waiting > 0 && stack.parts(column).last().is_some_and(|part| *part > 0.0));
    let hole = report.columns.iter().any(|column| !column.is_known);
    let more = [
        has_unknown.then(|| format!("<li>{}root blocker not known</li>", stack.badge(unknown))),
        hole.then(|| "<li><i class=\"u\"></i> no snapshot: not known how many waited</li>".to_owned()),
    ];
    let signs = SIGNS.iter().filter(|(sign, _)| report.marks.iter().any(|mark| mark.sign == *sign));
    let signs = signs.map(|(sign, words)| format!("<li><b>{sign}</b> {words}</li>"));
    let items: String = known.chain(more.into_iter().flatten()).chain(signs).collect();
    format!(
        "<ul class=\"k\">{items}</ul>\n<p>The height is the most sessions that waited in a snapshot of that time; a session \
         behind several root blockers is shared between them. The pointer on the chart shows numbers and times.</p>\n"
    )
}

/// Seconds between two ticks, ascending.
const STEPS: [u32; 16] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200];

const DAY: u32 = 86_400;

/// Maximum ticks of the time axis, besides one at its start.
const TICKS: u32 = 8;

#[derive(Debug, Clone, Copy)]
pub(super) struct TimeSpan {
    from: Timestamp,
    seconds: f64,
}

impl TimeSpan {
    pub(super) fn of(report: &IncidentReport) -> Self {
        let seconds = (report.to - report.from).as_seconds_f64();
        // A single snapshot has the whole width.
        Self { from: report.from, seconds: if seconds > 0.0 { seconds } else { 1.0 } }
    }

    /// Position of a time, from 0 at the start to 1 at the end.
    pub(super) fn place(self, at: Timestamp) -> f64 {
        ((at - self.from).as_seconds_f64() / self.seconds).clamp(0.0, 1.0)
    }
}

pub(super) fn times(report: &IncidentReport, style: Style) -> Vec<(f64, String)> {
    let span = TimeSpan::of(report);
    let days = [1, 2, 5, 10, 30, 100, 365, 3_650].map(|days| days * DAY);
    let mut steps = STEPS.into_iter().chain(days);
    let step = steps.find(|step| f64::from(*step) * f64::from(TICKS) >= span.seconds).unwrap_or(u32::MAX);
    let local = report.from.with_timezone(&style.zone).naive_local().and_utc();
    let before = local.timestamp().rem_euclid(i64::from(step));
    let first = TimeDelta::seconds(i64::from(step) - before)
        - TimeDelta::nanoseconds(local.timestamp_subsec_nanos().into());
    let form = match step {
        ..60 => "%H:%M:%S",
        60..DAY if span.seconds < f64::from(DAY) => "%H:%M",
        60..DAY => "%m-%d %H:%M",
        _ => "%Y-%m-%d",
    };
    (0..=TICKS)
        .map(|number| report.from + first + TimeDelta::seconds(i64::from(step) * i64::from(number)))
        .take_while(|at| *at <= report.to)
        .map(|at| (span.place(at), at.with_timezone(&style.zone).format(form).to_string()))
        .collect()
}

pub(super) fn numbers(most: u32) -> Vec<u32> {
    let steps = (0..9).flat_map(|power| [1, 2, 5].map(|step: u32| step * 10_u32.pow(power)));
    let step = steps.into_iter().find(|step| step.saturating_mul(4) >= most).unwrap_or(most.div_ceil(4));
    let count = most.div_ceil(step).max(1);
    (0..=count).map(|number| number.saturating_mul(step)).collect()
}

#[cfg(test)]
mod tests {
    use chrono::Offset;

    use super::*;
    use crate::sample::at;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(numbers(0), [0, 1]);
        assert_eq!(numbers(3), [0, 1, 2, 3]);
        assert_eq!(numbers(46), [0, 20, 40, 60]);
        assert_eq!(numbers(1_000), [0, 500, 1_000]);
        assert_eq!(numbers(u32::MAX).last().map(|top| *top > 4_000_000_000), Some(true));
        let style = Style { top: 10, zone: chrono::Utc.fix().into() };
        for (seconds, count) in [(0.0, 0..2), (7.5, 6..9), (61.0, 4..9), (5_000.0, 3..9), (400_000.0, 3..9)] {
            let report = IncidentReport { from: at(0.3), to: at(0.3 + seconds), ..IncidentReport::default() };
            let times = times(&report, style);
            assert!(count.contains(&times.len()), "{seconds}: {times:?}");
            assert!(times.iter().all(|(place, _)| (0.0..=1.0).contains(place)), "{times:?}");
            let mut labels: Vec<&String> = times.iter().map(|(_, label)| label).collect();
            labels.dedup();
            assert_eq!(labels.len(), times.len(), "{times:?}");
        }
    }
}
