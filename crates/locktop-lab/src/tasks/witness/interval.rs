//! When the witnesses of two executions contradict each other: arithmetic on times of the server's clock.
//!
//! A run is one piece of work for a task as its worker witnessed it: its beginning, its last two signs, and its end. The
//! process was at work from the first to the last of these times, except while the demo had it stopped: from a moment
//! after it stopped to a moment before it was resumed. The remaining parts are the run's spans. Two runs of one task ran
//! at the same time if a span of the one and a span of the other share more than a moment: each begins before the other
//! ends.
//!
//! One overlap is no double run. A worker that was stopped past every timeout loses its task and cannot know that before
//! it checks, and a sign that was due when it resumed comes first. So a span after the last resumption with at most one
//! sign, and the end of the work, counts only as woken. A second sign is work that continued. A sign is given every
//! [`super::TICK`].

use crate::contest::{EpochMicros, PauseInterval};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tasks) struct Run {
    pub(in crate::tasks) task: i32,
    /// The number of the process among all that the demo started; a process id may be reused.
    pub(in crate::tasks) process: i32,
    pub(in crate::tasks) began: EpochMicros,
    pub(in crate::tasks) before_last: Option<EpochMicros>,
    /// The last sign; the beginning is the first.
    pub(in crate::tasks) last: EpochMicros,
    /// When it stopped working, if it recorded that.
    pub(in crate::tasks) ended: Option<EpochMicros>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tasks) enum Overlap {
    /// They were never at work at the same time.
    Apart,
    /// They overlap only in what one of them did right after it was resumed.
    Woken,
    /// Both were at work, and not only right after a pause.
    Double,
}

/// A part of a run in which it was at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: EpochMicros,
    to: EpochMicros,
    after_wake: bool,
}

impl Span {
    fn overlaps(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}

impl Run {
    fn end(&self) -> EpochMicros {
        self.ended.unwrap_or(self.last).max(self.last)
    }

    fn spans(&self, stops: &[PauseInterval]) -> Vec<Span> {
        let (mut from, end) = (self.began, self.end());
        let mut woken = false;
        let mut spans = Vec::new();
        for stop in stops.iter().filter(|stop| stop.process == self.process) {
            let to = stop.to.unwrap_or(EpochMicros::MAX);
            if to <= from || stop.from >= end {
                continue;
            }
            if stop.from > from {
                spans.push(Span { from, to: stop.from, after_wake: false });
            }
            (from, woken) = (to, true);
        }
        if from < end || !woken {
            let after_wake = woken && self.before_last.is_none_or(|sign| sign < from);
            spans.push(Span { from, to: end, after_wake });
        }
        spans
    }
}

fn overlap(one: &[Span], other: &[Span]) -> Overlap {
    let mut found = Overlap::Apart;
    for a in one {
        for b in other.iter().filter(|b| a.overlaps(b)) {
            if !a.after_wake && !b.after_wake {
                return Overlap::Double;
            }
            found = Overlap::Woken;
        }
    }
    found
}

/// The pairs of runs of one task that were at work at the same time, as indices into `runs`.
pub(in crate::tasks) fn overlaps(runs: &[Run], stops: &[PauseInterval]) -> Vec<(usize, usize, Overlap)> {
    let mut stops = stops.to_vec();
    stops.sort_by_key(|stop| stop.from);
    let mut order: Vec<(usize, &Run)> = runs.iter().enumerate().collect();
    order.sort_by_key(|(_, run)| (run.task, run.began));
    let mut found = Vec::new();
    for (index, (first, run)) in order.iter().enumerate() {
        let later = order.iter().skip(index + 1);
        // Later runs that begin before its end.
        let near = later.take_while(|(_, other)| other.task == run.task && other.began < run.end());
        let spans = run.spans(&stops);
        for (second, other) in near {
            match overlap(&spans, &other.spans(&stops)) {
                Overlap::Apart => {}
                met => found.push((*first, *second, met)),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(process: i32, began: EpochMicros, last: EpochMicros) -> Run {
        Run { task: 1, process, began, before_last: None, last, ended: None }
    }

    fn met(runs: &[Run], stops: &[PauseInterval]) -> Vec<Overlap> {
        overlaps(runs, stops).into_iter().map(|(_, _, met)| met).collect()
    }

    fn stop(process: i32, from: EpochMicros, to: EpochMicros) -> PauseInterval {
        PauseInterval { process, work: 0, from, to: Some(to) }
    }

    #[test]
    fn one_after_the_other_is_no_double_run() {
        assert_eq!(met(&[run(1, 0, 10), run(2, 10, 20), run(3, 21, 21)], &[]), []);
        assert_eq!(met(&[run(1, 0, 10), run(1, 0, 10)], &[]), [Overlap::Double], "also in one process");
    }

    #[test]
    fn two_at_a_time_are_one() {
        assert_eq!(met(&[run(1, 0, 10), run(2, 9, 20)], &[]), [Overlap::Double]);
        assert_eq!(met(&[run(2, 9, 20), run(1, 0, 10)], &[]), [Overlap::Double], "in any order");
        assert_eq!(met(&[run(1, 0, 100), run(2, 50, 50)], &[]), [Overlap::Double], "one that only began");
        let other_task = Run { task: 2, ..run(2, 0, 10) };
        assert_eq!(met(&[run(1, 0, 10), other_task], &[]), []);
    }

    #[test]
    fn the_end_counts_as_work() {
        let ended = Run { ended: Some(30), ..run(1, 0, 10) };
        assert_eq!(met(&[ended, run(2, 20, 40)], &[]), [Overlap::Double]);
    }

    #[test]
    fn each_pair_counts() {
        assert_eq!(met(&[run(1, 0, 10), run(2, 1, 9), run(3, 2, 8)], &[]).len(), 3);
    }

    #[test]
    fn a_stopped_worker_does_nothing() {
        // Stopped from 10 to 100; another worker has the task from 40 to 60; it resumes, and then stops working.
        let slept = Run { before_last: Some(9), ended: Some(101), ..run(1, 0, 100) };
        assert_eq!(met(&[slept, run(2, 40, 60)], &[stop(1, 10, 100)]), []);
        assert_eq!(met(&[slept, run(2, 40, 60)], &[]), [Overlap::Double], "nobody stopped it");
        assert_eq!(met(&[slept, run(2, 40, 60)], &[stop(3, 10, 100)]), [Overlap::Double], "another was");
    }

    #[test]
    fn the_first_sign_after_waking_is_counted_apart() {
        let stops = [stop(1, 10, 100)];
        let other = run(2, 40, 160);
        let one_sign = Run { before_last: Some(9), ended: Some(105), ..run(1, 0, 102) };
        assert_eq!(met(&[one_sign, other], &stops), [Overlap::Woken]);
        let no_sign = Run { before_last: Some(8), ended: Some(105), ..run(1, 0, 9) };
        assert_eq!(met(&[no_sign, other], &stops), [Overlap::Woken]);
        let two_signs = Run { before_last: Some(102), ended: Some(155), ..run(1, 0, 152) };
        assert_eq!(met(&[two_signs, other], &stops), [Overlap::Double], "it went on");
    }

    #[test]
    fn only_overlap_after_the_last_resumption_counts_as_woken() {
        // Resumed at 20, at work until 30, stopped again until 50: its work in between was more than one sign.
        let twice = Run { before_last: Some(29), ended: Some(51), ..run(1, 0, 50) };
        let stops = [stop(1, 30, 50), stop(1, 10, 20)];
        assert_eq!(met(&[twice, run(2, 22, 28)], &stops), [Overlap::Double]);
        assert_eq!(met(&[twice, run(2, 35, 45)], &stops), []);
        assert_eq!(met(&[twice, run(2, 35, 60)], &stops), [Overlap::Woken]);
        // Before it was stopped.
        assert_eq!(met(&[twice, run(2, 5, 9)], &stops), [Overlap::Double]);
    }

    #[test]
    fn a_statement_that_the_server_read_late_is_no_work() {
        // Sent before it was stopped at 10, read at 15.
        let late = Run { before_last: Some(5), ..run(1, 0, 15) };
        assert_eq!(
            met(&[late, run(2, 12, 20)], &[PauseInterval { process: 1, work: 0, from: 10, to: None }]),
            []
        );
        // Its beginning was read late: it begins when it is resumed.
        let begun = Run { ended: Some(105), ..run(1, 15, 15) };
        assert_eq!(met(&[begun, run(2, 40, 60)], &[stop(1, 10, 100)]), []);
        assert_eq!(met(&[begun, run(2, 40, 160)], &[stop(1, 10, 100)]), [Overlap::Woken]);
    }

    /// A brute-force model: the tenths of a moment at which a run is at work, and whether each follows a resumption.
    fn at_work(run: &Run, stops: &[PauseInterval]) -> Vec<(i64, bool)> {
        let mine: Vec<&PauseInterval> = stops.iter().filter(|stop| stop.process == run.process).collect();
        let inside =
            |stop: &PauseInterval, at: i64| at > stop.from * 10 && at < stop.to.unwrap_or(i64::MAX / 10) * 10;
        (run.began * 10 + 5..run.end() * 10)
            .step_by(10)
            .filter(|at| !mine.iter().any(|stop| inside(stop, *at)))
            .map(|at| {
                let wakings = mine.iter().filter(|stop| {
                    stop.to.is_some_and(|to| to * 10 < at && to > run.began) && stop.from < run.end()
                });
                let woken = wakings.filter_map(|stop| stop.to).max();
                let later = mine.iter().any(|stop| stop.from * 10 > at && stop.from < run.end());
                let glow = woken.is_some_and(|to| !later && run.before_last.is_none_or(|sign| sign < to));
                (at, glow)
            })
            .collect()
    }

    fn a_run() -> impl Strategy<Value = Run> {
        (1..3_i32, 1..4_i32, 0..40_i64, 0..20_i64, prop::option::of(0..20_i64), prop::option::of(0..5_i64))
            .prop_map(|(task, process, began, length, before, end)| {
                let last = began + length;
                let before_last = before.map(|before| (last - before).max(began));
                Run { task, process, began, before_last, last, ended: end.map(|end| last + end) }
            })
    }

    /// Stops of one process do not overlap: it is resumed before it is stopped again.
    fn some_stops() -> impl Strategy<Value = Vec<PauseInterval>> {
        let gaps = prop::collection::vec((1..15_i64, 1..15_i64), 0..4);
        prop::collection::vec(gaps, 3).prop_map(|processes| {
            let mut stops = Vec::new();
            for (process, gaps) in (1..).zip(processes) {
                let mut at = 0;
                for (gap, length) in gaps {
                    stops.push(stop(process, at + gap, at + gap + length));
                    at += gap + length;
                }
            }
            stops
        })
    }

    proptest! {
        #[test]
        fn overlaps_match_a_brute_force_model(runs in prop::collection::vec(a_run(), 0..8), stops in some_stops()) {
            let found = overlaps(&runs, &stops);
            for (i, a) in runs.iter().enumerate() {
                for (j, b) in runs.iter().enumerate().skip(i + 1) {
                    let (left, right) = (at_work(a, &stops), at_work(b, &stops));
                    // A run that only began is at work at no tenth between two moments.
                    if a.task != b.task || left.is_empty() || right.is_empty() { continue; }
                    let common: Vec<bool> = left.iter().filter_map(|(at, glow)| {
                        right.iter().find(|(other, _)| other == at).map(|(_, other)| *glow || *other)
                    }).collect();
                    let expected = match () {
                        () if common.contains(&false) => Overlap::Double,
                        () if common.contains(&true) => Overlap::Woken,
                        () => Overlap::Apart,
                    };
                    let got = found.iter().find(|(x, y, _)| (*x, *y) == (i, j) || (*x, *y) == (j, i));
                    prop_assert_eq!(got.map_or(Overlap::Apart, |(_, _, met)| *met), expected, "{:?} {:?} {:?}", a, b, stops);
                }
            }
        }
    }
}
