use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serializer as _;
use serde_json::Value;

use super::event::{Event, JobEvent};
use super::{Source, WorkerId};
use locktop_base::text::one_line_prefix;

/// Maximum number of characters of one text in a line; the row has all of it.
const LONGEST: usize = 4000;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people: time, level, worker, and what happened.
    #[default]
    Text,
    /// For programs: one JSON object per line.
    Json,
}

/// A log line, without the newline. Whatever the event contains, it is one line without terminal control sequences.
#[must_use]
pub fn line(format: Format, at: DateTime<Utc>, worker: &WorkerId, event: &Event) -> String {
    let said = event.to_string();
    let message = one_line_prefix(&said, LONGEST);
    let (time, level): (_, &str) = (at.to_rfc3339_opts(SecondsFormat::Millis, true), event.level().into());
    if format == Format::Text {
        return format!("{time} {level:<5} worker {worker}: {message}");
    }
    let job = event.job();
    let task = job.filter(|job| job.source == Source::Tasks);
    let item = job.filter(|job| job.source == Source::Queue);
    let (again, rows) = match event {
        Event::Job(_, JobEvent::Failed { again, .. }) => (Some(*again), None),
        Event::Purged { rows, .. } => (None, Some(*rows)),
        _ => (None, None),
    };
    // Keys are added, never changed.
    let fields: [(&str, Option<Value>); 16] = [
        ("time", Some(at.to_rfc3339_opts(SecondsFormat::Micros, true).into())),
        ("level", Some(level.to_ascii_lowercase().into())),
        ("worker", Some(worker.as_str().into())),
        ("event", Some(event.name().into())),
        ("message", Some(message.into())),
        ("task_id", task.map(|task| task.task_id.into())),
        ("execution_id", task.map(|task| task.id.into())),
        ("item_id", item.map(|item| item.id.into())),
        ("name", job.map(|job| job.title.as_str().into())),
        ("type", job.map(|job| job.kind.as_str().into())),
        ("attempt", job.map(|job| job.attempt.into())),
        ("max_attempts", job.map(|job| job.max_attempts.into())),
        ("seconds", event.took().map(|took| took.as_secs_f64().into())),
        ("again", again.map(Value::from)),
        ("rows", rows.map(Value::from)),
        ("error", event.error().map(|error| one_line_prefix(&error, LONGEST).into())),
    ];
    let mut line = Vec::new();
    let known = fields.into_iter().filter_map(|(key, value)| Some((key, value?)));
    let _ = serde_json::Serializer::new(&mut line).collect_map(known);
    String::from_utf8(line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::event::Level;
    use super::super::{Name, Types};
    use super::*;

    fn job(source: Source) -> Name {
        Name {
            title: "night".to_owned(),
            source,
            id: 42,
            task_id: 3,
            kind: "sql".to_owned(),
            attempt: 2,
            max_attempts: 3,
        }
    }

    fn logged(format: Format, event: &Event) -> String {
        let at = DateTime::from_timestamp_micros(1_764_000_000_123_456).unwrap();
        line(format, at, &"w1".parse().unwrap(), event)
    }

    #[test]
    fn a_text_line_has_time_level_worker_and_event() {
        let began = Event::Job(job(Source::Tasks), JobEvent::Began);
        assert_eq!(
            logged(Format::Text, &began),
            "2025-11-24T16:00:00.123Z INFO  worker w1: started \"night\" (execution 42): task 3, type sql, attempt 2 of 3"
        );
        let took = Duration::from_millis(1500);
        let reason = "no\u{1b}[2J\nmore".to_owned();
        let failed = Event::Job(job(Source::Queue), JobEvent::Failed { took, again: false, reason });
        assert_eq!(failed.level(), Level::Error);
        let text = logged(Format::Text, &failed);
        assert!(text.starts_with(
            "2025-11-24T16:00:00.123Z ERROR worker w1: failed \"night\" (item 42) after 1.500 s, for good: no"
        ));
        assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
    }

    #[test]
    fn a_program_reads_the_same() {
        let took = Duration::from_millis(250);
        let reason = "no\u{1b}[2J\u{202e}\nmore".to_owned();
        let failed = Event::Job(job(Source::Tasks), JobEvent::Failed { took, again: true, reason });
        let line = logged(Format::Json, &failed);
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
        let mut found: Value = serde_json::from_str(&line).unwrap();
        let error = found.as_object_mut().unwrap().remove("error").unwrap();
        assert!(error.as_str().unwrap().starts_with("no"), "{error}");
        assert!(
            found["message"]
                .as_str()
                .unwrap()
                .starts_with("failed \"night\" (execution 42) after 0.250 s: no")
        );
        found.as_object_mut().unwrap().remove("message");
        let expected = json!({"time": "2025-11-24T16:00:00.123456Z", "level": "warn", "worker": "w1", "event": "failed",
            "task_id": 3, "execution_id": 42, "name": "night", "type": "sql", "attempt": 2, "max_attempts": 3,
            "seconds": 0.25, "again": true});
        assert_eq!(found, expected);
        let line = logged(Format::Json, &Event::Connected { pid: 7, types: Types::only(["sql", "sleep"]) });
        let found: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(found["event"], "connected");
        assert_eq!(found["message"], "connected, served by process 7; takes sleep, sql");
        assert_eq!(found.as_object().unwrap().len(), 5, "{found}");
    }

    #[test]
    fn a_long_text_is_cut() {
        let event = Event::Waiting("x".repeat(100_000));
        assert!(
            logged(Format::Text, &event).len() < 2 * LONGEST
                && logged(Format::Json, &event).len() < 4 * LONGEST
        );
    }
}
