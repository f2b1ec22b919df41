//! The fields of a payload. An error is the rest of a sentence that begins with the name of the payload.

use std::time::Duration;

use serde_json::{Map, Value};

pub(super) fn seconds(payload: &Map<String, Value>, name: &str) -> Result<Duration, String> {
    let Some(value) = payload.get(name) else { return Err(format!("has no \"{name}\"")) };
    let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("has a \"{name}\" that is not a number of seconds from 0"))
}

/// A required text that is not empty.
pub(super) fn filled(payload: &Map<String, Value>, name: &str) -> Result<String, String> {
    match text(payload, name)? {
        Some(text) if text.trim().is_empty() => Err(format!("has an empty \"{name}\"")),
        Some(text) => Ok(text),
        None => Err(format!("has no \"{name}\"")),
    }
}

/// An optional text.
fn text(payload: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match payload.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("has a \"{name}\" that is not a string")),
    }
}

/// The entries of an optional object of strings.
pub(super) fn texts(payload: &Map<String, Value>, name: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = || format!("has a \"{name}\" that is not an object of strings");
    match payload.get(name) {
        None => Ok(Vec::new()),
        Some(Value::Object(values)) => {
            let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            values.iter().map(pair).collect::<Option<_>>().ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}
