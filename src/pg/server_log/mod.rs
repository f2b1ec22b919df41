//! Reads the server's log from a file, `jsonlog` or `csvlog`, entry by entry and in bounded memory.
//!
//! The format `stderr` is not read: its prefix is configurable, and ambiguous because of what names may contain. Sources:
//! documentation, "Error Reporting and Logging", tables of the columns and keys; `src/backend/utils/error/csvlog.c` and
//! `jsonlog.c`.

mod format;
mod message;

use std::borrow::Cow;
use std::io::{self, BufRead};

use serde::Deserialize;

use crate::model::Timestamp;

pub use message::{Deadlock, LogMessage, LoggedWait, Party, StatementEnd, WaitKind, lock_tag, parse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line; since 15.
    Json,
    Csv,
}

impl Format {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "jsonlog",
            Self::Csv => "csvlog",
        }
    }
}

/// An entry, by the keys of `jsonlog`, which leaves out empty ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct LogEntry<'a> {
    /// By the server's clock.
    #[serde(skip)]
    pub at: Timestamp,
    #[serde(default)]
    pub pid: i32,
    /// Start of that process, to the second; None if the log does not contain it.
    #[serde(skip)]
    pub session_start: Option<Timestamp>,
    /// The role of its session (`user`); empty if the log has none.
    #[serde(borrow, default)]
    pub user: Cow<'a, str>,
    /// The `application_name` of its session; empty if the log has none.
    #[serde(borrow, default, rename = "application_name")]
    pub application: Cow<'a, str>,
    /// `LOG`, `ERROR`, …, in the language of the server's messages.
    #[serde(borrow, default, rename = "error_severity")]
    pub severity: Cow<'a, str>,
    /// The SQLSTATE, five characters; `00000` if there is no error.
    #[serde(borrow, default, rename = "state_code")]
    pub code: Cow<'a, str>,
    /// The message. Long texts are truncated, here and in the other fields.
    #[serde(borrow, default)]
    pub message: Cow<'a, str>,
    /// The DETAIL of the message; empty if there is none.
    #[serde(borrow, default)]
    pub detail: Cow<'a, str>,
    /// The CONTEXT of the message, such as the locked row; empty if there is none.
    #[serde(borrow, default)]
    pub context: Cow<'a, str>,
    #[serde(borrow, default)]
    pub statement: Cow<'a, str>,
    /// The times as the log has them.
    #[serde(borrow, rename = "timestamp")]
    time: Cow<'a, str>,
    #[serde(borrow, default)]
    session_id: Cow<'a, str>,
    #[serde(borrow, default, rename = "session_start")]
    started: Cow<'a, str>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Invalid or too long lines or records.
    pub damaged: u64,
    /// Entries whose time zone is not known.
    pub unzoned: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("neither jsonlog nor csvlog: see log_destination of the server")]
    Other,
    #[error("it is empty")]
    Empty,
}

pub fn read(
    mut input: impl BufRead,
    each: &mut dyn FnMut(&LogEntry<'_>),
) -> Result<(Format, Passed), LogError> {
    let format = match input.fill_buf()? {
        [] => return Err(LogError::Empty),
        [b'{', ..] => Format::Json,
        [b'0'..=b'9', ..] => Format::Csv,
        _ => return Err(LogError::Other),
    };
    let mut reading =
        LogReading { zones: format::Zones::default(), passed: Passed::default(), entries: 0, each };
    match format {
        Format::Json => format::json(input, &mut reading)?,
        Format::Csv => format::csv(input, &mut reading)?,
    }
    if reading.entries == 0 && reading.passed.unzoned == 0 {
        return Err(LogError::Other);
    }
    Ok((format, reading.passed))
}

struct LogReading<'a> {
    zones: format::Zones,
    passed: Passed,
    entries: u64,
    each: &'a mut dyn FnMut(&LogEntry<'_>),
}

impl LogReading<'_> {
    fn damaged(&mut self) {
        self.passed.damaged += 1;
    }

    fn entry(&mut self, entry: LogEntry<'_>) {
        let started = format::session(&entry.started, &entry.session_id);
        if let Some((zone, offset, _)) = started {
            self.zones.learn(zone, offset);
        }
        let Some((at, zone)) = format::local(&entry.time) else { return self.damaged() };
        let Some(at) = self.zones.utc(at, zone) else {
            self.passed.unzoned += 1;
            return;
        };
        self.entries += 1;
        let session_start = started.map(|(_, _, start)| start);
        (self.each)(&LogEntry { at, session_start, ..entry });
    }
}

#[cfg(test)]
mod tests;
