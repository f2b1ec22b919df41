//! Times of a log: local to `log_timezone`, with an ambiguous abbreviation (`CST` is three zones).
//!
//! A session's id begins with its start in seconds since 1970, and each entry also has the start as local time. The two
//! give the offset of the abbreviation at the session's start.

use chrono::{NaiveDate, NaiveDateTime};

use crate::model::Timestamp;

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
    let (local, zone) = local(start)?;
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
