//! The cost of updating the screens' state when a new view arrives, on each screen; and the feed's cost for the
//! snapshot before that.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a benchmark may"
)]

#[path = "support/sample.rs"]
mod sample;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use locktop::app::message::Message;
use locktop::app::{App, AppSettings};
use locktop::feed::view_builder::ViewBuilder;
use locktop::keys::Key;
use locktop::model::lock_name::LockNames;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::{TargetId, View};

/// The same sessions at two times, so that every view is a new one.
fn views(waiters: u32, locks: u32) -> [Arc<View>; 2] {
    [0.0, 1.0].map(|now| Arc::new(sample::crowd(waiters, locks, now).view()))
}

/// The same, if the feed has detected that no lock has changed in between.
fn still(waiters: u32, locks: u32) -> [Arc<View>; 2] {
    let [first, second] = [0.0, 1.0].map(|now| sample::crowd(waiters, locks, now).snapshot());
    let rows = Arc::clone(first.locks.last_rows());
    let mut second = second;
    *second.locks.rows_mut() = rows;
    [first, second].map(|snapshot| Arc::new(sample::view(snapshot, 1)))
}

fn update(c: &mut Criterion) {
    for (waiters, locks) in [(1_000, 22_000), (2_000, 44_000)] {
        let (views, still) = (views(waiters, locks), still(waiters, locks));
        for (screen, keys, views) in [
            ("Overview", "1", &views),
            ("Overview, no change", "1", &still),
            ("Locks", "3", &views),
            ("Locks, no change", "3", &still),
            ("all locks", "3a", &views),
            ("Backends", "7", &views),
        ] {
            let mut app = App::new(AppSettings::default(), 1.0);
            app.update(Message::Resize(200, 60));
            for key in keys.chars() {
                app.update(Message::Key(Key::parse(&key.to_string()).unwrap()));
            }
            let mut newest = views.iter().cycle();
            c.bench_function(&format!("{screen}, {locks} locks, {waiters} waiters"), |b| {
                b.iter(|| {
                    let view = Arc::clone(newest.next().unwrap());
                    black_box(app.update(Message::View(view.target, view)))
                });
            });
        }
    }
}

/// A snapshot after another one: nothing has changed, or a thousand waits have ended and a thousand have begun.
fn feed(c: &mut Criterion) {
    let (waiters, locks) = (1_000, 22_000);
    let still = [0.0, 1.0].map(|now| sample::crowd(waiters, locks, now).snapshot());
    let mut changed = still.clone();
    let mut rows = changed[1].locks.last_rows().as_ref().clone();
    for lock in rows.iter_mut().filter(|lock| !lock.granted) {
        lock.wait_start = lock.wait_start.map(|start| start + chrono::TimeDelta::seconds(60));
    }
    *changed[1].locks.rows_mut() = Arc::new(rows);
    for (name, snapshots) in [("no change", still), ("2,000 events", changed)] {
        let mut view_builder =
            ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default());
        let mut newest = snapshots.iter().cycle();
        c.bench_function(&format!("feed, {name}, {locks} locks, {waiters} waiters"), |b| {
            b.iter_batched(
                || newest.next().unwrap().clone(),
                |snapshot| black_box(view_builder.snapshot_taken(snapshot)),
                BatchSize::SmallInput,
            );
        });
    }
}

/// The Events screen with as many events as are kept.
fn events(c: &mut Criterion) {
    let mut view_builder = ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default());
    let mut view = view_builder.snapshot_taken(sample::crowd(0, 100, 0.0).snapshot());
    for round in 0..24 {
        let now = f64::from(round);
        let waiters = if round % 2 == 0 { 1_000 } else { 0 };
        view = view_builder.snapshot_taken(sample::crowd(waiters, 100, now).snapshot());
    }
    let views = [view, view_builder.snapshot_taken(sample::crowd(0, 100, 30.0).snapshot())];
    for (name, keys) in [("folded", "8"), ("filtered", "8/1500")] {
        let mut app = App::new(AppSettings::default(), 1.0);
        app.update(Message::Resize(200, 60));
        app.update(Message::View(TargetId::default(), Arc::clone(&views[0])));
        for key in Key::parse_all(keys).unwrap() {
            app.update(Message::Key(key));
        }
        let mut newest = views.iter().cycle();
        c.bench_function(&format!("Events, {name}, {} events", views[1].events.len()), |b| {
            b.iter(|| {
                let view = Arc::clone(newest.next().unwrap());
                black_box(app.update(Message::View(view.target, view)))
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30);
    targets = update, feed, events
}
criterion_main!(benches);
