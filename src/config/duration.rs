//! `1s`, `250ms`, `1m30s`: durations as people write them.

use std::time::Duration;

const MAX_SECONDS: f64 = 1e9;

/// Reads numbers with the units `ms`, `s`, `m`, `h`, `d`, largest first or not; a lone number is in seconds.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    let mut parts = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let factor = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "" if parts == 0 && tail.is_empty() => 1.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * factor;
        parts += 1;
        rest = tail.trim_start();
    }
    (parts > 0 && seconds <= MAX_SECONDS).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_what_people_write() {
        for (text, seconds) in [
            ("1s", Some(1.0)),
            ("0.5s", Some(0.5)),
            ("250ms", Some(0.25)),
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
            assert_eq!(parse(text).map(|d| d.as_secs_f64()), seconds, "{text:?}");
        }
    }
}
