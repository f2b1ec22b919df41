use rustc_hash::FxHashMap;

use super::Sums;
use crate::model::Timestamp;
use crate::model::lock::{LockTag, LockType};

#[derive(Debug)]
pub(super) struct CostedWait {
    pub(super) tag: LockTag,
    pub(super) start: Option<Timestamp>,
    /// The whole wait, without a split over causes.
    pub(super) whole: Share,
    pub(super) behind: Vec<Share>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) episode: u64,
    pub(super) part: f64,
    /// It was seen in more than one poll.
    pub(super) is_long: bool,
    /// The square of the error that it contributed.
    pub(super) error: f64,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Sum {
    pub(super) parts: f64,
    pub(super) blocked: u32,
    pub(super) begun: u64,
    /// The square of the standard error, in seconds squared, without the covariance of waits that ended together.
    pub(super) variance: f64,
    /// Waits that ended since the previous poll (`short`: seen once, `long`: others): the sum of the shares, and of their
    /// squares.
    pub(super) short: (f64, f64),
    pub(super) long: (f64, f64),
}

impl Sum {
    /// Counts a share of a wait. The number of polls that see a wait depends on when the polls fall, so the error of a wait
    /// seen once is at most the poll interval, and of another one half of it.
    pub(super) fn see(&mut self, part: f64, before: Option<Share>, seconds: f64) -> f64 {
        self.parts += part;
        self.blocked += 1;
        let whole = (part * seconds) * (part * seconds);
        let (error, known) = match before {
            None => (whole, 0.0),
            Some(share) if !share.is_long => (whole / 4.0, share.error),
            Some(share) => (share.error, share.error),
        };
        self.begun += u64::from(before.is_none());
        self.variance += error - known;
        error
    }

    pub(super) fn end(&mut self, part: f64, is_long: bool) {
        let (sum, squares) = if is_long { &mut self.long } else { &mut self.short };
        *sum += part;
        *squares += part * part;
    }

    /// The errors of waits that end together are correlated.
    pub(super) fn sums(&self, seconds: f64) -> Sums {
        let together = |(sum, squares): (f64, f64)| sum * sum - squares;
        let together = together(self.short) + together(self.long) / 4.0;
        Sums {
            seconds: self.parts * seconds,
            variance: self.variance + together * seconds * seconds,
            waits: self.begun,
            most: self.blocked,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Seconds since the previous poll, which each wait is taken to have lasted.
    pub(super) seconds: f64,
    /// By episode number.
    pub(super) sums: FxHashMap<u64, Sum>,
    pub(super) total: Sum,
    /// Ended waits, by the first episode of each: their errors are correlated.
    pub(super) ends: FxHashMap<u64, Sum>,
}

impl Costs {
    pub(super) fn see(&mut self, before: Option<&CostedWait>, episodes: &[u64]) -> CostedWait {
        let known = before.map(|wait| wait.behind.as_slice()).unwrap_or_default();
        let part = 1.0 / f64::from(u32::try_from(episodes.len()).unwrap_or(u32::MAX)).max(1.0);
        let mut behind = Vec::with_capacity(episodes.len());
        for (place, episode) in episodes.iter().enumerate() {
            // Its index is mostly unchanged.
            let here = known.get(place).filter(|share| share.episode == *episode);
            let share = here.or_else(|| known.iter().find(|share| share.episode == *episode));
            let sum = self.sums.entry(*episode).or_default();
            let error = sum.see(part, share.copied(), self.seconds);
            behind.push(Share { episode: *episode, part, is_long: share.is_some(), error });
        }
        let is_same = known.iter().map(|share| share.episode).eq(episodes.iter().copied());
        for gone in known.iter().filter(|share| !is_same && !episodes.contains(&share.episode)) {
            self.sums.entry(gone.episode).or_default().end(gone.part, gone.is_long);
        }
        let whole = before.map(|wait| wait.whole);
        let error = self.total.see(1.0, whole, self.seconds);
        let whole = Share { episode: 0, part: 1.0, is_long: whole.is_some(), error };
        CostedWait { tag: LockTag::new(LockType::Other), start: None, whole, behind }
    }

    pub(super) fn end(&mut self, wait: &CostedWait) {
        for share in &wait.behind {
            self.sums.entry(share.episode).or_default().end(share.part, share.is_long);
        }
        let first = wait.behind.first().map_or(0, |share| share.episode);
        self.ends.entry(first).or_default().end(1.0, wait.whole.is_long);
    }
}
