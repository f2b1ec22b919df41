//! Requests that locktop's own functions refused instead of waiting, as the sequences of table `refusals` count them.

pub use super::table_rows::Refusals;
use crate::text;

use crate::order::Order;

/// Seconds that the line of a quiet server looks back.
pub const WINDOW: f64 = 60.0;

impl Refusals {
    /// The sum of two tables; unknown if one of them is.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, |one, other| one.zip(other).map(|(one, other)| one.saturating_add(other)))
    }

    /// Whether a counter is known.
    pub fn is_known(&self) -> bool {
        self.counters().iter().any(|(_, count)| count.is_some())
    }

    fn with(&self, other: &Self, of: impl Fn(Option<i64>, Option<i64>) -> Option<i64>) -> Self {
        Self {
            at: self.at,
            rate_limit: of(self.rate_limit, other.rate_limit),
            transfer: of(self.transfer, other.transfer),
            lease: of(self.lease, other.lease),
            task: of(self.task, other.task),
        }
    }

    fn counters(&self) -> [(&'static str, Option<i64>); 4] {
        [
            ("rate limit", self.rate_limit),
            ("transfer", self.transfer),
            ("lease", self.lease),
            ("task", self.task),
        ]
    }
}

/// `refused in 1m: rate limit 5,647, transfer 82`, from the samples of the last minute, oldest first. `None` if nothing was refused, or
/// if that is not known. A counter that started again counts from 0.
pub fn line(samples: &[Refusals]) -> Option<String> {
    let (first, last) = (samples.first()?, samples.last()?);
    let since = last.with(first, |now, then| {
        now.zip(then).map(|(now, then)| if now < then { now } else { now.saturating_sub(then) })
    });
    let mut parts: Vec<_> = since
        .counters()
        .into_iter()
        .filter_map(|(name, count)| Some((name, u64::try_from(count?).ok().filter(|count| *count > 0)?)))
        .collect();
    parts.order_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts: Vec<String> =
        parts.iter().map(|(name, count)| format!("{name} {}", text::count(*count))).collect();
    (!parts.is_empty()).then(|| format!("refused in 1m: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn at(second: i64, rate_limit: i64, transfer: Option<i64>) -> Refusals {
        let at = Timestamp::from_timestamp(second, 0);
        Refusals { at, rate_limit: Some(rate_limit), transfer, lease: Some(3), task: None }
    }

    #[test]
    fn a_sum_with_an_unknown_counter_is_unknown() {
        let sum = at(0, 1, None).plus(&at(0, 2, Some(5)));
        assert_eq!((sum.rate_limit, sum.transfer, sum.lease, sum.task), (Some(3), None, Some(6), None));
    }

    #[test]
    fn the_line_has_what_was_refused_in_the_window() {
        assert_eq!(line(&[]), None);
        assert_eq!(line(&[at(0, 5_000, Some(1))]), None, "the first snapshot has no rise");
        let two = [at(0, 5_000, Some(1)), at(50, 10_647, Some(83))];
        assert_eq!(line(&two).unwrap(), "refused in 1m: rate limit 5,647, transfer 82");
        assert_eq!(line(&[at(0, 5, None), at(50, 7, Some(9))]).unwrap(), "refused in 1m: rate limit 2");
        assert_eq!(line(&[at(0, 5_000, None), at(50, 7, None)]).unwrap(), "refused in 1m: rate limit 7");
        assert_eq!(line(&[at(0, 5, Some(1)), at(50, 5, Some(1))]), None);
    }
}
