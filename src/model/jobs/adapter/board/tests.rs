use std::sync::Arc;

use super::*;
use crate::model::adapter::{AdapterLease, InstallationRows, sample};
use crate::model::lease::LeaseState;
use crate::model::lock::{Lock, LockMode, VirtualTransaction};
use crate::model::snapshot::Section;
use chrono::TimeDelta;
use rustc_hash::FxHashSet;

fn start() -> Timestamp {
    crate::sample::at(0.0)
}

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

fn evaluate(all: Vec<InstallationRows>) -> AdapterBoard {
    AdapterWatch::default().evaluate(&snapshot(start(), all, &[]), &Thresholds::default())
}

#[test]
fn a_worker_lives_is_silent_or_has_stopped() {
    let board = evaluate(vec![sample::beating(start())]);
    let workers: Vec<_> = board
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
        workers,
        [
            (1, WorkerState::Silent, Proof::Heartbeat, Some(424), Some(1)),
            (0, WorkerState::Live, Proof::Heartbeat, None, Some(1)),
            (2, WorkerState::Stopped, Proof::None, Some(60), Some(0)),
        ]
    );
}

#[test]
fn a_worker_without_its_lock_is_lost_only_after_the_grace_period() {
    let mut watch = AdapterWatch::default();
    let thresholds = Thresholds { orphan_grace: 10.0, ..Thresholds::default() };
    for (seconds, state, since) in
        [(0, WorkerState::Unknown, 0), (9, WorkerState::Unknown, 9), (10, WorkerState::Gone, 10)]
    {
        let now = start() + TimeDelta::seconds(seconds);
        let all = vec![sample::locking(start())];
        let board = watch.evaluate(&snapshot(now, all, &[(41, 4711)]), &thresholds);
        let [one, other] = board.workers.as_slice() else { panic!("{:?}", board.workers) };
        let (ended, live) = if one.place.1 == 1 { (one, other) } else { (other, one) };
        assert_eq!((live.state, live.proof, live.pid), (WorkerState::Live, Proof::Lock, Some(4711)));
        assert_eq!((ended.state, ended.proof), (state, Proof::Lock), "after {seconds} s");
        assert_eq!((now - ended.since.unwrap()).num_seconds(), since);
    }
}

fn queues(board: &AdapterBoard) -> Vec<(String, QueueState, Vec<String>)> {
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
fn a_queue_has_its_job_counts_and_whether_workers_serve_it() {
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
    assert_eq!(queues(&evaluate(vec![sample::beating(start())])), expected(QueueState::Overdue));
    let mut silent = sample::beating(start());
    let all: Vec<Worker> =
        silent.workers.last_rows().iter().filter(|worker| &*worker.id != "1").cloned().collect();
    silent.workers = sample::read(start(), all);
    assert_eq!(queues(&evaluate(vec![silent.clone()])), expected(QueueState::Unserved));
    silent.workers = sample::read(start(), Vec::new());
    let listed: Vec<_> =
        queues(&evaluate(vec![silent.clone()])).into_iter().map(|(name, state, _)| (name, state)).collect();
    let listed: Vec<_> = listed.iter().map(|(name, state)| (name.as_str(), *state)).collect();
    let expected_now = [
        ("billing", QueueState::Unserved),
        ("reports", QueueState::Paused),
        ("(all)", QueueState::Open),
        ("mail", QueueState::Open),
    ];
    assert_eq!(listed, expected_now, "no worker is listed, and one job is overdue");
    silent.workers = Section::default();
    assert_eq!(queues(&evaluate(vec![silent])), expected(QueueState::Overdue), "the workers were not read");
}

#[test]
fn counts_are_lower_bounds_if_the_count_limit_was_reached() {
    let listed = queues(&evaluate(vec![sample::locking(start())]));
    let counts: Vec<_> =
        listed.into_iter().map(|(name, _, words)| format!("{name} {}", words.join(" "))).collect();
    assert_eq!(counts, ["default due 9000+", "low due 1001+"]);
}

/// The listed jobs are among the estimated ones.
#[test]
fn listed_jobs_are_not_counted_twice() {
    for (estimate, expected) in [(120, "due ~120"), (1, "due 2+"), (0, "due 2+")] {
        let mut rows = sample::beating(start());
        let due = rows.jobs.get_mut(&Part::Due).unwrap();
        for job in Arc::make_mut(due.rows_mut()) {
            job.queue = Some("mail".into());
        }
        let depth = |number| super::super::Depth {
            queue: Some("mail".into()),
            state: "due".into(),
            number,
            is_estimate: true,
            oldest_at: None,
        };
        rows.depth = sample::read(start(), vec![depth(estimate)]);
        let listed = queues(&evaluate(vec![rows]));
        let mail = listed.iter().find(|(name, _, _)| name == "mail").unwrap();
        assert_eq!(mail.2, [expected], "{estimate}");
    }
}

#[test]
fn all_queues_are_as_old_as_the_oldest_of_them() {
    let mut rows = sample::beating(start());
    let depth = super::super::Depth { state: "due".into(), number: 2, ..super::super::Depth::default() };
    rows.depth = sample::read(start(), vec![depth]);
    let board = evaluate(vec![rows]);
    let all = board.queues.iter().find(|row| row.queue.is_none()).unwrap();
    assert_eq!((all.state, all.oldest_at), (QueueState::Overdue, Some(start() - TimeDelta::seconds(900))));
}

#[test]
fn no_session_of_a_worker_leaves_a_queue_unserved_once_a_job_is_overdue() {
    let states = |has_presence: bool, sessions: Option<u64>| {
        let mut rows = sample::beating(start());
        let mut installation = (*rows.installation).clone();
        let mut adapter = (*installation.adapter).clone();
        (adapter.evidence.has_presence, adapter.evidence.lists_workers) = (has_presence, false);
        installation.adapter = Arc::new(adapter);
        (rows.installation, rows.workers, rows.sessions) =
            (Arc::new(installation), Section::default(), sessions);
        let board = evaluate(vec![rows]);
        let state =
            |name: &str| board.queues.iter().find(|row| row.queue.as_deref() == Some(name)).unwrap().state;
        (state("billing"), state("mail"))
    };
    assert_eq!(
        states(true, Some(0)),
        (QueueState::Unserved, QueueState::Open),
        "one job has been due for only two seconds"
    );
    for (has_presence, sessions) in [(true, None), (true, Some(1)), (false, Some(0))] {
        assert_eq!(states(has_presence, sessions), (QueueState::Overdue, QueueState::Open), "{sessions:?}");
    }
}

/// A silent worker without a session is lost; a process that is only stopped keeps its session.
#[test]
fn a_silent_worker_without_a_session_is_lost() {
    for (own, has_presence, all, expected) in [
        (None, false, None, WorkerState::Silent),
        (Some(0), false, None, WorkerState::Gone),
        (Some(1), true, Some(1), WorkerState::Silent),
        (None, true, Some(0), WorkerState::Gone),
        (None, false, Some(0), WorkerState::Silent),
        (None, true, Some(2), WorkerState::Silent),
    ] {
        let mut rows = sample::beating(start());
        let mut installation = (*rows.installation).clone();
        let mut adapter = (*installation.adapter).clone();
        adapter.evidence.has_presence = has_presence;
        installation.adapter = Arc::new(adapter);
        (rows.installation, rows.sessions) = (Arc::new(installation), all);
        Arc::make_mut(rows.workers.rows_mut())[1].sessions = own;
        let board = evaluate(vec![rows]);
        let second = board.workers.iter().find(|row| row.place.1 == 1).unwrap();
        assert_eq!(second.state, expected, "{own:?} {has_presence} {all:?}");
        let lost = board.rows.iter().find(|row| row.judged.state == JobState::Lost).unwrap();
        let known = own.map(i64::cast_unsigned).or(all.filter(|all| *all == 0));
        assert_eq!((lost.judged.proof, lost.sessions), (Proof::Heartbeat, known));
    }
}

#[test]
fn jobs_per_worker_are_unknown_if_a_running_job_names_no_worker() {
    let mut rows = sample::beating(start());
    Arc::make_mut(rows.jobs.get_mut(&Part::Running).unwrap().rows_mut())[0].worker = None;
    let board = evaluate(vec![rows.clone()]);
    assert!(board.workers.iter().all(|row| row.busy.is_none()), "{:?}", board.workers);
    Arc::make_mut(rows.jobs.get_mut(&Part::Running).unwrap().rows_mut()).clear();
    assert!(evaluate(vec![rows]).workers.iter().all(|row| row.busy == Some(0)), "no job runs");
}

#[test]
fn a_lease_may_be_known_by_its_lock() {
    let mut rows = sample::leasing(start());
    let lease = |id: &str, key: i64| AdapterLease {
        id: id.into(),
        key: Some(LockKey::Bigint(key)),
        ..AdapterLease::default()
    };
    rows.leases = sample::read(start(), vec![lease("held", 7), lease("free", 8)]);
    let leases = |snapshot: &Snapshot| -> Vec<_> {
        let board = AdapterWatch::default().evaluate(snapshot, &Thresholds::default());
        board.leases.iter().map(|row| (row.place.1, row.state, row.owner_pid)).collect()
    };
    let mut snapshot = snapshot(start(), vec![rows], &[(7, 4711)]);
    assert_eq!(leases(&snapshot), [(0, LeaseState::Held, Some(4711)), (1, LeaseState::Free, None)]);
    Arc::make_mut(snapshot.server.rows_mut())[0].in_recovery = true;
    assert_eq!(leases(&snapshot)[1].1, LeaseState::Unknown, "the locks of the primary are not on a standby");
    snapshot.locks = snapshot.locks.stale("no".into());
    assert!(leases(&snapshot).iter().all(|(_, state, _)| *state == LeaseState::Unknown));
}

#[test]
fn a_lease_is_held_over_or_free() {
    let board = evaluate(vec![sample::leasing(start()), sample::beating(start())]);
    let leases: Vec<_> = board.leases.iter().map(|row| (row.place, row.state, row.left)).collect();
    assert_eq!(
        leases,
        [
            ((0, 0), LeaseState::Held, None),
            ((0, 1), LeaseState::Held, Some(56.0)),
            ((1, 0), LeaseState::Held, Some(150.0)),
            ((0, 3), LeaseState::Unknown, None),
            ((0, 2), LeaseState::Over, Some(-340.0)),
            ((1, 1), LeaseState::Free, None),
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
        let mut all = Vec::clone(rows.schedules.last_rows());
        all[0].next_run_at = next.map(|seconds| start() + TimeDelta::seconds(seconds));
        all[0].is_enabled = enabled;
        rows.schedules = sample::read(start(), all);
        assert_eq!(evaluate(vec![rows]).schedules[0].state, state, "{next:?} {enabled:?}");
    }
}

#[test]
fn the_ids_of_rows_of_different_kinds_and_installations_differ() {
    let (one, mut other) = (sample::beating(start()), sample::beating(start()));
    other.installation =
        Arc::new(crate::model::adapter::Installation { oid: 101, ..(*one.installation).clone() });
    let board = evaluate(vec![one, other, sample::locking(start()), sample::leasing(start())]);
    let ids = board.rows.iter().map(|row| row.id).chain(board.workers.iter().map(|row| row.id));
    let ids = ids.chain(board.queues.iter().map(|row| row.id)).chain(board.leases.iter().map(|row| row.id));
    let ids: Vec<_> = ids.chain(board.schedules.iter().map(|row| row.id)).collect();
    let different: FxHashSet<_> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
}
