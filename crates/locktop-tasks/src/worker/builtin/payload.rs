use std::time::Duration;

use postgres_protocol::escape::escape_literal;
use serde_json::{Map, Value};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::command::Program;
use super::{Job, Source};
use locktop_base::text;

/// The maximum length of a channel name and of a payload, in bytes (`NAMEDATALEN` and `NOTIFY_PAYLOAD_MAX_LENGTH` of
/// src/backend/commands/async.c).
const LONGEST_CHANNEL: usize = 63;
const LONGEST_NOTE: usize = 7999;

/// For a type of 0.1.0, which `--allow-http` allowed.
pub const HTTP_REMOVED: &str = "the type \"http\" was removed: use the type \"command\" with --allow-commands and a payload such as {\"argv\": [\"curl\", \"-fsS\", \"https://…\"]}";

/// The built-in types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray, EnumString)]
#[strum(serialize_all = "snake_case")]
pub(super) enum PayloadType {
    Sleep,
    Sql,
    Notify,
    Command,
}

impl PayloadType {
    pub(super) fn as_str(self) -> &'static str {
        self.into()
    }

    fn example(self) -> &'static str {
        match self {
            Self::Sleep => r#"{"seconds": 1.5}"#,
            Self::Sql => r#"{"statement": "…"}"#,
            Self::Notify => r#"{"channel": "…", "payload": "…"}"#,
            Self::Command => r#"{"argv": ["program", "argument"], "env": {"NAME": "value"}}"#,
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum PayloadWork {
    Sleep(Duration),
    Sql(String),
    Command(Program),
}

#[derive(Debug, PartialEq)]
pub(super) struct Payload {
    pub(super) what: PayloadWork,
    /// Replaces the job's own timeout, and is not longer.
    pub(super) timeout: Option<Duration>,
}

/// The error is for the job's row.
pub(super) fn kind(job: &Job) -> Result<PayloadType, String> {
    let name = job.kind.as_str();
    if let Ok(kind) = name.parse() {
        return Ok(kind);
    }
    if name == "http" {
        return Err(HTTP_REMOVED.to_owned());
    }
    let name = text::fit(&text::one_line(name), 60).into_owned();
    let what = match job.source {
        Source::Tasks => "task type",
        Source::Queue => "item's name",
    };
    let known = PayloadType::VARIANTS.iter().map(<&str>::from).collect::<Vec<_>>().join(", ");
    Err(format!("the {what} \"{name}\" is not known: this worker runs {known}"))
}

impl Payload {
    /// The error is for the job's row.
    pub(super) fn read(kind: PayloadType, job: &Job) -> Result<Self, String> {
        let of = match job.source {
            Source::Tasks => "a task of type",
            Source::Queue => "an item named",
        };
        let (name, example) = (kind.as_str(), kind.example());
        let wrong = |what: &str| format!("the payload of {of} \"{name}\" {what}; such as {example}");
        let Some(payload) = &job.json else { return Err(wrong("is missing")) };
        let payload: Value =
            serde_json::from_str(payload).map_err(|error| wrong(&format!("cannot be read ({error})")))?;
        let Value::Object(payload) = payload else { return Err(wrong("is not an object")) };
        let timeout = payload.contains_key("timeout").then(|| seconds(&payload, "timeout"));
        let timeout = timeout.transpose().map_err(|error| wrong(&error))?;
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(wrong("has a \"timeout\" of 0"));
        }
        // A longer timeout is refused: past its own timeout a task counts as slow, and may be terminated by a monitor.
        if let Some(timeout) = timeout.filter(|timeout| *timeout > job.timeout) {
            let (own, timeout) = (job.timeout.as_secs_f64(), timeout.as_secs_f64());
            return Err(wrong(&format!("has a \"timeout\" of {timeout} s, above the task's own of {own} s")));
        }
        let what = match kind {
            PayloadType::Sleep => seconds(&payload, "seconds").map(PayloadWork::Sleep),
            PayloadType::Sql => filled(&payload, "statement").map(PayloadWork::Sql),
            PayloadType::Notify => notification(&payload).map(PayloadWork::Sql),
            PayloadType::Command => Program::read(&payload).map(PayloadWork::Command),
        };
        Ok(Self { what: what.map_err(|error| wrong(&error))?, timeout })
    }
}

/// The NOTIFY statement. The notification's payload is a text, or JSON as it is.
fn notification(payload: &Map<String, Value>) -> Result<String, String> {
    let channel = filled(payload, "channel")?;
    if channel.len() > LONGEST_CHANNEL {
        return Err(format!("has a \"channel\" of more than {LONGEST_CHANNEL} bytes"));
    }
    let note = match payload.get("payload") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    if note.len() > LONGEST_NOTE {
        return Err(format!("has a \"payload\" of more than {LONGEST_NOTE} bytes"));
    }
    let (channel, note) = (escape_literal(&channel), escape_literal(&note));
    Ok(format!("SELECT pg_catalog.pg_notify({channel}, {note})"))
}

// The fields of a payload. An error is the rest of a sentence that begins with the name of the payload.

fn seconds(payload: &Map<String, Value>, name: &str) -> Result<Duration, String> {
    let Some(value) = payload.get(name) else { return Err(format!("has no \"{name}\"")) };
    let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("has a \"{name}\" that is not a number of seconds from 0"))
}

/// A required text that is not empty.
fn filled(payload: &Map<String, Value>, name: &str) -> Result<String, String> {
    match payload.get(name) {
        None => Err(format!("has no \"{name}\"")),
        Some(Value::String(text)) if text.trim().is_empty() => Err(format!("has an empty \"{name}\"")),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("has a \"{name}\" that is not a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(kind: &str, payload: Option<&str>) -> Job {
        Job {
            source: Source::Tasks,
            id: 1,
            task_id: 1,
            name: "t".to_owned(),
            kind: kind.to_owned(),
            json: payload.map(str::to_owned),
            attempt: 1,
            max_attempts: 3,
            timeout: Duration::from_secs(60),
            lock_id: 0,
        }
    }

    fn read(job: &Job) -> Result<Payload, String> {
        Payload::read(kind(job)?, job)
    }

    #[test]
    fn payloads_of_each_kind_are_parsed() {
        let sql = |text: &str| PayloadWork::Sql(text.to_owned());
        for (kind, payload, what, timeout) in [
            ("sleep", r#"{"seconds": 1.5}"#, PayloadWork::Sleep(Duration::from_millis(1500)), None),
            ("sleep", r#"{"seconds": 0, "x": 1}"#, PayloadWork::Sleep(Duration::ZERO), None),
            ("sql", r#"{"statement": "SELECT 1"}"#, sql("SELECT 1"), None),
            ("sql", r#"{"statement": "x", "timeout": 2}"#, sql("x"), Some(Duration::from_secs(2))),
            (
                "sleep",
                r#"{"seconds": 0, "timeout": 60}"#,
                PayloadWork::Sleep(Duration::ZERO),
                Some(Duration::from_secs(60)),
            ),
            ("notify", r#"{"channel": "a"}"#, sql("SELECT pg_catalog.pg_notify('a', '')"), None),
            (
                "notify",
                r#"{"channel": "A b'", "payload": "it's"}"#,
                sql("SELECT pg_catalog.pg_notify('A b''', 'it''s')"),
                None,
            ),
            (
                "notify",
                r#"{"channel": "a", "payload": {"n": 1}}"#,
                sql(r#"SELECT pg_catalog.pg_notify('a', '{"n":1}')"#),
                None,
            ),
        ] {
            assert_eq!(read(&job(kind, Some(payload))), Ok(Payload { what, timeout }), "{payload}");
        }
    }

    #[test]
    fn invalid_payloads_are_refused_with_an_example() {
        let long = format!(r#"{{"channel": "a", "payload": "{}"}}"#, "x".repeat(8000));
        for (kind, payload, expected) in [
            ("sleep", None, "is missing"),
            ("sleep", Some("[]"), "is not an object"),
            ("sleep", Some("{}"), "has no \"seconds\""),
            ("sleep", Some(r#"{"seconds": -1}"#), "not a number of seconds"),
            ("sleep", Some(r#"{"seconds": 1e300}"#), "not a number of seconds"),
            ("sleep", Some(r#"{"seconds": 1e400}"#), "cannot be read"),
            ("sleep", Some(r#"{"seconds": "1"}"#), "not a number of seconds"),
            ("sql", Some("{}"), "has no \"statement\""),
            ("sql", Some(r#"{"statement": "  "}"#), "empty \"statement\""),
            ("sql", Some(r#"{"statement": 7}"#), "that is not a string"),
            ("sql", Some(r#"{"statement": "x", "timeout": 0}"#), "\"timeout\" of 0"),
            (
                "sql",
                Some(r#"{"statement": "x", "timeout": 60.5}"#),
                "of 60.5 s, above the task's own of 60 s;",
            ),
            ("notify", Some(r#"{"channel": ""}"#), "empty \"channel\""),
            ("notify", Some(&long), "\"payload\" of more than 7999 bytes"),
            ("command", Some("{}"), "\"argv\""),
        ] {
            let error = read(&job(kind, payload)).unwrap_err();
            assert!(error.contains(expected) && error.contains(&format!("\"{kind}\"")), "{error}");
            assert!(error.contains("; such as {\""), "{error}");
        }
        let error = read(&job("mail", None)).unwrap_err();
        assert!(error.ends_with("\"mail\" is not known: this worker runs sleep, sql, notify, command"));
        assert_eq!(read(&job("http", Some(r#"{"url": "https://a"}"#))).unwrap_err(), HTTP_REMOVED);
        let error = read(&job("a\u{1b}[2J\nb", None)).unwrap_err();
        assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
    }
}
