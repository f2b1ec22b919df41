//! The detail view of an event: its time, and what else is known of its subject. For a line of several events it lists
//! each.

use crate::app::context::Context;
use crate::app::detail::{field, heading};
use crate::app::line::{Line, Tone};
use crate::app::panes::events::{kind, members, time as event_time, tone as event_tone, what as event_text};
use crate::model::event::Event;
use crate::model::finding::Subject;

const OTHERS: usize = 50;

pub(super) fn lines(context: &Context<'_>, first: u64, count: u32) -> Option<Vec<Line>> {
    let event = context.view.events.get(first)?;
    let words = event_text(context, event, count);
    let mut lines = vec![
        field("event", words, event_tone(event.severity)),
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
    lines.extend(event.subject.as_ref().map(|subject| others(context, event, subject)).into_iter().flatten());
    Some(lines)
}

fn seen(context: &Context<'_>, event: &Event) -> Line {
    field("seen", context.day_and_time(event.seen), Tone::Plain)
}

/// `  14:02:31  4466 app@web-3   ≤ 2m51s`
fn listed(context: &Context<'_>, event: &Event, text: String) -> Line {
    let mut line = Line::new().with(format!("  {:<8}  ", event_time(context, event.at)), Tone::Dim);
    line.push(text, event_tone(event.severity));
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
