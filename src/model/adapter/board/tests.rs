use std::sync::Arc;

use super::*;
use crate::model::adapter::{InstallationRows, PartRows, sample};
use crate::model::lock::{Lock, LockMode, VirtualTransaction};
use crate::model::snapshot::Section;
use chrono::TimeDelta;
use rustc_hash::FxHashSet;

fn start() -> Timestamp {
    crate::sample::at(0.0)
}

/// A snapshot with these installations, in which these processes hold these keys.
fn snapshot(now: Timestamp, all: Vec<InstallationRows>, held: &[(i64, i32)]) -> Snapshot {
    let mut snapshot = crate::sample::Builder::default().snapshot();
    let lock = |(key, pid): &(i64, i32)| Lock {
        tag: crate::sample::advisory(*key),
        mode: LockMode::Exclusive,
        granted: true,
        pid: Some(*pid),
        virtualtransaction: VirtualTransaction { proc_number: *pid, local_xid: 1 },
        wait_start: None,
    };
    snapshot.taken_at = now;
    snapshot.locks = Section::fresh(held.iter().map(lock).collect(), now);
    snapshot.adapters = Arc::new(all);
    snapshot
}

fn look(all: Vec<InstallationRows>) -> Board {
    Watch::default().look(&snapshot(start(), all, &[]), &Thresholds::default())
}

#[test]
fn a_worker_lives_is_silent_or_has_stopped() {
    let board = look(vec![sample::beating(start())]);
    let told: Vec<_> = board
        .workers
        .iter()
        .map(|row| {
            (
                row.place.1,
                row.state,
                row.proof,
                row.since.map(|since| (start() - since).num_seconds()),
                row.busy,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (1, WorkerState::Silent, Proof::Heartbeat, Some(424), Some(1)),
            (0, WorkerState::Live, Proof::Heartbeat, None, Some(1)),
            (2, WorkerState::Stopped, Proof::None, Some(60), Some(0)),
        ]
    );
}

#[test]
fn a_worker_without_its_lock_is_gone_after_the_grace_and_not_before() {
    let mut watch = Watch::default();
    let thresholds = Thresholds { orphan_grace: 10.0, ..Thresholds::default() };
    for (seconds, state, since) in
        [(0, WorkerState::Unknown, 0), (9, WorkerState::Unknown, 9), (10, WorkerState::Gone, 10)]
    {
        let now = start() + TimeDelta::seconds(seconds);
        let all = vec![sample::locking(start())];
        let board = watch.look(&snapshot(now, all, &[(41, 4711)]), &thresholds);
        let [one, other] = board.workers.as_slice() else { panic!("{:?}", board.workers) };
        let (gone, live) = if one.place.1 == 1 { (one, other) } else { (other, one) };
        assert_eq!((live.state, live.proof, live.pid), (WorkerState::Live, Proof::Lock, Some(4711)));
        assert_eq!((gone.state, gone.proof), (state, Proof::Lock), "after {seconds} s");
        assert_eq!((now - gone.since.unwrap()).num_seconds(), since);
    }
}

/// Name, state, and what is counted of some words.
fn queues(board: &Board) -> Vec<(String, QueueState, Vec<String>)> {
    let words = |row: &QueueRow| {
        let count = |(word, count): (&Text, &Count)| {
            let (about, more) =
                (if count.is_estimate { "~" } else { "" }, if count.is_least { "+" } else { "" });
            format!("{word} {about}{}{more}", count.number)
        };
        row.counts.iter().map(count).collect()
    };
    let name = |row: &QueueRow| row.queue.as_deref().unwrap_or("(all)").to_owned();
    board.queues.iter().map(|row| (name(row), row.state, words(row))).collect()
}

#[test]
fn a_queue_says_how_many_and_whether_anybody_takes_them() {
    let expected = |state: QueueState| {
        let row = |name: &str, state, words: &[&str]| {
            (name.to_owned(), state, words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        let mut rows = vec![
            row("(all)", QueueState::Open, &["done ~1204331", "failed 10000+", "scheduled 17"]),
            row("billing", state, &["due 1204", "running 2"]),
            row("mail", if state == QueueState::Unserved { state } else { QueueState::Open }, &["due 1"]),
            row("reports", QueueState::Paused, &[]),
        ];
        rows.sort_by_key(|(_, state, _)| *state);
        rows
    };
    assert_eq!(queues(&look(vec![sample::beating(start())])), expected(QueueState::Overdue));
    let mut silent = sample::beating(start());
    let all: Vec<Worker> =
        silent.workers.section.last_rows().iter().filter(|worker| &*worker.id != "1").cloned().collect();
    silent.workers = sample::read(start(), all);
    assert_eq!(queues(&look(vec![silent.clone()])), expected(QueueState::Unserved));
    silent.workers = sample::read(start(), Vec::new());
    let listed: Vec<_> =
        queues(&look(vec![silent.clone()])).into_iter().map(|(name, state, _)| (name, state)).collect();
    let listed: Vec<_> = listed.iter().map(|(name, state)| (name.as_str(), *state)).collect();
    let expected_now = [
        ("billing", QueueState::Unserved),
        ("reports", QueueState::Paused),
        ("(all)", QueueState::Open),
        ("mail", QueueState::Open),
    ];
    assert_eq!(listed, expected_now, "nobody is listed, and one job is overdue");
    silent.workers = PartRows::default();
    assert_eq!(queues(&look(vec![silent])), expected(QueueState::Overdue), "who works was not read");
}

#[test]
fn beyond_what_is_counted_no_queue_is_whole() {
    let told = queues(&look(vec![sample::locking(start())]));
    let counts: Vec<_> =
        told.into_iter().map(|(name, _, words)| format!("{name} {}", words.join(" "))).collect();
    assert_eq!(counts, ["default due 9000+", "low due 1001+"]);
}

#[test]
fn a_lease_is_held_over_or_free() {
    let board = look(vec![sample::leasing(start()), sample::beating(start())]);
    let told: Vec<_> = board.leases.iter().map(|row| (row.place, row.state, row.left)).collect();
    assert_eq!(
        told,
        [
            ((0, 0), TermState::Held, None),
            ((0, 1), TermState::Held, Some(56.0)),
            ((1, 0), TermState::Held, Some(150.0)),
            ((0, 3), TermState::Unknown, None),
            ((0, 2), TermState::Over, Some(-340.0)),
            ((1, 1), TermState::Free, None),
        ]
    );
}

#[test]
fn a_schedule_is_overdue_once_its_time_has_passed() {
    for (next, enabled, state) in [
        (None, None, ScheduleState::On),
        (Some(60), None, ScheduleState::On),
        (Some(-1), Some(true), ScheduleState::On),
        (Some(-100_000), Some(true), ScheduleState::Overdue),
        (Some(-100_000), Some(false), ScheduleState::Off),
    ] {
        let mut rows = sample::beating(start());
        let mut all = Vec::clone(rows.schedules.section.last_rows());
        all[0].next_run_at = next.map(|seconds| start() + TimeDelta::seconds(seconds));
        all[0].is_enabled = enabled;
        rows.schedules = sample::read(start(), all);
        assert_eq!(look(vec![rows]).schedules[0].state, state, "{next:?} {enabled:?}");
    }
}

#[test]
fn the_ids_of_rows_of_different_kinds_and_installations_differ() {
    let (one, mut other) = (sample::beating(start()), sample::beating(start()));
    other.installation =
        Arc::new(crate::model::adapter::Installation { oid: 101, ..(*one.installation).clone() });
    let board = look(vec![one, other, sample::locking(start()), sample::leasing(start())]);
    let ids = board.rows.iter().map(|row| row.id).chain(board.workers.iter().map(|row| row.id));
    let ids = ids.chain(board.queues.iter().map(|row| row.id)).chain(board.leases.iter().map(|row| row.id));
    let ids: Vec<_> = ids.chain(board.schedules.iter().map(|row| row.id)).collect();
    let different: FxHashSet<_> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
}
