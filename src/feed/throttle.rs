//! Polls less often if reading `pg_locks` would cost the server more than the configured share.
//!
//! The cost is the server's time for the one statement that grows with the number of locks and that blocks lock requests
//! meanwhile: `pg_lock_status` locks all partitions of the lock table at once (`GetLockStatusData` in
//! `src/backend/storage/lmgr/lock.c`). The minimum of the last polls counts, so that other load on the server is not
//! taken for a large lock table.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::view::Slowed;

/// The cost is the minimum of this many polls.
const POLLS: usize = 5;

/// Selectable intervals, in seconds.
const STEPS: [f64; 8] = [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

/// Hysteresis: the interval is shortened only if the shorter one would also be long enough for a cost higher by this
/// factor.
const MARGIN: f64 = 1.3;

#[derive(Debug)]
pub(super) struct Throttle {
    /// The maximum share of one core's time.
    share: f64,
    /// Costs of the last polls, in seconds.
    costs: VecDeque<f64>,
    /// The shortest allowed interval, in seconds.
    step: f64,
}

impl Throttle {
    /// `share` is a share of one core; 1 or more disables the limit.
    pub(super) fn new(share: f64) -> Self {
        Self { share, costs: VecDeque::with_capacity(POLLS + 1), step: 0.0 }
    }

    pub(super) fn polled(&mut self, cost: Duration) {
        self.costs.push_back(cost.as_secs_f64());
        if self.costs.len() > POLLS {
            self.costs.pop_front();
        }
        let Some(cost) = self.cost() else { return };
        let step_for = |wanted: f64| STEPS.into_iter().find(|step| *step >= wanted).unwrap_or(60.0);
        let wanted = cost / self.share;
        self.step = step_for(wanted).max(self.step.min(step_for(wanted * MARGIN)));
    }

    /// The cost of a poll, in seconds. None: too few polls are known.
    fn cost(&self) -> Option<f64> {
        let is_known = self.costs.len() == POLLS;
        is_known.then(|| self.costs.iter().copied().fold(f64::INFINITY, f64::min))
    }

    /// The interval to use instead of the requested one. None: the requested interval is allowed.
    pub(super) fn slowed(&self, asked: Duration) -> Option<Slowed> {
        let cost = self.cost()?;
        (self.step > asked.as_secs_f64()).then_some(Slowed { interval: self.step, cost })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(costs: &[u64], share: f64, asked: f64) -> Option<f64> {
        let mut throttle = Throttle::new(share);
        for cost in costs {
            throttle.polled(Duration::from_millis(*cost));
        }
        throttle.slowed(Duration::from_secs_f64(asked)).map(|slowed| slowed.interval)
    }

    #[test]
    fn expensive_polls_are_made_less_often() {
        for (costs, share, asked, expected) in [
            (&[4; 5][..], 0.02, 1.0, None),
            (&[31; 5], 0.02, 1.0, Some(2.0)),
            (&[31; 5], 0.02, 2.0, None),
            (&[31; 5], 0.02, 0.1, Some(2.0)),
            (&[31; 5], 0.1, 1.0, None),
            (&[31; 4], 0.02, 1.0, None),
            (&[500; 5], 0.02, 1.0, Some(30.0)),
            (&[5000; 5], 0.02, 1.0, Some(60.0)),
            (&[5000; 5], 1.0, 60.0, None),
            (&[4, 900, 4, 900, 900], 0.02, 1.0, None),
            // The locks were released: the interval is shortened at once.
            (&[500, 500, 500, 500, 500, 3], 0.02, 1.0, None),
        ] {
            assert_eq!(after(costs, share, asked), expected, "{costs:?} {share} {asked}");
        }
    }

    #[test]
    fn it_does_not_go_to_and_fro() {
        let mut throttle = Throttle::new(0.02);
        let mut steps = Vec::new();
        // Around 40 ms, where the interval changes from 2 s to 5 s.
        for cost in [39, 39, 39, 39, 39, 41, 41, 41, 41, 41, 39, 41, 39, 41, 10] {
            throttle.polled(Duration::from_millis(cost));
            steps.push(throttle.slowed(Duration::from_secs(1)).map_or(1.0, |slowed| slowed.interval));
        }
        steps.dedup();
        assert_eq!(steps, [1.0, 2.0, 5.0, 1.0]);
    }
}
