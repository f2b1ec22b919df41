//! Rate limits: how many requests of a key were let through in its present window.

mod rows;

use strum::{IntoStaticStr, VariantArray};

use super::text_id::TextId;
use super::{Text, Timestamp};
pub use rows::{LimitRow, row, rows};

/// What identifies a rate limit: its table and its key.
pub type LimitId = TextId;

/// A row of `rate_limit`: what was used of one limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RateLimit {
    /// Who or what is limited: the key of the row, as text.
    pub key: Text,
    /// Requests that were let through in the window.
    pub count: Option<i64>,
    /// When the present window began (`window_start`).
    pub window_start: Option<Timestamp>,
    /// How many it has room for; the published table does not say.
    pub max_requests: Option<i64>,
    /// When it is over; the published table does not say.
    pub expires_at: Option<Timestamp>,
}

/// A share of a limit from which on it is near.
const NEAR: f64 = 0.8;

/// How a rate limit is. The order is that of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum LimitState {
    /// No more requests are let through until the window is over.
    Full,
    /// Most of it is used up.
    Near,
    /// Less than 80 % of it is used up.
    Open,
    /// The table does not say the limit, or for how long.
    Unknown,
    /// The window is over: the next request begins another.
    Over,
}

impl LimitState {
    /// Every state, the most urgent first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word on the screens and in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl RateLimit {
    /// The state at `now`, by the server's clock.
    pub fn state(&self, now: Timestamp) -> LimitState {
        match (self.share(), self.expires_at) {
            (_, Some(end)) if end <= now => LimitState::Over,
            (None, _) | (_, None) => LimitState::Unknown,
            (Some(share), _) if share >= 1.0 => LimitState::Full,
            (Some(share), _) if share >= NEAR => LimitState::Near,
            _ => LimitState::Open,
        }
    }

    /// The share of the limit that is used up.
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
