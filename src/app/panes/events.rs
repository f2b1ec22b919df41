//! The Events screen. Similar events of the same time share one line, and so do the routine events of a minute, unless
//! a filter is set.
//!
//! ```text
//!   TIME     SEV  KIND      EVENT                                                                   LENGTH
//!   14:02:31      wait over 4410 deploy@ci got AccessExclusive on accounts                         ≤ 2m51s
//!   14:02:29      wait      17 sessions began to wait for AccessShare on accounts behind 4312            -
//!   14:01:00      routine   tasks: 61 started, 58 ended; leases: 4 taken, 2 with another owner       4.7s
//!   13:59:40 warn root      4312 app@web-3 began to block others: idle in transaction, blocks 1          -
//! ```

use std::borrow::Cow;

use super::column::pane_rows;
use super::definition::{Fact, PaneDefinition, ReadState};
use super::{Cell, Row, RowId, SortValue};
use crate::app::context::Context;
use crate::app::detail::{field, heading};
use crate::app::line::{Line, Tone};
use crate::model::Timestamp;
use crate::model::event::{Event, EventKind, FEW, Length, plural};
use crate::model::finding::{Severity, Subject};
use crate::text;

// Each line has its first event and the number of its events.
pane_rows! {
    Lines<'a> = (&'a Event, u32),
    |context, row| {
        let Row::Events(place, count) = row else { return None };
        let events = &context.view.events;
        Some((events.get(events.dropped() + u64::from(place))?, count))
    },
    |(event, count)| if is_routine(event, count) {
        RowId::Routine(event.number)
    } else {
        RowId::Event(event.number, count)
    }
}

static COLUMNS: &[Column] = &[
    Column::sorted(
        ("TIME", "time", "when it was seen"),
        (8, 8),
        |(event, _), context, _| Cell::toned(time(context, event.at), Tone::Dim),
        |(event, _), context| SortValue::Text(Cow::Owned(context.day_and_time(event.at))),
    ),
    Column::sorted(
        ("SEV", "severity", "severity: CRIT, warn, or empty"),
        (4, 4),
        |(event, _), _, _| Cell::toned(words(event.severity).0, tone(event.severity)),
        |(event, _), _| SortValue::text(Some(words(event.severity).1)),
    )
    .right(),
    Column::sorted(
        ("KIND", "kind", "kind of event"),
        (13, 13),
        |(event, count), _, _| Cell::toned(kind(event, count), line_tone(event, count)),
        |(event, count), _| SortValue::text(Some(kind(event, count))),
    )
    .rank(2),
    Column::cell(
        ("EVENT", "event", "the event; similar events at the same time are one line"),
        (42, 0),
        |(event, count), context, _| {
            let stands_out = event.kind.is_action() || is_routine(event, count);
            let tone = if stands_out { line_tone(event, count) } else { Tone::Plain };
            Cell::toned(what(context, event, count), tone)
        },
    ),
    Column::sorted(
        ("LENGTH", "length", "how long it lasted: ≥ at least, ≤ at most"),
        (8, 8),
        |(event, count), context, _| {
            let length = length(context, event, count);
            length.map_or_else(Cell::none, |length| Cell::plain(length.to_string()))
        },
        |(event, count), context| SortValue::number(length(context, event, count).map(Length::seconds)),
    )
    .right()
    .rank(1),
];

pub(in crate::app::panes) static PANE: PaneDefinition = PaneDefinition {
    empty: "no events yet",
    facts: |context, _| facts(context),
    read: |context| ReadState { at: Some(context.snapshot.taken_at), error: None },
    name: |_, id| match id {
        RowId::Event(first, 1) => format!("Event {first}"),
        RowId::Event(_, count) => format!("{count} events"),
        RowId::Routine(_) => "Routine events of a minute".to_owned(),
        _ => String::new(),
    },
    label: |_, id| match id {
        RowId::Event(number, _) | RowId::Routine(number) => format!("event {number}"),
        _ => String::new(),
    },
    detail: |context, id, _| match id {
        RowId::Event(first, count) => lines(context, first, count),
        RowId::Routine(first) => lines(context, first, count(context, first)),
        _ => None,
    },
    ..PaneDefinition::new(("Events", "an event, and Enter goes to its row"), &COLUMNS, |context, wanted| {
        event_rows(context, wanted.folded)
    })
};

/// Newest first. Similar events and routine events are folded if requested.
fn event_rows(context: &Context<'_>, folded: bool) -> Vec<Row> {
    let events = &context.view.events;
    let mut rows = Vec::new();
    let mut run: Vec<(u32, &Event)> = Vec::new();
    let places = (0..u32::try_from(events.len()).unwrap_or(u32::MAX)).rev();
    for (place, event) in places.zip(events.iter().rev()) {
        let is_one = |last: &Event| match run.first() {
            Some((_, first)) if first.is_routine() => last.is_same_routine(event),
            _ => last.is_alike(event),
        };
        if run.last().is_some_and(|(_, last)| !folded || !is_one(last)) {
            close(&mut run, &mut rows);
        }
        run.push((place, event));
    }
    close(&mut run, &mut rows);
    rows
}

fn close(run: &mut Vec<(u32, &Event)>, rows: &mut Vec<Row>) {
    let first = run.last().filter(|_| run.len() > FEW);
    match first {
        Some((first, _)) => rows.push(Row::Events(*first, u32::try_from(run.len()).unwrap_or(u32::MAX))),
        None => rows.extend(run.iter().map(|(place, _)| Row::Events(*place, 1))),
    }
    run.clear();
}

fn members<'a>(context: &Context<'a>, first: u64, count: u32) -> impl Iterator<Item = &'a Event> {
    let events = &context.view.events;
    (first..first.saturating_add(count.into())).filter_map(|number| events.get(number))
}

/// Whether a line is the routine of a minute, and not one event or several similar ones.
fn is_routine(event: &Event, count: u32) -> bool {
    count > 1 && event.is_routine()
}

fn kind(event: &Event, count: u32) -> &'static str {
    if is_routine(event, count) { "routine" } else { event.kind.as_str() }
}

/// Actions are highlighted, because they are what is usually searched for; routine events are dim.
fn line_tone(event: &Event, count: u32) -> Tone {
    if is_routine(event, count) {
        Tone::Dim
    } else if event.kind.is_action() && event.severity == Severity::Info {
        Tone::Title
    } else {
        tone(event.severity)
    }
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical => Tone::Critical,
        Severity::Warning => Tone::Warning,
        Severity::Info => Tone::Plain,
    }
}

/// The word on the screen, and the text that the filter matches; the most severe sorts as the largest.
fn words(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Critical => ("CRIT", "!! critical"),
        Severity::Warning => ("warn", "! warning"),
        Severity::Info => ("", " info"),
    }
}

/// `14:02:31`; `20 14:02` for another day.
pub(in crate::app) fn time(context: &Context<'_>, at: Timestamp) -> String {
    let day = |at: Timestamp| at.with_timezone(&context.zone).date_naive();
    if day(at) == day(context.snapshot.taken_at) {
        context.time_of_day(at)
    } else {
        at.with_timezone(&context.zone).format("%d %H:%M").to_string()
    }
}

fn length(context: &Context<'_>, event: &Event, count: u32) -> Option<Length> {
    if count < 2 {
        return event.length;
    }
    let lengths = members(context, event.number, count).filter_map(|event| event.length);
    lengths.max_by(|a, b| a.seconds().total_cmp(&b.seconds()))
}

fn what(context: &Context<'_>, event: &Event, count: u32) -> String {
    match count {
        _ if is_routine(event, count) => routine(members(context, event.number, count)),
        // The text of a note may be worded like an action.
        0 | 1 if event.kind == EventKind::Note => format!("note: {}", event.text()),
        0 | 1 => event.text(),
        _ => format!("{} {} {}", text::count(count.into()), event.kind.noun(), plural(&event.what)),
    }
}

/// `1,204 · 61 waits begun · 55 over`, and the number of events that were dropped for lack of space.
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let events = &context.view.events;
    let number = |kind: EventKind| events.iter().filter(|event| event.kind == kind).count() as u64;
    let mut facts = vec![(text::count(events.len() as u64), Tone::Plain)];
    let begun = number(EventKind::WaitBegun);
    if begun > 0 {
        let noun = if begun == 1 { "wait" } else { "waits" };
        let ended = text::count(number(EventKind::WaitEnded));
        facts.push((format!("{} {noun} began, {ended} ended", text::count(begun)), Tone::Plain));
    }
    let done = number(EventKind::ActionResult);
    if done > 0 {
        let noun = if done == 1 { "action" } else { "actions" };
        facts.push((format!("{} {noun}", text::count(done)), Tone::Title));
    }
    if events.dropped() > 0 {
        facts.push((format!("{} older ones dropped", text::count(events.dropped())), Tone::Warning));
    }
    facts
}

/// The number of events so far in the minute of the first event.
fn count(context: &Context<'_>, first: u64) -> u32 {
    let events = &context.view.events;
    let Some(begin) = events.get(first) else { return 0 };
    let same =
        (first..).map_while(|number| events.get(number)).take_while(|event| event.is_same_routine(begin));
    u32::try_from(same.count()).unwrap_or(u32::MAX)
}

const WORDS: [(&str, &[(EventKind, &str)]); 2] = [
    ("tasks", &[(EventKind::TaskStarted, "started"), (EventKind::TaskEnded, "ended")]),
    (
        "leases",
        &[
            (EventKind::LeaseTaken, "taken"),
            (EventKind::LeaseReleased, "released"),
            (EventKind::LeaseChanged, "with another owner"),
        ],
    ),
];

/// `tasks: 61 started, 58 ended; leases: 4 taken, 2 with another owner`.
fn routine<'a>(events: impl Iterator<Item = &'a Event>) -> String {
    let kinds: Vec<EventKind> = events.map(|event| event.kind).collect();
    let counted = |(kind, words): &(EventKind, &str)| {
        let count = kinds.iter().filter(|other| *other == kind).count() as u64;
        (count > 0).then(|| format!("{} {words}", text::count(count)))
    };
    let part = |(of, words): &(&str, &[(EventKind, &str)])| {
        let list: Vec<String> = words.iter().filter_map(counted).collect();
        (!list.is_empty()).then(|| format!("{of}: {}", list.join(", ")))
    };
    WORDS.iter().filter_map(part).collect::<Vec<_>>().join("; ")
}

const OTHERS: usize = 50;

fn lines(context: &Context<'_>, first: u64, count: u32) -> Option<Vec<Line>> {
    let event = context.view.events.get(first)?;
    let mut lines = vec![
        field("event", what(context, event, count), tone(event.severity)),
        field("kind", kind(event, count), Tone::Plain),
    ];
    if count > 1 {
        lines.push(seen(context, event));
        lines.push(Line::new());
        lines.push(heading(format!("All {count}; / filters them")));
        let each = members(context, first, count);
        let is_routine = event.is_routine();
        lines.extend(each.map(|event| {
            let text = if is_routine { event.text() } else { format!("{}{}", event.who, event.more) };
            listed(context, event, text)
        }));
        return Some(lines);
    }
    if event.at != event.seen {
        lines.push(field("at", context.day_and_time(event.at), Tone::Plain));
    }
    lines.push(seen(context, event));
    lines.extend(event.length.map(|length| field("length", length.to_string(), Tone::Plain)));
    lines.extend(event.subject.iter().flat_map(|subject| others(context, event, subject)));
    Some(lines)
}

fn seen(context: &Context<'_>, event: &Event) -> Line {
    field("seen", context.day_and_time(event.seen), Tone::Plain)
}

/// `  14:02:31  4466 app@web-3   ≤ 2m51s`
fn listed(context: &Context<'_>, event: &Event, text: String) -> Line {
    let mut line = Line::new().with(format!("  {:<8}  ", time(context, event.at)), Tone::Dim);
    line.push(text, tone(event.severity));
    line.push(event.length.map_or_else(String::new, |length| format!("   {length}")), Tone::Dim);
    line
}

fn others(context: &Context<'_>, event: &Event, subject: &Subject) -> Vec<Line> {
    if matches!(subject, Subject::Server | Subject::Section(_) | Subject::Queue) {
        return Vec::new();
    }
    let same = |other: &&Event| other.number != event.number && other.subject.as_ref() == Some(subject);
    let mut found = context.view.events.iter().rev().filter(same).peekable();
    if found.peek().is_none() {
        return Vec::new();
    }
    let mut lines = vec![Line::new(), heading("Other events about the same")];
    lines.extend(found.by_ref().take(OTHERS).map(|other| listed(context, other, other.text())));
    if found.next().is_some() {
        lines.push(Line::new().with("  and older ones", Tone::Dim));
    }
    lines
}
