//! Polls less often where reading `pg_locks` would cost the server more than it may.
//!
//! What is compared is the time of the server for the one statement that grows with its locks, and that holds up whoever wants a lock
//! meanwhile: `pg_lock_status` takes all partitions of the lock table at once (`GetLockStatusData` in
//! `src/backend/storage/lmgr/lock.c`). The least of the last few looks counts, so that a server that is busy with something else is
//! not taken for a lock table that has grown.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::view::Slowed;

/// Of so many looks the least counts.
const LOOKS: usize = 5;

/// The intervals to choose from, in seconds.
const STEPS: [f64; 8] = [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

/// It is made faster again where that would hold with so much to spare: it does not go to and fro between two steps.
const SPARE: f64 = 1.3;

/// How often to poll at least, by what the last looks cost.
#[derive(Debug)]
pub struct Throttle {
    /// The share of the time of one core that is taken at most.
    share: f64,
    /// What the last looks cost, in seconds.
    costs: VecDeque<f64>,
    /// Seconds between two polls, where what was asked for is too often.
    step: f64,
}

impl Throttle {
    /// Takes no more than this share of one core; 1 and more is never reached.
    pub fn new(share: f64) -> Self {
        Self { share, costs: VecDeque::with_capacity(LOOKS + 1), step: 0.0 }
    }

    /// A look cost the server so much.
    pub fn looked(&mut self, cost: Duration) {
        self.costs.push_back(cost.as_secs_f64());
        if self.costs.len() > LOOKS {
            self.costs.pop_front();
        }
        let Some(cost) = self.cost() else { return };
        let step_for = |wanted: f64| STEPS.into_iter().find(|step| *step >= wanted).unwrap_or(60.0);
        let wanted = cost / self.share;
        self.step = step_for(wanted).max(self.step.min(step_for(wanted * SPARE)));
    }

    /// What a look costs, in seconds; none while too few are known.
    fn cost(&self) -> Option<f64> {
        let is_known = self.costs.len() == LOOKS;
        is_known.then(|| self.costs.iter().copied().fold(f64::INFINITY, f64::min))
    }

    /// How often to poll where somebody asks for this interval; none for just that.
    pub fn slowed(&self, asked: Duration) -> Option<Slowed> {
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
            throttle.looked(Duration::from_millis(*cost));
        }
        throttle.slowed(Duration::from_secs_f64(asked)).map(|slowed| slowed.interval)
    }

    #[test]
    fn a_dear_look_is_made_less_often() {
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
            // A server that was busy once.
            (&[4, 900, 4, 900, 900], 0.02, 1.0, None),
            // The locks are gone: at once.
            (&[500, 500, 500, 500, 500, 3], 0.02, 1.0, None),
        ] {
            assert_eq!(after(costs, share, asked), expected, "{costs:?} {share} {asked}");
        }
    }

    #[test]
    fn it_does_not_go_to_and_fro() {
        let mut throttle = Throttle::new(0.02);
        let mut steps = Vec::new();
        // Around the 40 ms at which 2 s become 5.
        for cost in [39, 39, 39, 39, 39, 41, 41, 41, 41, 41, 39, 41, 39, 41, 10] {
            throttle.looked(Duration::from_millis(cost));
            steps.push(throttle.slowed(Duration::from_secs(1)).map_or(1.0, |slowed| slowed.interval));
        }
        steps.dedup();
        assert_eq!(steps, [1.0, 2.0, 5.0, 1.0]);
    }
}
