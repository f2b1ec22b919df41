//! Alert ranges of monitoring plugins: `10`, `10:`, `~:10`, `10:20`, `@10:20`. A value outside the range raises the alert;
//! with `@`, a value inside it.
//!
//! Source: <https://www.monitoring-plugins.org/doc/guidelines.html#THRESHOLDFORMAT>

use std::fmt;
use std::str::FromStr;

use crate::text::seconds_in;

/// Both ends belong to the range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    start: f64,
    end: f64,
    inside: bool,
}

impl Range {
    /// Alerts above `end` and below zero.
    pub const fn above(end: f64) -> Self {
        Self { start: 0.0, end, inside: false }
    }

    pub fn alerts(self, value: f64) -> bool {
        (self.start..=self.end).contains(&value) == self.inside
    }

    pub fn why(self, value: f64, unit: &str) -> String {
        if self.inside {
            return format!("in {}:{}{unit}", number(self.start), number(self.end));
        }
        if value > self.end {
            format!("> {}{unit}", number(self.end))
        } else {
            format!("< {}{unit}", number(self.start))
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a range: 10 alerts above 10, 10: below 10, ~:10 above 10, 10:20 outside of both, @10:20 between them; times may have a unit, 30s, 5m, 1h"
)]
pub struct RangeError(String);

impl FromStr for Range {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let wrong = || RangeError(crate::text::one_line(text).into_owned());
        let (inside, rest) = text.strip_prefix('@').map_or((false, text), |rest| (true, rest));
        let (start, end) = rest.split_once(':').unwrap_or(("", rest));
        let start = match start {
            "~" => f64::NEG_INFINITY,
            "" if rest.starts_with(':') => return Err(wrong()),
            "" => 0.0,
            start => value(start).ok_or_else(wrong)?,
        };
        let end = match end {
            "" if rest.is_empty() => return Err(wrong()),
            "" => f64::INFINITY,
            end => value(end).ok_or_else(wrong)?,
        };
        if start > end { Err(wrong()) } else { Ok(Self { start, end, inside }) }
    }
}

/// A number, or a time converted to seconds.
fn value(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = seconds_in(text.strip_prefix(digits)?)?;
    let plain = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    digits.chars().all(plain).then(|| digits.parse::<f64>().ok()).flatten().map(|number| number * factor)
}

/// Format of performance data: no exponent, no trailing zeros.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.inside { "@" } else { "" };
        match (self.start, self.end) {
            (0.0, end) if end.is_finite() => write!(f, "{at}{}", number(end)),
            (start, end) if start.is_infinite() => write!(f, "{at}~:{}", number(end)),
            (start, end) if end.is_infinite() => write!(f, "{at}{}:", number(start)),
            (start, end) => write!(f, "{at}{}:{}", number(start), number(end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_guidelines() {
        for (text, alerts, silent) in [
            ("10", &[-1.0, 10.5][..], &[0.0, 5.0, 10.0][..]),
            ("10:", &[-5.0, 9.9], &[10.0, 1e12]),
            ("~:10", &[10.1], &[-1e12, 10.0]),
            ("10:20", &[9.0, 21.0], &[10.0, 15.0, 20.0]),
            ("@10:20", &[10.0, 15.0, 20.0], &[9.0, 21.0]),
            ("0", &[1.0, -1.0], &[0.0]),
            ("2m", &[121.0], &[120.0]),
            ("500ms", &[0.6], &[0.5]),
            ("~:1h", &[3601.0], &[-1.0, 3600.0]),
        ] {
            let range: Range = text.parse().unwrap();
            for value in alerts {
                assert!(range.alerts(*value), "{text} {value}");
            }
            for value in silent {
                assert!(!range.alerts(*value), "{text} {value}");
            }
        }
        for (text, shown) in
            [("2m", "120"), ("10:", "10:"), ("~:10", "~:10"), ("@1:2.5", "@1:2.5"), ("-5:5", "-5:5")]
        {
            assert_eq!(text.parse::<Range>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn an_invalid_range_is_rejected() {
        for text in ["", ":", ":10", "x", "10:5", "1e3", "10x", "@", "nan", "inf", "~", "1:2:3", "--1", "10 "]
        {
            assert!(text.parse::<Range>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_have_no_exponent() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (171.2339, "171.234"),
            (1e12, "1000000000000"),
            (0.0004, "0"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
