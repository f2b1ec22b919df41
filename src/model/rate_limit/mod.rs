//! Rate limits: how many requests of a key were allowed in the current window.

mod rows;

use super::Timestamp;
use super::table::TextId;
pub use super::table_rows::RateLimit;
pub use rows::{LimitRow, row, rows};

pub type LimitId = TextId;

const NEAR: f64 = 0.8;

words! {
    /// Most urgent first.
    pub enum LimitState {
        /// No more requests are allowed until the window ends.
        Full,
        Near,
        Open,
        /// The table does not have the limit, or its duration.
        Unknown,
        /// The window has ended: the next request starts another.
        Over,
    }
}

impl RateLimit {
    pub fn state(&self, now: Timestamp) -> LimitState {
        match (self.share(), self.expires_at) {
            (_, Some(end)) if end <= now => LimitState::Over,
            (None, _) | (_, None) => LimitState::Unknown,
            (Some(share), _) if share >= 1.0 => LimitState::Full,
            (Some(share), _) if share >= NEAR => LimitState::Near,
            _ => LimitState::Open,
        }
    }

    pub fn share(&self) -> Option<f64> {
        let number = |value: i64| i32::try_from(value.max(0)).map_or(f64::from(i32::MAX), f64::from);
        let (count, most) = self.count.zip(self.max_requests)?;
        Some(if most <= 0 { 1.0 } else { number(count) / number(most) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::at;

    #[test]
    fn a_window_that_is_over_limits_nobody() {
        for (count, most, ends, expected) in [
            (Some(100), Some(100), Some(5.0), LimitState::Full),
            (Some(101), Some(100), Some(5.0), LimitState::Full),
            (Some(0), Some(0), Some(5.0), LimitState::Full),
            (Some(80), Some(100), Some(5.0), LimitState::Near),
            (Some(79), Some(100), Some(5.0), LimitState::Open),
            (Some(i64::MAX), Some(i64::MAX), Some(5.0), LimitState::Full),
            (Some(-5), Some(100), Some(5.0), LimitState::Open),
            (Some(100), Some(100), Some(0.0), LimitState::Over),
            (Some(100), Some(100), None, LimitState::Unknown),
            (Some(100), None, Some(5.0), LimitState::Unknown),
            (None, None, None, LimitState::Unknown),
        ] {
            let limit =
                RateLimit { count, max_requests: most, expires_at: ends.map(at), ..RateLimit::default() };
            assert_eq!(limit.state(at(0.0)), expected, "{limit:?}");
        }
    }
}
