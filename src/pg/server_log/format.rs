//! The formats of a server's log, and its times.

use std::io::{self, BufRead, Read};

use chrono::{NaiveDate, NaiveDateTime};

use super::{LogEntry, LogReading};
use crate::model::Timestamp;

// `csvlog`: records of values, with line ends allowed within quotes.
// In an intact file no part of a value is taken for a record. After a torn record, as left by a machine crash, reading
// continues at the next line end.

/// Bytes of a value that are kept; the rest is skipped.
const KEPT: usize = 64 << 10;

/// Values of a record: 23 before 13, 24 in 13, 26 since 14; later versions append more.
const VALUES: std::ops::RangeInclusive<usize> = 23..=48;

#[derive(Clone, Copy, PartialEq, Eq)]
enum CsvState {
    /// Before the first byte of a value.
    Begin,
    Plain,
    Quoted,
    /// After a quote within quotes: the end of the value, or the first of two quotes.
    Quote,
    /// Not in a record; skips to the next line end.
    Lost,
}

/// The memory of the values is reused.
struct CsvRecord {
    values: Vec<Vec<u8>>,
    count: usize,
    place: CsvState,
}

impl CsvRecord {
    fn begin(&mut self) {
        (self.count, self.place) = (0, CsvState::Begin);
        self.next();
    }

    fn next(&mut self) {
        // One more than the largest number is enough to detect too many values.
        self.count = (self.count + 1).min(*VALUES.end() + 1);
        match self.values.get_mut(self.count - 1) {
            Some(value) => value.clear(),
            None => self.values.push(Vec::new()),
        }
    }

    fn push(&mut self, byte: u8) {
        if let Some(value) = self.values.get_mut(self.count - 1).filter(|value| value.len() < KEPT) {
            value.push(byte);
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        match (self.place, byte) {
            (CsvState::Quoted, b'"') => self.place = CsvState::Quote,
            (CsvState::Quoted, _) => self.push(byte),
            (_, b'\n') => return true,
            (CsvState::Lost, _) | (CsvState::Quote, b'\r') => {}
            (CsvState::Begin, b'"') => self.place = CsvState::Quoted,
            (CsvState::Quote, b'"') => {
                self.push(b'"');
                self.place = CsvState::Quoted;
            }
            (CsvState::Begin | CsvState::Plain | CsvState::Quote, b',') => {
                self.place = CsvState::Begin;
                self.next();
            }
            (CsvState::Begin | CsvState::Plain, other) if other != b'"' => {
                self.place = CsvState::Plain;
                self.push(other);
            }
            _ => self.place = CsvState::Lost,
        }
        false
    }

    fn entry(&self) -> LogEntry<'_> {
        let text = |at: usize| {
            let value = self.values.get(at).filter(|_| at < self.count);
            String::from_utf8_lossy(value.map_or(&[], Vec::as_slice))
        };
        LogEntry {
            time: text(0),
            user: text(1),
            pid: text(3).parse().unwrap_or_default(),
            session_id: text(5),
            started: text(8),
            severity: text(11),
            code: text(12),
            message: text(13),
            detail: text(14),
            context: text(18),
            statement: text(19),
            application: text(22),
            ..LogEntry::default()
        }
    }
}

pub(super) fn csv(mut input: impl BufRead, reading: &mut LogReading<'_>) -> io::Result<()> {
    let mut record = CsvRecord { values: Vec::new(), count: 0, place: CsvState::Begin };
    record.begin();
    loop {
        let piece = input.fill_buf()?;
        // A record without an end may still be in writing.
        if piece.is_empty() {
            return Ok(());
        }
        for byte in piece {
            if !record.take(*byte) {
                continue;
            }
            let is_blank = record.count == 1 && record.values.first().is_some_and(Vec::is_empty);
            if record.place != CsvState::Lost && VALUES.contains(&record.count) {
                reading.entry(record.entry());
            } else if !is_blank {
                reading.damaged();
            }
            record.begin();
        }
        let length = piece.len();
        input.consume(length);
    }
}

/// Longest line in bytes: longer lines are skipped.
const LONGEST: u64 = 8 << 20;

pub(super) fn json(mut input: impl BufRead, reading: &mut LogReading<'_>) -> io::Result<()> {
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
        match serde_json::from_str(&text) {
            Ok(entry) => reading.entry(entry),
            // The last line may still be in writing.
            Err(_) if !is_whole => {}
            Err(_) => reading.damaged(),
        }
    }
}

// Times of a log: local to `log_timezone`, with an ambiguous abbreviation (`CST` is three zones).
// A session's id begins with its start in seconds since 1970, and each entry also has the start as local time. The two
// give the offset of the abbreviation at the session's start.

/// Number of abbreviations that are remembered; a log has two.
const KNOWN: usize = 16;

/// Largest offset of any zone from UTC, in seconds.
const FARTHEST: i64 = 16 * 3600;

/// Parses `2026-11-04 14:02:31.123 CET` into the time and the zone.
pub(super) fn local(text: &str) -> Option<(NaiveDateTime, &str)> {
    let (time, zone) = text.split_at_checked(19)?;
    let number = |from: usize, to: usize| {
        let digits = time.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten()
    };
    let is_time = [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':')];
    if !is_time.iter().all(|(at, sign)| time.as_bytes().get(*at) == Some(sign)) {
        return None;
    }
    let (fraction, zone) = zone.split_once(' ')?;
    let milli = match fraction.strip_prefix('.') {
        Some(digits) if digits.len() == 3 => digits.parse().ok()?,
        None if fraction.is_empty() => 0,
        _ => return None,
    };
    let day = NaiveDate::from_ymd_opt(number(0, 4)?.try_into().ok()?, number(5, 7)?, number(8, 10)?)?;
    let at = day.and_hms_milli_opt(number(11, 13)?, number(14, 16)?, number(17, 19)?, milli)?;
    Some((at, zone))
}

/// The abbreviation at the start of a session, its offset in seconds east of UTC, and the start.
pub(super) fn session<'a>(start: &'a str, id: &str) -> Option<(&'a str, i64, Timestamp)> {
    let (local, zone) = self::local(start)?;
    let seconds = i64::from_str_radix(id.split_once('.')?.0, 16).ok()?;
    let offset = local.and_utc().timestamp().checked_sub(seconds)?;
    let start = Timestamp::from_timestamp(seconds, 0)?;
    (offset.abs() <= FARTHEST).then_some((zone, offset, start))
}

#[derive(Debug, Default)]
pub(super) struct Zones {
    known: Vec<(String, i64)>,
}

impl Zones {
    /// Sets the offset of an abbreviation; the last entry wins.
    pub(super) fn learn(&mut self, zone: &str, offset: i64) {
        if let Some((_, known)) = self.known.iter_mut().find(|(known, _)| known == zone) {
            *known = offset;
        } else if self.known.len() < KNOWN {
            self.known.push((zone.to_owned(), offset));
        }
    }

    /// The moment of a local time; None if its zone is not known.
    pub(super) fn utc(&self, at: NaiveDateTime, zone: &str) -> Option<Timestamp> {
        let known = self.known.iter().find(|(known, _)| known == zone).map(|(_, offset)| *offset);
        let offset = known.or_else(|| by_itself(zone))?;
        at.and_utc().checked_sub_signed(chrono::TimeDelta::try_seconds(offset)?)
    }
}

/// Zones with an explicit offset: `UTC`, `+0530`, `-03`.
fn by_itself(zone: &str) -> Option<i64> {
    if matches!(zone, "UTC" | "GMT") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = zone.get(1..)?;
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize| digits.get(from..from + 2).and_then(|two| two.parse::<i64>().ok());
    Some(sign * (number(0)? * 3600 + number(2).unwrap_or(0) * 60))
}
