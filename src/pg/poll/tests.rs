use super::*;
use crate::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};
use crate::model::snapshot::{Detection, Section};

fn lock(pid: i32, granted: bool, since: Option<i64>) -> Lock {
    Lock {
        tag: LockTag::new(LockType::Advisory),
        mode: LockMode::Exclusive,
        granted,
        pid: Some(pid),
        virtualtransaction: VirtualTransaction { proc_number: 1, local_xid: 1 },
        wait_start: since.and_then(|since| Timestamp::from_timestamp(since, 0)),
    }
}

fn snapshot(locks: Vec<Lock>) -> Snapshot {
    let taken_at = Timestamp::from_timestamp(1000, 0).unwrap();
    Snapshot {
        taken_at,
        server: Section::default(),
        backends: Section::default(),
        locks: Section::fresh(locks, taken_at),
        locks_omitted: 0,
        prepared: Section::default(),
        detection: Detection::done(taken_at),
        task_sets: std::sync::Arc::default(),
        adapters: std::sync::Arc::default(),
        sources: std::sync::Arc::default(),
        answers: Vec::new(),
        names: std::sync::Arc::default(),
        poll_seconds: 0.0,
    }
}

#[test]
fn the_longest_waits_are_asked_about_first_and_those_without_a_start_last() {
    let before = snapshot(vec![
        lock(1, true, None),
        lock(2, false, None),
        lock(3, false, Some(30)),
        lock(4, false, Some(10)),
        lock(5, false, Some(20)),
    ]);
    let pids = |ask, ask_rows| -> Vec<i32> {
        let limits = PollLimits { ask, ask_rows, ..PollLimits::default() };
        waiters(&before, &limits).iter().map(|waiter| waiter.0).collect()
    };
    let asked = |limit| pids(limit, 1000);
    assert!(asked(0).is_empty());
    assert_eq!(asked(1), [4]);
    assert_eq!(asked(2), [4, 5]);
    assert_eq!(asked(3), [4, 5, 3]);
    assert_eq!(asked(100), [4, 5, 3, 2]);
    // Each of the four walks a queue of four; one is always asked about.
    assert_eq!(pids(100, 8), [4, 5]);
    assert_eq!(pids(100, 0), [4]);
}

#[test]
fn sizes_as_the_server_prints_them() {
    for (text, bytes) in
        [("1kB", 1024), ("100", 100), ("100B", 100), ("1MB", 1 << 20), ("", 0), ("9999GB", u32::MAX)]
    {
        assert_eq!(opening::bytes_of_setting(text), bytes, "{text}");
    }
}
