//! What a task asks for.

use std::time::Duration;

use serde_json::{Map, Value};

use super::Execution;
use crate::text;

/// What is known, for an error.
const KNOWN: &str = "this worker knows \"sleep\" ({\"seconds\": 1.5}) and \"sql\" ({\"statement\": \"…\"})";

/// What to do.
#[derive(Debug, PartialEq)]
pub(super) enum What {
    Sleep(Duration),
    Sql(String),
}

/// A payload that was understood.
#[derive(Debug, PartialEq)]
pub(super) struct Payload {
    pub(super) what: What,
    /// In place of the task's own, and no longer than that.
    pub(super) timeout: Option<Duration>,
}

impl Payload {
    /// Reads what an execution's type needs. The error is for the log.
    pub(super) fn read(execution: &Execution) -> Result<Self, String> {
        let kind = execution.task_type.as_str();
        if !matches!(kind, "sleep" | "sql") {
            let kind = text::fit(&text::one_line(kind), 60).into_owned();
            return Err(format!("the task type \"{kind}\" is not known: {KNOWN}"));
        }
        let wrong = |what: &str| format!("the payload of a task of type \"{kind}\" {what}: {KNOWN}");
        let Some(payload) = &execution.payload else { return Err(wrong("is missing")) };
        let payload: Value =
            serde_json::from_str(payload).map_err(|error| wrong(&format!("cannot be read ({error})")))?;
        let Value::Object(payload) = payload else { return Err(wrong("is no object")) };
        let timeout = payload.contains_key("timeout").then(|| seconds(&payload, "timeout"));
        let timeout = timeout.transpose().map_err(|error| wrong(&error))?;
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(wrong("has a \"timeout\" of nothing"));
        }
        // Past the task's own it is taken for slow, and may be ended by whoever looks after that.
        if let Some(timeout) = timeout.filter(|timeout| *timeout > execution.timeout) {
            let (own, timeout) = (execution.timeout.as_secs_f64(), timeout.as_secs_f64());
            return Err(wrong(&format!("has a \"timeout\" of {timeout} s, above the task's own of {own} s")));
        }
        let what = if kind == "sleep" {
            What::Sleep(seconds(&payload, "seconds").map_err(|error| wrong(&error))?)
        } else {
            What::Sql(statement(&payload).map_err(|error| wrong(&error))?)
        };
        Ok(Self { what, timeout })
    }
}

fn seconds(payload: &Map<String, Value>, name: &str) -> Result<Duration, String> {
    let Some(value) = payload.get(name) else { return Err(format!("has no \"{name}\"")) };
    let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("has a \"{name}\" that is no number of seconds from 0 on"))
}

fn statement(payload: &Map<String, Value>) -> Result<String, String> {
    match payload.get("statement") {
        Some(Value::String(statement)) if statement.trim().is_empty() => {
            Err("has an empty \"statement\"".to_owned())
        }
        Some(Value::String(statement)) => Ok(statement.clone()),
        Some(_) => Err("has a \"statement\" that is no text".to_owned()),
        None => Err("has no \"statement\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(kind: &str, payload: Option<&str>) -> Execution {
        Execution {
            id: 1,
            task_id: 1,
            task_name: "t".to_owned(),
            task_type: kind.to_owned(),
            payload: payload.map(str::to_owned),
            attempt: 1,
            max_attempts: 3,
            timeout: Duration::from_secs(60),
            lock_id: 0,
        }
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        for (kind, payload, what, timeout) in [
            ("sleep", r#"{"seconds": 1.5}"#, What::Sleep(Duration::from_millis(1500)), None),
            ("sleep", r#"{"seconds": 0, "x": 1}"#, What::Sleep(Duration::ZERO), None),
            ("sql", r#"{"statement": "SELECT 1"}"#, What::Sql("SELECT 1".to_owned()), None),
            (
                "sql",
                r#"{"statement": "x", "timeout": 2}"#,
                What::Sql("x".to_owned()),
                Some(Duration::from_secs(2)),
            ),
            (
                "sleep",
                r#"{"seconds": 0, "timeout": 60}"#,
                What::Sleep(Duration::ZERO),
                Some(Duration::from_secs(60)),
            ),
        ] {
            assert_eq!(
                Payload::read(&execution(kind, Some(payload))),
                Ok(Payload { what, timeout }),
                "{payload}"
            );
        }
    }

    #[test]
    fn everything_else_is_refused_with_what_is_known() {
        for (kind, payload, said) in [
            ("sleep", None, "is missing"),
            ("sleep", Some("[]"), "is no object"),
            ("sleep", Some("{}"), "has no \"seconds\""),
            ("sleep", Some(r#"{"seconds": -1}"#), "no number of seconds"),
            ("sleep", Some(r#"{"seconds": 1e300}"#), "no number of seconds"),
            ("sleep", Some(r#"{"seconds": 1e400}"#), "cannot be read"),
            ("sleep", Some(r#"{"seconds": "1"}"#), "no number of seconds"),
            ("sql", Some("{}"), "has no \"statement\""),
            ("sql", Some(r#"{"statement": "  "}"#), "empty \"statement\""),
            ("sql", Some(r#"{"statement": 7}"#), "that is no text"),
            ("sql", Some(r#"{"statement": "x", "timeout": 0}"#), "\"timeout\" of nothing"),
            (
                "sql",
                Some(r#"{"statement": "x", "timeout": 60.5}"#),
                "of 60.5 s, above the task's own of 60 s:",
            ),
            ("http", Some("{}"), "\"http\" is not known"),
        ] {
            let error = Payload::read(&execution(kind, payload)).unwrap_err();
            assert!(error.contains(said) && error.contains(kind) && error.ends_with(KNOWN), "{error}");
        }
        let error = Payload::read(&execution("a\u{1b}[2J\nb", None)).unwrap_err();
        assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
    }
}
