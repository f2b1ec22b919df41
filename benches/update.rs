//! What the screens' state costs when a new view arrives, on each screen.
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

use criterion::{Criterion, criterion_group, criterion_main};
use locktop::app::message::Message;
use locktop::app::{App, Settings};
use locktop::keys::Key;
use locktop::model::view::View;

/// The same crowd at two moments, so that every view is a new one.
fn views(waiters: u32, locks: u32) -> [Arc<View>; 2] {
    [0.0, 1.0].map(|now| Arc::new(sample::crowd(waiters, locks, now).view()))
}

/// The same, where the feed has seen that no lock has changed in between.
fn still(waiters: u32, locks: u32) -> [Arc<View>; 2] {
    let [first, second] = [0.0, 1.0].map(|now| sample::crowd(waiters, locks, now).snapshot());
    let rows = Arc::clone(&first.locks.rows);
    let mut second = second;
    second.locks.rows = rows;
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
            let mut app = App::new(Settings::default(), 1.0);
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

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30);
    targets = update
}
criterion_main!(benches);
