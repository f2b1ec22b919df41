use std::time::Duration;

/// The shortest term: below, most of it would be transmission time.
pub(super) const SHORTEST_TERM: Duration = Duration::from_millis(100);

/// How a server that has just started is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restarts {
    /// It may have forgotten locks that it granted before, and has no vote until it has been up for a term: by then each of
    /// those has ended. Needs the right to run `INFO`; a server that does not report its uptime has no vote.
    #[default]
    StayOut,
    /// It has all its data (`appendonly yes` and `appendfsync always`), or its operator waits for a term before a restart.
    Trusted,
}

/// Options for acquiring locks: the term, the holder's name, and time limits.
#[derive(Debug, Clone)]
pub struct LockOptions {
    pub(super) term: Duration,
    pub(super) timeout: Option<Duration>,
    pub(super) name: String,
    pub(super) restarts: Restarts,
    pub(super) longest_term: Option<Duration>,
    pub(super) longest_delay: Duration,
}

impl Default for LockOptions {
    /// A term of 10 s.
    fn default() -> Self {
        Self::term(Duration::from_secs(10))
    }
}

impl LockOptions {
    /// How long a lock outlives its holder: the other clients wait this long when a holder dies. At least 100 ms.
    #[must_use]
    pub fn term(term: Duration) -> Self {
        Self {
            term,
            timeout: None,
            name: String::new(),
            restarts: Restarts::StayOut,
            longest_term: None,
            longest_delay: Duration::from_millis(200),
        }
    }

    /// The time limit for one server's answer; by default a twentieth of the term, at least 50 ms and at most 1 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The holder's name, for people who read the value: `name:` and a random part.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// How a server that has just started is treated.
    #[must_use]
    pub fn restarts(self, restarts: Restarts) -> Self {
        Self { restarts, ..self }
    }

    /// The longest term that any client uses for these keys, if it is longer than this client's.
    #[must_use]
    pub fn longest_term(self, longest: Duration) -> Self {
        Self { longest_term: Some(longest), ..self }
    }

    /// The longest delay between two attempts without a release in between; each delay is random.
    #[must_use]
    pub fn longest_delay(self, longest: Duration) -> Self {
        Self { longest_delay: longest, ..self }
    }

    pub(super) fn server_timeout(&self) -> Duration {
        let part = (self.term / 20).clamp(Duration::from_millis(50), Duration::from_secs(1));
        self.timeout.unwrap_or(part)
    }

    /// How long a place in line counts after its client was last heard: it asks after each delay, and between two delays up to
    /// three answers may take their time.
    pub(super) fn ticket(&self) -> Duration {
        let pause = self.longest_delay.saturating_add(self.server_timeout().saturating_mul(2));
        pause.saturating_mul(2).saturating_add(Duration::from_secs(1))
    }

    /// How long a server has no vote after its start.
    pub(super) fn quarantine(&self) -> Option<Duration> {
        let longest = self.longest_term.unwrap_or_default().max(self.term);
        (self.restarts == Restarts::StayOut).then_some(longest + drift(longest))
    }
}

/// The possible difference between the clocks of two machines over a term, and the resolution of Redis, which is
/// milliseconds: 1 % and 2 ms (<https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>).
pub(super) fn drift(term: Duration) -> Duration {
    term / 100 + Duration::from_millis(2)
}

/// The rest of a term that was requested `elapsed` ago; `None` if nothing is left.
pub(super) fn validity(term: Duration, elapsed: Duration) -> Option<Duration> {
    term.checked_sub(elapsed)?.checked_sub(drift(term)).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_valid_for_less_than_it_lasts() {
        let ms = Duration::from_millis;
        assert_eq!(validity(ms(10_000), ms(0)), Some(ms(9_898)));
        assert_eq!(validity(ms(10_000), ms(9_000)), Some(ms(898)));
        assert_eq!(validity(ms(10_000), ms(9_898)), None);
        assert_eq!(validity(ms(10_000), ms(9_899)), None);
        assert_eq!(validity(ms(10_000), ms(20_000)), None);
    }

    #[test]
    fn a_server_has_a_part_of_the_term_to_answer() {
        let timeout = |term| LockOptions::term(Duration::from_millis(term)).server_timeout().as_millis();
        assert_eq!((timeout(100), timeout(10_000), timeout(600_000)), (50, 500, 1000));
    }

    #[test]
    fn a_restarted_server_stays_out_for_the_longest_term() {
        let options = LockOptions::term(Duration::from_secs(10));
        assert_eq!(options.quarantine(), Some(Duration::from_millis(10_102)));
        assert_eq!(
            options.clone().longest_term(Duration::from_secs(100)).quarantine(),
            Some(Duration::from_millis(101_002))
        );
        assert_eq!(options.restarts(Restarts::Trusted).quarantine(), None);
    }
}
