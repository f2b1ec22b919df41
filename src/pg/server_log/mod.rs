//! The server's log as it is in a file, `jsonlog` or `csvlog`: entry after entry, in bounded memory.
//!
//! The format `stderr` is not read: its prefix is a setting, and what names in it may contain makes it ambiguous. Sources:
//! documentation, "Error Reporting and Logging", tables of the columns and keys; `src/backend/utils/error/csvlog.c` and `jsonlog.c`.

mod csv;
mod json;
mod lock;
mod message;
mod time;

use std::borrow::Cow;
use std::io::{self, BufRead};

use crate::model::Timestamp;

pub use lock::lock_tag;
pub use message::{Deadlock, Ended, Party, Said, Wait, WaitKind, said};

/// In which format a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An object of JSON on each line; since 15.
    Json,
    /// Values separated by commas.
    Csv,
}

impl Format {
    /// As `log_destination` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "jsonlog",
            Self::Csv => "csvlog",
        }
    }
}

/// One entry of the server's log, in whichever format it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When it was written, by the server's clock.
    pub at: Timestamp,
    /// The id of the process that wrote it.
    pub pid: i32,
    /// When that began, to the second; none where the log does not say.
    pub session_start: Option<Timestamp>,
    /// The role of its session (`user`); empty where the log has none.
    pub user: Cow<'a, str>,
    /// The `application_name` of its session; empty where the log has none.
    pub application: Cow<'a, str>,
    /// `LOG`, `ERROR`, …, in the language of the server's messages.
    pub severity: Cow<'a, str>,
    /// The SQLSTATE, five characters; `00000` for what is no error.
    pub code: Cow<'a, str>,
    /// What is said; of a long text the beginning, as of the others.
    pub message: Cow<'a, str>,
    /// The DETAIL of the message; empty where there is none.
    pub detail: Cow<'a, str>,
    /// The CONTEXT of the message, such as the row that was locked; empty where there is none.
    pub context: Cow<'a, str>,
    /// The statement that was under way; empty where it is not logged.
    pub statement: Cow<'a, str>,
}

/// What is told of a file beside its entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Lines or records that are none, or too long.
    pub damaged: u64,
    /// Entries whose zone is not known.
    pub unzoned: u64,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file has another format.
    #[error("neither jsonlog nor csvlog: see log_destination of the server")]
    Other,
    /// The file has nothing in it.
    #[error("it is empty")]
    Empty,
}

/// An entry before its times are understood.
#[derive(Debug, Default)]
struct Raw<'a> {
    entry: Entry<'a>,
    time: Cow<'a, str>,
    session_id: Cow<'a, str>,
    session_start: Cow<'a, str>,
}

/// Hands each entry on. What is no entry is counted and passed over.
pub fn read(mut input: impl BufRead, each: &mut dyn FnMut(&Entry<'_>)) -> Result<(Format, Passed), LogError> {
    let format = match input.fill_buf()? {
        [] => return Err(LogError::Empty),
        [b'{', ..] => Format::Json,
        [b'0'..=b'9', ..] => Format::Csv,
        _ => return Err(LogError::Other),
    };
    let mut reading = Reading { zones: time::Zones::default(), passed: Passed::default(), entries: 0, each };
    match format {
        Format::Json => json::read(input, &mut reading)?,
        Format::Csv => csv::read(input, &mut reading)?,
    }
    if reading.entries == 0 && reading.passed.unzoned == 0 {
        return Err(LogError::Other);
    }
    Ok((format, reading.passed))
}

/// Goes along a file.
struct Reading<'a> {
    zones: time::Zones,
    passed: Passed,
    entries: u64,
    each: &'a mut dyn FnMut(&Entry<'_>),
}

impl Reading<'_> {
    fn damaged(&mut self) {
        self.passed.damaged += 1;
    }

    fn entry(&mut self, raw: Raw<'_>) {
        let started = time::session(&raw.session_start, &raw.session_id);
        if let Some((zone, offset, _)) = started {
            self.zones.learn(zone, offset);
        }
        let Some((at, zone)) = time::local(&raw.time) else { return self.damaged() };
        let Some(at) = self.zones.utc(at, zone) else {
            self.passed.unzoned += 1;
            return;
        };
        self.entries += 1;
        let session_start = started.map(|(_, _, start)| start);
        (self.each)(&Entry { at, session_start, ..raw.entry });
    }
}

#[cfg(test)]
mod tests;
