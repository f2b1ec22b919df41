use chrono::TimeDelta;

use super::{Report, Style};
use crate::model::Timestamp;

/// Seconds between two ticks, ascending.
const STEPS: [u32; 16] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200];

const DAY: u32 = 86_400;

/// Maximum ticks of the time axis, besides one at its start.
const TICKS: u32 = 8;

#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    from: Timestamp,
    seconds: f64,
}

impl Span {
    pub(super) fn of(report: &Report) -> Self {
        let seconds = (report.to - report.from).as_seconds_f64();
        // A single snapshot has the whole width.
        Self { from: report.from, seconds: if seconds > 0.0 { seconds } else { 1.0 } }
    }

    /// Position of a time, from 0 at the start to 1 at the end.
    pub(super) fn place(self, at: Timestamp) -> f64 {
        ((at - self.from).as_seconds_f64() / self.seconds).clamp(0.0, 1.0)
    }
}

pub(super) fn times(report: &Report, style: Style) -> Vec<(f64, String)> {
    let span = Span::of(report);
    let days = [1, 2, 5, 10, 30, 100, 365, 3_650].map(|days| days * DAY);
    let mut steps = STEPS.into_iter().chain(days);
    let step = steps.find(|step| f64::from(*step) * f64::from(TICKS) >= span.seconds).unwrap_or(u32::MAX);
    let local = report.from.with_timezone(&style.zone).naive_local().and_utc();
    let before = local.timestamp().rem_euclid(i64::from(step));
    let first = TimeDelta::seconds(i64::from(step) - before)
        - TimeDelta::nanoseconds(local.timestamp_subsec_nanos().into());
    let form = match step {
        ..60 => "%H:%M:%S",
        60..DAY if span.seconds < f64::from(DAY) => "%H:%M",
        60..DAY => "%m-%d %H:%M",
        _ => "%Y-%m-%d",
    };
    (0..=TICKS)
        .map(|number| report.from + first + TimeDelta::seconds(i64::from(step) * i64::from(number)))
        .take_while(|at| *at <= report.to)
        .map(|at| (span.place(at), at.with_timezone(&style.zone).format(form).to_string()))
        .collect()
}

pub(super) fn numbers(most: u32) -> Vec<u32> {
    let steps = (0..9).flat_map(|power| [1, 2, 5].map(|step: u32| step * 10_u32.pow(power)));
    let step = steps.into_iter().find(|step| step.saturating_mul(4) >= most).unwrap_or(most.div_ceil(4));
    let count = most.div_ceil(step).max(1);
    (0..=count).map(|number| number.saturating_mul(step)).collect()
}

#[cfg(test)]
mod tests {
    use chrono::Offset;

    use super::*;
    use crate::sample::at;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(numbers(0), [0, 1]);
        assert_eq!(numbers(3), [0, 1, 2, 3]);
        assert_eq!(numbers(46), [0, 20, 40, 60]);
        assert_eq!(numbers(1_000), [0, 500, 1_000]);
        assert_eq!(numbers(u32::MAX).last().map(|top| *top > 4_000_000_000), Some(true));
        let style = Style { top: 10, zone: chrono::Utc.fix().into() };
        for (seconds, count) in [(0.0, 0..2), (7.5, 6..9), (61.0, 4..9), (5_000.0, 3..9), (400_000.0, 3..9)] {
            let report = Report { from: at(0.3), to: at(0.3 + seconds), ..Report::default() };
            let times = times(&report, style);
            assert!(count.contains(&times.len()), "{seconds}: {times:?}");
            assert!(times.iter().all(|(place, _)| (0.0..=1.0).contains(place)), "{times:?}");
            let mut labels: Vec<&String> = times.iter().map(|(_, label)| label).collect();
            labels.dedup();
            assert_eq!(labels.len(), times.len(), "{times:?}");
        }
    }
}
