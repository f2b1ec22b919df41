//! The cost of the wait graph: it is built at every poll, on the thread that polls.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark may"
)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use locktop::model::Timestamp;
use locktop::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};
use locktop::model::wait_graph::{Answer, Input, WaitGraph};

fn since(second: i32) -> Timestamp {
    Timestamp::from_timestamp(1_700_000_000 + i64::from(second), 0).unwrap()
}

fn row(key: i32, mode: LockMode, pid: i32, wait_start: Option<Timestamp>) -> Lock {
    let tag = LockTag::new(LockType::Advisory)
        .with_database(5)
        .with_classid(0)
        .with_objid(key.unsigned_abs())
        .with_objsubid(1);
    Lock {
        tag,
        mode,
        granted: wait_start.is_none(),
        pid: Some(pid),
        virtualtransaction: VirtualTransaction { proc_number: pid, local_xid: 1 },
        wait_start,
    }
}

/// `locks` held keys; `waiters` sessions wait for the first.
fn one_queue(locks: i32, waiters: i32) -> Vec<Lock> {
    let held = (0..locks).map(|key| row(key, LockMode::Exclusive, 100 + key % 50, None));
    let waiting = (0..waiters).map(|n| row(0, LockMode::Exclusive, 10_000 + n, Some(since(n))));
    held.chain(waiting).collect()
}

/// The server's answers about the first waiters of a queue.
fn answers(waiters: i32) -> Vec<Answer> {
    (0..waiters)
        .map(|n| Answer {
            waiter: 10_000 + n,
            wait_start: Some(since(n)),
            blockers: std::iter::once(100).chain(10_000..10_000 + n).collect(),
        })
        .collect()
}

/// One lock held in share mode, and exclusive waiters for it.
fn shared(holders: i32, waiters: i32) -> Vec<Lock> {
    let held = (0..holders).map(|n| row(0, LockMode::Share, 100 + n, None));
    let waiting = (0..waiters).map(|n| row(0, LockMode::Exclusive, 10_000 + n, Some(since(n))));
    held.chain(waiting).collect()
}

/// A convoy: each session holds its own key and waits for the key of the previous one.
fn convoy(length: i32) -> Vec<Lock> {
    (0..length)
        .flat_map(|n| {
            let waits = (n > 0).then(|| row(n - 1, LockMode::Exclusive, 100 + n, Some(since(n))));
            std::iter::once(row(n, LockMode::Exclusive, 100 + n, None)).chain(waits)
        })
        .collect()
}

/// A long reader, DDL behind it, and a crowd of readers behind that.
fn crowd(readers: i32) -> Vec<Lock> {
    let front =
        [row(0, LockMode::AccessShare, 100, None), row(0, LockMode::AccessExclusive, 101, Some(since(0)))];
    let behind = (0..readers).map(|n| row(0, LockMode::AccessShare, 10_000 + n, Some(since(n + 1))));
    front.into_iter().chain(behind).collect()
}

fn graph(c: &mut Criterion) {
    let mut bench = |name: &str, locks: &[Lock], answers: &[Answer]| {
        c.bench_function(name, |b| {
            b.iter(|| {
                WaitGraph::build(black_box(Input { locks, backends: &[], answers, ..Input::default() }))
            });
        });
    };
    bench("22,000 locks, 1,000 waiters", &one_queue(22_000, 1_000), &[]);
    bench("44,000 locks, 2,000 waiters", &one_queue(44_000, 2_000), &[]);
    bench("22,000 locks, 1,000 waiters, 100 answers", &one_queue(22_000, 1_000), &answers(100));
    bench("500 sharers, 1,000 waiters", &shared(500, 1_000), &[]);
    bench("1,000 sharers, 2,000 waiters", &shared(1_000, 2_000), &[]);
    bench("convoy of 1,000", &convoy(1_000), &[]);
    bench("convoy of 2,000", &convoy(2_000), &[]);
    bench("crowd of 1,000 behind DDL", &crowd(1_000), &[]);
    bench("crowd of 2,000 behind DDL", &crowd(2_000), &[]);
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = graph
}
criterion_main!(benches);
