use chrono::{NaiveTime, TimeDelta};

use crate::model::Timestamp;
use crate::model::past::TimeStep;
use crate::model::zone::Zone;
use crate::text::parse_duration;

const EXPECTED: &str = "a time is 14:02, 14:02:31, -90s, -5m, -1h or worst; empty: live";

/// Parses a typed time relative to the newest snapshot. `None` is live. A time of day is its last occurrence.
///
/// # Errors
/// A line with the accepted forms.
pub fn parse(text: &str, newest: Timestamp, zone: Zone) -> Result<Option<TimeStep>, String> {
    let text = text.trim();
    match text {
        "" | "now" => return Ok(None),
        "worst" => return Ok(Some(TimeStep::Worst)),
        _ => {}
    }
    let time = match text.strip_prefix('-') {
        Some(ago) => {
            parse_duration(ago).and_then(|ago| newest.checked_sub_signed(TimeDelta::from_std(ago).ok()?))
        }
        None => time_of_day(text, newest, zone),
    };
    time.map(|time| Some(TimeStep::Time(time))).ok_or_else(|| EXPECTED.to_owned())
}

/// `2026-11-04 14:02:31 +01:00`, without the year if not `wide`.
pub fn dated(at: Timestamp, zone: Zone, wide: bool) -> String {
    let at = at.with_timezone(&zone);
    let time = at.format(if wide { "%Y-%m-%d %H:%M:%S" } else { "%m-%d %H:%M:%S" });
    let zone =
        if at.offset().local_minus_utc() == 0 { "UTC".to_owned() } else { at.format("%:z").to_string() };
    format!("{time} {zone}")
}

const IN_RECORDING: &str = "a time is 14:02, 14:02:31, 2026-11-04 14:02, 2026-11-04T14:02:00Z, -90s, -5m, -1h (before the end) or worst";

/// Parses a typed time in a recording with this start and end. Also accepts a date with a time, and seconds since 1970. A
/// time of day is one within the recording if there is one, otherwise that of its last day.
///
/// # Errors
/// A line with the accepted forms.
pub fn in_recording(
    text: &str,
    (first, last): (Timestamp, Timestamp),
    zone: Zone,
) -> Result<Option<TimeStep>, String> {
    const DAYS: [&str; 2] = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"];
    const ZONED: [&str; 2] = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S %#z"];
    let text = text.trim();
    let day = DAYS.iter().find_map(|format| chrono::NaiveDateTime::parse_from_str(text, format).ok());
    if let Some(at) = day.and_then(|day| zone.moment(day, (first, last))) {
        return Ok(Some(TimeStep::Time(at)));
    }
    let is_epoch = text.len() >= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(at) = text.parse().ok().filter(|_| is_epoch).and_then(|at| Timestamp::from_timestamp(at, 0)) {
        return Ok(Some(TimeStep::Time(at)));
    }
    let zoned = ZONED.iter().find_map(|format| chrono::DateTime::parse_from_str(text, format).ok());
    if let Some(at) = zoned {
        return Ok(Some(TimeStep::Time(at.to_utc())));
    }
    let day = |at: Timestamp| at.with_timezone(&zone).date_naive();
    match parse(text, last, zone) {
        // The time is after the end of the recording, not on the day before.
        Ok(Some(TimeStep::Time(at))) if at < first && day(at) < day(last) && !text.starts_with('-') => {
            Ok(Some(TimeStep::Time(at + TimeDelta::days(1))))
        }
        other => other.map_err(|_| IN_RECORDING.to_owned()),
    }
}

fn time_of_day(text: &str, newest: Timestamp, zone: Zone) -> Option<Timestamp> {
    let short = NaiveTime::parse_from_str(text, "%H:%M").ok();
    // Include the whole second.
    let time = short.or_else(|| {
        let second = NaiveTime::parse_from_str(text, "%H:%M:%S").ok()?;
        Some(second.overflowing_add_signed(TimeDelta::milliseconds(999)).0)
    })?;
    let today = newest.with_timezone(&zone).date_naive();
    // A time of day in the future means yesterday.
    let end = newest + TimeDelta::seconds(1);
    [Some(today), today.pred_opt()]
        .into_iter()
        .flatten()
        .find_map(|day| zone.moments(day.and_time(time)).rev().find(|at| *at <= end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::at;

    #[test]
    fn a_time_of_day_means_its_latest_occurrence() {
        // The snapshot is at 14:02:31 UTC, 15:02:31 in this zone.
        let zone: Zone = chrono::FixedOffset::east_opt(3600).unwrap().into();
        let time = |text: &str| match parse(text, at(0.0), zone) {
            Ok(Some(TimeStep::Time(time))) => time.format("%d %H:%M:%S").to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(time("15:02"), "20 14:02:00");
        assert_eq!(time("15:02:31"), "20 14:02:31");
        assert_eq!(time(" 9:30 "), "20 08:30:00");
        assert_eq!(time("23:00"), "19 22:00:00");
        assert_eq!(time("-90s"), "20 14:01:01");
        assert_eq!(time("-5m"), "20 13:57:31");
        assert_eq!(time("-7"), "20 14:02:24");
    }

    #[test]
    fn a_time_of_day_at_a_dst_change_means_its_latest_occurrence() {
        let zone = crate::model::zone::tests::berlin();
        let newest = |text: &str| text.parse::<Timestamp>().unwrap();
        for (typed, now, expected) in [
            // Local times: 02:45 DST; 02:10 and 02:45 after the change; noon.
            ("02:30", "2026-10-25T00:45:00Z", "25 00:30"),
            ("02:30", "2026-10-25T01:10:00Z", "25 00:30"),
            ("02:30", "2026-10-25T01:45:00Z", "25 01:30"),
            ("02:30", "2026-10-25T11:00:00Z", "25 01:30"),
            ("02:50", "2026-10-25T00:45:00Z", "24 00:50"),
            // A time skipped by the DST change means the day before.
            ("02:30", "2026-03-29T11:00:00Z", "28 01:30"),
        ] {
            let Ok(Some(TimeStep::Time(at))) = parse(typed, newest(now), zone) else { panic!("{typed}") };
            assert_eq!(at.format("%d %H:%M").to_string(), expected, "{typed} at {now}");
        }
    }

    #[test]
    fn a_time_of_a_recording_has_its_day_and_its_zone() {
        let zone: Zone = chrono::FixedOffset::east_opt(3600).unwrap().into();
        assert_eq!(dated(at(0.0), zone, true), "2026-11-20 15:02:31 +01:00");
        assert_eq!(dated(at(0.0), zone, false), "11-20 15:02:31 +01:00");
        assert_eq!(dated(at(0.0), chrono::Offset::fix(&chrono::Utc).into(), false), "11-20 14:02:31 UTC");
    }

    #[test]
    fn a_time_of_day_is_within_a_recording_or_after_it() {
        // The recording is from 13:32:31 to 14:02:31 on the 20th.
        let ends = (at(-1800.0), at(0.0));
        let time = |text: &str| match in_recording(text, ends, chrono::Offset::fix(&chrono::Utc).into()) {
            Ok(Some(TimeStep::Time(time))) => time.format("%d %H:%M:%S").to_string(),
            other => format!("{other:?}"),
        };
        for (text, expected) in [
            ("13:40", "20 13:40:00"),
            ("14:03", "20 14:03:00"),
            ("23:00", "20 23:00:00"),
            ("09:00", "20 09:00:00"),
            ("-90s", "20 14:01:01"),
            ("2026-11-19 14:02", "19 14:02:00"),
            ("2026-11-20T13:40:00Z", "20 13:40:00"),
            ("2026-11-20 13:40:00 +00:00", "20 13:40:00"),
            ("2026-11-20T13:40:00.123456+01:00", "20 12:40:00"),
            ("x", &format!("Err({IN_RECORDING:?})")),
        ] {
            assert_eq!(time(text), expected, "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_time_is_rejected() {
        let parsed = |text: &str| parse(text, at(0.0), chrono::Offset::fix(&chrono::Utc).into());
        assert_eq!(
            (parsed(""), parsed("now"), parsed("worst")),
            (Ok(None), Ok(None), Ok(Some(TimeStep::Worst)))
        );
        for text in ["x", "25:00", "-", "-5x", "-99999999999999999999", "14:02:31:1", "-9223372036854775807h"]
        {
            assert_eq!(parsed(text), Err(EXPECTED.to_owned()), "{text}");
        }
    }
}
