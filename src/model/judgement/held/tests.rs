use crate::model::backend::State;
use crate::model::held::*;
use crate::model::lock::{LockMode, VirtualTransaction};
use crate::model::snapshot::{Detection, Section};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(seconds, 0).unwrap()
}

fn lock(pid: i32, key: u32, granted: bool) -> Lock {
    Lock {
        tag: LockTag::new(LockType::Advisory).with_objid(key),
        mode: LockMode::Exclusive,
        granted,
        pid: Some(pid),
        virtualtransaction: VirtualTransaction { proc_number: pid, local_xid: 1 },
        wait_start: None,
    }
}

/// Busy since `change`, and in a transaction since `xact` if given.
fn backend(pid: i32, xact: Option<i64>, change: i64) -> Backend {
    Backend {
        pid,
        backend_start: Some(at(0)),
        state: Some(State::Active),
        xact_start: xact.map(at),
        state_change: Some(at(change)),
        ..Backend::default()
    }
}

fn snapshot(seconds: i64, locks: &[Lock], backends: &[Backend]) -> Snapshot {
    Snapshot {
        taken_at: at(seconds),
        server: Section::default(),
        backends: Section::fresh(backends.to_vec(), at(seconds)),
        locks: Section::fresh(locks.to_vec(), at(seconds)),
        locks_omitted: 0,
        prepared: Section::default(),
        detection: Detection::done(at(seconds)),
        task_sets: std::sync::Arc::default(),
        adapters: std::sync::Arc::default(),
        sources: std::sync::Arc::default(),
        answers: Vec::new(),
        names: Arc::default(),
        poll_seconds: 0.5,
    }
}

/// Since when the only lock is held after polls at 10 and 11 with these holders.
fn after(first: Backend, second: Backend) -> i64 {
    let mut held = HeldWatch::default();
    let lock = [lock(1, 7, true)];
    held.observe(&snapshot(10, &lock, &[first])).values().for_each(|since| assert_eq!(since.proved, at(10)));
    held.observe(&snapshot(11, &lock, &[second])).values().next().unwrap().proved.timestamp()
}

fn proved(table: &HeldLocks, key: (i32, LockTag)) -> Option<Timestamp> {
    table.get(&key).map(|since| since.proved)
}

#[test]
fn a_lock_is_seen_for_as_long_as_its_holder_is_the_same_process() {
    let mut held = HeldWatch::default();
    let lock = [lock(1, 7, true)];
    let mut seen = |now, backend: Backend| {
        held.observe(&snapshot(now, &lock, &[backend])).get(&(1, lock[0].tag)).map(|since| since.seen)
    };
    // A worker that does something between any two polls.
    for now in 10..20 {
        assert_eq!(seen(now, backend(1, None, now)), Some(at(10)), "{now}");
    }
    let other = Backend { backend_start: Some(at(3)), ..backend(1, None, 20) };
    assert_eq!(seen(20, other), Some(at(20)), "another process of that number");
}

#[test]
fn a_lock_keeps_its_time_for_as_long_as_the_holder_stays() {
    let backends: Vec<_> = (1..4).map(|pid| backend(pid, None, 5)).collect();
    let mut held = HeldWatch::default();
    let first = [lock(1, 7, true), lock(2, 7, false)];
    let table = held.observe(&snapshot(10, &first, &backends));
    assert_eq!(table.values().count(), 1);
    assert!(Arc::ptr_eq(&table, &held.observe(&snapshot(11, &first, &backends))));
    let second = [lock(3, 8, true), lock(1, 7, true)];
    let table = held.observe(&snapshot(12, &second, &backends));
    assert_eq!(proved(&table, (1, first[0].tag)), Some(at(10)));
    assert_eq!(proved(&table, (3, second[0].tag)), Some(at(12)));
    let third = [lock(2, 7, true)];
    let table = held.observe(&snapshot(13, &third, &backends));
    assert_eq!(proved(&table, (2, third[0].tag)), Some(at(13)));
    assert_eq!(table.values().count(), 1, "released locks are forgotten");
    let table = held.observe(&snapshot(14, &first, &backends));
    assert_eq!(proved(&table, (1, first[0].tag)), Some(at(14)), "it was seen without the lock in between");
}

#[test]
fn a_lock_that_may_have_been_released_restarts_its_held_time() {
    for (first, second, since, why) in [
        (backend(1, None, 5), backend(1, None, 5), 10, "idle all the time"),
        (backend(1, None, 5), backend(1, None, 10), 11, "it did something"),
        (backend(1, Some(5), 6), backend(1, Some(5), 10), 10, "one transaction"),
        (backend(1, Some(5), 6), backend(1, Some(10), 10), 11, "another transaction"),
        (backend(1, Some(5), 6), backend(1, None, 10), 11, "the transaction ended"),
        (backend(1, None, 5), backend(1, Some(10), 10), 11, "a transaction began"),
        (backend(1, Some(10), 10), backend(1, Some(10), 10), 11, "it began after the locks were read"),
    ] {
        assert_eq!(after(first, second), since, "{why}");
    }
    let other = Backend { backend_start: Some(at(3)), ..backend(1, None, 5) };
    assert_eq!(after(backend(1, None, 5), other), 11, "another process");
    let hidden = || Backend { backend_start: None, state_change: None, ..backend(1, None, 5) };
    assert_eq!(after(hidden(), hidden()), 11, "nothing is known of it");
}

#[test]
fn unread_sections_do_not_prove_that_a_lock_is_still_held() {
    let (lock, idle) = ([lock(1, 7, true)], [backend(1, None, 5)]);
    let key = (1, lock[0].tag);
    let mut held = HeldWatch::default();
    let first = held.observe(&snapshot(10, &lock, &idle));
    // Old locks change nothing, and the next ones are compared with the last that were read.
    let mut stale = snapshot(11, &lock, &[]);
    stale.locks = stale.locks.stale("lock timeout".into());
    assert!(Arc::ptr_eq(&first, &held.observe(&stale)));
    assert_eq!(proved(&held.observe(&snapshot(12, &lock, &idle)), key), Some(at(10)));
    let mut stale = snapshot(13, &lock, &idle);
    stale.backends = stale.backends.stale("lock timeout".into());
    assert_eq!(proved(&held.observe(&stale), key), Some(at(13)));
    assert_eq!(proved(&held.observe(&snapshot(14, &lock, &idle)), key), Some(at(14)));
    assert_eq!(proved(&held.observe(&snapshot(15, &lock, &idle)), key), Some(at(14)));
    held.forget();
    assert_eq!(
        proved(&held.observe(&snapshot(16, &lock, &idle)), key),
        Some(at(16)),
        "the connection was lost"
    );
}

#[test]
fn an_idle_session_has_held_its_locks_since_it_became_idle() {
    for (state, xact) in [(State::Idle, None), (State::IdleInTransaction, Some(2))] {
        let idle = Backend { state: Some(state), ..backend(1, xact, 5) };
        let table = HeldWatch::default().observe(&snapshot(100, &[lock(1, 7, true)], &[idle]));
        assert_eq!(table.values().map(|since| since.proved).collect::<Vec<_>>(), [at(5)], "{state:?}");
    }
    let just_now = Backend { state: Some(State::Idle), ..backend(1, None, 100) };
    let table = HeldWatch::default().observe(&snapshot(100, &[lock(1, 7, true)], &[just_now]));
    assert_eq!(
        table.values().map(|since| since.proved).collect::<Vec<_>>(),
        [at(100)],
        "it may have acquired the lock during the scan"
    );
}

#[test]
fn a_snapshot_without_changes_shares_the_table() {
    let mut watch = HeldWatch::default();
    let _ = watch.observe(&snapshot(10, &[lock(1, 7, true)], &[backend(1, Some(5), 5)]));
    let first = watch.clone();
    let _ = watch.observe(&snapshot(11, &[lock(1, 7, true), lock(2, 7, false)], &[backend(1, Some(5), 10)]));
    assert!(!watch.is_same(&first), "the holder does something else");
    let second = watch.clone();
    let _ = watch.observe(&snapshot(12, &[lock(1, 7, true)], &[backend(1, Some(5), 10)]));
    assert!(watch.is_same(&second));
    let _ = watch.observe(&snapshot(13, &[lock(1, 7, true), lock(1, 8, true)], &[backend(1, Some(5), 10)]));
    assert!(!watch.is_same(&second));
}
