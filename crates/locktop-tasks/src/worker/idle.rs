//! When to poll each source for work.
//!
//! A worker with a free slot sleeps until a notification or the next due time. The worker that polled last polls again
//! first, within [`FIRST`]; the others wait a longer, random time ([`OTHERS`], [`SPREAD`]). A worker that left nothing
//! to take notifies the others, which then skip their poll.
//!
//! No task may be lost: a notification that arrives during a poll always causes another one, because the poll may have
//! been too early to see the task. Any role can notify that nothing is left, so each worker also checks the due times
//! now and then ([`glance_in`]), with one statement for all sources that takes nothing and notifies no other worker.

use std::time::{Duration, Instant};

use crate::work_session::Source;
use locktop_base::clock;

/// The worker that polled last polls again within this time.
const FIRST: Duration = Duration::from_millis(10);
/// All other workers wait this long, and a random part of `SPREAD`.
const OTHERS: Duration = Duration::from_millis(30);
const SPREAD: Duration = Duration::from_millis(40);
/// The longest delay of a due poll.
#[cfg(test)]
const LAST: Duration = Duration::from_millis(70);
/// The longest time without a check of the due times. At least three quarters of it are slept, at random, so that
/// workers do not all check at once.
const GLANCE: Duration = Duration::from_secs(30);
/// Sleep if nothing is planned; the checks find new work.
const LONGEST: Duration = Duration::from_secs(3600);
/// Shortest and longest wait after a poll that found nothing although something is due: another session has locked its
/// row, or was faster.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is asked on its own, and all combinations of them occur"
)]
pub(super) struct Idle {
    pub(super) at: Instant,
    /// Whether it polls then regardless of other workers.
    sure: bool,
    /// Whether other workers may be about to poll for the same reason.
    shared: bool,
    /// Whether it was the last to report that nothing is left.
    first: bool,
    /// Whether the last poll filled all slots, so that there may be more.
    full: bool,
    /// How long all workers should leave alone a task that is due but cannot be taken.
    pub(super) pause: Duration,
}

impl Idle {
    /// The first poll is due at once.
    pub(super) fn new(now: Instant) -> Self {
        Self { at: now, sure: true, shared: false, first: false, full: false, pause: PAUSE.0 }
    }

    /// Whether to notify others that nothing is left: not if no other worker was woken.
    pub(super) fn notifies(&self) -> bool {
        self.shared
    }

    /// A slot is free: polls at once if the last poll filled all slots.
    pub(super) fn freed(&mut self, now: Instant) {
        if self.full {
            *self = Self { pause: self.pause, first: self.first, ..Self::new(now) };
        }
    }

    /// A task is due, or the next due time has changed.
    pub(super) fn notified(&mut self, now: Instant) {
        let at = now + self.delay();
        if at < self.at {
            (self.at, self.shared) = (at, true);
        }
    }

    /// The same, during a poll, which may have missed it.
    pub(super) fn notified_during_poll(&mut self, now: Instant) {
        self.notified(now);
        self.sure = true;
    }

    /// Another worker found nothing left, and reported when that changes.
    pub(super) fn quiet(&mut self, now: Instant, due: Option<Duration>) {
        self.first = false;
        if !self.sure {
            (self.at, self.shared) = (now + self.until(due), true);
        }
    }

    /// The server reported the next due time, without a poll.
    pub(super) fn glanced(&mut self, now: Instant, due: Option<Duration>) {
        if self.sure || self.full {
            return;
        }
        if due.is_some_and(|due| due.is_zero()) {
            // No notification came, or others were notified and have not polled yet.
            self.notified(now);
            self.sure = self.at <= now + OTHERS + SPREAD;
        } else {
            (self.at, self.shared) = (now + self.until(due), true);
        }
    }

    /// Its own notification came back; those of other workers that follow are later.
    pub(super) fn notified_others(&mut self) {
        self.first = true;
    }

    /// The poll filled all slots: there may be more, and the next free slot causes a poll.
    pub(super) fn took_all(&mut self, now: Instant) {
        self.sure = false;
        (self.at, self.shared, self.pause) = (now + LONGEST, false, PAUSE.0);
        self.full = true;
    }

    /// The poll found nothing more, and the server reported when that changes.
    pub(super) fn polled(&mut self, now: Instant, took: bool, due: Option<Duration>) {
        let overdue = due.is_some_and(|due| due.is_zero());
        let pause = if took || !overdue { PAUSE.0 } else { (self.pause * 2).min(PAUSE.1) };
        let wait = if overdue { Some(self.pause) } else { due };
        self.sure = false;
        (self.at, self.shared, self.pause) = (now + self.until(wait), true, pause);
        self.full = false;
    }

    /// The server refused the request.
    pub(super) fn failed(&mut self, now: Instant) {
        self.pause = (self.pause * 2).clamp(Duration::from_millis(500), PAUSE.1);
        self.sure = false;
        (self.at, self.shared) = (now + self.pause, false);
    }

    fn until(&self, due: Option<Duration>) -> Duration {
        due.map_or(LONGEST, |due| due.saturating_add(self.delay()).min(LONGEST))
    }

    fn delay(&self) -> Duration {
        if self.first { part_of(FIRST) } else { OTHERS + part_of(SPREAD) }
    }
}

/// Time until the next check; the first comes earlier, so that workers that started together do not check together.
pub(super) fn glance_in(first: bool) -> Duration {
    if first { part_of(GLANCE) } else { GLANCE.saturating_sub(part_of(GLANCE / 4)) }
}

/// A random part of a duration, evenly spread from zero to all of it.
pub(super) fn part_of(whole: Duration) -> Duration {
    whole.mul_f64(fastrand::f64())
}

/// Lost items are checked for at least this often, even if the queue has other items.
const TEND: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Pollers {
    all: Vec<(Source, Idle)>,
    /// The source of the last job: the other sources come first.
    pub(super) served: Option<Source>,
    tend_at: Instant,
}

impl Pollers {
    pub(super) fn new(sources: &[Source], now: Instant) -> Self {
        let all = sources.iter().map(|source| (*source, Idle::new(now))).collect();
        Self { all, served: None, tend_at: now + part_of(TEND) }
    }

    /// `None` if the source is not polled.
    pub(super) fn of(&mut self, source: Source) -> Option<&mut Idle> {
        self.all.iter_mut().find(|(of, _)| *of == source).map(|(_, idle)| idle)
    }

    pub(super) fn freed(&mut self, now: Instant) {
        self.all.iter_mut().for_each(|(_, idle)| idle.freed(now));
    }

    /// The next source to poll, and when.
    pub(super) fn next(&self) -> Option<(Source, Instant)> {
        let now = clock::monotonic();
        let times = self.all.iter().map(|(source, idle)| (*source, idle.at.max(now)));
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

    const SOON: Duration = Duration::from_secs(3);

    #[test]
    fn it_sleeps_until_something_is_due_and_a_little_more() {
        let now = clock::monotonic();
        let mut idle = Idle::new(now);
        assert!(idle.at == now && !idle.notifies());
        idle.polled(now, false, Some(SOON));
        assert!((SOON..=SOON + LAST).contains(&(idle.at - now)) && idle.notifies());
        idle.polled(now, false, None);
        assert!(idle.at - now > GLANCE, "nothing to wait for but a glance");
        idle.polled(now, false, Some(Duration::MAX));
        assert!(idle.at - now <= LONGEST);
        idle.freed(now);
        assert!(idle.at > now, "it knows that nothing is due");
        idle.took_all(now);
        idle.freed(now);
        assert!(idle.at == now && !idle.notifies());
    }

    #[test]
    fn a_report_that_nothing_is_left_postpones_the_poll() {
        let now = clock::monotonic();
        let mut idle = Idle::new(now);
        idle.polled(now, false, None);
        idle.notified(now);
        assert!(idle.at - now <= LAST && idle.notifies());
        idle.quiet(now, Some(SOON));
        assert!((SOON..=SOON + LAST).contains(&(idle.at - now)));
        // A later notification counts again.
        idle.notified(now);
        assert!(idle.at - now <= LAST);
    }

    #[test]
    fn the_worker_that_polled_last_polls_first_again() {
        let now = clock::monotonic();
        let (mut one, mut other) = (Idle::new(now), Idle::new(now));
        for idle in [&mut one, &mut other] {
            idle.polled(now, false, None);
        }
        one.notified_others();
        other.quiet(now, None);
        for _ in 0..2 {
            one.notified(now);
            other.notified(now);
            assert!(one.at - now <= FIRST && (OTHERS..=LAST).contains(&(other.at - now)));
            other.quiet(now, Some(SOON));
            one.polled(now, true, Some(SOON));
            assert!(one.at < other.at);
        }
        one.quiet(now, None);
        one.notified(now);
        assert!(one.at - now >= OTHERS, "another worker has polled since");
    }

    #[test]
    fn a_notification_during_a_poll_forces_another_poll() {
        let now = clock::monotonic();
        let mut idle = Idle::new(now);
        idle.polled(now, false, None);
        idle.notified_during_poll(now);
        idle.quiet(now, None);
        assert!(idle.at - now <= LAST);
        // Only once.
        idle.polled(now, false, None);
        idle.quiet(now, Some(SOON));
        assert!(idle.at - now >= SOON);
    }

    #[test]
    fn a_glance_finds_due_work_that_was_not_reported() {
        let now = clock::monotonic();
        let mut idle = Idle::new(now);
        idle.polled(now, false, None);
        idle.quiet(now, Some(Duration::MAX));
        assert!(idle.at - now > GLANCE);
        idle.glanced(now, Some(SOON));
        assert!((SOON..=SOON + LAST).contains(&(idle.at - now)) && idle.notifies());
        // Something is due, so it polls regardless of other workers.
        idle.glanced(now, Some(Duration::ZERO));
        assert!(idle.at - now <= LAST);
        idle.quiet(now, None);
        assert!(idle.at - now <= LAST);
        idle.polled(now, true, None);
        idle.quiet(now, Some(SOON));
        assert!(idle.at - now >= SOON, "once");
        // A due poll is not postponed, and without a free slot there is nothing to poll for.
        idle.notified_during_poll(now);
        idle.glanced(now, None);
        assert!(idle.at - now <= LAST);
        idle.took_all(now);
        idle.glanced(now, Some(Duration::ZERO));
        assert!(idle.at - now > GLANCE);
    }

    #[test]
    fn glances_are_apart_and_no_two_alike() {
        let later: std::collections::HashSet<_> = (0..20).map(|_| glance_in(false)).collect();
        assert!(later.len() > 10 && later.iter().all(|wait| (GLANCE * 3 / 4..=GLANCE).contains(wait)));
        assert!((0..20).all(|_| glance_in(true) <= GLANCE));
    }

    #[test]
    fn a_due_task_that_is_not_to_be_had_is_asked_for_less_and_less() {
        let now = clock::monotonic();
        let mut idle = Idle::new(now);
        let waits: Vec<Duration> = (0..10)
            .map(|_| {
                idle.polled(now, false, Some(Duration::ZERO));
                idle.at - now
            })
            .collect();
        assert!(waits[0] <= PAUSE.0 + LAST && waits[9] >= PAUSE.1, "{waits:?}");
        idle.polled(now, false, Some(SOON));
        assert_eq!(idle.pause, PAUSE.0);
    }

    #[test]
    fn a_part_is_no_more_than_the_whole_and_not_always_the_same() {
        let parts: std::collections::HashSet<_> = (0..20).map(|_| part_of(SOON)).collect();
        assert!(parts.len() > 10 && parts.iter().all(|part| *part <= SOON), "{parts:?}");
    }

    #[test]
    fn two_sources_with_work_take_turns() {
        let now = clock::monotonic();
        let mut pollers = Pollers::new(&Source::ALL, now);
        for source in [Source::Tasks, Source::Queue, Source::Tasks] {
            assert_eq!(pollers.next().unwrap().0, source);
            pollers.served = Some(source);
            pollers.of(source).unwrap().took_all(now);
            pollers.freed(now);
        }
        // A source that had nothing is not polled before its time.
        pollers.of(Source::Queue).unwrap().polled(now, false, None);
        pollers.freed(now);
        assert_eq!(pollers.next().unwrap().0, Source::Tasks);
        assert!(Pollers::new(&[], now).next().is_none());
        assert!(Pollers::new(&[Source::Queue], now).of(Source::Tasks).is_none());
    }

    #[test]
    fn lost_items_are_checked_for_at_intervals() {
        let now = clock::monotonic();
        let mut pollers = Pollers::new(&[Source::Queue], now);
        assert!(pollers.tends(now + TEND), "at the latest");
        assert!(!pollers.tends(now + TEND));
        assert!(!pollers.tends(now + TEND + TEND / 2));
        assert!(pollers.tends(now + TEND + TEND));
    }
}
