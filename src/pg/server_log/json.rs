//! `jsonlog`: one object per line.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use serde::Deserialize;

use super::{Entry, Raw, Reading};

/// Longest line in bytes: longer lines are skipped.
const LONGEST: u64 = 8 << 20;

/// The keys that are read. The server leaves out empty ones.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow, default)]
    user: Cow<'a, str>,
    #[serde(default)]
    pid: i32,
    #[serde(borrow, default)]
    session_id: Cow<'a, str>,
    #[serde(borrow, default)]
    session_start: Cow<'a, str>,
    #[serde(borrow, default)]
    error_severity: Cow<'a, str>,
    #[serde(borrow, default)]
    state_code: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    detail: Cow<'a, str>,
    #[serde(borrow, default)]
    context: Cow<'a, str>,
    #[serde(borrow, default)]
    statement: Cow<'a, str>,
    #[serde(borrow, default)]
    application_name: Cow<'a, str>,
}

pub(super) fn read(mut input: impl BufRead, reading: &mut Reading<'_>) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let is_whole = line.last() == Some(&b'\n');
        if !is_whole && line.len() as u64 == LONGEST {
            reading.damaged();
            if input.skip_until(b'\n')? == 0 {
                return Ok(());
            }
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_str::<Line<'_>>(&text) {
            Ok(line) => reading.entry(raw(line)),
            // The last line may still be in writing.
            Err(_) if !is_whole => {}
            Err(_) => reading.damaged(),
        }
    }
}

fn raw(line: Line<'_>) -> Raw<'_> {
    Raw {
        entry: Entry {
            pid: line.pid,
            user: line.user,
            application: line.application_name,
            severity: line.error_severity,
            code: line.state_code,
            message: line.message,
            detail: line.detail,
            context: line.context,
            statement: line.statement,
            ..Entry::default()
        },
        time: line.timestamp,
        session_id: line.session_id,
        session_start: line.session_start,
    }
}
