use super::context::Context;
use super::line::{Line, Tone};
use super::panes::RowId;
use crate::model::Text;
use crate::model::finding::Finding;
use crate::model::lock_key::LockKey;
use crate::model::view::SnapshotView;
use crate::model::wait_graph::Party;
use crate::model::why::why;

/// Number of list entries shown before "and 412 more".
pub(super) const LIST: usize = 200;

/// `None` if `subject` no longer exists.
pub fn lines(context: &Context<'_>, subject: RowId, width: usize, wrap: bool) -> Option<Vec<Line>> {
    let width = if wrap { width } else { usize::MAX };
    let lines = (subject.home().definition().detail)(context, subject, width)?;
    Some(lines.into_iter().flat_map(|line| wrapped(line, width)).collect())
}

pub fn finding(finding: &Finding, width: usize) -> Vec<Line> {
    let mut lines = vec![Line::new().with("  ", Tone::Plain).with(&*finding.summary, Tone::Title)];
    if !finding.details.is_empty() {
        lines.push(Line::new());
    }
    let detail =
        |detail: &crate::model::Text| Line::new().with("  ", Tone::Plain).with(&**detail, Tone::Plain);
    lines.extend(finding.details.iter().map(detail));
    lines.into_iter().flat_map(|line| wrapped(line, width)).collect()
}

/// Splits a line that is too long: its last piece is wrapped, and the continuation lines are indented to its start.
pub(in crate::app) fn wrapped(line: Line, width: usize) -> Vec<Line> {
    if line.width() <= width {
        return vec![line];
    }
    let mut head = line;
    let Some(last) = head.spans.pop() else { return vec![head] };
    let indent = head.width();
    let room = width.saturating_sub(indent);
    if room < 20 {
        head.spans.push(last);
        return vec![head];
    }
    let mut pieces = crate::text::lines(&last.text, room).into_iter();
    if let Some(first) = pieces.next() {
        head.push(first, last.tone);
    }
    let below = pieces.map(|piece| Line::new().with(" ".repeat(indent), Tone::Plain).with(piece, last.tone));
    std::iter::once(head).chain(below).collect()
}

pub fn title(context: &Context<'_>, subject: RowId) -> String {
    (subject.home().definition().name)(context, subject)
}

pub(super) fn heading(text: impl Into<String>) -> Line {
    Line::new().with(text, Tone::Title)
}

pub(super) fn field(label: &str, value: impl Into<String>, tone: Tone) -> Line {
    Line::new().with(format!("  {label:<14} "), Tone::Dim).with(value, tone)
}

pub(super) fn fields(pairs: &[(&str, String)]) -> Line {
    let mut line = Line::new().with("  ", Tone::Plain);
    for (label, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        line.push(format!("{label} "), Tone::Dim);
        line.push(format!("{value}   "), Tone::Plain);
    }
    line
}

/// Removes the lines with a label and no value.
pub(super) fn drop_empty(lines: &mut Vec<Line>) {
    lines.retain(|line| line.spans.iter().skip(1).any(|span| !span.text.trim().is_empty()));
}

/// The lines of the first entries, and how many more there are.
pub(super) fn listed<T>(entries: &[T], line: impl Fn(&T) -> Line) -> Vec<Line> {
    let more = entries.len().saturating_sub(LIST);
    let more = (more > 0).then(|| Line::new().with(format!("  and {more} more"), Tone::Dim));
    entries.iter().take(LIST).map(line).chain(more).collect()
}

pub(super) fn ago(context: &Context<'_>, at: Option<crate::model::Timestamp>) -> String {
    match (at, context.age(at)) {
        (Some(at), Some(age)) => format!("{} ago ({})", crate::text::duration(age), context.time_of_day(at)),
        _ => String::new(),
    }
}

/// A party in a few words: `4410 deploy@ci`.
pub(super) fn party(context: &Context<'_>, party: Party) -> String {
    SnapshotView { view: context.view, snapshot: context.snapshot }.party(party)
}

pub(super) fn parties(context: &Context<'_>, list: &[Party]) -> String {
    let shown: Vec<String> = list.iter().take(6).map(|one| party(context, *one)).collect();
    match list.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Empty for a party that does not wait.
pub(super) fn reasons(context: &Context<'_>, subject: Party) -> Vec<Line> {
    let said = why(context.view, subject).into_iter().enumerate();
    let line = |(at, said): (usize, String)| {
        field(if at == 0 { "why" } else { "" }, crate::text::one_line(&said), Tone::Plain)
    };
    said.map(line).collect()
}

pub(super) fn consequence(context: &Context<'_>, subject: Party) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(promise) = context.promise(subject) {
        let tone = if promise.now + promise.in_turn == 0 { Tone::Warning } else { Tone::Good };
        lines.push(field("blocks", promise.words().trim_start_matches("blocks "), tone));
        let release = context.released(subject);
        let lists = [
            ("now", &release.now),
            ("in turn", &release.in_turn),
            ("still blocked", &release.still),
            ("by", &release.others),
            ("may stay", &release.unsure),
            ("maybe by", &release.possible),
        ];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        lines.extend(lists.map(|(label, list)| field(label, parties(context, list), Tone::Plain)));
        if release.standby {
            lines.push(field(
                "by",
                "a synchronous standby, for which each of them waits when it commits",
                Tone::Warning,
            ));
        }
    }
    let roots = context.view.graph.roots_above(subject);
    if !roots.is_empty() {
        lines.push(field("the root is", parties(context, &roots), Tone::Critical));
    }
    lines
}

pub(super) fn words(text: Option<&Text>) -> String {
    text.map(|text| crate::text::one_line(text).into_owned()).unwrap_or_default()
}

pub(super) fn number(value: Option<i64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// `1 of 3`, as far as it is known.
pub(super) fn of(value: Option<i64>, most: Option<i64>) -> String {
    match most {
        Some(most) => format!("{} of {most}", number(value)).trim_start().to_owned(),
        None => number(value),
    }
}

/// `in 4m10s`, `12m ago`, by the number of seconds until then.
pub(super) fn in_or_ago(left: f64) -> String {
    let time = crate::text::duration(left.abs());
    if left > 0.0 { format!("in {time}") } else { format!("{time} ago") }
}

/// A session by its process id, connected or ended; `ended` is the tone if it has ended.
pub(super) fn session(context: &Context<'_>, pid: i32, is_alive: bool, ended: Tone) -> Line {
    if is_alive {
        return field("session", party(context, Party::Backend(pid)), Tone::Plain);
    }
    field("session", format!("{pid}, which has ended"), ended)
}

/// The key of a job, a worker or a lease of another system, and the session that holds it.
pub(super) fn held_by(context: &Context<'_>, key: Option<LockKey>, pid: Option<i32>) -> Vec<Line> {
    let key = key.map(|key| field("key", key.to_string(), Tone::Plain));
    let session = pid.map(|pid| field("session", party(context, Party::Backend(pid)), Tone::Plain));
    key.into_iter().chain(session).collect()
}

pub(super) fn last_error(error: Option<&Text>) -> Vec<Line> {
    let Some(error) = error.filter(|error| !error.is_empty()) else { return Vec::new() };
    let text = crate::text::one_line(error);
    vec![Line::new(), heading("Last error"), Line::new().with("  ", Tone::Plain).with(text, Tone::Critical)]
}

/// `left` is the number of seconds until the end.
pub(super) fn end_label(left: Option<f64>) -> &'static str {
    if left.is_some_and(|left| left <= 0.0) { "ended" } else { "ends" }
}

pub(super) fn state((word, tone): (&str, Tone), why: impl Into<String>) -> Line {
    field("state", word, tone).with(why, Tone::Plain)
}
