//! When to look for work, in each of the places where it comes from.
//!
//! A worker with a free place sleeps until somebody says that a task is due, or until the next one will be. Many sleep for the same
//! moment. The one that looked last is the first to look again, after at most [`FIRST`]; the others wait longer, each a random time
//! ([`OTHERS`], [`SPREAD`]). Whoever has looked and left nothing tells the others, who then do not look at all: as many ask the
//! server as there is work for, and one or two.
//!
//! That must not lose a task. Say one worker looks, a task becomes due just after, and only then that worker says "nothing left":
//! whoever hears the one and then the other would go back to sleep. But then the worker that looked too early has heard of the task
//! itself, while it was asking; what is heard at that time is looked into, whatever others say.
//!
//! Anybody may say that nothing is left, and again and again; and what was never told is to be found all the same. So each worker with a
//! free place glances now and then, whatever others say ([`glance_in`]): one statement for all sources, which takes nothing and tells
//! nobody. To tell each other of that would wake as many as there are, as often as there are, for nothing.

use std::time::{Duration, Instant};

/// The one that looked last looks again within this time.
const FIRST: Duration = Duration::from_millis(10);
/// All others leave it so much time for that, and then look within a time of their own.
const OTHERS: Duration = Duration::from_millis(30);
const SPREAD: Duration = Duration::from_millis(40);
/// The longest that anybody waits with a look that is due.
#[cfg(test)]
const LAST: Duration = Duration::from_millis(70);
/// Nobody sleeps for longer without a glance. At least three quarters of this are slept, so that not all glance at once.
const GLANCE: Duration = Duration::from_secs(30);
/// Where nothing is planned, the glances find what comes.
const LONGEST: Duration = Duration::from_secs(3600);
/// Shortest and longest wait after a look that found nothing although something is due: somebody has its row locked, or was faster.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// When a worker looks next.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is asked on its own, and all combinations of them occur"
)]
pub(super) struct Idle {
    /// When it looks.
    pub(super) at: Instant,
    /// Whether it looks then whatever others say.
    sure: bool,
    /// Whether others may be about to look for the same reason.
    shared: bool,
    /// Whether it was the last to tell that nothing is left.
    first: bool,
    /// Whether it has taken as much as it had places for, and so does not know whether there is more.
    full: bool,
    /// How long all should leave a task alone that is due and not to be had.
    pub(super) pause: Duration,
}

impl Idle {
    /// It looks at once.
    pub(super) fn new(now: Instant) -> Self {
        Self { at: now, sure: true, shared: false, first: false, full: false, pause: PAUSE.0 }
    }

    /// Whether to tell others that nothing is left: not when nobody else was woken.
    pub(super) fn tells(&self) -> bool {
        self.shared
    }

    /// A place has become free: if none was left for more, whatever is due is looked for at once.
    pub(super) fn freed(&mut self, now: Instant) {
        if self.full {
            *self = Self { pause: self.pause, first: self.first, ..Self::new(now) };
        }
    }

    /// A task is due, or the next one has changed.
    pub(super) fn heard(&mut self, now: Instant) {
        let at = now + self.delay();
        if at < self.at {
            (self.at, self.shared) = (at, true);
        }
    }

    /// The same, heard while this worker was asking: it may be what it just did not see.
    pub(super) fn heard_while_looking(&mut self, now: Instant) {
        self.heard(now);
        self.sure = true;
    }

    /// Another worker found nothing left, and said when that changes.
    pub(super) fn quiet(&mut self, now: Instant, due: Option<Duration>) {
        self.first = false;
        if !self.sure {
            (self.at, self.shared) = (now + self.until(due), true);
        }
    }

    /// The server was asked when there is something, without looking.
    pub(super) fn glanced(&mut self, now: Instant, due: Option<Duration>) {
        if self.sure || self.full {
            return;
        }
        if due.is_some_and(|due| due.is_zero()) {
            // Nobody told, or others were told and have not looked yet.
            self.heard(now);
            self.sure = self.at <= now + OTHERS + SPREAD;
        } else {
            (self.at, self.shared) = (now + self.until(due), true);
        }
    }

    /// Its own words to that effect have come back, and those of others that follow come after.
    pub(super) fn told(&mut self) {
        self.first = true;
    }

    /// It took all that it had places for: there may be more, and the next free place looks.
    pub(super) fn took_all(&mut self, now: Instant) {
        self.sure = false;
        (self.at, self.shared, self.pause) = (now + LONGEST, false, PAUSE.0);
        self.full = true;
    }

    /// It found nothing more, and the server said when that changes.
    pub(super) fn looked(&mut self, now: Instant, took: bool, due: Option<Duration>) {
        let overdue = due.is_some_and(|due| due.is_zero());
        let pause = if took || !overdue { PAUSE.0 } else { (self.pause * 2).min(PAUSE.1) };
        let wait = if overdue { Some(self.pause) } else { due };
        self.sure = false;
        (self.at, self.shared, self.pause) = (now + self.until(wait), true, pause);
        self.full = false;
    }

    /// The server refused to say.
    pub(super) fn failed(&mut self, now: Instant) {
        self.pause = (self.pause * 2).clamp(Duration::from_millis(500), PAUSE.1);
        self.sure = false;
        (self.at, self.shared) = (now + self.pause, false);
    }

    /// How long to sleep for something that is due then.
    fn until(&self, due: Option<Duration>) -> Duration {
        due.map_or(LONGEST, |due| due.saturating_add(self.delay()).min(LONGEST))
    }

    /// How long after a task is due.
    fn delay(&self) -> Duration {
        if self.first { part_of(FIRST) } else { OTHERS + part_of(SPREAD) }
    }
}

/// How long to sleep until the next glance; the first one comes earlier, so that workers that began together do not glance together.
pub(super) fn glance_in(first: bool) -> Duration {
    if first { part_of(GLANCE) } else { GLANCE.saturating_sub(part_of(GLANCE / 4)) }
}

/// A random part of a duration, evenly spread from zero to all of it.
pub(super) fn part_of(whole: Duration) -> Duration {
    whole.mul_f64(fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use locktop_base::clock;

    const SOON: Duration = Duration::from_secs(3);

    #[test]
    fn it_sleeps_until_something_is_due_and_a_little_more() {
        let now = clock::monotonic();
        let mut idle = Idle::new(now);
        assert!(idle.at == now && !idle.tells());
        idle.looked(now, false, Some(SOON));
        assert!((SOON..=SOON + LAST).contains(&(idle.at - now)) && idle.tells());
        idle.looked(now, false, None);
        assert!(idle.at - now > GLANCE, "nothing to wait for but a glance");
        idle.looked(now, false, Some(Duration::MAX));
        assert!(idle.at - now <= LONGEST);
        idle.freed(now);
        assert!(idle.at > now, "it knows that nothing is due");
        idle.took_all(now);
        idle.freed(now);
        assert!(idle.at == now && !idle.tells());
    }

    #[test]
    fn whoever_hears_that_nothing_is_left_does_not_look() {
        let now = clock::monotonic();
        let mut idle = Idle::new(now);
        idle.looked(now, false, None);
        idle.heard(now);
        assert!(idle.at - now <= LAST && idle.tells());
        idle.quiet(now, Some(SOON));
        assert!((SOON..=SOON + LAST).contains(&(idle.at - now)));
        // News after that counts again.
        idle.heard(now);
        assert!(idle.at - now <= LAST);
    }

    #[test]
    fn the_one_that_looked_last_is_the_first_to_look_again() {
        let now = clock::monotonic();
        let (mut one, mut other) = (Idle::new(now), Idle::new(now));
        for idle in [&mut one, &mut other] {
            idle.looked(now, false, None);
        }
        one.told();
        other.quiet(now, None);
        for _ in 0..2 {
            one.heard(now);
            other.heard(now);
            assert!(one.at - now <= FIRST && (OTHERS..=LAST).contains(&(other.at - now)));
            other.quiet(now, Some(SOON));
            one.looked(now, true, Some(SOON));
            assert!(one.at < other.at);
        }
        one.quiet(now, None);
        one.heard(now);
        assert!(one.at - now >= OTHERS, "somebody else has looked since");
    }

    #[test]
    fn what_was_heard_while_asking_is_looked_into_whatever_others_say() {
        let now = clock::monotonic();
        let mut idle = Idle::new(now);
        idle.looked(now, false, None);
        idle.heard_while_looking(now);
        idle.quiet(now, None);
        assert!(idle.at - now <= LAST);
        // Once.
        idle.looked(now, false, None);
        idle.quiet(now, Some(SOON));
        assert!(idle.at - now >= SOON);
    }

    #[test]
    fn a_glance_finds_what_nobody_told_and_what_others_hide() {
        let now = clock::monotonic();
        let mut idle = Idle::new(now);
        idle.looked(now, false, None);
        idle.quiet(now, Some(Duration::MAX));
        assert!(idle.at - now > GLANCE);
        idle.glanced(now, Some(SOON));
        assert!((SOON..=SOON + LAST).contains(&(idle.at - now)) && idle.tells());
        // Something is due: then it looks, whatever others say.
        idle.glanced(now, Some(Duration::ZERO));
        assert!(idle.at - now <= LAST);
        idle.quiet(now, None);
        assert!(idle.at - now <= LAST);
        idle.looked(now, true, None);
        idle.quiet(now, Some(SOON));
        assert!(idle.at - now >= SOON, "once");
        // What it is about to look into is not put off, and without a free place there is nothing to look for.
        idle.heard_while_looking(now);
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
                idle.looked(now, false, Some(Duration::ZERO));
                idle.at - now
            })
            .collect();
        assert!(waits[0] <= PAUSE.0 + LAST && waits[9] >= PAUSE.1, "{waits:?}");
        idle.looked(now, false, Some(SOON));
        assert_eq!(idle.pause, PAUSE.0);
    }

    #[test]
    fn a_part_is_no_more_than_the_whole_and_not_always_the_same() {
        let parts: std::collections::HashSet<_> = (0..20).map(|_| part_of(SOON)).collect();
        assert!(parts.len() > 10 && parts.iter().all(|part| *part <= SOON), "{parts:?}");
    }
}
