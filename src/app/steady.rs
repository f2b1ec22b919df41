//! Keeps the findings readable from view to view: a finding that lasted stays for a moment after its end, two rows
//! change places only if their order lasts, and a new finding is not critical at once.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::panes::{RowId, findings::id_of};
use crate::model::Timestamp;
use crate::model::finding::{Finding, Severity};

/// Seconds for which an ended finding stays, if it lasted as long: in a chain each session is the root for a moment.
const STAYS: f64 = 5.0;
/// Two rows change places after this many snapshots in the other order.
const ORDERS: usize = 3;
/// From this number of blocked sessions on, a finding is critical at once.
const MANY: u32 = 10;
/// Seconds after which a finding is critical even if it is new here.
const NEW: f64 = 5.0;
/// More findings than this are shown as they are.
const MOST: usize = 500;

#[derive(Debug, Default)]
pub(super) struct StableFindings {
    source: Arc<Vec<Finding>>,
    shown: Arc<Vec<Finding>>,
    /// When each was first seen; `None` for findings that existed at the start.
    first: FxHashMap<RowId, Option<Timestamp>>,
    /// The positions in the last snapshots, the newest last.
    places: VecDeque<FxHashMap<RowId, usize>>,
}

impl StableFindings {
    /// The rows for the findings of a snapshot. While `is_read`, new ones are added below those of the same severity, and
    /// none changes places.
    pub(super) fn arrange(
        &mut self,
        new: &Arc<Vec<Finding>>,
        at: Timestamp,
        is_read: bool,
    ) -> Arc<Vec<Finding>> {
        if Arc::ptr_eq(&self.source, new) {
            return Arc::clone(&self.shown);
        }
        self.source = Arc::clone(new);
        if new.len() > MOST || self.shown.len() > MOST {
            self.places.clear();
            self.shown = Arc::clone(new);
            return Arc::clone(&self.shown);
        }
        // Findings of the first snapshot are not new.
        let is_start = self.places.is_empty();
        let before: FxHashSet<RowId> = if is_start {
            new.iter().map(id_of).collect()
        } else {
            self.shown.iter().filter(|it| it.ended.is_none()).map(id_of).collect()
        };
        let judged: Vec<Finding> = new.iter().map(|finding| judged(finding, at, &before)).collect();
        self.places
            .push_back(judged.iter().enumerate().map(|(place, finding)| (id_of(finding), place)).collect());
        if self.places.len() > ORDERS {
            self.places.pop_front();
        }
        let mut rows = self.kept(&judged, at);
        let shown = rows.iter().chain(&judged).map(id_of);
        self.first =
            shown.map(|id| (id, self.first.get(&id).copied().unwrap_or((!is_start).then_some(at)))).collect();
        self.insert(&mut rows, judged, is_read);
        if !is_read {
            self.exchange(&mut rows);
        }
        self.shown = Arc::new(rows);
        Arc::clone(&self.shown)
    }

    /// The rows shown before, with their current values. An ended one stays, unless another one has the same subject.
    fn kept(&self, new: &[Finding], at: Timestamp) -> Vec<Finding> {
        let now: FxHashMap<RowId, &Finding> = new.iter().map(|finding| (id_of(finding), finding)).collect();
        let subjects: FxHashSet<_> = new.iter().map(|finding| finding.subject).collect();
        let kept = self.shown.iter().filter_map(|finding| {
            if let Some(now) = now.get(&id_of(finding)) {
                return Some((*now).clone());
            }
            let ended = finding.ended.unwrap_or(at);
            let seconds = |from: Timestamp, to: Timestamp| (to - from).as_seconds_f64();
            let first = self.first.get(&id_of(finding)).copied().flatten();
            let lasted = first.or(finding.row_since()).is_none_or(|first| seconds(first, ended) >= STAYS);
            (lasted && (0.0..STAYS).contains(&seconds(ended, at)) && !subjects.contains(&finding.subject))
                .then(|| Finding { ended: Some(ended), ..finding.clone() })
        });
        kept.collect()
    }

    /// Adds new findings in their order or, while the rows are being read, below those that are as severe and have not ended.
    fn insert(&self, rows: &mut Vec<Finding>, new: Vec<Finding>, is_read: bool) {
        let mut there: FxHashSet<RowId> = rows.iter().filter(|row| row.ended.is_none()).map(id_of).collect();
        let place = |row: &Finding| self.places.back().and_then(|places| places.get(&id_of(row)).copied());
        for finding in new {
            if !there.insert(id_of(&finding)) {
                continue;
            }
            let own = place(&finding);
            let after = |row: &Finding| {
                if is_read {
                    row.ended.is_none() && row.severity >= finding.severity
                } else {
                    row.ended.is_none() && place(row) < own
                }
            };
            let at = rows.iter().rposition(after).map_or(0, |last| last + 1);
            rows.insert(at, finding);
        }
    }

    /// Exchanges rows that have been in the other order for long enough.
    fn exchange(&self, rows: &mut [Finding]) {
        if self.places.len() < ORDERS {
            return;
        }
        let is_before = |a: &Finding, b: &Finding| {
            let (a, b) = (id_of(a), id_of(b));
            self.places.iter().all(|places| match (places.get(&a), places.get(&b)) {
                (Some(a), Some(b)) => a < b,
                _ => false,
            })
        };
        // Rows without an order between them stay where they are, so neighbours are compared until none is in the wrong order.
        for end in 1..rows.len() {
            for at in (1..=end).rev() {
                let Some([above, below]) = rows.get_mut(at - 1..=at) else { break };
                if !is_before(below, above) {
                    break;
                }
                std::mem::swap(above, below);
            }
        }
    }
}

/// A deadlock that the server breaks within a second is not shown as critical.
fn judged(finding: &Finding, at: Timestamp, before: &FxHashSet<RowId>) -> Finding {
    let is_old = finding.row_since().is_some_and(|since| (at - since).as_seconds_f64() >= NEW);
    let is_sure = finding.blocked >= MANY || is_old || before.contains(&id_of(finding));
    let severity = match finding.severity {
        Severity::Critical if !is_sure => Severity::Warning,
        severity => severity,
    };
    Finding { severity, ..finding.clone() }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    use super::*;
    use crate::model::finding::Subject;
    use crate::model::wait_graph::Party;
    use Severity::{Critical, Info, Warning};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(1_795_000_000 + seconds, 0).unwrap()
    }

    fn finding(pid: i32, severity: Severity) -> Finding {
        Finding::new("a check", severity, pid.to_string(), Subject::Party(Party::Backend(pid)))
    }

    fn pid(finding: &Finding) -> i32 {
        finding.summary.parse().unwrap()
    }

    /// Process ids with the severity shown; negative if the finding has ended.
    fn shown(
        steady: &mut StableFindings,
        seconds: i64,
        is_read: bool,
        new: &[(i32, Severity)],
    ) -> Vec<(i32, Severity)> {
        let new = new.iter().map(|(pid, severity)| finding(*pid, *severity)).collect();
        let rows = steady.arrange(&Arc::new(new), at(seconds), is_read);
        let sign = |row: &Finding| if row.ended.is_some() { -1 } else { 1 };
        rows.iter().map(|row| (sign(row) * pid(row), row.severity)).collect()
    }

    #[test]
    fn an_ended_finding_keeps_its_place_for_five_seconds() {
        let mut steady = StableFindings::default();
        let all = [(1, Critical), (2, Warning), (3, Info)];
        assert_eq!(shown(&mut steady, 0, false, &all), all);
        let ended = [(1, Critical), (-2, Warning), (3, Info)];
        for second in 1..6 {
            assert_eq!(shown(&mut steady, second, false, &[all[0], all[2]]), ended, "{second}");
        }
        assert_eq!(shown(&mut steady, 6, false, &[all[0], all[2]]), [all[0], all[2]]);
        assert_eq!(shown(&mut steady, 7, false, &all), all);
    }

    /// In a chain each session is the root for a moment: as ended rows these would hide the current root.
    #[test]
    fn a_finding_of_one_snapshot_is_not_kept_after_it_ends() {
        let mut steady = StableFindings::default();
        let root = |pid| [(pid, Critical), (9, Warning)];
        assert_eq!(shown(&mut steady, 0, false, &root(1)), root(1));
        assert_eq!(shown(&mut steady, 1, false, &root(2)), [(2, Warning), (-1, Critical), (9, Warning)]);
        assert_eq!(shown(&mut steady, 2, true, &root(3)), [(-1, Critical), (9, Warning), (3, Warning)]);
        assert_eq!(shown(&mut steady, 6, true, &root(3)), [(9, Warning), (3, Critical)]);
    }

    #[test]
    fn a_finding_that_moves_to_another_check_has_not_ended() {
        let mut steady = StableFindings::default();
        shown(&mut steady, 0, false, &[(1, Critical)]);
        let other = Finding { check: "another", ..finding(1, Critical) };
        let rows = steady.arrange(&Arc::new(vec![other]), at(1), false);
        assert_eq!(rows.iter().map(|row| (row.check, row.ended)).collect::<Vec<_>>(), [("another", None)]);
    }

    #[test]
    fn a_new_finding_is_critical_in_its_second_snapshot_or_if_old_or_large() {
        let mut steady = StableFindings::default();
        assert_eq!(
            shown(&mut steady, 0, false, &[(1, Critical)]),
            [(1, Critical)],
            "it existed at the start"
        );
        assert_eq!(shown(&mut steady, 1, false, &[(2, Critical)]), [(2, Warning), (-1, Critical)]);
        assert_eq!(shown(&mut steady, 2, false, &[(2, Critical)]), [(2, Critical), (-1, Critical)]);
        let old = Finding { since: Some(at(-3)), ..finding(3, Critical) };
        let large = Finding { blocked: 10, since: Some(at(3)), ..finding(4, Critical) };
        let rows = steady.arrange(&Arc::new(vec![old, large]), at(3), false);
        let now = rows.iter().filter(|row| row.ended.is_none());
        assert!(now.map(|row| row.severity).eq([Critical, Critical]));
    }

    fn place(rows: &[i32], pid: i32) -> Option<usize> {
        rows.iter().position(|row| row.abs() == pid)
    }

    proptest! {
        /// Two rows change places only if their order lasts and they are not being read, and no row is lost.
        #[test]
        fn the_order_lasts(steps in vec((0..4u8, subsequence((1..=9).collect::<Vec<i32>>(), 5..=9).prop_shuffle()), 1..80)) {
            let mut steady = StableFindings::default();
            let mut orders: Vec<Vec<i32>> = Vec::new();
            let mut before: Vec<i32> = Vec::new();
            for (second, (reads, new)) in (0..).zip(steps) {
                // An order lasts for some snapshots; otherwise no rows would ever change places.
                let new = orders.last().filter(|_| second % 5 > 0).cloned().unwrap_or(new);
                let all: Vec<_> = new.iter().map(|pid| (*pid, Warning)).collect();
                let rows: Vec<i32> = shown(&mut steady, second, reads == 0, &all).into_iter().map(|(pid, _)| pid).collect();
                orders.push(new);
                let lasts = |a, b| {
                    let last = orders.iter().rev().take(ORDERS);
                    last.len() == ORDERS && last.clone().all(|order| place(order, a).is_some() && place(order, a) < place(order, b))
                };
                for (a, b) in rows.iter().flat_map(|a| rows.iter().map(move |b| (a.abs(), b.abs()))) {
                    let (Some(a_was), Some(b_was)) = (place(&before, a), place(&before, b)) else { continue };
                    if a_was > b_was && place(&rows, a) < place(&rows, b) {
                        prop_assert!(reads > 0 && lasts(a, b), "{a} and {b}: {before:?}, {rows:?}");
                    }
                }
                let mut now: Vec<i32> = rows.iter().copied().filter(|pid| *pid > 0).collect();
                let mut wanted = orders.last().unwrap().clone();
                now.sort_unstable();
                wanted.sort_unstable();
                prop_assert_eq!(now, wanted);
                before = rows;
            }
        }
    }

    #[test]
    fn an_order_that_lasts_is_shown_from_its_third_snapshot_on() {
        let mut steady = StableFindings::default();
        let (one, other) = ([(1, Warning), (2, Warning)], [(2, Warning), (1, Warning)]);
        let seen = [&one, &other, &other, &one, &other, &other, &other];
        let seen: Vec<_> = (0..).zip(seen).map(|(at, all)| shown(&mut steady, at, false, all)[0].0).collect();
        assert_eq!(seen, [1, 1, 1, 1, 1, 1, 2]);
    }
}
