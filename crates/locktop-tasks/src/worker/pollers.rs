use std::time::{Duration, Instant};

use super::idle::{Idle, part_of};
use crate::work_session::Source;
use locktop_base::clock;

/// Lost items are checked for at least this often, even if the queue has other items.
const TEND: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Poller {
    pub(super) source: Source,
    pub(super) idle: Idle,
}

#[derive(Debug)]
pub(super) struct Pollers {
    all: Vec<Poller>,
    /// The source of the last job: the other sources come first.
    served: Option<Source>,
    tend_at: Instant,
}

impl Pollers {
    pub(super) fn new(sources: &[Source], now: Instant) -> Self {
        let all = sources.iter().map(|source| Poller { source: *source, idle: Idle::new(now) }).collect();
        Self { all, served: None, tend_at: now + part_of(TEND) }
    }

    pub(super) fn of(&mut self, source: Source) -> Option<&mut Poller> {
        self.all.iter_mut().find(|poller| poller.source == source)
    }

    pub(super) fn served(&mut self, source: Source) {
        self.served = Some(source);
    }

    pub(super) fn freed(&mut self, now: Instant) {
        for poller in &mut self.all {
            poller.idle.freed(now);
        }
    }

    /// The next source to poll, and when.
    pub(super) fn next(&self) -> Option<(Source, Instant)> {
        let now = clock::monotonic();
        let times = self.all.iter().map(|poller| (poller.source, poller.idle.at.max(now)));
        times.min_by_key(|(source, at)| (*at, self.served == Some(*source)))
    }

    /// Whether it is time to check for lost items, even if there are other items.
    pub(super) fn tends(&mut self, now: Instant) -> bool {
        let tends = self.tend_at <= now;
        if tends {
            self.tend_at = now + TEND.saturating_sub(part_of(TEND / 4));
        }
        tends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_both_have_something_they_take_turns() {
        let now = clock::monotonic();
        let mut pollers = Pollers::new(&Source::ALL, now);
        for source in [Source::Tasks, Source::Queue, Source::Tasks] {
            assert_eq!(pollers.next().unwrap().0, source);
            pollers.served(source);
            pollers.of(source).unwrap().idle.took_all(now);
            pollers.freed(now);
        }
        // A source that had nothing is not polled before its time.
        pollers.of(Source::Queue).unwrap().idle.looked(now, false, None);
        pollers.freed(now);
        assert_eq!(pollers.next().unwrap().0, Source::Tasks);
        assert!(Pollers::new(&[], now).next().is_none());
        assert!(Pollers::new(&[Source::Queue], now).of(Source::Tasks).is_none());
    }

    #[test]
    fn what_was_lost_is_looked_for_now_and_then() {
        let now = clock::monotonic();
        let mut pollers = Pollers::new(&[Source::Queue], now);
        assert!(pollers.tends(now + TEND), "at the latest");
        assert!(!pollers.tends(now + TEND));
        assert!(!pollers.tends(now + TEND + TEND / 2));
        assert!(pollers.tends(now + TEND + TEND));
    }
}
