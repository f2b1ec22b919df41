use std::time::Duration;

/// Delays between connection attempts: 0.5 s, doubling up to 10 s. Up to a minute after a server that accepted the
/// connection but did not answer, because each such attempt may leave a process there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The delay before the next attempt; `silent` if the last one had no answer.
    pub fn failed(&mut self, silent: bool) -> Duration {
        let longest = Duration::from_secs(if silent { 60 } else { 10 });
        let delay = Duration::from_millis(500) * 2u32.saturating_pow(self.attempts.min(7));
        self.attempts = self.attempts.saturating_add(1);
        delay.min(longest)
    }

    /// The number of the next attempt, from 1.
    #[must_use]
    pub fn attempts(self) -> u32 {
        self.attempts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_grows_to_ten_seconds_and_to_a_minute_after_silence() {
        let mut backoff = Backoff::default();
        let delays: Vec<u128> = (0..7).map(|_| backoff.failed(false).as_millis()).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(backoff.attempts(), 7);
        assert_eq!(backoff.failed(true).as_secs(), 60);
        let mut backoff = Backoff::default();
        let delays: Vec<u128> = (0..8).map(|_| backoff.failed(true).as_millis()).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000]);
    }
}
