//! Numbers and durations in few columns.

use std::time::Duration;

/// All digits in groups of three: `1,234`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// At most four columns, truncated and never rounded up: `999`, `1.2k`, `12k`, `999k`, `1.2M`, … to `18E`.
#[must_use]
pub fn count_short(number: u64) -> String {
    let (mut scaled, mut remainder, mut unit) = (number, 0, None);
    for next in ['k', 'M', 'G', 'T', 'P', 'E'] {
        if scaled < 1000 {
            break;
        }
        (scaled, remainder, unit) = (scaled / 1000, scaled % 1000, Some(next));
    }
    match unit {
        None => scaled.to_string(),
        Some(unit) if scaled < 10 => format!("{scaled}.{}{unit}", remainder / 100),
        Some(unit) => format!("{scaled}{unit}"),
    }
}

const MAX_SECONDS: f64 = 1e9;

/// A duration for display, at most six columns: `0.4s`, `41s`, `2m51s`, `3h02m`, `12d04h`, `210d`. A negative duration
/// and NaN are `0s`.
///
/// It is truncated, never rounded up: nothing is shown older than it is.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if seconds.is_nan() || seconds < 0.1 {
        return "0s".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturates")]
    let tenths = (seconds * 10.0) as u64;
    let whole = tenths / 10;
    let (minutes, hours, days) = (whole / 60, whole / 3600, whole / 86_400);
    match whole {
        0..10 => format!("{whole}.{}s", tenths % 10),
        10..60 => format!("{whole}s"),
        60..3600 => format!("{minutes}m{:02}s", whole % 60),
        3600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ if days < 100 => format!("{days}d{:02}h", hours % 24),
        _ if days < 100_000 => format!("{days}d"),
        _ => format!("{}y", (days / 365).min(99_999)),
    }
}

/// An age in at most six columns: whole seconds, or its largest units: `<1s`, `15s`, `2m51s`, `2h10m`, `12d`.
#[must_use]
pub fn age(seconds: f64) -> String {
    if seconds.is_nan() || seconds < 1.0 {
        return "<1s".to_owned();
    }
    let words = duration(seconds.max(10.0));
    match words.find('d') {
        Some(days) => words.get(..=days).unwrap_or_default().to_owned(),
        None if seconds < 10.0 => format!("{}s", seconds.floor()),
        None => words,
    }
}

/// Parses durations as people write them and as `current_setting` prints them: `1s`, `250ms`, `1m30s`, `1h 5m`; numbers
/// with the units of [`seconds_in`], in any order. A bare number is in seconds. `None` for anything else, for negative
/// values, and for more than 31 years.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    let mut parts = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        if unit.is_empty() && !(parts == 0 && tail.is_empty()) {
            return None;
        }
        seconds += number.parse::<f64>().ok()? * seconds_in(unit)?;
        parts += 1;
        rest = tail.trim_start();
    }
    (parts > 0 && seconds <= MAX_SECONDS).then(|| Duration::from_secs_f64(seconds))
}

/// The seconds in a unit of time: `us`, `ms`, `s` (or no unit), `m` or `min`, `h`, `d`. PostgreSQL writes `min`.
/// <https://www.postgresql.org/docs/current/config-setting.html>
#[must_use]
pub fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::parse_duration;

    #[test]
    fn durations_are_parsed_and_invalid_ones_are_rejected() {
        for (text, seconds) in [
            ("1s", Some(1.0)),
            ("0.5s", Some(0.5)),
            ("250ms", Some(0.25)),
            ("500us", Some(0.0005)),
            ("1min", Some(60.0)),
            ("2", Some(2.0)),
            ("1m30s", Some(90.0)),
            ("1h 5m", Some(3_900.0)),
            ("2d", Some(172_800.0)),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("1 fortnight", None),
            ("1m30", None),
            ("1..5s", None),
            ("99999999999s", None),
            ("fast", None),
        ] {
            assert_eq!(parse_duration(text).map(|d| d.as_secs_f64()), seconds, "{text:?}");
        }
    }
}
